#!/bin/bash
# Proves that the journal avoids SQLite's WAL-reset bug, in three minutes of the
# race that causes the bug. The journal must stay sound, and a plain database
# must break (tests/unit/test_journal_reset.c).

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

REFD_TEST_SECONDS=180 "$BUILD/tests/unit/test_journal_reset" >"$T/said" 2>&1
status=$?
sed 's/^/# /' "$T/said"
grep '^skip ' "$T/said"
is 'the journal stays sound, a database without the rule does not' 0 $status
finish
