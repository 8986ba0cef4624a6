#!/bin/bash
# Proves that three nodes of a group, each with a daemon and refd-group, and
# PostgreSQL with a standby, lose no acknowledged update, and have the same refs
# and all objects at the end: pushes by git, kill -9 of the leader, and the way
# back; then clients that go on beside kills and pauses of both programs, nodes
# that are away, fetches without an answer, COMMITs that are cancelled or cut,
# an emptied synchronous_standby_names, new starts of PostgreSQL, a standby that
# is away, in random order; and at the end the loss of the primary.
#
# GROUP_SECONDS=N sets the time of the random faults, GROUP_SEED=N their order.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

binaries=/usr/lib/postgresql/15/bin
if [ ! -d "$binaries" ] || [ "$(id -u)" -ne 0 ]; then
	skip 'three nodes of a group' \
		'needs root and PostgreSQL: scripts/deps --group'
	finish
	exit
fi
unset REFD_SOCKET REFD_STATE
# PostgreSQL refuses to run as root.
chmod 711 "$T"
mkdir "$T/pg" "$T/nodes"
while read -r line; do
	case $line in
	ok\ *) ok "${line#ok }" ;;
	not\ ok\ *) not_ok "${line#not ok }" ;;
	*) echo "$line" ;;
	esac
done < <(python3 -B "$ROOT/tests/long/group_whole.py" \
	"$(cd "$BUILD" && pwd)/bin" "$T/nodes" "$T/pg" "$binaries" 65534 \
	"${GROUP_SECONDS:-120}" 2>&1)
check 'all cases have run' test -e "$T/nodes/ended"
finish
