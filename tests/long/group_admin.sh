#!/bin/bash
# Proves, with PostgreSQL and a synchronous standby, that the commands of the
# administrator on a group lose no row that was reported as committed, and leave
# no group without a leader: refd group promote, with kills and pauses of leader,
# successor and command at each step; and that no row is deleted that a node
# needs; and that a node that runs is not removed by refd group leave.
#
# GROUP_SECONDS=N sets the time of the random faults, GROUP_SEED=N their order,
# and GROUP_ONLY='test_NAME ...' chooses cases.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

binaries=/usr/lib/postgresql/15/bin
if [ ! -d "$binaries" ] || [ "$(id -u)" -ne 0 ]; then
	skip 'the commands on a group' \
		'needs root and PostgreSQL: scripts/deps --group'
	finish
	exit
fi
# PostgreSQL refuses to run as root.
chmod 711 "$T"
mkdir "$T/pg"
while read -r line; do
	case $line in
	ok\ *) ok "${line#ok }" ;;
	not\ ok\ *) not_ok "${line#not ok }" ;;
	*) echo "$line" ;;
	esac
done < <(python3 -B "$ROOT/tests/long/group_admin.py" "$BUILD/bin/refd-group" \
	"$T/pg" "$binaries" 65534 "${GROUP_SECONDS:-60}" 2>&1)
check 'all cases have run' grep -q . "$T/pg/ended"
finish
