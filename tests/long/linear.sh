#!/bin/bash
# Proves that the answers of refd and of the newest git are linearizable while
# the daemon is killed fifty times: one order of all changes and reads explains
# each answer. For refs in files and in reftables. LINEAR_KILLS=N kills N times.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if ! command -v python3 >/dev/null; then
	skip linear 'no python3'
	finish
fi
if ! why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" experimental \
	2>&1); then
	skip linear "no newest git: ${why//$'\n'/; }"
	finish
fi
PATH=$(cd "$BUILD" && pwd)/git-experimental:$PATH
export PATH
check 'known histories are judged as they should' \
	python3 "$ROOT/tests/lib/linear.py" --self-test
for refs in files reftable; do
	mkdir "$T/$refs"
	if GIT_DEFAULT_REF_FORMAT=$refs python3 "$ROOT/tests/lib/linear.py" \
		--top "$T/$refs" --refd "$REFD" --kills "${LINEAR_KILLS:-50}" \
		>"$T/said" 2>&1; then
		ok "$refs: each answer has its place in one order"
		grep '^# ' "$T/said"
	else
		not_ok "$refs: each answer has its place in one order" 'see below'
		cat "$T/said"
	fi
done
finish
