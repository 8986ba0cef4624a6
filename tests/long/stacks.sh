#!/bin/bash
# Pushes through real servers (tests/stacks/), each in a throw-away Debian that
# is made once for all of them.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

export STACKS_CACHE=${STACKS_CACHE:-$T/cache} BUILD TMPDIR=$T
# What they report goes on as it is.
for script in "$ROOT"/tests/stacks/*.sh; do
	check "$(basename "$script")" bash "$script"
done
finish
