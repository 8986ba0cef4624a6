#!/bin/bash
# What scripts/quickstart shows people who have read nothing yet is so: all of
# its promises are kept.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if BUILD=$BUILD "$ROOT/scripts/quickstart" >"$T/said" 2>&1; then
	ok quickstart
else
	not_ok quickstart "$(grep -m1 -A1 'NOT AS PROMISED' "$T/said" ||
		tail -n 1 "$T/said")"
fi
finish
