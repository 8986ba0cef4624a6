#!/bin/bash
# Proves that the model of two nodes keeps its promises (docs/model/group.pml,
# decision 025), and that each named fault breaks one of them.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
if ! command -v spin >/dev/null; then
	skip model 'spin is missing: scripts/deps --test'
	finish
	exit
fi

# Searches all states of the model. Prints the number of errors, and nothing if
# the search was not complete.
search() { # SPIN'S OPTION...
	mkdir -p "$T/pan"
	cd "$T/pan" || return
	rm -f ./*
	spin "$@" -a "$ROOT/docs/model/group.pml" >said &&
		cc -O2 -DSAFETY -DCOLLAPSE -DMEMLIM=4000 -o pan pan.c 2>said &&
		./pan -m100000 -E >said
	! grep -q 'max search depth too small' said || return
	sed -n 's/.*errors: \([0-9]*\)$/\1/p' said
}

is 'no order of steps breaks a promise' 0 "$(search -DFAULTS=3)"
echo "# $(grep 'states, stored' "$T/pan/said")"
for fault in TRUST_COMMIT TRUST_READING REJECT_ABSENT OTHER_CONNECTION \
	NO_SHARE NO_KEY_UPDATE OPEN_EARLY APPLY_UNPROVEN \
	PUBLISH_FIRST KEEP_EPOCH; do
	is "$fault is found" 1 "$(search "-D$fault")"
done
finish
