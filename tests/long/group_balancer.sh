#!/bin/bash
# Proves that haproxy takes the lines of docs/group.md, and that they lead pushes
# to the leader of a group and clones to every node that lacks no rows: at the
# start, after a change of the leader, with a node that lags or that is dead.
#
# GROUP_ONLY=test_NAME runs one case.

# Port 22 may be in use, so the nodes have a network of their own.
if [ -z "${OWN_NET:-}" ] && [ "$(id -u)" -eq 0 ]; then
	OWN_NET=1 exec unshare --net bash "$0"
fi

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$ROOT/tests/lib/group_run.sh"

if [ "$(id -u)" -ne 0 ] || ! command -v haproxy >/dev/null; then
	skip 'haproxy before a group' 'needs root and scripts/deps --group'
	finish
	exit
fi
run_cases group_balancer.py
finish
