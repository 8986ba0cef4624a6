#!/bin/bash
# Runs everything at once for SOAK_SECONDS (1800).
# tests/soak/soak.py describes the load and the required results.
# Alone: it measures times.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

with_fs ext4 4G || finish
kinds=(files-sha1 files-sha256)
if why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" experimental 2>&1)
then
	PATH=$(cd "$BUILD" && pwd)/git-experimental:$PATH
	kinds+=(reftable-sha1 reftable-sha256)
else
	skip 'refs in reftables' "not to be had: ${why//$'\n'/; }"
fi
PYTHONDONTWRITEBYTECODE=1 python3 "$ROOT/tests/soak/soak.py" "$BUILD" "$FS" \
	"${SOAK_SECONDS:-1800}" "${kinds[@]}" >"$T/said" 2>&1
status=$?
while IFS= read -r line; do
	case $line in
	'ok '*) ok "${line#ok }" ;;
	*) not_ok "${line#not ok }" ;;
	esac
done <"$T/said"
LOG=$FS/soak.log
check 'it comes to its end' test $status -eq 0
finish
