#!/bin/bash
# tests/long/boot.sh runs this script in the machine that it boots: refd's own
# units, as installed, under a real service manager. Reports as a scenario does.

# shellcheck source=tests/lib/report.sh
. /usr/local/lib/report.sh
export GIT_CONFIG_NOSYSTEM=1 PATH=/usr/local/bin:$PATH
unit=/run/systemd/system
socket=/run/refd/refd.sock

quietly() { "$@" >/run/out; }
await() { # SECONDS COMMAND...
	local tries=$(($1 * 20)) i
	shift
	for ((i = 0; i < tries; i++)); do
		"$@" && return 0
		sleep 0.05
	done
	return 1
}
is_state() { [ "$(show ActiveState)" = "$1" ]; }
restarted() { [ "$(show NRestarts)" -gt "$1" ]; }
as() { # USER COMMAND...
	local user=$1
	shift
	setpriv --reuid "$user" --regid "$user" --init-groups \
		env HOME="/home/$user" "$@"
}
ping() { as "${1:-git}" refd ping --socket "$socket" --wait 10 >/dev/null 2>&1; }
logged() { journalctl -q -u refd.service | grep -qE -- "$1"; }
drop_in() { # NAME LINES...
	mkdir -p $unit/refd.service.d
	printf '%s\n' '[Service]' "${@:2}" >$unit/refd.service.d/"$1".conf
	systemctl daemon-reload
}
drop_out() {
	rm -f $unit/refd.service.d/"$1".conf
	systemctl daemon-reload
}
configure() { printf '%s\n' '[daemon]' 'root = /srv/git' "$@" >/etc/refd/config; }
new_repo() { # USER PATH [OPTION...]
	as "$1" git init -q --bare "${@:3}" "$2" &&
		as "$1" git -C "$2" commit-tree -m one "$(as "$1" git -C "$2" \
			mktree </dev/null)"
}
update() { # USER REPO REF VALUE
	as "$1" refd update -C "$2" --socket "$socket" --timeout 20000 "$3" "$4"
}

# ---- the machine's own ----

for user in alice:2002 web:2003; do
	echo "${user%:*}:x:${user#*:}:${user#*:}::/home/${user%:*}:/bin/bash" \
		>>/etc/passwd
	echo "${user%:*}:x:${user#*:}:" >>/etc/group
done
is 'the account of the service' '/srv/git:/usr/bin/git-shell' \
	"$(getent passwd git | cut -d: -f6-)"
for user in git alice web; do
	install -d -m 700 -o $user -g $user /home/$user
	printf '[user]\n\tname = A\n\temail = a@example.com\n[safe]\n\tdirectory = *\n' \
		>/home/$user/.gitconfig
done
chown git:git /srv/git
mkdir -p /etc/refd
configure
one=$(new_repo git /srv/git/a.git)
mkdir -p /run/user /run/dbus
touch /run/user/other /run/dbus/other

# ---- activation ----

systemctl start refd.socket
is 'the socket is there' listening "$(show SubState refd.socket)"
is 'and no daemon' inactive "$(show ActiveState)"
check 'who connects has it started' update git /srv/git/a.git refs/heads/b "$one"
is 'it is active' active "$(show ActiveState)"
check 'its status line' grep -q '^serving: ' <<<"$(show StatusText)"
is 'as its account' git "$(ps -o user= -p "$(show MainPID)")"
check 'it confines itself' grep -q '^confined_by:.* Landlock [0-9].* seccomp' \
	<<<"$(as git refd status -v --socket $socket)"
is 'its socket' 666 "$(stat -c %a $socket)"
is 'is not for everybody' 1 "$(as web refd ping --socket $socket 2>&1 |
	grep -c 'daemon.allowUser')"
is 'it does not see the sockets of other services' '' "$(nsenter -m \
	-t "$(show MainPID)" ls -A /run/user /run/dbus | grep other)"
check 'its mark' [ -f $socket.replayed ]
is 'its state is its own' 'git 700' "$(stat -c '%U %a' /var/lib/refd)"
check 'before ssh' grep -q 'ssh.service' <<<"$(show Before)"
check 'logs with priorities' [ -n "$(journalctl -q -u refd -p info -o cat |
	grep '^event=serving ')" ]

# ---- ready is recovered ----

as git touch /srv/git/hang
drop_in slow 'Environment=LD_PRELOAD=/usr/local/lib/preload_flush.so' \
	'Environment=REFD_FLUSH_HANGS=/srv/git/hang REFD_FLUSH_DELAY_US=0'
systemctl kill -s KILL refd.service
pid=$(show MainPID)
await 5 is_state activating
sleep 1.5
is 'not ready before it has recovered' activating "$(show ActiveState)"
rm /srv/git/hang
check 'then it is' await 10 is_state active

# ---- restart under load ----

