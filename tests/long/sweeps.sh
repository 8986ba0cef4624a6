#!/bin/bash
# The sweeps of the unit tests that are cut short every day: out of memory at
# every allocation of the store; sessions, aborts and checkpoints killed, cut
# and failing at every change, with a second cut in recovery; a wrong bit in
# every byte of the journal.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

export REFD_TEST_LONG=1
for name in store_oom sweep_rest damage_sweep; do
	check "$name" "$BUILD/tests/unit/test_$name"
done
finish
