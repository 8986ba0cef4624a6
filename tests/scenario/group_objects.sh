#!/bin/bash
# Proves, with the log in memory of group_nodes.sh, that the row of a small
# update has the objects that other nodes lack, and exactly then needs no HOLD:
# never while other nodes are away, and never based on a value that a node may
# have pruned. A node applies a row only when nothing is missing behind its
# objects.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_cases group_cases_objects.py
finish
