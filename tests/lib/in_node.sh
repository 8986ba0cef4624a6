#!/bin/bash
# tests/long/group_machines.sh runs this script in each of its two machines: the
# steps of docs/group.md. NODE is a or b. Files in /out say how far the other
# machine is.

# shellcheck source=tests/lib/report.sh
. /usr/local/lib/report.sh
export PATH=/usr/local/bin:$PATH
units=(refd.socket refd.service refd-group.service)
peer=$([ "$NODE" = a ] && echo b || echo a)

await() { # SECONDS COMMAND...
	local tries=$(($1 * 10)) i
	shift
	for ((i = 0; i < tries; i++)); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	return 1
}
did() { touch "/out/$NODE-$1"; }
await_peer() { await 100 test -e "/out/$peer-$1" || not_ok "$peer: $1"; }
as_git() { setpriv --reuid git --regid git --init-groups env HOME=/srv/git "$@"; }
role() { [ "$(refd role)" = "$1" ]; }

# ---- a machine with network, ssh and an account ----

ip address add "10.78.0.1$([ "$NODE" = a ] && echo 1 || echo 2)/24" dev host0
ip link set host0 up
printf '%s\n' '127.0.0.1 localhost' '10.78.0.11 a.example.com' \
	'10.78.0.12 b.example.com' '10.78.0.1 pg1.test pg2.test' >/etc/hosts
chown git:git /srv/git
chmod 755 /srv/git
git config --system user.name A
git config --system user.email a@example.com
git config --system init.defaultBranch main

keys() { # ACCOUNT HOME
	install -d -m 700 -o "$1" -g "$1" "$2/.ssh"
	ssh-keygen -q -t ed25519 -N '' -f "$2/.ssh/id_ed25519"
	cp "$2/.ssh/id_ed25519.pub" "/out/$NODE-$1.pub"
	echo 'StrictHostKeyChecking accept-new' >"$2/.ssh/config"
}
authorise() { # ACCOUNT HOME
	cp "/out/$peer-$1.pub" "$2/.ssh/authorized_keys"
	chown -R "$1:$1" "$2/.ssh"
}
keys git /srv/git
keys root /root
did keys
await_peer keys
authorise git /srv/git
authorise root /root
ssh-keygen -A >/dev/null
mkdir -p /run/sshd
echo 'AcceptEnv GIT_PROTOCOL' >/etc/ssh/sshd_config.d/git.conf
rm -f /run/nologin
/usr/sbin/sshd
did sshd
await_peer sshd

# ---- a, before the group ----

push() { # BRANCH...
	as_git git -C /srv/git/work commit -q --allow-empty -m "$1" &&
		as_git git -C /srv/git/work push -q /srv/git/one.git "${@/#/main:}"
}
refused() { ! push unused 2>/run/unused; }
configure() {
	mkdir -p /etc/refd
	cat >/etc/refd/config
}
configure <<-'CONFIG'
	[daemon]
		root = /srv/git
CONFIG
# As the package does.
systemctl start refd.socket refd.service
if [ "$NODE" = a ]; then
	as_git git init -q --bare /srv/git/one.git
	as_git git init -q /srv/git/work
	check 'a repository without a group' refd enable /srv/git/one.git
	check 'a push without a group' push before
fi

# ---- the steps of the manual ----

install -m 600 -o git -g git /out/pgpass /srv/git/.pgpass
cp /out/ca.crt /etc/ssl/certs/pg-ca.crt
configure <<CONFIG
[daemon]
	root = /srv/git
[group]
	name = main
	node = $NODE
	database = host=pg1.test,pg2.test port=5601,5602 dbname=refd user=refd sslmode=verify-full sslrootcert=/etc/ssl/certs/pg-ca.crt
	source = $peer ssh://$peer.example.com/srv/git
CONFIG
if [ "$NODE" = a ]; then
	check 'refd group create' as_git refd group create
	# The daemon looks at its configuration once a second.
	check 'a push to a daemon that does not know the group fails' \
		await 5 refused
	check 'with the command' grep -q 'systemctl restart refd' /run/unused
	systemctl enable -q "${units[@]}"
	systemctl restart refd.service refd-group.service
	check 'a leads' await 20 role leader
	did leads
	await_peer follows
	check 'refd enable' refd enable /srv/git/one.git
else
	await_peer leads
	systemctl stop "${units[@]}"
	check 'refd group join' as_git refd group join
	systemctl enable -q --now "${units[@]}"
	check 'b follows' await 30 role follower
	did follows
fi

# ---- it works ----

value() { as_git git -C /srv/git/one.git rev-parse -q --verify "refs/heads/$1"; }
if [ "$NODE" = a ]; then
	check 'a push' push first
	value first >/out/first
	did pushed
	await_peer has
	check 'status' as_git refd group status
	check 'promote' as_git refd group promote b
	check 'a follows' await 10 role follower
	did promoted
	await 100 test -e /out/b-led
	is 'the push to b' "$(cat /out/led)" "$(await 10 value led; value led)"
	touch /out/kill-b
	await 20 test -e /out/killed-b
	began=$(date +%s)
	await 30 role leader
	took=$(($(date +%s) - began))
	check "b is dead: a leads within 10 s ($took)" [ $took -le 10 ]
	is 'nothing is lost' "$(cat /out/led)" "$(value led)"
	# Nobody else has the objects.
	push alone 2>/run/alone
	is 'a push without a second node fails' 1 $?
	check 'with a reason' grep -q 'push again' /run/alone
	cat /run/alone >&2
	sed -i 's/\[group\]/&\n\theld = 0/' /etc/refd/config
	systemctl restart refd-group.service
	check 'held = 0: a leads' await 20 role leader
	check 'held = 0: a push' push alone
	is 'no unit has failed' '' \
		"$(systemctl list-units --failed --plain --no-legend 'refd*')"
else
	await_peer pushed
	await 10 value first
	is 'the push to a' "$(cat /out/first)" "$(value first)"
	did has
	await_peer promoted
	check 'b leads' await 10 role leader
	as_git git clone -q /srv/git/one.git /srv/git/work2
	as_git git -C /srv/git/work2 commit -q --allow-empty -m led
	check 'a push to b' as_git git -C /srv/git/work2 push -q \
		/srv/git/one.git HEAD:refs/heads/led
	value led >/out/led
	did led
	sleep 250
fi
journalctl -q -u refd -u refd-group -o cat | tail -n 40 >&2
echo finished
