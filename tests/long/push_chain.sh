#!/bin/bash
# Runs tests/scenario/push_chain.sh including a chained hook that does not
# answer for a minute.
export LONG_PARTS=yes
exec "$(dirname "$0")/../scenario/push_chain.sh"
