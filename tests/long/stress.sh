#!/bin/bash
# Runs tests/scenario/stress.sh for a minute in peace and a minute with kills.
export STRESS_SECONDS=60 SEED=${SEED:-$RANDOM}
exec "$(dirname "$0")/../scenario/stress.sh"
