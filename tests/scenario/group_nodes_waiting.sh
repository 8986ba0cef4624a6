#!/bin/bash
# Proves that a repository whose rows can't be applied on a follower holds no
# other repository up, with the log in memory of group_nodes.sh: its rows wait in
# the journal, also over a kill; the node counts as one that lacks them; and they
# are applied in their order when the cause is gone.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_cases group_cases_waiting.py
finish
