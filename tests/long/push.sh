#!/bin/bash
# Runs tests/scenario/push.sh including the parts that wait for the minute of a
# hook.
export LONG_PARTS=yes
exec "$(dirname "$0")/../scenario/push.sh"
