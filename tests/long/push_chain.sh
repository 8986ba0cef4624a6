#!/bin/bash
# tests/scenario/push_chain.sh with a chained hook that does not answer for a minute.
export LONG_PARTS=yes
exec "$(dirname "$0")/../scenario/push_chain.sh"
