#!/bin/bash
# Proves that refd and real git lose no update in the same repository at the
# same time. git update-ref, git pack-refs --all --prune and git gc run in
# loops, while eight clients of refd and two of git compare-and-swap the same
# fifty refs. tests/lib/chain.sh describes the counting.
# Alone: it is a storm.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/chain.sh
. "$ROOT/tests/lib/chain.sh"

refs=50
clients=8
gits=2
length=20000
seconds=${RACE_SECONDS:-10}
enough=$((seconds * 10))
enough_of_git=$((seconds / 4))

check 'the daemon starts' start_daemon
new_repo repo.git bare
git -C "$T/repo.git" config core.logAllRefUpdates always
"$REFD" enable "$T/repo.git" >/dev/null
make_chain $length
# The last ref is never swapped.
make_refs $((refs + 1))

for ((i = 1; i <= clients; i++)); do in_background swap $i by_refd $refs; done
for ((i = 101; i <= 100 + gits; i++)); do
	in_background swap $i by_git $refs
done
in_background again_and_again git -C "$T/repo.git" pack-refs --all --prune
in_background again_and_again git -C "$T/repo.git" gc --quiet --prune=now
ours=0 theirs=0
for ((round = 1; round <= 10; round++)); do
	sleep "$seconds"
	ours=$(cat "$T"/acked.? | wc -l)
	theirs=$(cat "$T"/acked.10? | wc -l)
	# A busy machine makes slower progress.
	[ "$ours" -le $enough ] || [ "$theirs" -le $enough_of_git ] || break
done
end_loops

echo "# $ours swaps by refd, $theirs by git acknowledged in" \
	"$((round * seconds)) s;" \
	"$(grep -c . "$T/maintenance") complaints of pack-refs and gc"
check 'refd got through' test "$ours" -gt $enough
check 'git got through' test "$theirs" -gt $enough_of_git

compare_steps
for ((i = 0; i <= refs; i++)); do
	log=$(wc -l <"$T/repo.git/logs/refs/heads/race/$i")
	echo "refs/heads/race/$i $((log - 1))"
done | sort >"$T/logged"
check 'as many lines in its reflog' diff "$T/wanted" "$T/logged"
# A swap that comes second may be stale. With git, and for git's locks, the ref
# may also be locked. No other error is permitted.
is 'refused for no other reason than a newer value' '' \
	"$(cat "$T"/why.? | grep . | grep -v 'but expected' | head -n 5)"
no_locks 'no lock is left' repo.git
check 'git fsck' git -C "$T/repo.git" fsck --no-dangling 2>/dev/null
finish
