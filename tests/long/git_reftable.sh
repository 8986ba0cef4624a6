#!/bin/bash
# Proves that the tests of the newest git in Debian pass with refs in
# reftables: its tests of refs with refd update in the place of git update-ref,
# and its tests of pushing with refd's hook under each receive-pack. The status
# of git alone is the measure: some tests skip or fail with reftables.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

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
export GIT_TEST_DEFAULT_REF_FORMAT=reftable
check "git's tests of refs" "$ROOT/scripts/git-tests" --suite experimental
check "git's tests of pushing" \
	"$ROOT/scripts/git-tests" --push --suite experimental
finish
