#!/bin/bash
# Proves that refd update does the same as git update-ref, in fixed random cases
# (tests/differ/README.md). tests/long/differ.sh has more cases.
# Slow: it runs hundreds of cases, each with git and with refd.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/differ.sh
. "$ROOT/tests/lib/differ.sh"

if ! command -v python3 >/dev/null; then
	skip differ 'no python3'
	finish
fi
differ "the machine's git" --seeds 1-30
finish
