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
# Otherwise the scenario would leave its cases with such a git out.
if ! git -C / pack-refs -h 2>&1 | grep -q -- --auto; then
	echo "not ok stale_pack: $(git version) has no pack-refs --auto"
	exit 1
fi
exec "$ROOT/tests/scenario/stale_pack.sh"
