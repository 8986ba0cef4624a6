#!/bin/bash
# Runs tests/scenario/kill_calls.sh at every system call of a transaction.
export KILL_CALLS=all
exec "$(dirname "$0")/../scenario/kill_calls.sh"
