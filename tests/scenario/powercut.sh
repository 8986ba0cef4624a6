#!/bin/bash
# Proves that a dozen power losses of real file systems under load, and crashes,
# take no acknowledged update. The seeds are fixed (tests/powercut/README.md).
# tests/long/powercut.sh has hundreds with new seeds.
# Slow: it cuts the power a dozen times.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if ! command -v python3 >/dev/null; then
	skip powercut 'no python3'
	finish
fi
if ! can_mount; then
	skip powercut 'only root can mount'
	finish
fi
if BUILD=$BUILD "$ROOT/tests/powercut/run" --from 1 --trials 6 --keep-going \
	>"$T/said" 2>&1; then
	if grep '^skip ' "$T/said"; then
		scenario_skipped=1
		finish
	fi
	ok 'nothing that was acknowledged is missing'
else
	not_ok 'nothing that was acknowledged is missing' 'something is'
	cat "$T/said"
fi
grep '^# ' "$T/said"
finish
