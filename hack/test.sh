#!/usr/bin/env bash
# Runs tests, step by step, and prints a table of what took how long.
#
#   hack/test.sh STEP...
#
#   unit          what needs no stack: go test ./... with the coverage of engine/, and the modules of their own
#   short         the stack tests of make test: of each mechanism at least one
#   all           all stack tests
#   race          gates against stale observations, with the machine for itself
#   bench         each benchmark of test/bench once, with few objects: that it can be run, not how fast it is
#   rest-PART     one part of what only make test-all plays, or of what only make lint runs (lint); rest-draw draws one by
#                 the hash of the commit's tree
#   parts         prints the names of these parts
#
#   GO=go         the go command
#   TESTFLAGS=    more arguments to go test
#   OVERLAP=2     how many packages with a stack of their own run at once
#   ROUNDS=40     how many rounds the race has
#   COVERAGE=90   least coverage of engine/ in percent, by its own tests and the corpus
#   GOGC=400      how much garbage a process may have, in percent of what it uses: by default, a fifth of the time of an
#                 API server goes into collecting it
#
# A stack test is in make test-all alone where its first statement is world.Long: go test -short skips it.
# Nothing comes from go test's cache of results, which does not see that a program changed that a test runs.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

go=${GO:-go}
overlap=${OVERLAP:-2}
rounds=${ROUNDS:-40}
export GOGC=${GOGC:-400}
eval "flags=(${TESTFLAGS:-})" # As the shell reads them: they may be quoted.

# The packages that take longest, which start first, so that no core is idle at the end. The others are found.
slowest=(fault e2e random install examples quiet fleet witness)

# How many parts the rest of a package is played in; one where none is given.
declare -A shares=([e2e]=3 [fault]=4 [random]=2 [witness]=2)

# What a part builds besides what make stack builds, as targets of make.
declare -A needs=([examples]='gitops postgresql' [witness]=postgresql [older]=stack-older)

output=$(mktemp)
trap 'rm -f "$output"' EXIT

