#!/bin/bash
# Runs tests/scenario/race.sh for two minutes.
export RACE_SECONDS=120
exec "$(dirname "$0")/../scenario/race.sh"
