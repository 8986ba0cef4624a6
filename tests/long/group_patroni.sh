#!/bin/bash
# Proves, with three servers of PostgreSQL under Patroni and etcd, and
# synchronous_mode_strict, that no row that was reported as committed is lost,
# and that rows are committed again: by a planned switchover, by a failover after
# the loss of the primary, and after the loss of all standbys, during which
# nothing is committed.
#
# GROUP_ROUNDS=N sets the number of failovers.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

if [ ! -d "$binaries" ] || [ "$(id -u)" -ne 0 ] ||
	! command -v patroni >/dev/null || ! command -v etcd >/dev/null; then
	skip 'a group with Patroni' 'needs root and scripts/deps --group'
	finish
	exit
fi
# PostgreSQL refuses to run as root.
chmod 711 "$T"
mkdir "$T/pg"
# bash reaps the processes of PostgreSQL, for which Patroni waits.
while read -r line; do
	case $line in
	ok\ *) ok "${line#ok }" ;;
	not\ ok\ *) not_ok "${line#not ok }" ;;
	*) echo "$line" ;;
	esac
done < <(unshare --mount --net --pid --fork --kill-child --mount-proc \
	bash -c 'python3 -B "$@"; exit' bash "$ROOT/tests/long/group_patroni.py" \
	"$BUILD/bin/refd-group" "$T/pg" "$binaries" 65534 "${GROUP_ROUNDS:-2}" 2>&1)
check 'all cases have run' test -e "$T/pg/ended"
finish
