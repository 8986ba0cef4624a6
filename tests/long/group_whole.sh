#!/bin/bash
# Proves that three nodes of a group, each with a daemon and refd-group, and
# three servers of PostgreSQL lose no acknowledged update, and have the same refs
# and all objects at the end: pushes by git, kill -9 of the leader, the way
# back, and a daemon that hangs; then clients that go on beside random faults,
# one alone or up to eighteen at almost the same time: kills and pauses of
# programs, nodes that are away, packets that are lost in one or both directions
# between any two hosts, connections that are reset, also in a COMMIT that
# waits, COMMITs that are cancelled, an emptied synchronous_standby_names,
# standbys that are away, failovers beside a former primary that goes on or
# comes back, failovers without the last entries, power losses of nodes, full
# disks, old copies of the disk of a node or of one repository, repositories
# without hooks, damaged packs, wrong clocks, and a second machine with the name
# of a node. Each host has its own network namespace.
#
# The line "summary" has the numbers in JSON: of faults by kind (a fault without
# effect, such as a cancelled COMMIT when none waits, does not count), of
# acknowledged and lost updates, and for each kind the delays in seconds.
# tests/lib/group_faults_times.py tells how a delay is measured.
#
# GROUP_SECONDS=N sets the time of the random faults, GROUP_SEED=N their order,
# GROUP_LEASE=N the lease in seconds. GROUP_FAULTS='NAME ...' takes these kinds
# of faults only, one at a time. GROUP_LOGS=DIR keeps the logs of all
# programs in this directory.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

if [ ! -d "$binaries" ] || [ "$(id -u)" -ne 0 ] ||
	[ ! -e /dev/loop-control ] || ! command -v iptables >/dev/null ||
	! command -v mkfs.xfs >/dev/null; then
	skip 'three nodes of a group' \
		'needs root, loop devices, and scripts/deps --group'
	finish
	exit
fi
unset REFD_SOCKET REFD_STATE
hide_list
# PostgreSQL refuses to run as root.
chmod 711 "$T"
mkdir "$T/pg" "$T/nodes"
BUILD=$(cd "$BUILD" && pwd)
export BUILD
while read -r line; do
	case $line in
	ok\ *) ok "${line#ok }" ;;
	not\ ok\ *) not_ok "${line#not ok }" ;;
	*) echo "$line" ;;
	esac
done < <(unshare --mount --net --pid --fork --kill-child --mount-proc \
	--propagation shared python3 -B "$ROOT/tests/long/group_whole.py" \
	"$BUILD/bin" "$T/nodes" "$T/pg" "$binaries" 65534 \
	"${GROUP_SECONDS:-50}" 2>&1)
check 'all cases have run' test -e "$T/nodes/ended"
finish
