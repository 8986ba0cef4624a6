#!/bin/bash
# Proves that several accounts can share a repository of
# `git init --shared=group`. They push by path and by ssh, under their own
# names. The daemon runs as an account of the group; users outside the group are
# denied. New files have the group and mode that git would give.

# shellcheck source=tests/lib/stack.sh
. "$(dirname "$0")/../lib/stack.sh"
# shellcheck source=tests/lib/stack_push.sh
. "$ROOT/tests/lib/stack_push.sh"

groupadd dev
add_user keeper -G dev
for name in alice bob mallory; do
	add_pusher $name
	make_work $name
	as $name cp .ssh/id_ed25519.pub .ssh/authorized_keys
done
usermod -a -G dev alice
usermod -a -G dev bob
start_sshd
# git refuses repositories of other users unless they are listed.
git config --system safe.directory '*'

new_pair() { # OWNER
	local dir
	rm -rf /srv/team /srv/other
	for dir in /srv/team /srv/other; do
		install -d -o "$1" -g dev -m 2775 $dir
		as "$1" git init -q --bare --shared=group $dir/project.git
		prepare_repo $dir/project.git "$1"
		chgrp -R dev $dir/project.git/hooks
	done
}
repo_of() {
	if [ "$1" = refd ]; then
		echo /srv/team/project.git
	else
		echo /srv/other/project.git
	fi
}
url_of() {
	if [ "$way" = path ]; then
		repo_of "$1"
	else
		echo "$pusher@localhost:$(repo_of "$1")"
	fi
}
modes_are_shared() {
	is "$stack: the group may write all" '' "$(find "$(repo_of refd)/refs" \
		"$(repo_of refd)/logs" ! \( -perm -060 -group dev \) -print)"
}

outsider() {
	pusher=mallory
	rm -f "$(repo_of refd)/hook-log"
	before=$(state_of refd)
	for way in path ssh; do
		push_to refd main:refs/heads/mallory
		check "$stack: an outsider is denied by $way" \
			grep -q '^status [1-9]' "$T/refd.out"
	done
	as mallory refd update -C "$(repo_of refd)" refs/heads/mallory \
		"$(as mallory git -C work rev-parse c-base)" 2>"$T/err"
	is "$stack: nor by refd update" 128 $?
	check "$stack: with the reason" grep -q 'allowGroup' "$T/err"
	is "$stack: nothing is done" "$before" "$(state_of refd)"
}

# With git, each account owns the files that it makes. With refd, the daemon's
# account owns them.
COMPARE_OWNERS=no
daemon_user=keeper
new_pair alice
stack='shared, by path'
start_refd /srv/team allowGroup=dev
check "$stack: enabled" quietly as alice refd enable /srv/team/project.git
pusher=alice
way=path
stack_pushes
pusher=bob
both 'another of the group' 1 c-base:refs/heads/bob/1 \
	c-two:refs/heads/a/2 :refs/tags/c-base
both 'and moved' 1 c-one:refs/heads/bob/1
AS_UMASK=077
both 'with another umask' 1 c-base:refs/heads/bob/quite/private
unset AS_UMASK
modes_are_shared

stack='shared, by ssh'
way=ssh
both 'bob' 1 main:refs/heads/ssh/bob
pusher=alice
both 'alice' 1 main:refs/heads/ssh/alice c-one:refs/heads/bob/quite/more
both 'deleted' 1 :refs/heads/ssh/bob
fallback 'the daemon is stopped' main:refs/heads/ssh/away
both 'the daemon is back' 1 c-one:refs/heads/ssh/back :refs/heads/ssh/away
modes_are_shared
outsider

finish
