#!/bin/bash
# Proves, with PostgreSQL, a synchronous standby and whole nodes, that refd group
# join makes a third node while a client writes: no update fails, a join that was
# killed is repeated, the node gets all refs and objects, and can lead. If a
# repository cannot be copied, the node takes no old copy for it, and does not
# lead before refd group verify has found the refs of the leader there. And join
# refuses what it cannot make right.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

# Otherwise the account's own settings count.
export HOME=$T
unset REFD_SOCKET REFD_STATE
run_with_servers group_join.py
finish
