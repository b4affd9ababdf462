#!/usr/bin/env bash
# Runs the benchmarks: the raw output goes to bench/latest.txt, a summary to bench/results.json, and
# a table to standard output.
#
#   COUNT=6        how often each runs
#   BENCH=.        which ones, as a regular expression
#   BENCHTIME=1s   how long each takes
#   PACKAGES=...   where to look
#   PARENTS=10000  how many objects there are where memory and gates are measured; creating and
#                  changing them takes most of a quick run, so that COUNT=1 BENCHTIME=10ms wants 1000
#   BASE=file      an earlier bench/latest.txt to compare with
#
# A benchmark that measures a peer beside us names the two by=kausality and by=<peer> as the last
# part of its name; the table shows them in two columns. Peers whose dependencies must not meet ours
# live in a module of their own, bench/<peer>/go.mod, and are measured in the same run.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

count=${COUNT:-6}
bench=${BENCH:-.}
benchtime=${BENCHTIME:-1s}

# Only packages that have benchmarks: compiling the others takes longer than measuring these.
if [[ -n ${PACKAGES:-} ]]; then
	read -ra packages <<<"$PACKAGES"
else
	packages=()
	while read -r dir; do
		if grep -qs '^func Benchmark' "$dir"/*_test.go; then
			packages+=("$dir")
		fi
	done < <(go list -f '{{.Dir}}' ./...)
fi
if ((${#packages[@]} == 0)); then
	echo 'there is no benchmark to run' >&2
	exit 1
fi

benchstat=$(hack/tools.sh)/benchstat
mkdir -p bench
: >bench/latest.txt

# Measures the packages of the module in a directory, one after the other (-p 1): two at once would
# measure each other.
measure() {
	local dir=$1
	shift
	(cd "$dir" && go test -tags stack -run '^$' -bench "$bench" -benchmem -benchtime "$benchtime" \
		-count "$count" -timeout 60m -p 1 "$@") | tee -a bench/latest.txt
}

measure . "${packages[@]}"
flags=()
for mod in bench/*/go.mod; do
	[[ -f $mod ]] || continue
	measure "$(dirname "$mod")" ./...
	# A peer and we are then the same benchmark in two packages.
	flags=(-ignore pkg)
done

# Written aside first: a failed conversion must not leave half a file.
go run ./hack/benchjson "${VERSION:-}" <bench/latest.txt >bench/results.json.partial
mv bench/results.json.partial bench/results.json

echo
if [[ -n ${BASE:-} ]]; then
	"$benchstat" "base=$BASE" "now=bench/latest.txt"
elif grep -q '/by=' bench/latest.txt; then
	"$benchstat" ${flags[@]+"${flags[@]}"} -col /by bench/latest.txt
else
	"$benchstat" bench/latest.txt
fi
echo "results: bench/results.json, raw: bench/latest.txt"
