#!/bin/bash
# Proves, with PostgreSQL and a synchronous standby, that no row which refd-group
# has reported as committed is missing on the standby, and that no row reported
# as refused is there: an emptied synchronous_standby_names, a late
# checkpointer, cancelled waits, cut connections, new starts of the primary, a
# standby that is away, kills and pauses of refd-group, takeovers by a second
# node, daemons that die or do not read, a former primary, a restored backup,
# faults in random order, and the loss of the primary.
#
# GROUP_SECONDS=N sets the time of the random faults, GROUP_SEED=N their order,
# and GROUP_ONLY='test_NAME ...' chooses cases.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

binaries=/usr/lib/postgresql/15/bin
if [ ! -d "$binaries" ] || [ "$(id -u)" -ne 0 ]; then
	skip 'the log of a group' \
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
done < <(python3 -B "$ROOT/tests/long/group_log.py" "$BUILD/bin/refd-group" \
	"$T/pg" "$binaries" 65534 "${GROUP_SECONDS:-120}" 2>&1)
check 'all cases have run' grep -q . "$T/pg/ended"
finish
