#!/bin/bash
# Proves that a push through refd costs little beside git's own work: one
# connection to the daemon, one transaction, and no process. A git process is
# needed only for questions that git must answer: a configuration with includes
# takes one, and whether a branch moved forward (receive.denyNonFastForwards)
# takes one for every branch. `refd update` needs no process either. The same
# holds for repositories with extensions and of both object formats.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if ! command -v strace >/dev/null || ! strace -o /dev/null true 2>/dev/null; then
	skip push_cost 'no strace, or it may not trace'
	finish
fi

# Lists the programs of the hook and its children, from its start to its end.
hook_ran() {
	awk '/execve\(".*proc-receive"/ && / = 0/ { hook = $1; next }
		hook != "" && /execve\(/ && / = 0/ { print }
		$1 == hook && /\+\+\+ exited/ { exit }' "$T/trace"
}

costs() { # NAME GIT-PROCESSES ARGUMENT...
	local name=$1 wanted=$2 before
	shift 2
	before=$(stat_of transactions)
	strace -f -o "$T/trace" -e trace=execve,connect \
		git -C "$T/work" push -q "$T/s.git" "$@" 2>"$T/err"
	is "$name" "$wanted git, 1 connection, 1 transaction" \
		"$(hook_ran | grep -c '"git",') git, $(
			grep -c "connect.*$SOCKET" "$T/trace") connection, $((
			$(stat_of transactions) - before)) transaction"
}

start_daemon || finish
new_repo s.git bare
check 'it is enabled' "$REFD" enable --socket "$SOCKET" "$T/s.git"
new_repo work
one=$(git -C "$T/work" rev-parse HEAD)
two=$(new_commit work two "$one")

costs 'a ref' 0 "$one:refs/heads/main"
costs 'some' 0 "$one:refs/heads/a" "$one:refs/heads/b" "$two:refs/heads/c"
costs 'moved, made and deleted' 0 "$two:refs/heads/a" :refs/heads/b \
	"$one:refs/tags/t"
costs 'atomic' 0 --atomic "$two:refs/heads/d" "$two:refs/heads/e"
unset GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
costs 'whoever the account is' 0 "$two:refs/heads/f"
printf '#!/bin/sh\nexit 0\n' >"$T/s.git/hooks/update"
chmod +x "$T/s.git/hooks/update"
costs 'with an update hook' 0 "$two:refs/heads/g" "$two:refs/heads/h"
git -C "$T/s.git" config receive.denyNonFastForwards true
costs 'where it must be forward' 1 "$two:refs/heads/main" "$two:refs/heads/i"
git -C "$T/s.git" config receive.denyNonFastForwards false
git -C "$T/s.git" config include.path /nowhere
costs 'with an include' 1 "$two:refs/heads/j"
git -C "$T/s.git" config --unset include.path

# As on a server, where the machine's own file counts: only if this file is
# where it usually is, and has no settings of pushes.
has_plain_system() {
	[ "$(readlink -f "$(command -v git)")" = /usr/bin/git ] &&
		[ ! -e /usr/etc/gitconfig ] &&
		[ ! -e /usr/local/etc/gitconfig ] &&
		! GIT_CONFIG_NOSYSTEM=0 git config --system --list \
			2>/dev/null | grep -qvE '^(credential|init|safe|user)\.'
}

if has_plain_system; then
	unset GIT_CONFIG_NOSYSTEM
	costs 'with the file of the system' 0 "$two:refs/heads/m"
	export GIT_CONFIG_NOSYSTEM=1
else
	skip 'with the file of the system' 'an unusual git, or a file of it'
fi

# Lists the programs of refd update.
update_is_alone() { # NAME
	rm "$T/s.git/hooks/update" 2>/dev/null
	strace -f -o "$T/trace" -e trace=execve \
		"$REFD" update --git-dir "$T/s.git" refs/heads/k "$two"
	is "$1: refd update starts no process" 1 \
		"$(grep -c 'execve(' "$T/trace")"
}

update_is_alone plain

# ---- extensions, and the other object format ----

git -C "$T/s.git" config core.repositoryFormatVersion 1
git -C "$T/s.git" config extensions.preciousObjects true
git -C "$T/s.git" config extensions.worktreeConfig true
git -C "$T/s.git" config --worktree receive.maxInputSize 1g
costs 'with extensions' 0 "$one:refs/heads/l"
update_is_alone 'with extensions'
export GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.com
other=sha256
[ "$FORMAT" = sha1 ] || other=sha1
rm -rf "$T/s.git" "$T/work"
GIT_DEFAULT_HASH=$other new_repo s.git bare
check "with ids of $other: it is enabled" \
	"$REFD" enable --socket "$SOCKET" "$T/s.git"
GIT_DEFAULT_HASH=$other new_repo work
one=$(git -C "$T/work" rev-parse HEAD)
two=$(new_commit work two "$one")
costs "with ids of $other" 0 "$one:refs/heads/main" "$two:refs/heads/a"
costs "with ids of $other, again" 0 "$two:refs/heads/main" :refs/heads/a
update_is_alone "with ids of $other"
finish
