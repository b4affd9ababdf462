#!/usr/bin/env bash
# Generates the kinds, their controllers and their CRDs from the Terraform provider.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
export GOWORK=off GOFLAGS=-mod=readonly

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOBIN=$bin go install tool
export PATH=$bin:$PATH

find apis internal -name 'zz_*' -delete
find apis internal -type d -empty -delete
rm -rf crds examples-generated

go build -o "$bin/generator" ./cmd/generator
generator .
rm -rf examples-generated
controller-gen object:headerFile=hack/boilerplate.go.txt paths=./apis/... \
	crd:allowDangerousTypes=true output:crd:artifacts:config=crds
angryjet generate-methodsets --header-file=hack/boilerplate.go.txt ./apis/...
