#!/bin/bash
# Proves what the daemon of a node does in a group, with a log in memory in
# place of refd-group and PostgreSQL (tests/lib/group_nodes.py): an update is in
# the log of the group before its answer, a follower has the same refs and the
# same answers, and a doubt about a batch ends the daemon, which learns the
# outcome at its next start. A follower that differs ends, and names the ref.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

unset REFD_SOCKET REFD_STATE
while read -r line; do
	case $line in
	ok\ *) ok "${line#ok }" ;;
	not\ ok\ *) not_ok "${line#not ok }" ;;
	*) echo "$line" ;;
	esac
done < <(python3 -B "$ROOT/tests/lib/group_cases.py" "$REFD" "$T" 2>&1)
check 'all cases have run' test -e "$T/ended"
finish
