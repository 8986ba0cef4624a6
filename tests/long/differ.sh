#!/bin/bash
# Proves that refd update does the same as git update-ref, in fixed random cases
# (tests/differ/README.md). The cases are the same in each run. make soak tries
# new cases.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/differ.sh
. "$ROOT/tests/lib/differ.sh"

differ "the machine's git" --seeds 31-330
differ_newest 'the newest git' --seeds 31-330
REFD_TEST_FORMAT=sha256 differ "the machine's git, SHA-256" --seeds 901-1000
REFD_TEST_FORMAT=sha256 differ_newest 'the newest git, SHA-256' \
	--seeds 901-1000
REFD_TEST_REFS=reftable differ_newest 'the newest git, reftables' \
	--seeds 1201-1400
finish
