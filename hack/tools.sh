#!/usr/bin/env bash
# Builds the tools pinned in tools/go.mod and prints the directory they are in.
#
#   hack/tools.sh               those
#   hack/tools.sh tools/NAME    the one of a module of its own, whose dependencies must not meet theirs
#
# They go to a cache outside the tree, under a key made of everything that decides what comes out:
# the pins and the Go version. So a second checkout, and a CI run after the first, builds nothing.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
module=${1:-tools}
cd "$root/$module"

# A go.work, flags or a target platform of the caller are about the main module, not about these.
export GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0
unset GOOS GOARCH

version=$(go version)
key=$({ cat go.mod go.sum && echo "$version"; } | git hash-object --stdin | cut -c1-16)
cache=${KAUSALITY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kausality-crossplane}/tools/$key

if [[ ! -d $cache/bin ]]; then
	echo "building the tools of $module/go.mod into $cache (once, 1 to 3 minutes) ..." >&2
	start=$SECONDS
	mkdir -p "$(dirname "$cache")"
	partial=$(mktemp -d "$cache.partial.XXXXXX")
	trap 'rm -rf "$partial"' EXIT
	chmod 755 "$partial"
	GOBIN=$partial/bin go install -trimpath -ldflags='-s -w' tool >&2
	# The rename makes it visible, so nobody sees half of it. Of two that build at once the first wins.
	[[ -d $cache/bin ]] || mv "$partial" "$cache"
	echo "built the tools in $((SECONDS - start))s" >&2
fi

echo "$cache/bin"
