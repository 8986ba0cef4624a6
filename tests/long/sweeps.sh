#!/bin/bash
# Runs in full the sweeps of the unit tests that are shortened every day: lack
# of memory at every allocation of the store; crash, power loss and failure at
# every change of sessions, aborts and checkpoints, with a second power loss in
# recovery; a wrong bit in every byte of the journal. Also fifty times as many
# random files of git's configuration, and twenty times as many histories of a
# reftable and schedules of a dead lock.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

export REFD_TEST_LONG=1
for name in store_oom sweep_rest damage_sweep client_configfiles \
	stack_histories dead_lock; do
	check "$name" "$BUILD/tests/unit/test_$name"
done
finish
