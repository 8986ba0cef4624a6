#!/bin/bash
# Proves that a node of a group does not start on an older copy of its
# repositories, or of one of them, beside its journal, and that an older copy of
# both gets the later rows. Writes by other programs, moves and crashes are no
# older copy.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_cases group_cases_copy.py
finish
