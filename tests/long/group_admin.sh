#!/bin/bash
# Proves, with PostgreSQL and a synchronous standby, that the commands of the
# administrator on a group lose no row that was reported as committed, and leave
# no group without a leader: refd group promote, with kills and pauses of leader,
# successor and command at each step; and that no row is deleted that a node
# needs; and that a node that runs is not removed by refd group leave; and that
# a leader whose disk is full gives the lead to a node with room.
#
# GROUP_SECONDS=N sets the time of the random faults, GROUP_SEED=N their order,
# and GROUP_ONLY='test_NAME ...' chooses cases.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_with_servers group_admin.py "${GROUP_SECONDS:-60}"
finish
