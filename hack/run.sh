#!/usr/bin/env bash
# Builds a program of this repository into bin/ and runs it. In place of go's lines about each download there is one
# line; if the build fails, all of them.
#
#   hack/run.sh PACKAGE [ARGUMENT...]
#
#   GO=go         the go command
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
package=$1
shift

lines=$(mktemp)
trap 'rm -f "$lines"' EXIT

start=$SECONDS
printf 'compiling %s ...' "$package"
if ! "${GO:-go}" build -C "$root" -o bin/ "$package" >"$lines" 2>&1; then
	printf ' failed\n'
	cat "$lines" >&2
	exit 1
fi
printf ' (%ds)\n' $((SECONDS - start))
rm -f "$lines"

exec "$root/bin/$(basename "$package")" "$@"
