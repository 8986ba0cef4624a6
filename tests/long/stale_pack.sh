#!/bin/bash
# Runs tests/scenario/stale_pack.sh with the newest git of Debian, which has
# pack-refs --auto.
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$ROOT/build}
export BUILD
if ! why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" experimental \
	2>&1); then
	echo "skip stale_pack: no newest git: ${why//$'\n'/; }"
	exit
fi
PATH=$(cd "$BUILD" && pwd)/git-experimental:$PATH
export PATH
exec "$ROOT/tests/scenario/stale_pack.sh"