# table prints how long the packages took, those that took longest first, then the sum of each step.
table() {
	awk -v total=$SECONDS '
		$1 == "==>" { step = $2; if ($3 == "took") printf "2 %d %s\n", $4, step; next }
		$1 == "ok" && $3 ~ /^[0-9.]+s$/ || $1 == "FAIL" && NF > 2 {
			sub(/^github.com\/[^\/]*\/[^\/]*\//, "", $2)
			printf "1 %.1f %s %s%s\n", $3, step, $2, ($1 == "ok" ? "" : " FAILED")
		}
		END { printf "3 %d all\n", total }
	' "$output" | sort -k1,1n -k2,2rn | awk '
		$1 == 1 && $2 < 1 && $5 == "" { short++; next }
		$1 == 1 { printf "%6.0f s  %-5s  %s%s\n", $2, $3, $4, ($5 == "" ? "" : "  " $5); next }
		!seen++ { if (short) printf "          and %d that took less than a second each\n", short; print "" }
		{ printf "%6d s  %s\n", $2, $3 }'
}

# run runs go test, and notes what it prints.
run() {
	"$go" test "$@" -count=1 ${flags[@]+"${flags[@]}"} 2>&1 | tee -a "$output"
}

# unit measures the coverage of engine/ while its tests run.
unit() {
	local judged=./engine/... others dir
	mapfile -t others < <("$go" list ./... | grep -v "/engine/\|/engine$\|/test/corpus$")
	run "$judged" ./test/corpus -coverpkg=./engine/... -coverprofile=coverage.out &&
		covered &&
		run "${others[@]}" || return
	for dir in hack/package package/monitoring/check docs/workflows/check; do
		run -C "$dir" ./... || return
	done
}

# covered fails where less of engine/ is covered than is to be; a selection of tests covers less.
covered() {
	((${#flags[@]} == 0)) || return 0
	"$go" tool cover -func=coverage.out | awk -v least="${COVERAGE:-90}" '
		END { print "coverage of engine/: " $3; if ($3 + 0 < least) { print "less than " least "%"; exit 1 } }'
}

# tests prints the stack tests of a package: those that make test plays (short), or those of which it does not play all
# (long). Where world.Long is not the first statement, only a part of the test is long.
tests() {
	awk '
		/^func Test[A-Za-z0-9_]*\(t \*testing\.T\) \{( \/\/.*)?$/ { name = $2; sub(/\(.*/, "", name); lines = long = whole = 0; next }
		/^}$/ && name { if (!whole) print "short", name; if (long) print "long", name; name = "" }
		name { lines++; if (/world\.(Long\(t\)$|Sample\()/) { long = 1; if (lines == 1 && /Long/) whole = 1 } }
	' $(grep -l '^//go:build stack$' "test/$1"/*_test.go) | awk -v want="$2" '$1 == want { print $2 }' | sort
}

# packages prints the packages with stack tests, the slowest first.
packages() {
	{
		printf '%s\n' "${slowest[@]}"
		grep -rl --include='*_test.go' '^//go:build stack$' test | xargs -n1 dirname | sort -u | sed 's,^test/,,'
	} | awk '!seen[$0]++ && $0 != "bench"'
}

# stacks runs stack tests of packages; several of one at once, too: most of them wait.
stacks() {
	run -tags stack -p "$overlap" -parallel 6 -timeout 2h "$@"
}

short() {
	local list=() name
	for name in $(packages); do
		[[ -z $(tests "$name" short) ]] || list+=("./test/$name")
	done
	stacks -short "${list[@]}"
}

all() {
	stacks $(packages | sed 's,^,./test/,')
}

bench() {
	PARENTS=200 run -tags stack ./test/bench -run '^$' -bench . -benchtime 1x -timeout 30m
}

race() {
	KAUSALITY_RACE=$rounds run -tags stack ./test/e2e -run '^TestTheGateKeepsUpWithStaleObservations$' -v -timeout 2h
}

# parts are the names of parts of the rest: PACKAGE, or PACKAGE-N of several.
parts() {
	local name n
	for name in $(packages); do
		[[ -n $(tests "$name" long) ]] || continue
		if ((${shares[$name]:-1} == 1)); then
			echo "$name"
			continue
		fi
		for ((n = 1; n <= shares[$name]; n++)); do
			echo "$name-$n"
		done
	done
	echo race
	echo bench
	echo lint
}

# draw draws a part by the hash of the tree of the commit, so that each commit has its own and each run of it the same.
draw() {
	local -a all
	mapfile -t all < <(parts)
	echo "${all[0x$(git rev-parse 'HEAD^{tree}' | cut -c1-7) % ${#all[@]}]}"
}

# rest plays a part: each so manyth test, so that new ones do not move the others.
rest() {
	[[ $1 != draw ]] || set -- "$(draw)"
	local name=${1%-[0-9]} number=1 list target
	[[ $1 != race ]] || { race; return; }
	[[ $1 != bench ]] || { bench; return; }
	[[ $1 != lint ]] || { make lint-libraries; return; }
	[[ " $(parts | xargs) " == *" $1 "* ]] || { echo "cannot play part $1: there are $(parts | xargs)" >&2; return 2; }
	[[ $1 == "$name" ]] || number=${1##*-}
	for target in ${needs[$name]:-}; do
		make "$target" || return
	done
	list=$(tests "$name" long | awk -v n="$number" -v of="${shares[$name]:-1}" 'NR % of == n % of' | paste -sd'|')
	echo "part $1: ${list//|/ }"
	stacks "./test/$name" -run "^($list)\$"
}

outcome=0
for step in "$@"; do
	[[ $step =~ ^(unit|short|all|race|bench|parts|rest-.+)$ ]] || { echo "cannot run step $step: see the head of $0" >&2; exit 2; }
	[[ $step != parts ]] || { parts; continue; }
	start=$SECONDS
	echo "==> $step" | tee -a "$output"
	"${step%%-*}" ${step#*-} || outcome=1
	echo "==> $step took $((SECONDS - start)) s" | tee -a "$output"
	((outcome == 0)) || break
done

[[ ! -s $output ]] || { echo; table; }
exit "$outcome"
