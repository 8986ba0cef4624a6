#!/bin/bash
# Proves that a repository which has refs before its first update comes to the
# other nodes of a group with all refs and its HEAD by refd enable, in one row;
# that before, nothing else is updated; and that a kill, an absent node and a
# list with a missing ref lose no ref.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_cases group_cases_import.py
finish
