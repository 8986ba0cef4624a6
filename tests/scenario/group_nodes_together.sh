#!/bin/bash
# Proves that a follower that was away applies many rows with few flushes, in
# their order, with the log in memory of group_nodes.sh: rows that need earlier
# rows, rows that can't be applied, a kill, a lost connection, a change of the
# role. Afterwards both nodes have the same refs, and the same journal.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_cases group_cases_together.py
finish
