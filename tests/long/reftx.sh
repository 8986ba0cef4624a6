#!/bin/bash
# Runs tests/scenario/reftx.sh with the newest git of Debian, which has hooks in
# its configuration, including the parts with two hooks.
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$ROOT/build}
export BUILD LONG_PARTS=yes
if ! why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" experimental \
	2>&1); then
	echo "skip reftx: no newest git: ${why//$'\n'/; }"
	exit
fi
PATH=$(cd "$BUILD" && pwd)/git-experimental:$PATH
export PATH
exec "$ROOT/tests/scenario/reftx.sh"
