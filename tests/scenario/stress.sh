#!/bin/bash
# Proves that no update is lost on four refs that everybody wants. Two clients
# of refd and two loops of git update-ref compare-and-swap the refs. A further
# client of each kind deletes and recreates them, and git pack-refs --all
# --prune runs all the time. The first part runs in peace, the second with the
# daemon killed every few seconds. No deleted ref may come back by itself, and
# no lock may stay. tests/lib/chain.sh describes the counting.
#
# STRESS_SECONDS is the time of each part; tests/long/stress.sh runs longer.
# Alone: it is a storm.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/chain.sh
. "$ROOT/tests/lib/chain.sh"

refs=4
seconds=${STRESS_SECONDS:-6}
enough=$((seconds / 3))
RANDOM=${SEED:-1}

start_loops() {
	in_background swap 1 by_refd $refs
	in_background swap 2 by_refd $refs
	in_background delete_and_make 3 by_refd $refs
	in_background swap 101 by_git $refs
	in_background swap 102 by_git $refs
	in_background delete_and_make 103 by_git $refs
	in_background again_and_again git -C "$T/repo.git" \
		pack-refs --all --prune
}

# All loops have done the work that the test compares. A busy machine takes
# longer.
all_got_through() {
	[ "$(cat "$T"/acked.[0-9] | wc -l)" -gt "$enough" ] &&
		[ -s "$T/deleted.3" ] && [ -s "$T/deleted.103" ] &&
		cat "$T"/acked.10? | grep -q .
}

in_peace() {
	sleep "$seconds"
	await 30 all_got_through
}

under_kills() {
	local end=$((SECONDS + seconds)) last=$((SECONDS + seconds + 300))
	while [ "$SECONDS" -lt "$end" ] ||
		{ [ "$SECONDS" -lt "$last" ] && ! { [ "$kills" -ge "$enough" ] &&
			all_got_through 2>/dev/null; }; }; do
		sleep "$((RANDOM % 3)).$((RANDOM % 10))"
		kill_daemon
		kills=$((kills + 1))
		start_daemon || return 1
	done
}

# Compares the results of the loops, whatever happened meanwhile.
compare() { # ROUND
	local round=$1 ours theirs deleted away=
	[ "$kills" -eq 0 ] || away='cannot connect to|no greeting'
	ours=$(cat "$T"/acked.[0-9] | wc -l)
	theirs=$(cat "$T"/acked.10? | wc -l)
	deleted=$(cat "$T"/deleted.* | wc -l)
	echo "# $round: $ours swaps by refd, $theirs by git, $deleted deletions"
	check "$round: refd got through" test "$ours" -gt $enough
	check "$round: git got through" test "$theirs" -gt 0
	check "$round: refs were deleted" test "$deleted" -gt 0
	compare_steps "$round: "
	is "$round: no deleted ref came back" '' \
		"$(cat "$T/resurrected" 2>/dev/null)"
	# A client that finds no daemon gets this error: nothing was submitted
	# yet.
	is "$round: a client of refd hears of nothing but newer values" '' \
		"$(cat "$T"/why.[0-9] | grep . | grep -vE \
			"but expected|unable to resolve${away:+|$away}" | head -n 5)"
	no_locks "$round: no lock is left" repo.git
	check "$round: git fsck" git -C "$T/repo.git" fsck --no-dangling \
		2>/dev/null
	[ "$kills" -gt 0 ] ||
		is "$round: nothing to complain of" '' "$(complaints)"
}

check 'the daemon starts' start_daemon
new_repo repo.git bare
git -C "$T/repo.git" config core.logAllRefUpdates always
"$REFD" enable "$T/repo.git" >/dev/null
make_chain $((seconds * 1000))
kills=0
make_refs $refs
for round in 'in peace' 'under kills'; do
	start_loops
	"${round// /_}"
	end_loops
	compare "$round"
done
check "the daemon was killed $kills times" test "$kills" -ge $enough
kill_daemon
check 'it starts after all is quiet' start_daemon
is 'no ref waits' 0 "$(stat_of awaiting_refs)"
prints_nothing 'nothing is left in the stage' \
	find "$T/repo.git/refd/stage" -type f
no_locks 'nor a lock' repo.git
# A kill in the middle of a syncfs makes its records unsure: recovery leaves and
# reports git's later changes.
is 'nothing to complain of' '' "$(complaints_beside_git | grep -vE \
	' finding="left" .*text="another writer (changed|deleted) it later"')"
finish
