#!/bin/bash
# Proves that a node leaves its group with all its rows (refd recover --leave),
# goes on as a single machine, and begins a new group, in which other nodes need
# a copy. PostgreSQL's part is in tests/long/group_admin.sh.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_cases group_cases_leave.py
finish
