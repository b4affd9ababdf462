#!/usr/bin/env bash
# Runs tests, step by step, and prints a table of what took how long.
#
#   hack/test.sh STEP...
#
#   unit     what needs no stack: go test ./... and the modules of their own
#   stack    what starts a stack: the files with the build tag stack
#   race     gates against stale observations, with the machine for itself: 200 rounds, some five minutes
#
#   GO=go         the go command
#   TESTFLAGS=    more arguments to go test
#   OVERLAP=2     how many packages of the step stack run at once, each with a stack of its own
#   GOGC=400      how much garbage a process may have, in percent of what it uses: by default, a fifth of the time of an
#                 API server goes into collecting it
#
# Nothing comes from go test's cache of results, which does not see that a program changed that a test runs.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

go=${GO:-go}
overlap=${OVERLAP:-2}
export GOGC=${GOGC:-400}
eval "flags=(${TESTFLAGS:-})" # As the shell reads them: they may be quoted.

# The packages that take longest, which start first, so that no core is idle at the end. The others are found.
slowest=(e2e fault situations quiet witness random install)

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
	"$go" "$@" 2>&1 | tee -a "$output"
}

unit() {
	run test ./... -count=1 ${flags[@]+"${flags[@]}"} &&
		run test -C hack/package ./... -count=1 ${flags[@]+"${flags[@]}"} &&
		run test -C package/monitoring/check ./... -count=1 ${flags[@]+"${flags[@]}"} &&
		run test -C docs/workflows/check ./... -count=1 ${flags[@]+"${flags[@]}"}
}

# stack has several tests of a package run at once, too: most of them wait.
stack() {
	local packages=() dir
	for dir in "${slowest[@]/#/test/}"; do
		packages+=("./$dir")
	done
	while read -r dir; do
		[[ " ${packages[*]} " == *" ./$dir "* ]] || packages+=("./$dir")
	done < <(grep -rl --include='*_test.go' '^//go:build stack$' test | xargs -n1 dirname | sort -u)
	run test -tags stack "${packages[@]}" -p "$overlap" -count=1 -parallel 6 -timeout 2h ${flags[@]+"${flags[@]}"}
}

race() {
	KAUSALITY_RACE=1 run test -tags stack ./test/e2e -run '^TestTheGateKeepsUpWithStaleObservations$' -v -count=1 -timeout 2h
}

outcome=0
for step in "$@"; do
	[[ $step =~ ^(unit|stack|race)$ ]] || { echo "cannot run step $step: there are unit, stack and race" >&2; exit 2; }
	start=$SECONDS
	echo "==> $step" | tee -a "$output"
	"$step" || outcome=1
	echo "==> $step took $((SECONDS - start)) s" | tee -a "$output"
	((outcome == 0)) || break
done

echo
table
exit "$outcome"
