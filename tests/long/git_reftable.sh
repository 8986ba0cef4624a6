#!/bin/bash
# Proves that the tests of the newest git in Debian pass with refs in reftables
# and ids of SHA-1 or SHA-256: its tests of refs with refd update in the place of
# git update-ref, and its tests of pushing with refd's hook under each
# receive-pack.

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
"$BUILD/git-experimental/git" init -q --bare --ref-format=reftable "$T/probe.git"
if ! "$REFD" enable "$T/probe.git" >"$T/said" 2>&1; then
	skip 'refs in reftables' "$(head -n 1 "$T/said")"
	finish
	exit
fi
git_suites sha1 reftable '659 11 15 0' '717 1 103 0'
git_suites sha256 reftable '658 12 15 0' '717 1 103 0'
finish
