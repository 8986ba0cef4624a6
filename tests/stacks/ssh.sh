#!/bin/bash
# sshd with bare repositories of one account: people push by their keys, and
# the daemon runs as that account.

# shellcheck source=tests/lib/stack.sh
. "$(dirname "$0")/../lib/stack.sh"
# shellcheck source=tests/lib/stack_push.sh
. "$ROOT/tests/lib/stack_push.sh"

add_user git -s /usr/bin/git-shell
add_pusher alice
make_work alice
install -d -o git -g git /srv/git /srv/other
install -d -o git -g git -m 700 /home/git/.ssh
install -o git -g git /home/alice/.ssh/id_ed25519.pub \
	/home/git/.ssh/authorized_keys
start_sshd

new_twins() {
	rm -rf /srv/git/* /srv/other/*
	as git git init -q --bare /srv/git/project.git
	as git git init -q --bare /srv/other/project.git
	prepare_repo /srv/git/project.git git
	prepare_repo /srv/other/project.git git
}
repo_of() {
	if [ "$1" = refd ]; then
		echo /srv/git/project.git
	else
		echo /srv/other/project.git
	fi
}
url_of() {
	echo "ssh://git@localhost$(repo_of "$1")"
}

pusher=alice
daemon_user=git
new_twins

stack='ssh, a repository enabled'
start_refd /srv/git
check "$stack: enabled" quietly as git refd enable /srv/git/project.git
stack_pushes
check "$stack: disabled" quietly as git refd disable /srv/git/project.git
both "disabled: git's again" 0 main:refs/heads/after

stack='ssh, all enabled by the system'
forget_refd
new_twins
start_refd /srv/git
check "$stack: enabled" quietly refd enable --system --root /srv/git
stack_pushes
check "$stack: disabled" quietly refd disable --system
both "disabled: git's again" 0 main:refs/heads/after
finish
