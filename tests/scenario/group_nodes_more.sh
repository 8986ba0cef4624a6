#!/bin/bash
# Proves rules of a node in a group, with the log in memory of group_nodes.sh:
# an ok is durable whatever the configuration says; an update that cannot be
# published ends the daemon; a row has the leader's user; what a group has not
# is refused, also by git; transactions that wait for objects hold nothing up.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_cases group_cases_more.py
finish
