#!/bin/bash
# Each of git's own test files that calls update-ref passes with refd update
# in its place, and the harness finds out a refd that does not do its work.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

check "git's tests" "$ROOT/scripts/git-tests" --all
check 'an impostor is found out' "$ROOT/scripts/git-tests" --self-test
finish
