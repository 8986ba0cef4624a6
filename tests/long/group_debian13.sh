#!/bin/bash
# Proves that groups work with the PostgreSQL of Debian 13, and its libpq:
# group_log.sh, group_admin.sh and group_hold.sh run again in a root of Debian
# 13, at the same time, with the programs that were built here.
#
# GROUP_SECONDS=N sets the time of the random faults. SUITE=forky takes this
# Debian, and not Debian 13. STACKS_CACHE=DIR keeps the root between runs.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/root.sh
. "$ROOT/tests/lib/root.sh"

SUITE=${SUITE:-trixie}
root_needs 'groups in Debian 13' --stacks
if ! root_make "group-$SUITE" "$SUITE" "git,libcurl4,libevent-2.1-7,\
libevent-pthreads-2.1-7,libpq5,libseccomp2,libsqlite3-0,postgresql,procps,\
python3,strace,util-linux,zlib1g" ''; then
	skip 'groups in Debian 13' "$(root_why)"
	finish
fi
version=$(basename "$ROOT_BASE"/usr/lib/postgresql/*)
# PostgreSQL refuses to run as root.
chmod 711 "$T"

declare -A pids
for name in group_log group_admin group_hold; do
	root_run env TMPDIR="$T" GROUP_SECONDS="${GROUP_SECONDS:-20}" \
		"$ROOT/tests/long/$name.sh" >"$T/$name" 2>&1 &
	pids[$name]=$!
	own $!
done
for name in "${!pids[@]}"; do
	if reap "${pids[$name]}" && ! grep -q '^skip ' "$T/$name"; then
		ok "$name.sh with PostgreSQL $version"
	else
		not_ok "$name.sh with PostgreSQL $version" \
			"$(grep -a -m 5 -E '^(not ok|skip) ' "$T/$name")"
		tail -n 60 "$T/$name"
	fi
done
finish
