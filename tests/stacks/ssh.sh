#!/bin/bash
# sshd with bare repositories of one account: people push by their keys. The
# daemon runs as that account, and then as root, which acts as whom each
# repository belongs to.

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

stack='ssh, all enabled by the system, the daemon as root'
forget_refd
daemon_user=root
new_twins
start_refd /srv/git allowUser=git allowUser=alice
check "$stack: enabled" quietly refd enable --system --root /srv/git
stack_pushes
check "$stack: disabled" quietly refd disable --system
both "disabled: git's again" 0 main:refs/heads/after

# What is not its owner's, but for the daemon's note of its checkpoint.
others_in() { # DIRECTORY USER
	find "$1" ! -path '*/refd/checkpoint' \( ! -user "$2" -o ! -group "$2" \)
}

# Repositories of two owners in the same windows.
stack='the daemon as root'
install -d -o alice -g alice /srv/git/alice
as alice git init -q --bare /srv/git/alice/alice.git
as alice git -C work push -q /srv/git/alice/alice.git main
oid=$(as alice git -C work rev-parse main)
updates=()
for i in {1..20}; do
	for who in git alice; do
		repo=/srv/git/project.git
		[ $who = git ] || repo=/srv/git/alice/alice.git
		exec_as $who refd update -C $repo "refs/heads/n$i/$who" "$oid" \
			2>>"$T/updates.err" &
		updates+=($!)
	done
done
failed=0
for pid in "${updates[@]}"; do wait "$pid" || failed=$((failed + 1)); done
is "$stack: all of two owners are done" "0 20 20" "$failed $(
	find /srv/git/project.git/refs -type f -name git | wc -l) $(
	find /srv/git/alice/alice.git/refs -type f -name alice | wc -l)"
is "$stack: each has his own" '' "$(others_in /srv/git/project.git git
	others_in /srv/git/alice alice)"
as alice refd update -C /srv/git/project.git refs/heads/hers "$oid" \
	2>"$T/err"
is "$stack: nobody writes in another's" 128 $?

# Killed, and then recovered by hand and by its next start.
kill_daemon 2>/dev/null
check "$stack: recovered" quietly refd recover --state /var/lib/refd \
	--root /srv/git
start_refd
is "$stack: all is his still" '' "$(others_in /srv/git/project.git git)"

stop_daemon
check "$stack: given free" quietly refd disown /srv/git/project.git
start_refd
check "$stack: and taken on again" as git refd update \
	-C /srv/git/project.git refs/heads/anew "$oid"
is "$stack: all is his again" '' "$(others_in /srv/git/project.git git)"

# A link that a tenant plants leads where he may write himself, not further.
ln -s /etc /srv/git/alice/alice.git/refs/heads/etc
ln -s /etc/passwd /srv/git/alice/alice.git/logs 2>/dev/null
before=$(cksum /etc/passwd; ls /etc)
as alice refd update -C /srv/git/alice/alice.git refs/heads/etc/alice "$oid" \
	2>/dev/null
as alice refd update -C /srv/git/alice/alice.git --create-reflog \
	refs/heads/logged "$oid" 2>/dev/null
is "$stack: links lead nowhere" "$before" "$(cksum /etc/passwd; ls /etc)"
finish
