#!/bin/bash
# tests/long/debian.sh runs this script twice in the machine that it boots. The
# first run installs refd's packages, uses them over ssh and exchanges them
# under load, until the power is lost. The second run looks for the acknowledged
# updates, removes the packages and installs them again. The commands of an
# administrator come from docs/installation.md, as written. Reports as a
# scenario does.

# shellcheck source=tests/lib/report.sh
. /usr/local/lib/report.sh
# shellcheck source=tests/lib/readme.sh
. /usr/local/lib/readme.sh
export DEBIAN_FRONTEND=noninteractive

as_git() { runuser -u git -- env HOME=/srv/git "$@"; }
has_nothing() { # DIRECTORY...
	find "$@" -xdev -name '*refd*' ! -path '/var/log/*' ! -path '/proc/*' \
		! -path '/srv/git/*' ! -path '/var/cache/*' 2>/dev/null
}
nothing_left() { # NAME
	systemctl daemon-reload
	is "$1" "$(cat /out/before)" "$(has_nothing /etc /lib /usr /var /run)"
	is "$1: no link leads nowhere" "$(cat /out/dangling)" "$(dangling)"
}
dangling() { find /etc/systemd -xtype l | sort; }
repo=/srv/git/a.git

# The commands of the NTH block for Debian: the second one installs, the third
# one pushes, the fourth one removes.
as_written() { # NAME NTH [DIRECTORY]
	printf 'set -e\n%s\n' "$(readme_block \
		/usr/local/doc/installation.md Debian "$2")" >/run/commands
	if (cd "${3:-/}" && bash --norc /run/commands) >/out/written 2>&1; then
		ok "$1"
	else
		not_ok "$1" "$(tail -n 5 /out/written | tr '\n' ' ')"
	fi
}
by_refd() { # BRANCH
	[ "$(refd log --repo "$repo" --ref "refs/heads/$1" |
		grep -c "refs/heads/$1")" -eq 1 ]
}
let_in() { # root may push over ssh, as git.
	mkdir -p /root/.ssh /srv/git/.ssh /run/sshd
	ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
	cp /root/.ssh/id_ed25519.pub /srv/git/.ssh/authorized_keys
	chown -R git:git /srv/git/.ssh
	chmod 700 /srv/git/.ssh
	grep -qs localhost /etc/hosts || echo 127.0.0.1 localhost >>/etc/hosts
	ssh-keyscan -t ed25519 127.0.0.1 localhost >/root/.ssh/known_hosts 2>/dev/null
	git config --global user.name A
	git config --global user.email a@example.com
	git init -q /root/work
	git -C /root/work commit -q --allow-empty -m one
}
push() { git -C /root/work push -q "git@127.0.0.1:$repo" "$@"; }
# A new endpoint gets only changes from its beginning on: several are tried.
is_delivered() { # NAME
	local n
	for ((n = 0; n < 60; n++)); do
		push "HEAD:refs/heads/$1$n"
		sleep 1
		! grep -q "refs/heads/$1" /var/lib/refd_deliver/changes ||
			return 0
	done
	return 1
}

before_the_cut() {
	# ---- installed ----

	has_nothing /etc /lib /usr /var /run >/out/before
	dangling >/out/dangling
	check 'a library is missing' fails dpkg-query -W 'libevent-core-*' \
		2>/run/missing
	# Three commands lead from nothing to the first durable push: the
	# installation, refd enable, the push. The repository and the key for
	# ssh are needed without refd too. The time includes them, but not the
	# download of the libraries.
	SECONDS=0
	as_written 'installation and refd enable' 2 /packages/former
	let_in
	as_written 'a push over ssh' 3 /root/work
	check "the first push, after $SECONDS s" test $SECONDS -le 60
	check 'is in the log' by_refd main
	check 'refd-group' apt-get -q install /packages/former/refd-group_*.deb
	is 'by its connection' 1 "$(refd log --repo "$repo" --json |
		grep -c '"SSH_CONNECTION"')"
	is 'doctor finds no error' 0 "$(refd doctor --json "$repo" |
		grep -c '"error"')"
	is 'the account it runs as' '/srv/git:/usr/bin/git-shell' \
		"$(getent passwd git | cut -d: -f6-)"
	is 'its home' 'git git 755' "$(stat -c '%U %G %a' /srv/git)"
	is 'the socket is there' active "$(show ActiveState refd.socket)"
	is 'the service is up' active "$(show ActiveState)"
	check 'and answers' refd ping
	check 'it confines itself' grep -q \
		'^confined_by:.* Landlock [0-9].* seccomp' <<<"$(refd status -v)"
	is 'its configuration is in order' 0 "$(refd check-config >/dev/null; echo $?)"
	check 'its manual' test -s /usr/share/man/man8/refd-daemon.8.gz

	# ---- web hooks ----

	is 'the account of web hooks' /var/lib/refd_deliver:/usr/sbin/nologin \
		"$(getent passwd refd-deliver | cut -d: -f6-)"
	is 'without a configuration they are not sent' 'disabled inactive' \
		"$(systemctl is-enabled refd-deliver) $(
			show ActiveState refd-deliver)"
	git config -f /etc/refd/config --add daemon.allowUser refd-deliver
	git config -f /etc/refd/deliver.conf deliver.file.command \
		'cat >>/var/lib/refd_deliver/changes'
	systemctl reload refd
	check 'their start' systemctl enable -q --now refd-deliver
	check 'a change is delivered' is_delivered before

	# ---- a group ----

	is 'refd group: its usage' 1 "$(refd group 2>&1 |
		grep -c '^usage: refd group ')"
	check 'finds its library' grep -q 'has no group.name' \
		<<<"$(refd group status 2>&1)"
	check 'its manual' test -s /usr/share/man/man8/refd-group.8.gz
	is 'its unit is in order' '' "$(systemd-analyze --man=no verify \
		refd-group.service 2>&1 | grep refd)"
	is 'and does not run without a configuration' 'disabled inactive' \
		"$(systemctl is-enabled refd-group) $(
			show ActiveState refd-group)"

	# ---- away ----

	systemctl stop refd.socket refd.service
	check 'a push while both units are stopped' \
		push HEAD:refs/heads/away 2>/out/away
	is 'git does it' 1 \
		"$(grep -c 'git updates the refs itself' /out/away)"
	systemctl start refd.socket refd.service

	# ---- exchanged ----

	one=$(git -C /root/work rev-parse HEAD)
	load() { # CLIENT
		local n=0
		while [ ! -e /run/enough ]; do
			n=$((n + 1))
			as_git refd update -C "$repo" "refs/heads/c$1/$n" "$one" ||
				echo "client $1 failed at $n" >>/run/failed
			echo $n >/run/count."$1"
		done
	}
	: >/run/failed
	for i in 1 2 3; do load $i 2>>/run/failed & done
	sleep 1
	was=$(show MainPID)
	check 'an upgrade' dpkg -i /packages/second/refd*.deb
	sleep 1
	touch /run/enough
	wait
	is 'no client saw it' '' "$(head -n 3 /run/failed)"
	sum=0
	for i in 1 2 3; do sum=$((sum + $(cat /run/count.$i))); done
	is 'every answer is there' "$sum" "$(as_git git -C "$repo" for-each-ref \
		refs/heads/c1 refs/heads/c2 refs/heads/c3 | wc -l)"
	check 'by a new daemon' test "$was" != "$(show MainPID)"
	check 'a push' push HEAD:refs/heads/after
	check 'web hooks go on' is_delivered upgraded

	# ---- a power loss ----

	# Notes acknowledged updates: /out is on another disk.
	until_cut() { # CLIENT
		local n=0
		while as_git refd update -C "$repo" "refs/heads/cut$1/$((++n))" \
			"$one"; do
			echo "refs/heads/cut$1/$n" >>/out/acknowledged
		done
	}
	sync
	: >/out/acknowledged
	for i in 1 2 3; do until_cut $i 2>/dev/null & done
	sleep 1
	touch /out/cut-me
	wait
}

