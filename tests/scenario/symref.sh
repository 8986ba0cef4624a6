#!/bin/bash
# Proves plain facts about symbolic refs and HEAD one by one: the written file,
# the logs that get a line, and refusals. REFD_BY_GIT=1 puts the same questions
# to git, to check the test. Questions that refd refuses because git answers
# differently are then left out.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

export GIT_COMMITTER_DATE='1700000000 +0000'

# refd update, in a repository's own directory.
update() { # REPO ARGUMENT...
	local repo=$1
	shift
	if [ -n "${REFD_BY_GIT:-}" ]; then
		git -C "$T/$repo" update-ref "$@"
	else
		"$REFD" update -C "$T/$repo" "$@"
	fi 2>"$T/why"
}

refused() { # NAME PATTERN COMMAND...
	local name=$1 pattern=$2 status=0
	shift 2
	"$@" || status=$?
	if [ $status -eq 0 ]; then
		not_ok "$name" 'it was done'
	elif ! grep -qE "$pattern" "$T/why"; then
		not_ok "$name" "said: $(cat "$T/why")"
	else
		ok "$name"
	fi
}

file() { # PATH-BELOW-THE-GIT-DIR
	cat "$T/$gitdir/$1"
}

# Prints "OLD NEW MESSAGE" of the last line of a log, or nothing.
logged() { # REF [WORKTREE'S-PATH-BELOW-THE-GIT-DIR]
	local log=$T/$gitdir/${2:+$2/}logs/$1
	[ ! -e "$log" ] || tail -n 1 "$log" |
		sed -E 's/^([0-9a-f]*) ([0-9a-f]*) [^\t]*\t?/\1 \2 /; s/ $//'
}

point() { # NAME TARGET
	git --git-dir "$T/$gitdir" symbolic-ref "$1" "$2"
}

make_repo() { # NAME
	new_repo "$1"
	gitdir=$1/.git
	one=$(ref_of "$1" HEAD)
	two=$(new_commit "$1" two "$one")
	three=$(new_commit "$1" three "$two")
}

# ---- facts ----

through_head() {
	check 'update HEAD' update repo -m one HEAD "$two"
	is 'HEAD stays what it was' 'ref: refs/heads/main' "$(file HEAD)"
	is 'its branch moved' "$two" "$(file refs/heads/main)"
	is 'the branch has a line' "$one $two one" "$(logged refs/heads/main)"
	is 'and HEAD' "$one $two one" "$(logged HEAD)"

	check 'update the branch' update repo -m two refs/heads/main "$three"
	is 'the branch has its line' "$two $three two" \
		"$(logged refs/heads/main)"
	is 'HEAD has one, since it points there' "$two $three two" \
		"$(logged HEAD)"

	check 'update to what it is' update repo -m same HEAD "$three"
	is 'HEAD notes that' "$three $three same" "$(logged HEAD)"
	is 'its branch does not' "$two $three two" "$(logged refs/heads/main)"

	check 'update another branch' update repo refs/heads/other "$one"
	is 'that is no business of HEAD' "$three $three same" "$(logged HEAD)"
	refused 'a wrong old value through HEAD' \
		"'HEAD': is at $three but expected $one" \
		update repo HEAD "$two" "$one"
	refused 'HEAD and its branch at once' 'multiple updates' \
		update repo --stdin <<<"update HEAD $one
update refs/heads/main $one"
	is 'nothing came of it' "$three" "$(file refs/heads/main)"
}

head_locked() {
	: >"$T/$gitdir/HEAD.lock"
	refused "HEAD's lock is in the branch's way" 'HEAD.lock.: File exists' \
		update repo refs/heads/main "$one"
	check 'not in that of another' update repo refs/heads/other "$two"
	check 'nor of the one in another worktree' \
		update repo/../wt refs/heads/wt "$two"
	rm "$T/$gitdir/HEAD.lock"
	is 'the branch is where it was' "$three" "$(file refs/heads/main)"
	check 'and can be moved again' update repo refs/heads/main "$two"
	check 'and back' update repo refs/heads/main "$three"
}

