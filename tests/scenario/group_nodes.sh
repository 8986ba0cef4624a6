#!/bin/bash
# Proves what the daemon of a node does in a group, with a log in memory in
# place of refd-group and PostgreSQL (tests/lib/group_nodes.py): an update is in
# the log of the group before its answer, a follower has the same refs and the
# same answers, and a doubt about a batch ends the daemon, which learns the
# outcome at its next start.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_cases group_cases.py
finish
