#!/usr/bin/env bash
# Looks for known vulnerabilities in what the programs call, with govulncheck. Fails for those of modules. Those of Go's
# standard library are printed: the Go that builds decides about them.
#
#   VULNDB=URL   the database, such as https://vuln.go.dev; without it, the one that tools/vuln/go.mod pins
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools=$(hack/tools.sh tools/vuln)

if [[ -z ${VULNDB:-} ]]; then
	pinned() { GOWORK=off GOFLAGS=-mod=readonly go -C tools/vuln list -m -f "{{.$1}}" golang.org/x/vulndb; }
	GOWORK=off go -C tools/vuln mod download golang.org/x/vulndb
	db=$(dirname "$tools")/vulndb-$(pinned Version)
	if [[ ! -d $db ]]; then
		partial=$(mktemp -d "$db.partial.XXXXXX")
		trap 'rm -rf "$partial"' EXIT
		"$tools/indexdb" -vulns "$(pinned Dir)/data/osv" -out "$partial"
		# The rename makes it visible, so nobody sees half of it. Of two that write at once the first wins.
		[[ -d $db ]] || mv "$partial" "$db"
	fi
	VULNDB=file://$db
fi

"$tools/govulncheck" -db "$VULNDB" -format json ./cmd/... | go run ./hack/vuln
