#!/bin/bash
# tests/scenario/stress.sh, a minute in peace and a minute under kills.
export STRESS_SECONDS=60 SEED=${SEED:-$RANDOM}
exec "$(dirname "$0")/../scenario/stress.sh"
