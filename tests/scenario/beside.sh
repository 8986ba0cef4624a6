#!/bin/bash
# Proves that real git can do its everyday work while clients of refd write to
# the same repositories: pack-refs and gc, expiry of reflogs, worktrees that
# come and go, renamed branches, fetches and clones, HEAD moved from branch to
# branch, commits and stashes in the work tree. Afterwards the repository is
# sound, both sides have every acknowledged value, and no lock is left.
# Alone: it is a storm.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/chain.sh
. "$ROOT/tests/lib/chain.sh"

refs=12
seconds=20

# Does one kind of work until the time is over. Writes a line for every success
# to $T/did.NAME, and error messages to $T/said.NAME.
busy() { # NAME
	local name=$1 round=0
	while [ ! -e "$T/over" ]; do
		round=$((round + 1))
		if "$name" "$round" >>"$T/said.$name" 2>&1; then
			echo "$round" >>"$T/did.$name"
		fi
		sleep 0.02
	done
}

in_repo() { # GIT-ARGUMENT...
	git -C "$T/repo.git" "$@"
}

in_tree() { # GIT-ARGUMENT...
	git -C "$T/tree" "$@"
}

pack() { in_repo pack-refs --all --prune; }
# Not --prune=now, which loses new objects of a git that is at work.
collect() { in_repo gc --quiet; }
expire() { in_repo reflog expire --expire=now --all; }

worktrees() { # ROUND
	in_repo worktree add -q -b "tree/$1" "$T/worktree.$1" main &&
		git -C "$T/worktree.$1" commit -q --allow-empty -m "$1" &&
		in_repo worktree remove "$T/worktree.$1" &&
		in_repo branch -q -D "tree/$1"
}

renamed() {
	in_repo for-each-ref refs/heads/renamed --format='%(refname:short)'
}

rename() { # ROUND
	in_repo branch -m "$(renamed)" "renamed/$1"
}

# Fetches refs of another repository, under separate names, and removes them.
fetch() { # ROUND
	git -C "$T/other" commit -q --allow-empty -m "$1" &&
		git -C "$T/other" branch -f -q "for/$(($1 % 3))" &&
		in_repo fetch -q --prune "$T/other" \
			'+refs/heads/for/*:refs/remotes/other/*' &&
		{ [ $(($1 % 5)) -ne 0 ] ||
			git -C "$T/other" branch -q -D "for/$(($1 % 3))"; }
}

# A clone with a branch has all objects of the branch.
clone() { # ROUND
	rm -rf "$T/clone"
	git clone -q --bare --no-local "$T/repo.git" "$T/clone" &&
		git -C "$T/clone" fsck --connectivity-only --no-dangling
}

move_head() { # ROUND
	in_repo symbolic-ref HEAD "refs/heads/race/$(($1 % refs))"
}

all_did() {
	local work
	for work in $works; do
		[ -s "$T/did.$work" ] || return 1
	done
}

# Of the work tree's own repository, where refd moves other branches.
commit() { # ROUND
	echo "$1" >"$T/tree/file" && in_tree add file &&
		in_tree commit -q -m "$1" && echo "more" >>"$T/tree/file" &&
		in_tree stash -q && in_tree stash pop -q &&
		in_tree checkout -q -- file
}

# refd in this work tree: a new branch for each round.
by_refd_in_tree() { # ROUND
	"$REFD" update -C "$T/tree" -m tree "refs/heads/refd/$1" HEAD &&
		"$REFD" update -C "$T/tree" -d "refs/heads/refd/$(($1 - 7))"
}

check 'the daemon starts' start_daemon
new_repo repo.git bare
in_repo config core.logAllRefUpdates always
in_repo config gc.worktreePruneExpire never
"$REFD" enable "$T/repo.git" >/dev/null
make_chain 8000
make_refs $refs
in_repo update-ref refs/heads/main "$(head -n 1 "$T/chain")"
in_repo branch renamed/0 main
git clone -q "$T/repo.git" "$T/other" 2>/dev/null
new_repo tree
# All work has to succeed, however long packed-refs.lock is held.
in_tree config core.packedRefsTimeout 60000
works='pack collect expire worktrees rename fetch clone move_head commit'
works+=' by_refd_in_tree'

for ((i = 1; i <= 4; i++)); do in_background swap $i by_refd $refs; done
in_background delete_and_make 5 by_refd $refs
in_background swap 101 by_git $refs
for work in $works; do in_background busy "$work"; done
sleep $seconds
# A busy machine may need longer for the first gc.
for ((i = 0; i < 4000; i++)); do
	all_did && break
	sleep 0.1
done
end_loops

echo "# $(cat "$T"/acked.* | wc -l) swaps; $(for work in $works; do
	printf '%s %d, ' "$work" "$(grep -c . "$T/did.$work")"
done)"
for work in $works; do
	check "$work went on" test -s "$T/did.$work"
done
compare_steps
is 'no deleted ref came back' '' "$(cat "$T/resurrected" 2>/dev/null)"
is 'a client of refd hears of nothing but newer values' '' \
	"$(cat "$T"/why.? | grep . |
		grep -vE 'but expected|unable to resolve' | head -n 5)"
for repo in repo.git tree other; do
	is "git fsck of $repo" '' \
		"$(git -C "$T/$repo" fsck --no-dangling --no-progress 2>&1)"
	no_locks "no lock is left in $repo" $repo
done
is 'each commit in the work tree is there' \
	"$(wc -l <"$T/did.commit")" \
	"$(($(in_tree rev-list --count HEAD) - 1))"
is 'its log has them all' \
	"$(in_tree rev-list --count HEAD)" \
	"$(wc -l <"$T/tree/.git/logs/refs/heads/main")"
is 'the renamed branch is there once' 1 "$(renamed | wc -l)"
is 'the branches of refd in it are the last seven' \
	"$(tail -n 7 "$T/did.by_refd_in_tree" | sort)" \
	"$(in_tree for-each-ref refs/heads/refd --format='%(refname:lstrip=3)' |
		sort)"
is 'nothing to complain of' '' "$(complaints)"
finish
