#!/bin/bash
# tests/scenario/push.sh with the parts that wait for the minute of a hook.
export LONG_PARTS=yes
exec "$(dirname "$0")/../scenario/push.sh"
