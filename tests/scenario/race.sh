#!/bin/bash
# Real git in the same repository at the same time: git update-ref, git
# pack-refs --all --prune and git gc run in loops while eight clients of refd
# and two of git compare-and-swap the same fifty refs. Every ref walks along
# one chain of commits, a step for each swap that was acknowledged, so at the
# end its place in the chain must be the number of its acknowledgements: one
# less, and an update was lost; one more, and something happened unasked.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

refs=50
clients=8
gits=2
length=20000
seconds=40

# A chain of commits, the first of them first, and where each stands in it.
make_chain() {
	local i
	for ((i = 1; i <= length; i++)); do
		echo "commit refs/heads/chain"
		echo "committer C O Mitter <committer@example.com> $i +0000"
		echo "data 0"
		echo
	done | git -C "$T/repo.git" fast-import --quiet
	git -C "$T/repo.git" rev-list --reverse refs/heads/chain >"$T/chain"
}

# Swaps until it is time: reads a ref, moves it one step on, and notes the
# refs of the swaps that were acknowledged. HOW gets ref, new and old.
swap() { # ID HOW
	local i=0 oid ref old
	local -A after=()
	while read -r oid; do
		[ $i -eq 0 ] || after[$old]=$oid
		old=$oid
		i=$((i + 1))
	done <"$T/chain"
	RANDOM=$1
	while [ ! -e "$T/over" ]; do
		ref=refs/heads/race/$((RANDOM % refs))
		old=$(git -C "$T/repo.git" rev-parse --verify -q "$ref") ||
			continue
		if "$2" "$ref" "${after[$old]}" "$old" 2>>"$T/why.$1"; then
			echo "$ref" >>"$T/acked.$1"
		fi
	done
}

by_refd() {
	"$REFD" update -C "$T/repo.git" -m race "$@"
}

by_git() {
	git -C "$T/repo.git" update-ref -m race "$@"
}

again_and_again() { # COMMAND...
	while [ ! -e "$T/over" ]; do
		"$@" >>"$T/maintenance" 2>&1
		sleep 0.02
	done
}

check 'the daemon starts' start_daemon
new_repo repo.git bare
git -C "$T/repo.git" config core.logAllRefUpdates always
"$REFD" enable "$T/repo.git" >/dev/null
make_chain
first=$(head -n 1 "$T/chain")
for ((i = 0; i < refs; i++)); do
	echo "create refs/heads/race/$i $first"
done | "$REFD" update -C "$T/repo.git" -m race --stdin

racers=()
for ((i = 1; i <= clients; i++)); do
	swap $i by_refd &
	racers+=($!)
done
for ((i = 1; i <= gits; i++)); do
	swap $((100 + i)) by_git &
	racers+=($!)
done
again_and_again git -C "$T/repo.git" pack-refs --all --prune &
racers+=($!)
again_and_again git -C "$T/repo.git" gc --quiet --prune=now &
racers+=($!)
for pid in "${racers[@]}"; do own "$pid"; done
sleep $seconds
: >"$T/over"
for pid in "${racers[@]}"; do reap "$pid"; done

ours=$(cat "$T"/acked.? | wc -l)
theirs=$(cat "$T"/acked.10? | wc -l)
echo "# $ours swaps by refd, $theirs by git acknowledged;" \
	"$(grep -c . "$T/maintenance") complaints of pack-refs and gc"
check 'refd got through' test "$ours" -gt $((seconds * 10))
check 'git got through' test "$theirs" -gt $((seconds / 4))

cat "$T"/acked.* | sort | uniq -c | awk '{ print $2, $1 }' | sort >"$T/wanted"
git -C "$T/repo.git" for-each-ref refs/heads/race \
	--format='%(objectname) %(refname)' | awk -v chain="$T/chain" '
	BEGIN { while ((getline oid <chain) > 0) place[oid] = n++ }
	place[$1] { print $2, place[$1] }' | sort >"$T/got"
check 'as many steps as acknowledgements, for each ref' \
	diff "$T/wanted" "$T/got"
for ((i = 0; i < refs; i++)); do
	log=$(wc -l <"$T/repo.git/logs/refs/heads/race/$i")
	echo "refs/heads/race/$i $((log - 1))"
done | sort >"$T/logged"
check 'as many lines in its reflog' diff "$T/wanted" "$T/logged"
# A swap that comes second may be told that it is stale, or, by git and of
# git's locks, that the ref is locked; nothing else.
is 'refused for no other reason than a newer value' '' \
	"$(cat "$T"/why.? | grep . | grep -v 'but expected' | head -n 5)"
no_locks 'no lock is left' repo.git
check 'git fsck' git -C "$T/repo.git" fsck --no-dangling 2>/dev/null
finish
