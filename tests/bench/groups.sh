#!/bin/bash
# Compares a group of three nodes, with three servers of PostgreSQL, with one
# machine and with git. Needs root and scripts/deps --group.
#
#	tests/bench/groups.sh [ROUNDS]
#
# With GROUP_IDLE=1, the programs of the followers get only the processor time
# that nobody else wants, as if they had processors of their own.

set -eu
cd "$(dirname "$0")/../.."
top=$(mktemp -d /dev/shm/refd-groups.XXXXXX)
trap 'rm -rf "$top"' EXIT
# PostgreSQL refuses to run as root.
chmod 711 "$top"
mkdir "$top/pg" "$top/nodes"
BUILD=$PWD/${BUILD:-build}
export BUILD
unset REFD_SOCKET REFD_STATE
HOME=$top GIT_CONFIG_NOSYSTEM=1 unshare --mount --net --pid --fork \
	--kill-child --mount-proc --propagation shared \
	python3 -B tests/bench/groups.py "$BUILD/bin" "$top/nodes" "$top/pg" \
	/usr/lib/postgresql/15/bin 65534 "${1:-3}"
