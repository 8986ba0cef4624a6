#!/bin/bash
# Proves, with PostgreSQL and real repositories, that the daemon of a leader gets
# HELD only when followers have the objects, and all that the objects need: at
# once, at many repositories, beside batches, after kills of both programs, and
# after a new start of PostgreSQL. A follower that is away or that refuses gives
# NOT_HELD. group_tables.sh runs this again with refs in reftables.
#
# GROUP_ONLY=test_NAME runs one case.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_with_servers group_hold.py
finish
