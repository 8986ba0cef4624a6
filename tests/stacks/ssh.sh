#!/bin/bash
# Proves that refd works with sshd and bare repositories of one account. Users
# push by their keys, which history shows. The daemon runs as this account, and a second daemon as a
# different owner.

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
echo 'ExposeAuthInfo yes' >>/etc/ssh/sshd_config
start_sshd

new_pair() {
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
new_pair

stack='ssh, a repository enabled'
start_refd /srv/git
check "$stack: enabled" quietly as git refd enable /srv/git/project.git
stack_pushes
is "$stack: history shows the key" \
	"git ($(ssh-keygen -lf /home/alice/.ssh/id_ed25519.pub | cut -d ' ' -f 2))" \
	"$(as git refd log -n 1 | cut -f 3)"
check "$stack: disabled" quietly as git refd disable /srv/git/project.git
both "disabled: git's again" 0 main:refs/heads/after

stack='ssh, all enabled by the system'
forget_refd
new_pair
start_refd /srv/git allowUser=git allowUser=alice
check "$stack: enabled" quietly refd enable --system --root /srv/git
stack_pushes
check "$stack: disabled" quietly refd disable --system
both "disabled: git's again" 0 main:refs/heads/after

others_in() { # DIRECTORY USER
	find "$1" \( ! -user "$2" -o ! -group "$2" \)
}

stack='a daemon for each of two owners'
hers=/srv/alice/alice.git
install -d -o alice -g alice /srv/alice
as alice git init -q --bare $hers
as alice git -C work push -q $hers main
oid=$(as alice git -C work rev-parse main)
as alice install -d -m 700 /home/alice/state
exec_as alice refd daemon --root /srv/alice --state /home/alice/state \
	--socket /home/alice/refd.sock >>"$LOG" 2>&1 </dev/null &
own $!
refd ping --wait 10 --socket /home/alice/refd.sock >/dev/null
updates=()
for i in {1..20}; do
	exec_as git refd update -C /srv/git/project.git "refs/heads/n$i/git" \
		"$oid" 2>>"$T/updates.err" &
	updates+=($!)
	exec_as alice refd update -C $hers --socket /home/alice/refd.sock \
		"refs/heads/n$i/alice" "$oid" 2>>"$T/updates.err" &
	updates+=($!)
done
failed=0
for pid in "${updates[@]}"; do wait "$pid" || failed=$((failed + 1)); done
is "$stack: all of two owners are done" "0 20 20" "$failed $(
	find /srv/git/project.git/refs -type f -name git | wc -l) $(
	find $hers/refs -type f -name alice | wc -l)"
is "$stack: each has what belongs to it" '' "$(
	others_in /srv/git/project.git git
	others_in $hers alice)"
as alice refd update -C /srv/git/project.git refs/heads/hers "$oid" \
	2>"$T/err"
is "$stack: nobody writes in another's" 128 $?

# Killed, and then recovered by root and by the next start.
kill_daemon 2>/dev/null
check "$stack: recovered" quietly refd recover --state /var/lib/refd \
	--root /srv/git
start_refd
is "$stack: root left nothing" '' "$(others_in /srv/git/project.git git
	find /var/lib/refd ! -user git)"

stop_daemon
check "$stack: given free" quietly refd disown /srv/git/project.git
start_refd
check "$stack: and taken on again" as git refd update \
	-C /srv/git/project.git refs/heads/anew "$oid"
is "$stack: root left nothing there either" '' \
	"$(others_in /srv/git/project.git git)"
finish
