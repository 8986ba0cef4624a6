#!/bin/bash
# Looks for new differences between refd update and git update-ref
# (tests/differ/README.md): ten minutes of new random cases with the machine's
# git, and ten minutes with the newest git. The report names the seed of each
# difference.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/differ.sh
. "$ROOT/tests/lib/differ.sh"

differ "the machine's git" --seconds 600 --shrink 20
differ_newest 'the newest git' --seconds 600 --shrink 20
finish
