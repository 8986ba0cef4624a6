#!/bin/bash
# Runs tests/scenario/beneath.sh for a minute, and for a second minute with the
# daemon under ThreadSanitizer if this build exists (make check-long builds it).
export BENEATH_SECONDS=60
BUILD=${BUILD:-$(cd "$(dirname "$0")/../.." && pwd)/build}
scenario=$(dirname "$0")/../scenario/beneath.sh
BUILD=$BUILD "$scenario" || exit
if [ -x "$BUILD/tsan/bin/refd" ]; then
	BUILD=$BUILD/tsan "$scenario"
else
	echo 'skip beneath under ThreadSanitizer: it is not built'
fi
