#!/bin/bash
# Proves that plain git changes no ref of a repository in a group of nodes, with
# the daemon there or away, and that git's housekeeping and pushes still work.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_cases group_cases_hook.py
finish
