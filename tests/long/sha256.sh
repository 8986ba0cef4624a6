#!/bin/bash
# Runs tests/scenario/sha256.sh including the scenarios that take minutes.
export LONG_PARTS=yes
exec "$(dirname "$0")/../scenario/sha256.sh"
