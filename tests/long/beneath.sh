#!/bin/bash
# tests/scenario/beneath.sh for a minute, and for a minute more with the daemon
# under ThreadSanitizer where that is built (make check-long has built it).
export BENEATH_SECONDS=60
BUILD=${BUILD:-$(cd "$(dirname "$0")/../.." && pwd)/build}
scenario=$(dirname "$0")/../scenario/beneath.sh
BUILD=$BUILD "$scenario" || exit
if [ -x "$BUILD/tsan/bin/refd" ]; then
	BUILD=$BUILD/tsan "$scenario"
else
	echo 'skip beneath under ThreadSanitizer: it is not built'
fi
