#!/bin/bash
# Proves, with PostgreSQL and a synchronous standby, that no row which refd-group
# has reported as committed is missing on the standby, and that no row reported
# as refused is there: an emptied synchronous_standby_names, a late
# checkpointer, cancelled waits, cut connections, new starts of the primary, a
# standby that is away, kills and pauses of refd-group, takeovers by a second
# node, daemons that die or do not read, a former primary, a restored backup,
# faults in random order, and the loss of the primary.
#
# GROUP_SECONDS=N sets the time of the random faults, GROUP_SEED=N their order,
# and GROUP_ONLY='test_NAME ...' chooses cases.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_with_servers group_log.py "${GROUP_SECONDS:-120}"
finish
