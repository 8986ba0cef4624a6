#!/bin/bash
# Runs tests/scenario/gate.sh with the newest git of Debian, with refs in files
# and in reftables, and with more random operations.
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$ROOT/build}
export BUILD LONG_PARTS=yes
if ! why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" experimental \
	2>&1); then
	echo "skip gate: no newest git: ${why//$'\n'/; }"
	exit
fi
PATH=$(cd "$BUILD" && pwd)/git-experimental:$PATH
export PATH
status=0
for format in files reftable; do
	echo "# refs in $format"
	REFD_TEST_REFS=$format "$ROOT/tests/scenario/gate.sh" || status=1
done
exit $status
