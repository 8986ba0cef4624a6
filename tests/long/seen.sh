#!/bin/bash
# Runs tests/scenario/seen.sh with the newest git of Debian, with refs in files
# and in reftables, with SHA-1 and with SHA-256.
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$ROOT/build}
export BUILD
if ! why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" experimental \
	2>&1); then
	echo "skip seen: no newest git: ${why//$'\n'/; }"
	exit
fi
PATH=$(cd "$BUILD" && pwd)/git-experimental:$PATH
export PATH
status=0
for refs in files reftable; do
	for hash in sha1 sha256; do
		echo "# refs in $refs, $hash"
		REFD_TEST_REFS=$refs REFD_TEST_FORMAT=$hash \
			"$ROOT/tests/scenario/seen.sh" || status=1
	done
done
exit $status
