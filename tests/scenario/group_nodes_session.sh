#!/bin/bash
# Proves that sessions, and updates through symbolic refs, are rows of the group
# like every other update (the log is that of group_nodes.sh). A session that is
# not committed when its node loses the lead does nothing, and holds up no row
# of the next leader. A follower changes the ref that the leader has changed,
# wherever its own symbolic refs lead.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_cases group_cases_session.py
finish
