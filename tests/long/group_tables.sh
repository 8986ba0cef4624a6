#!/bin/bash
# Proves that a group of nodes can have repositories with refs in reftables: the
# scenarios of groups run again with such repositories, made by the newest git
# of Debian, with ids of SHA-1 and of SHA-256. Then nodes with different formats
# have the same refs, also after kill -9 of each of them and after writes by
# other programs, and git finds no fault.

# shellcheck source=tests/lib/scenario.sh
export REFD_TEST_REFS=reftable
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

if ! why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" experimental \
	2>&1); then
	skip 'a git with reftables' "not to be had: ${why//$'\n'/; }"
	finish
	exit
fi

again() { # SCENARIO [FORMAT]
	local said
	if said=$(REFD_TEST_REFS=reftable REFD_TEST_FORMAT=${2:-sha1} \
		BUILD=$BUILD bash "$ROOT/tests/$1.sh" 2>&1); then
		ok "$1 with reftables ${2:-}"
	else
		not_ok "$1 with reftables ${2:-}" \
			"$(grep -a '^not ok' <<<"$said" | head -n 5)"
		printf '%s\n' "$said" | tail -n 60
	fi
}

for scenario in "$ROOT"/tests/scenario/group_nodes*.sh; do
	again "scenario/$(basename "$scenario" .sh)"
done
again scenario/group_objects
again scenario/group_nodes sha256
again scenario/group_nodes_diverged sha256
again long/group_hold
run_cases group_cases_tables.py
finish
