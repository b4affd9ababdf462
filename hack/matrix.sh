#!/usr/bin/env bash
# Plays the demo's scenario on each supported version of Kubernetes with each one of Crossplane, one control plane after the
# other, and prints a row for each. Fails if any of them fails. What they print is in $LOCAL/matrix.
#
#   hack/matrix.sh [KUBERNETES...]      minor versions; without any: the newest, and each in test/stack/modules
#
#   GO=go         the go command
#   LOCAL=.local  the directory for the logs
set -euo pipefail

unset KUBEBUILDER_ASSETS # Its programs have one version.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
logs=${LOCAL:-$root/.local}/matrix
mkdir -p "$logs"

# newest is the minor version that the stack is pinned to.
newest=$(sed -n 's,^\tk8s.io/kubernetes v\([0-9]*\.[0-9]*\)\..*,\1,p' "$root/test/stack/modules/kubernetes/go.mod")

minors=("$@")
if ((${#minors[@]} == 0)); then
	mapfile -t minors < <(cd "$root/test/stack/modules" && printf '%s\n' kubernetes-* | sed 's,^kubernetes-,,' | sort -rV)
	minors=("$newest" "${minors[@]}")
fi

# play plays one row: a minor version of Kubernetes, and the flags for Crossplane.
play() {
	local minor=$1 crossplane=$2 log start=$SECONDS result=passed
	shift 2
	log=$logs/$minor-$crossplane.log

	[[ $minor == "$newest" ]] || set -- --kubernetes="$minor" "$@"
	GO="${GO:-go}" "$root/hack/run.sh" ./test/demo "$@" </dev/null >"$log" 2>&1 || result="failed: see $log"

	printf '| %s | %s | %s | %d s |\n' "$minor" "$crossplane" "$result" $((SECONDS - start))
	[[ $result == passed ]]
}

failed=0
printf '| Kubernetes | Crossplane | The scenario of make demo | Took |\n|---|---|---|---|\n'

for minor in "${minors[@]}"; do
	play "$minor" 2 || failed=1
	play "$minor" 1.20 --crossplane-before-2 || failed=1
done

exit $failed
