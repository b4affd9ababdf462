#!/usr/bin/env bash
# Generates the kinds, their controllers and their CRDs from the Terraform provider, and builds the provider.
#
#   generate.sh DIR    writes DIR/provider-postgresql and DIR/crds
#
# It generates where it is. The stack's harness runs it in a copy of this module, in its cache outside the tree:
# `make postgresql` has it do so.
set -euo pipefail

dir=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"

# A go.work, flags or a target platform of the caller are about something else. With -trimpath for all, what is
# compiled for one step is compiled for the others, too.
export GOWORK=off GOFLAGS='-mod=readonly -trimpath -buildvcs=false' CGO_ENABLED=0
unset GOOS GOARCH

bin=$dir/bin
export PATH=$bin:$PATH

go build -o "$bin/" tool ./cmd/generator
generator .
rm -rf examples-generated
controller-gen object:headerFile=hack/boilerplate.go.txt paths=./apis/... \
	crd:allowDangerousTypes=true output:crd:artifacts:config="$dir/crds"
angryjet generate-methodsets --header-file=hack/boilerplate.go.txt ./apis/...

go build -ldflags='-s -w' -o "$dir/provider-postgresql" ./cmd/provider
rm -rf "$bin"
