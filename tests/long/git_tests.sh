#!/bin/bash
# Proves that each of git's own test files with update-ref passes with refd
# update in its place. The harness notices a refd that does not do its work.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

check "git's tests" "$ROOT/scripts/git-tests" --all
check 'an impostor is found out' "$ROOT/scripts/git-tests" --self-test
finish
