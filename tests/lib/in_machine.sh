#!/bin/busybox sh
# shellcheck shell=dash
# tests/soak/processors.sh boots this script as the first process of an emulated
# machine with a root in memory. /refd/refd and the other programs serve pushes
# with Landlock and seccomp; the daemon is killed, and recovers. Reports as a
# scenario does.

/bin/busybox --install -s /bin 2>/dev/null
export PATH=/refd:/usr/bin:/bin HOME=/root LC_ALL=C TZ=UTC
export REFD_SOCKET=/run/refd.sock REFD_STATE=/srv/state
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.com
export GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.com
mkdir -p /proc /sys /dev /run /srv /tmp /root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /srv
cd /srv || poweroff -f

check() { # NAME COMMAND...
	name=$1
	shift
	if "$@" >/run/said 2>&1; then
		echo "ok $name"
	else
		echo "not ok $name: status $?: $(tail -n 2 /run/said | tr '\n' ' ')"
	fi
}
start() {
	refd-daemon --socket "$REFD_SOCKET" --state "$REFD_STATE" --root /srv \
		>>/run/log 2>&1 </dev/null &
	daemon=$!
	refd ping --wait 120
}
counts() { # WANTED COMMAND...
	wanted=$1
	shift
	"$@" >/run/lines
	[ "$(wc -l </run/lines)" -eq "$wanted" ]
}

git init -q --bare -b main a.git
git init -q -b main work
git -C work commit -q --allow-empty -m one
check "Linux $(uname -rm)" start
check 'refd enable' refd enable a.git
check 'a push' git -C work push -q /srv/a.git HEAD:refs/heads/main
id=$(git -C work rev-parse HEAD)
seq 100 | sed "s|.*|create refs/heads/n/& $id|" >/run/refs
check '100 refs' sh -c 'refd update -C a.git --stdin </run/refs'
refd status -v >/run/status
check 'Landlock and seccomp' \
	grep '^confined_by:.* Landlock [0-9].* seccomp' /run/status
kill -9 "$daemon"
check 'another daemon, after kill -9' start
check 'a second push' git -C work push -q /srv/a.git HEAD:refs/heads/two
check '102 refs are there' counts 102 git -C a.git for-each-ref
check '102 changes are in the log' counts 102 refd log --json
check 'refd verify' refd verify a.git
cat /run/log
echo finished
poweroff -f