detached() {
	git -C "$T/repo" checkout -q --detach
	check 'update HEAD, detached' update repo -m alone HEAD "$one"
	is 'it is HEAD that moves' "$one" "$(file HEAD)"
	is 'and HEAD that has the line' "$three $one alone" "$(logged HEAD)"
	is 'the branch stays' "$three" "$(file refs/heads/main)"
	check 'update the branch meanwhile' update repo refs/heads/main "$two"
	is 'HEAD has nothing to do with it' "$three $one alone" \
		"$(logged HEAD)"
	refused 'a tree is nothing for HEAD' 'non-commit object' \
		update repo HEAD "$one^{tree}"
	point HEAD refs/heads/main
	check '--no-deref makes HEAD detached' update repo -m off --no-deref \
		HEAD "$three"
	is 'HEAD is the commit' "$three" "$(file HEAD)"
	is 'the line says from where' "$two $three off" "$(logged HEAD)"
	is 'the branch was left alone' "$two" "$(file refs/heads/main)"
	point HEAD refs/heads/main
}

worktrees() {
	check "update a worktree's HEAD" update wt -m there HEAD "$three"
	is 'its branch moved' "$three" "$(file refs/heads/wt)"
	is 'its own HEAD has the line' "$two $three there" \
		"$(logged HEAD worktrees/wt)"
	is 'that of the main one does not' "$two $three" "$(logged HEAD)"
	check 'update its branch from elsewhere' update repo refs/heads/wt "$one"
	is 'HEAD is that of where one works' "$two $three there" \
		"$(logged HEAD worktrees/wt)"
	check 'the HEAD of another by name' \
		update repo -m named worktrees/wt/HEAD "$two"
	is 'moves its branch' "$two" "$(file refs/heads/wt)"
	check 'the HEAD of the main one by name' \
		update wt -m main main-worktree/HEAD "$one"
	is 'moves that branch' "$one" "$(file refs/heads/main)"
	check 'a ref of a worktree alone' update wt refs/worktree/x "$one"
	is 'is kept with it' "$one" "$(file worktrees/wt/refs/worktree/x)"
	check 'bisect, too' update wt refs/bisect/bad "$one"
	is 'with it' "$one" "$(file worktrees/wt/refs/bisect/bad)"
	check 'and in the main one' update repo refs/bisect/bad "$two"
	is 'there' "$two" "$(file refs/bisect/bad)"
}

chains() {
	point refs/heads/a refs/heads/b
	point refs/heads/b refs/heads/c
	check 'through two of them, to what is not there' \
		update repo -m far --create-reflog refs/heads/a "$one"
	is 'the last is made' "$one" "$(file refs/heads/c)"
	is 'the first stays' 'ref: refs/heads/b' "$(file refs/heads/a)"
	is 'each has the line: the first' "$ZERO $one far" \
		"$(logged refs/heads/a)"
	is 'the second' "$ZERO $one far" "$(logged refs/heads/b)"
	is 'the third' "$ZERO $one far" "$(logged refs/heads/c)"
	check 'delete through them' update repo -d refs/heads/a "$one"
	check 'the last is gone' test ! -e "$T/$gitdir/refs/heads/c"
	is 'the first is not' 'ref: refs/heads/b' "$(file refs/heads/a)"
	check 'delete one itself' update repo --no-deref -d refs/heads/a
	check 'it is gone' test ! -e "$T/$gitdir/refs/heads/a"
	is 'what it pointed to is not' 'ref: refs/heads/c' \
		"$(file refs/heads/b)"
	point refs/heads/loop1 refs/heads/loop2
	point refs/heads/loop2 refs/heads/loop1
	refused 'a loop' "refs/heads/loop" update repo refs/heads/loop1 "$one"
	is 'is left as it is' 'ref: refs/heads/loop2' "$(file refs/heads/loop1)"
	check 'it can be taken apart' \
		update repo --no-deref -d refs/heads/loop1
	check 'wholly' update repo --no-deref -d refs/heads/loop2
}

