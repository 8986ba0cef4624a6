#!/bin/bash
# Runs tests/scenario/push_count.sh for two minutes: some hundred kills.
export SECONDS_OF_IT=${SECONDS_OF_IT:-120} SEED=${SEED:-$RANDOM}
exec "$(dirname "$0")/../scenario/push_count.sh"