load() { # CLIENT
	local n=0
	while [ ! -e /run/enough ]; do
		n=$((n + 1))
		update git /srv/git/a.git "refs/heads/c$1/$n" "$one" ||
			echo "client $1 failed at $n" >>/run/failed
		echo "$n" >"/run/count.$1"
	done
}
: >/run/failed
for i in 1 2 3 4; do load $i 2>>/run/failed & done
for _ in 1 2 3; do
	sleep 0.3
	systemctl restart refd.service
	sleep 0.3
	systemctl kill -s KILL refd.service
	await 10 is_state active
done
sleep 0.3
touch /run/enough
wait
is 'restarts and crashes: no client sees any' '' "$(head -n 3 /run/failed)"
sum=0
for i in 1 2 3 4; do sum=$((sum + $(cat /run/count.$i))); done
is 'every answer is there' "$sum" "$(as git git -C /srv/git/a.git for-each-ref \
	refs/heads/c1 refs/heads/c2 refs/heads/c3 refs/heads/c4 | wc -l)"
echo "# $sum transactions, 3 restarts, 3 kills"
is 'no locks' '' "$(find /srv/git -name '*.lock')"

# ---- reload ----

configure '[batch]' 'refs = 77'
check 'reload' systemctl reload refd.service
check 'is applied' await 5 logged 'key=batch.refs was="1000" is="77"'
pid=$(show MainPID)
configure '[batch]' 'ref = 77'
systemctl reload refd.service 2>/dev/null
is 'a bad file is refused before it is read' 1 $?
is 'and all goes on' "active $pid" "$(show ActiveState) $(show MainPID)"
configure
check 'which a later reload shows' systemctl reload refd.service

# ---- the watchdog ----

drop_in dog 'WatchdogSec=1'
systemctl restart refd.service
before=$(show NRestarts)
sleep 2.5
is 'an idle daemon is alive' "$before" "$(show NRestarts)"
as git touch /srv/git/hang
update git /srv/git/a.git refs/heads/hung "$one" &
hung=$!
check 'a flush that hangs is not' await 15 restarted "$before"
check 'and the log says why' logged 'event=journal-hangs'
rm /srv/git/hang
wait $hung
is 'who waits is answered all the same' 0 $?
is 'and it is there' "$one" "$(as git git -C /srv/git/a.git rev-parse refs/heads/hung)"
drop_out dog
drop_out slow
systemctl restart refd.service

# ---- stop ----

systemctl stop refd.service
is 'stopped' 'inactive success' "$(show ActiveState) $(show Result)"
check 'finished first' logged 'event=stopping .*transactions=[0-9]+'
is 'the socket stays' listening "$(show SubState refd.socket)"
check 'and its directory, and the mark' [ -S $socket -a -f $socket.replayed ]
check 'the next client has it started' update git /srv/git/a.git \
	refs/heads/again "$one"

# ---- away ----

# A push runs outside of the service's sandbox, as sshd does, and sees this
# container's boot id. The daemon sees the host's.
as git git init -q /home/git/work
as git git -C /home/git/work commit -q --allow-empty -m pushed
pushes() { as git git -C /home/git/work push -q /srv/git/a.git "HEAD:$1"; }
by_git='git updates the refs itself'
check 'a repository is enabled' quietly refd enable /srv/git/a.git
check 'a push' pushes refs/heads/served 2>/run/out
is 'by the daemon' 0 "$(grep -c "$by_git" /run/out)"
systemctl stop refd.socket refd.service
check 'a push while both units are stopped' pushes refs/heads/away 2>/run/out
is 'by git' 1 "$(grep -c "$by_git" /run/out)"
quietly refd disable /srv/git/a.git
systemctl start refd.socket

# ---- configurations that cannot start ----

drop_in soon 'RestartSec=100ms'
configure 'rot = /srv/git'
systemctl restart refd.service 2>/dev/null
update git /srv/git/a.git refs/heads/early "$one" >/run/out 2>&1
is 'an update is refused' 75 $?
check 'with the error of the daemon' grep -q \
	"cannot start: /etc/refd/config:3: unknown key 'daemon.rot'" /run/out
refd doctor --json --socket $socket >/run/out
check 'which doctor repeats' grep -q '"id":"daemon-cannot-start"' /run/out
check 'and finds in the file' grep -q \
	'"id":"daemon-config".*"file":"/etc/refd/config"' /run/out
check 'it is tried more often than the limit would let' await 15 restarted 8
is 'the socket is not taken down' active "$(show ActiveState refd.socket)"
configure
check 'once it can, it serves' ping git
check 'updates, too' update git /srv/git/a.git refs/heads/patient "$one"
drop_out soon

# ---- every trap is sprung ----

