#!/bin/bash
# Proves that a follower has the repositories of the leader at their paths, with
# the log in memory of group_nodes.sh, while programs rename, replace and remove
# repositories on the leader: each row puts its repository where the row says,
# also after a crash between two moves, and nothing is lost.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_cases group_cases_place.py
finish
