#!/usr/bin/env bash
# Generates what follows from the Go sources: deepcopy functions, CRDs, RBAC of the manager, references.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
gen=$(hack/tools.sh)/controller-gen

fresh=$(mktemp -d)
manager=()
trap 'rm -rf "$fresh"' EXIT

"$gen" object:headerFile=hack/boilerplate.go.txt paths=./apis/...
"$gen" crd paths=./apis/... output:crd:artifacts:config="$fresh/crds"
for dir in gatecontroller webhook; do
	[[ ! -d $dir ]] || manager+=("paths=./$dir/...")
done
if ((${#manager[@]})); then
	"$gen" rbac:roleName=kausality-manager "${manager[@]}" output:rbac:artifacts:config="$fresh/rbac"
fi

# Made aside and swapped in whole, so that the file of a kind that is gone goes as well. What
# controller-gen does not name this way is written by hand and stays.
mkdir -p "$fresh/crds" "$fresh/rbac" package/crds package/rbac
rm -f package/crds/*kausality.io_*.yaml package/rbac/role.yaml
# The function's input is no kind the API server serves: it goes into the function's package.
mkdir -p package/input
mv "$fresh"/crds/*_inputs.yaml package/input/
find "$fresh/crds" -name '*.yaml' -exec cp {} package/crds/ \;
find "$fresh/rbac" -name '*.yaml' -exec cp {} package/rbac/ \;

# The chart carries the CRDs and the roles as they are.
mkdir -p package/chart/crds package/chart/files
rm -f package/chart/crds/*.yaml
cp package/crds/*.yaml package/chart/crds/
cp package/rbac/*.yaml package/chart/files/

# From all of these, and from the programs themselves.
go run ./hack/reference docs/reference