configure 'allowUser = web'
systemctl reload refd.service
await 5 ping web
is 'another user is let in' 0 $?
sprung() { # NAME LINE COMMAND...: which is to fail
	drop_in trap "$2"
	systemctl restart refd.service 2>/dev/null
	if "${@:3}" >/dev/null 2>&1; then
		not_ok "$1" "$2 makes no difference"
	else
		ok "$1"
	fi
	drop_out trap
	systemctl reset-failed refd.service 2>/dev/null
	systemctl restart refd.service
}
once() { as web timeout 5 refd ping --socket $socket; }
sprung 'trap: PrivateUsers=' PrivateUsers=yes once
stays() {
	systemctl stop refd.service
	[ -f $socket.replayed ]
}
sprung 'trap: RuntimeDirectoryPreserve=' RuntimeDirectoryPreserve=no stays
systemctl restart refd.socket
at_home=$(as git mkdir /home/git/repositories && new_repo git \
	/home/git/repositories/h.git)
configure 'root = /home/git/repositories'
drop_in home 'ReadWritePaths=/home/git/repositories'
systemctl restart refd.service
check 'repositories at home' update git /home/git/repositories/h.git \
	refs/heads/x "$at_home"
starts() { await 2 is_state active; }
sprung 'trap: ProtectHome=' ProtectHome=yes starts
drop_out home
update_fails() { update git /home/git/repositories/h.git refs/heads/y "$at_home"; }
systemctl restart refd.service
update_fails >/run/out 2>&1
check 'a root that may not be written is said' grep -qi 'read-only' /run/out
configure
shared=$(new_repo git /srv/git/shared.git --shared=group)
systemctl restart refd.service
check 'a shared repository' update git /srv/git/shared.git refs/heads/d/e "$shared"
is 'hands its group on' 2 "$(stat -c %a /srv/git/shared.git/refs/heads/d |
	cut -c1)"
no_setgid() { update git /srv/git/shared.git refs/heads/f/g "$shared"; }
sprung 'trap: RestrictSUIDSGID=' RestrictSUIDSGID=yes no_setgid
sprung 'trap: ProcSubset=' ProcSubset=pid starts

# ---- numbers, over TCP, to a daemon without a network ----

numbers() { timeout 10 curl -s http://127.0.0.1:9718/metrics | grep '^refd_'; }
# The first boot of this machine has enabled all installed units.
systemctl disable -q --now refd-metrics.socket
systemctl restart refd.service
is 'no numbers at first' '' "$(numbers)"
# As the manual says, with the service active.
check 'enabled' systemctl enable -q refd-metrics.socket
check 'and restarted' systemctl restart refd.service
check 'a socket of TCP that is passed' quietly numbers
is 'the other one, too' 1 "$(update git /srv/git/a.git refs/heads/m "$one" &&
	echo 1)"
systemctl stop refd.socket refd.service
is 'stopped: who asks for numbers' '' "$(numbers)"
is 'starts no daemon' inactive "$(show ActiveState)"
systemctl start refd.socket
check 'a client that connects has the daemon started' \
	update git /srv/git/a.git refs/heads/n "$one"
check 'and numbers with it' quietly numbers
systemctl disable -q --now refd-metrics.socket
systemctl restart refd.service
is 'disabled' '' "$(numbers)"

# ---- several accounts ----

mkdir -p /etc/systemd/system
install -d -o alice -g alice /srv/alice
hers=$(new_repo alice /srv/alice/r.git)
install -d /etc/refd/alice $unit/refd@alice.service.d
git config -f /etc/refd/alice/config daemon.root /srv/alice
printf '[Service]\nReadWritePaths=/srv/alice\n' \
	>$unit/refd@alice.service.d/roots.conf
check 'a service for an account' quietly systemctl enable --now \
	refd@alice.socket refd@alice.service
is 'is there at the next boot, too' enabled "$(systemctl is-enabled \
	refd@alice.socket)"
is 'and up' active "$(show ActiveState refd@alice.service)"
check 'it serves' as alice refd update -C /srv/alice/r.git \
	--socket /run/refd-alice/refd.sock refs/heads/x "$hers"
is 'as her' alice "$(ps -o user= -p "$(show MainPID refd@alice.service)")"
# A container's policy may forbid packages to start services.
[ ! -x /usr/sbin/policy-rc.d ] ||
	mount --bind /dev/null /usr/sbin/policy-rc.d
was=$(show MainPID refd@alice.service)
check 'a package is upgraded' quietly sh /usr/local/lib/refd.postinst \
	configure 0.1
check 'she has the new daemon' test "$was" != \
	"$(show MainPID refd@alice.service)"
is 'which is up' active "$(show ActiveState refd@alice.service)"
check 'it is taken away' quietly systemctl disable --now refd@alice.socket \
	refd@alice.service
is 'and down' 'inactive inactive' "$(show ActiveState refd@alice.socket) $(
	show ActiveState refd@alice.service)"

systemctl stop refd.socket refd.service
journalctl -q --no-pager -u refd.service -u 'refd@*' -o cat | tail -n 60 >&2
echo finished
