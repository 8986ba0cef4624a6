#!/bin/bash
# Proves that hundreds of power losses (tests/powercut/README.md) take no
# acknowledged update. The seed is printed. A first part checks that the rig
# notices planted losses.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

powercut() { # NAME ARGUMENT...
	local name=$1
	shift
	if BUILD=$BUILD "$ROOT/tests/powercut/run" "$@" >"$T/said" 2>&1; then
		if grep '^skip ' "$T/said"; then
			scenario_skipped=$((scenario_skipped + 1))
			return
		fi
		ok "$name"
		grep '^# ' "$T/said"
	else
		not_ok "$name" 'see below'
		cat "$T/said"
	fi
}

if ! command -v python3 >/dev/null; then
	skip powercut 'no python3'
	finish
fi
powercut 'planted faults are found' --self-test
powercut 'nothing that was acknowledged is missing' \
	--from $((RANDOM * 1000)) --trials 200 --keep-going
powercut 'after a new boot no repository waits for a hand' \
	--from $((RANDOM * 1000)) --boots --beside yes --trials 40 --keep-going
REFD_TEST_FORMAT=sha256 powercut 'SHA-256: nothing is missing' \
	--from $((RANDOM * 1000)) --trials 40 --keep-going
finish
