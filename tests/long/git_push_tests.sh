#!/bin/bash
# Proves that git's own tests of pushing pass with refd's hook under each
# receive-pack, by path, by HTTP and by hand. Exactly the expected pushes are
# left to git.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

check "git's tests of pushing" "$ROOT/scripts/git-tests" --push
finish
