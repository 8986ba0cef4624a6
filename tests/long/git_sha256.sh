#!/bin/bash
# Proves that the tests of the newest git in Debian pass with repositories of
# SHA-256: its tests of refs with refd update in the place of git update-ref,
# and its tests of pushing with refd's hook under each receive-pack.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/git_suites.sh
. "$ROOT/tests/lib/git_suites.sh"

if ! why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" experimental \
	2>&1); then
	skip 'the newest git' "not to be had: ${why//$'\n'/; }"
	finish
	exit
fi
git_suites sha256 files '545 9 2 0' '844 1 18 0'
finish
