#!/bin/bash
# Proves that pushes work through real servers (tests/stacks/), each in a
# temporary Debian. All of them share one base system.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

export STACKS_CACHE=${STACKS_CACHE:-$T/cache} BUILD TMPDIR=$T
# The output of the scripts is copied.
for script in "$ROOT"/tests/stacks/*.sh; do
	check "$(basename "$script")" bash "$script"
done
finish