after_it() {
	# ---- and is back ----

	check 'it serves again' refd ping --wait 20
	check 'and sends web hooks' is_delivered restored
	as_git git -C "$repo" for-each-ref --format='%(refname)' >/run/there
	is 'what was acknowledged is there' '' \
		"$(sort /out/acknowledged | comm -23 - <(sort /run/there))"
	check 'and not little' test "$(wc -l </out/acknowledged)" -gt 20
	check 'refd verify' refd verify "$repo"
	check 'git fsck' as_git git -C "$repo" fsck --connectivity-only
	is 'the push before the cut is in the log' 1 "$(refd log --repo "$repo" \
		--ref refs/heads/after | grep -c refs/heads/after)"

	# ---- a second account ----

	useradd keeper
	install -d -o keeper /srv/keeper
	install -d /etc/refd/keeper /etc/systemd/system/refd@keeper.service.d
	git config -f /etc/refd/keeper/config daemon.root /srv/keeper
	printf '[Service]\nReadWritePaths=/srv/keeper\n' \
		>/etc/systemd/system/refd@keeper.service.d/roots.conf
	check 'refd@keeper' systemctl enable -q --now refd@keeper.socket \
		refd@keeper.service
	check 'its daemon serves' refd ping --wait 20 \
		--socket /run/refd-keeper/refd.sock
	systemctl enable -q refd-metrics.socket
	for unit in refd.socket refd-metrics.socket refd.service \
		refd-group.service refd@.service refd@keeper.socket; do
		install -D -m 644 /dev/stdin "/etc/systemd/system/$unit.d/x.conf" \
			<<<'# nothing'
	done

	# ---- removed ----

	check 'the web hooks and the group go' dpkg -r refd-deliver refd-group
	check 'removal is refused' fails dpkg -r refd 2>/run/refused
	check 'for what is enabled' grep -q "$repo" /run/refused
	check 'and says what helps' grep -q 'refd disable --all' /run/refused
	is 'it still serves' active "$(show ActiveState)"
	check 'refd disable --all' refd disable --all
	check 'looks are wanted' systemctl start refd-look.timer
	check 'then it goes' dpkg -r refd
	is 'no daemon runs, no socket is open' '' \
		"$(pgrep -l refd; systemctl list-units --plain --no-legend \
			--state=active 'refd*')"
	check 'its configuration stays' test -e /etc/refd/keeper/config
	check 'a push to git itself' push HEAD:refs/heads/without
	check 'purge' dpkg -P refd-deliver refd-group refd librefd0
	nothing_left 'nothing is left'
	is 'but the refs' "$(($(wc -l </run/there) + 1))" \
		"$(as_git git -C "$repo" for-each-ref | wc -l)"
	is 'and no key in its configuration' '' \
		"$(as_git git -C "$repo" config --get-regexp 'refd|procreceive')"

	# ---- and back ----

	as_written 'installed again, with the same repository' 2 /packages/first
	check 'the next push' push HEAD:refs/heads/back
	check 'is in the log' by_refd back
	check 'doctor finds no error' refd doctor "$repo"
	check 'refd verify' refd verify "$repo"
	as_written 'removed at once' 4
	check 'a push to git itself again' push HEAD:refs/heads/end
	nothing_left 'nothing is left again'
}

if [ -e /out/cut-me ]; then
	after_it
else
	before_the_cut
fi
echo finished
