#!/bin/bash
# Proves that writes by other programs on a node of a group hold nothing up, and
# are not thrown away: the value of the group comes back on a follower and on
# the leader, and the node keeps the other value under refs/refd/diverged/.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_cases group_cases_diverged.py
finish