packed() {
	check 'two more' update repo --stdin <<<"create refs/heads/p $one
create refs/heads/q/r $one"
	point refs/heads/s refs/heads/p
	git -C "$T/repo" pack-refs --all --prune
	check 'through a symref to what is packed' \
		update repo refs/heads/s "$two" "$one"
	is 'it is loose now' "$two" "$(file refs/heads/p)"
	check 'delete it, loose and packed' update repo -d refs/heads/s "$two"
	is 'both are gone' '' "$(ref_of repo refs/heads/p)"
	is 'the symref dangles' 'ref: refs/heads/p' "$(file refs/heads/s)"
	point refs/heads/q2 refs/heads/q
	refused 'a symref to where a directory is' "refs/heads/q" \
		update repo refs/heads/q2 "$one"
	is 'the other is as it was' "$one" "$(ref_of repo refs/heads/q/r)"
}

# Symbolic links, as made by old versions of git. They are read, and not written
# through. Without --no-deref an update changes the ref behind the link.
links() {
	update repo refs/heads/real "$one"
	ln -s refs/heads/real "$T/$gitdir/refs/heads/link"
	check 'update through a link' update repo refs/heads/link "$two" "$one"
	is 'what it names moved' "$two" "$(file refs/heads/real)"
	is 'the link is one still' refs/heads/real \
		"$(readlink "$T/$gitdir/refs/heads/link")"
	check 'delete the link itself' \
		update repo --no-deref -d refs/heads/link
	check 'it is gone' test ! -L "$T/$gitdir/refs/heads/link"
	is 'what it named is not' "$two" "$(file refs/heads/real)"
	echo "$one" >"$T/secret"
	ln -s "$T/secret" "$T/$gitdir/refs/heads/outside"
	refused 'a link that leads out' . update repo refs/heads/outside "$two"
	is 'nothing was written there' "$one" "$(cat "$T/secret")"
	rm "$T/$gitdir/refs/heads/outside"
}

# Where refd is stricter than git.
refusals() {
	mkdir "$T/elsewhere"
	printf 'ref: ../../elsewhere/x\n' >"$T/$gitdir/refs/heads/out"
	refused 'a target outside' 'refs/heads/out' \
		update repo refs/heads/out "$one"
	check 'nothing was made there' test ! -e "$T/elsewhere/x"
	ln -s "$T/elsewhere" "$T/$gitdir/refs/heads/dir"
	refused 'a directory that leads out' 'refs/heads/dir/x' \
		update repo refs/heads/dir/x "$one"
	check 'nothing was made there, too' test ! -e "$T/elsewhere/x"
	refused 'HEAD is not deleted' 'HEAD' update repo --no-deref -d HEAD
	check 'it is there' test -e "$T/$gitdir/HEAD"
	rm "$T/$gitdir/refs/heads/out" "$T/$gitdir/refs/heads/dir"
}

check 'the daemon starts' start_daemon
make_repo repo
through_head
git -C "$T/repo" worktree add -q -b wt "$T/wt" "$one"
head_locked
detached
update repo refs/heads/main "$three"
worktrees
chains
packed
links
[ -n "${REFD_BY_GIT:-}" ] || refusals
no_locks 'no lock is left' repo
# For fsck, a symbolic ref to nothing is broken.
printf 'option no-deref
delete refs/heads/%s
' b q2 s |
	"$REFD" update -C "$T/repo" --stdin
prints_nothing 'git fsck' git -C "$T/repo" fsck --no-dangling
is 'nothing to complain of' '' "$(complaints)"
finish
