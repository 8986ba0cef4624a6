#!/bin/bash
# Proves that the models keep their promises, and that each named fault of a
# model breaks one of them: two nodes of a group (docs/model/group.pml, decision
# 025), and one machine (docs/model/local.pml, docs/recovery.md).

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
if ! command -v spin >/dev/null; then
	skip model 'spin is missing: scripts/deps --test'
	finish
	exit
fi

# Searches all states of MODEL. Prints the number of errors, after "assertion
# violated" if that was the error, and nothing if the search was not complete.
search() { # MODEL SPIN'S OPTION...
	local model=$1

	shift
	mkdir -p "$T/pan"
	cd "$T/pan" || return
	rm -f ./*
	spin "$@" -a "$ROOT/docs/model/$model.pml" >said &&
		cc -O2 -DSAFETY -DCOLLAPSE -DMEMLIM=4000 -o pan pan.c 2>said &&
		./pan -m100000 -E >said
	! grep -qE 'max search depth too small|Search not completed' said ||
		grep -q 'assertion violated' said || return
	sed -n 's/^pan:[0-9]*: \(assertion violated\) .*/\1/p
		s/.*errors: \([0-9]*\)$/\1/p' said
}

check() { # MODEL SPIN'S OPTION FAULT...
	local model=$1 option=$2 fault

	shift 2
	is "$model: no order of steps breaks a promise" 0 \
		"$(search "$model" "$option")"
	echo "# $(grep 'states, stored' "$T/pan/said")"
	for fault; do
		is "$model: $fault is found" $'assertion violated\n1' \
			"$(search "$model" "-D$fault")"
	done
}

check group -DFAULTS=3 \
	TRUST_COMMIT TRUST_READING REJECT_ABSENT OTHER_CONNECTION \
	NO_SHARE NO_KEY_UPDATE OPEN_EARLY APPLY_UNPROVEN \
	PUBLISH_FIRST KEEP_EPOCH
check local -DFAULTS=2 \
	READ_FIRST ANSWER_FIRST PUBLISH_FIRST UNLOCK_FIRST TRUST_FAILED_FLUSH \
	FORGET_FIRST FORGET_OPEN COUNT_LATE \
	READ_UNFLUSHED REDO_PUBLISHED UNLOCKED_IS_DONE REDO_UNLOCKED \
	ABORT_LATE CLEAR_LIVE LEAVE_ORPHANS FORGET_UNSYNCED \
	TRUST_LOCK FORGET_BOOT KEEP_OLDER KEEP_PACKED TAKE_BACK REDO_EACH \
	PACKED_UNSYNCED
finish
