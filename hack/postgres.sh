#!/usr/bin/env bash
# Prints the directory of PostgreSQL's server programs, initdb and postgres: of the newest version there is.
#
# Where there is none it is installed, as far as that can be done: by root, on Debian and what comes from it.
# No cluster is made, and nothing is started.
set -euo pipefail

# The first version that logs JSON, by which tests know what was executed.
least=15

# find_server prints the directory, or fails.
find_server() {
	local dir major
	while read -r dir; do
		[[ -x $dir/initdb && -x $dir/postgres ]] || continue
		major=$("$dir/postgres" --version | sed -E 's/^[^0-9]*([0-9]+).*/\1/')
		if ((major >= least)); then
			echo "$dir"
			return
		fi
	done < <(
		printf '%s\n' /usr/lib/postgresql/*/bin /usr/pgsql-*/bin | sort -rV
		pg_config --bindir 2>/dev/null || true
		dirname "$(command -v initdb 2>/dev/null)" 2>/dev/null || true
	)
	return 1
}

find_server && exit

wanted="the server of PostgreSQL $least or newer is not installed"
if ! command -v apt-get >/dev/null || [[ $(id -u) != 0 ]]; then
	echo "$wanted: install it and try again; on Debian and Ubuntu, as root: apt-get install postgresql" >&2
	exit 1
fi

# Tests of several packages may ask at once; the second finds what the first has installed.
exec 9>"${TMPDIR:-/tmp}/kausality-postgres.lock"
flock 9
find_server && exit

echo "installing PostgreSQL's server ..." >&2
export DEBIAN_FRONTEND=noninteractive
{
	apt-get update -q
	apt-get install -qy --no-install-recommends postgresql-common
	# Without this the package of the server makes a cluster and starts it.
	settings=/etc/postgresql-common/createcluster.conf
	before=$(mktemp)
	cp -p "$settings" "$before"
	trap 'cp -p "$before" "$settings"; rm -f "$before"' EXIT
	echo 'create_main_cluster = false' >"$settings"
	apt-get install -qy --no-install-recommends postgresql
} >&2 9>&-

find_server || {
	echo "$wanted, and apt-get has none: see https://www.postgresql.org/download/" >&2
	exit 1
}
