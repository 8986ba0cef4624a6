#!/bin/bash
# Runs tests/scenario/hostile.sh for two minutes, with 4,000 connections at
# once, under the sanitizers if they are built: make PROFILE=asan tests.

BUILD=${BUILD:-$(cd "$(dirname "$0")/../.." && pwd)/build}
[ ! -x "$BUILD/asan/bin/refd-daemon" ] || BUILD=$BUILD/asan
export BUILD HOSTILE_SECONDS=${HOSTILE_SECONDS:-120} HOSTILE_MANY=200
exec "$(dirname "$0")/../scenario/hostile.sh"
