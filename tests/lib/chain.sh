# shellcheck shell=bash
# Compare-and-swap in loops, by refd and by git, so that nothing can be lost
# unseen: every ref walks along one chain of commits, a step for each swap that
# was acknowledged, and at the end its place in the chain must be the number of
# its acknowledgements. One less, and an update was lost; one more, and
# something happened unasked.
#
# Sourced after scenario.sh. The repository is $T/repo.git; the loops end when
# $T/over is there. Each has an ID, and leaves its acknowledgements, a ref a
# line, in $T/acked.ID, and what it was told instead in $T/why.ID.

# Of LENGTH commits, the first of them first; one a swap.
make_chain() { # LENGTH
	local i
	for ((i = 1; i <= $1; i++)); do
		echo "commit refs/heads/chain"
		echo "committer C O Mitter <committer@example.com> $i +0000"
		echo "data 0"
		echo
	done | git -C "$T/repo.git" fast-import --quiet
	git -C "$T/repo.git" rev-list --reverse refs/heads/chain >"$T/chain"
}

# refs/heads/race/0 and so on, at the beginning of it. And tags, so that
# packed-refs is larger than 32 KiB: git reads a smaller one into memory, does
# not notice when it is replaced within the second by one of the same size and
# inode, and then loses updates all by itself (three of 2,330 swaps in half a
# minute of nothing but git; with a larger one, which it maps, none).
make_refs() { # REFS
	local i first
	nr_refs=$1
	first=$(head -n 1 "$T/chain")
	for ((i = 0; i < $1; i++)); do
		echo "create refs/heads/race/$i $first"
	done | "$REFD" update -C "$T/repo.git" -m race --stdin
	for ((i = 0; i < 800; i++)); do
		echo "create refs/tags/pad/$i $first"
	done | git -C "$T/repo.git" update-ref --stdin
	git -C "$T/repo.git" pack-refs --all
}

# Sets after[OID] to the commit that follows it.
read_chain() {
	local oid old=
	while read -r oid; do
		[ -z "$old" ] || after[$old]=$oid
		old=$oid
	done <"$T/chain"
}

# It waits for a lock that git has as long as git may need, which on a busy
# machine is longer than the second that it does by itself.
by_refd() {
	GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=core.filesRefLockTimeout \
		GIT_CONFIG_VALUE_0=60000 \
		GIT_CONFIG_KEY_1=core.packedRefsTimeout \
		GIT_CONFIG_VALUE_1=60000 \
		"$REFD" update -C "$T/repo.git" --timeout 120000 -m race "$@"
}

by_git() {
	git -C "$T/repo.git" update-ref -m race "$@"
}

# Swaps until it is time: reads one of refs/heads/race/0..REFS-1, and moves it
# one step on. HOW gets ref, new and old.
swap() { # ID HOW REFS
	local ref old
	local -A after=()
	read_chain
	RANDOM=$1
	while [ ! -e "$T/over" ]; do
		ref=refs/heads/race/$((RANDOM % $3))
		old=$(git -C "$T/repo.git" rev-parse --verify -q "$ref") ||
			continue
		if "$2" "$ref" "${after[$old]}" "$old" 2>>"$T/why.$1"; then
			echo "$ref" >>"$T/acked.$1"
		fi
	done
}

# The same, but each ref is deleted first and then made again, one step on.
# Nobody else makes refs: one that is there all the same was resurrected, and
# noted in $T/resurrected.
delete_and_make() { # ID HOW REFS
	local ref old zero=0000000000000000000000000000000000000000
	local -A after=()
	read_chain
	RANDOM=$1
	while [ ! -e "$T/over" ]; do
		ref=refs/heads/race/$((RANDOM % $3))
		old=$(git -C "$T/repo.git" rev-parse --verify -q "$ref") ||
			continue
		"$2" -d "$ref" "$old" 2>>"$T/why.$1" || continue
		echo "$ref" >>"$T/deleted.$1"
		until "$2" "$ref" "${after[$old]}" $zero 2>"$T/made.$1"; do
			if grep -q 'already exists' "$T/made.$1"; then
				echo "$ref $old" >>"$T/resurrected"
				break
			fi
			cat "$T/made.$1" >>"$T/why.$1"
		done
		echo "$ref" >>"$T/acked.$1"
	done
}

again_and_again() { # COMMAND...
	while [ ! -e "$T/over" ]; do
		"$@" >>"$T/maintenance" 2>&1
		sleep 0.02
	done
}

in_background() { # COMMAND...
	"$@" &
	own $!
	loops+=($!)
}

end_loops() {
	local pid
	: >"$T/over"
	for pid in "${loops[@]}"; do reap "$pid"; done
	loops=()
	rm -f "$T/over"
}
loops=()

# Where the refs stand in the chain, against how often they were said to have
# been moved.
compare_steps() { # [ROUND]
	local i
	{
		for ((i = 0; i < nr_refs; i++)); do echo "refs/heads/race/$i"; done
		cat "$T"/acked.*
	} | sort | uniq -c | awk '{ print $2, $1 - 1 }' | sort >"$T/wanted"
	git -C "$T/repo.git" for-each-ref refs/heads/race \
		--format='%(objectname) %(refname)' | awk -v chain="$T/chain" '
		BEGIN { while ((getline oid <chain) > 0) place[oid] = n++ }
		$1 in place { print $2, place[$1] }' | sort >"$T/got"
	check "${1:-}as many steps as acknowledgements, for each ref" \
		diff "$T/wanted" "$T/got"
}
