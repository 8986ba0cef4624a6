#!/bin/bash
# Proves that kill -9 of the daemon, again and again, loses and repeats nothing,
# while clients never stop asking. No acknowledged update is missing, an atomic
# transaction is there as a whole or not at all, and no lock is left. The test
# counts: every reflog must have as many lines as its client had
# acknowledgements, and every line begins where the line before ended.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

kills_wanted=16
kills_a_round=4
clients=8
refs=4
seconds=700 # on a machine that flushes slowly
kills=0

storm() { # ROUND [OPTION...]
	local round=$1
	shift
	"$BUILD/tests/helper/storm" --socket "$SOCKET" --repo "$T/repo.git" \
		--prefix "refs/heads/round$round" --oid "$one" --oid "$two" \
		--clients $clients --refs $refs --txns 150 \
		--log "$T/log.$round" "$@" >"$T/storm.$round" 2>&1
}

# The daemon is killed and started while the clients have work.
kill_under_load() { # STORM-PID
	local n
	for ((n = 0; n < kills_a_round; n++)); do
		sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
		kill -0 "$1" 2>/dev/null || break
		kill_daemon
		kills=$((kills + 1))
		start_daemon || return 1
	done
}

# Compares the acknowledgements with the refs.
compare() { # ROUND
	local prefix=refs/heads/round$1 wanted got
	# A transaction that is not atomic and was killed between two batches is
	# not begun again: its remaining updates are reported as aborted.
	is "round $1: nothing failed, nothing is unknown" \
		'"failed":{},"unknown":0' \
		"$(sed -E 's/.*("failed":\{)("aborted":[0-9]+)?(\},"unknown":[0-9]+).*/\1\3/' \
			"$T/storm.$1")$(grep -a event=update-failed "$LOG")"
	wanted=$(awk '{ last[$1] = $2 } END {
		for (ref in last) print last[ref], ref }' "$T/log.$1" |
		sort | sha1sum)
	got=$(git -C "$T/repo.git" for-each-ref "$prefix" \
		--format='%(objectname) %(refname)' | sort | sha1sum)
	is "round $1: each ref has its last acknowledged value" \
		"$wanted" "$got"
	wanted=$(awk '{ n[$1]++ } END { for (ref in n) print n[ref], ref }' \
		"$T/log.$1" | sort)
	got=$(cd "$T/repo.git/logs" && find "$prefix" -type f \
		-exec awk '{ n[FILENAME]++ } END {
			for (ref in n) print n[ref], ref }' {} + | sort)
	is "round $1: as many reflog lines as acknowledgements" \
		"$(sha1sum <<<"$wanted")" "$(sha1sum <<<"$got")"
	is "round $1: each line begins where the last one ended" '' \
		"$(cd "$T/repo.git/logs" && find "$prefix" -type f -exec awk '
			FNR > 1 && $1 != end { print FILENAME ": " FNR }
			{ end = $2 }' {} +)"
}

all_or_none() { # ROUND
	is "round $1: a client's refs are all at one value" '' \
		"$(git -C "$T/repo.git" for-each-ref "refs/heads/round$1" \
			--format='%(objectname) %(refname)' |
			awk '{ sub("/[^/]*$", "", $2)
				if ($2 in at && at[$2] != $1) print $2
				at[$2] = $1 }')"
}

check 'the daemon starts' start_daemon
new_repo repo.git bare
git -C "$T/repo.git" config core.logAllRefUpdates always
one=$(new_commit repo.git one)
two=$(new_commit repo.git two "$one")

round=0
RANDOM=1
while [ $kills -lt $kills_wanted ] && [ $SECONDS -lt $seconds ]; do
	round=$((round + 1))
	atomic=()
	[ $((round % 2)) -eq 1 ] || atomic=(--atomic)
	storm $round ${atomic[@]+"${atomic[@]}"} &
	storm=$!
	own $storm
	kill_under_load $storm || break
	reap $storm
	compare $round
	[ $((round % 2)) -eq 1 ] || all_or_none $round
done
check "the daemon was killed $kills times" test $kills -ge $kills_wanted
no_locks 'no lock is left' repo.git
is 'the last start found nothing to complain of' '' "$(complaints)"
kill_daemon
check 'started after all is quiet' start_daemon
no_locks 'no lock is left by that either' repo.git
is 'nothing is left in the stage' '' \
	"$(find "$T/repo.git/refd/stage" -type f)"
check 'git fsck' git -C "$T/repo.git" fsck --no-dangling 2>/dev/null
finish
