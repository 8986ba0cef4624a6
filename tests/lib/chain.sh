# shellcheck shell=bash
# Compare-and-swap in loops, by refd and by git, in a way that shows every lost
# update. Every ref moves along a chain of commits, one step for each
# acknowledged swap. At the end its place in the chain must equal the number of
# acknowledgements. A lower place shows a lost update, a higher place an update
# without a request.
#
# Sourced after scenario.sh. The repository is $T/repo.git; the loops end when
# $T/over exists. Each loop has an ID. It writes acknowledgements to
# $T/acked.ID, one ref per line, and error messages to $T/why.ID.

# Makes a chain of LENGTH commits, one for each swap.
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

# Makes refs/heads/race/0 and so on at the first commit. Also makes tags, so
# that packed-refs is larger than 32 KiB. git reads a smaller packed-refs into
# memory. Then git does not notice a replacement within the same second by a
# file of the same size and inode, and loses updates without refd: three of
# 2,330 swaps in half a minute. git maps a larger file, and lost no update.
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

# Sets after[OID] to the next commit of the chain.
read_chain() {
	local oid old=
	while read -r oid; do
		[ -z "$old" ] || after[$old]=$oid
		old=$oid
	done <"$T/chain"
}

# refd waits for git's lock as long as git may need. On a busy machine this is
# longer than the default of one second.
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

# Swaps until the time is over: reads one of refs/heads/race/0..REFS-1, and
# moves the ref one step. HOW gets ref, new and old.
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

# The same, but deletes each ref first and then creates it, one step further. No
# other loop creates refs: a ref that still exists was resurrected, and is noted
# in $T/resurrected.
delete_and_make() { # ID HOW REFS
	local ref old
	local -A after=()
	read_chain
	RANDOM=$1
	while [ ! -e "$T/over" ]; do
		ref=refs/heads/race/$((RANDOM % $3))
		old=$(git -C "$T/repo.git" rev-parse --verify -q "$ref") ||
			continue
		"$2" -d "$ref" "$old" 2>>"$T/why.$1" || continue
		echo "$ref" >>"$T/deleted.$1"
		until "$2" "$ref" "${after[$old]}" "$ZERO" 2>"$T/made.$1"; do
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
