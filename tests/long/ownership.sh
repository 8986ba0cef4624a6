#!/bin/bash
# Runs tests/scenario/ownership.sh with the newest git of Debian, which takes
# part in all cases.
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$ROOT/build}
export BUILD
if ! why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" experimental \
	2>&1); then
	echo "skip ownership: no newest git: ${why//$'\n'/; }"
	exit
fi
PATH=$(cd "$BUILD" && pwd)/git-experimental:$PATH
export PATH
exec "$ROOT/tests/scenario/ownership.sh"
