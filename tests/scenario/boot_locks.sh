#!/bin/bash
# Proves what becomes of git's locks after a new boot of the machine. Recovery
# and `refd locks --clear-dead` remove a lock that is older than the boot, also a
# lock of root. They keep the lock, and recovery names the command, if a process
# of this boot may hold it: after a change of the clock, in a container, beside a
# file server. A namespace of time with a new sysfs stands for the boot; the
# power loss is a kill and a new mount.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

with_fs ext4 48M || finish
if in_container; then
	skip 'boot locks' 'this is a container'
	finish
fi

# In a machine that booted UP seconds ago, by its clocks. sysfs and its time are
# new. File servers of this machine are hidden; SERVES: an NFS server is not.
new_boot() { # COMMAND...
	local uptime
	read -r uptime _ </proc/uptime
	# shellcheck disable=SC2016 # the inner shell expands
	unshare --mount --net --time --fork \
		--boottime="$((${UP:-0} - ${uptime%.*}))" \
		sh -c '
	mount -t sysfs sysfs /sys || exit 99
	[ ! -d /run/systemd ] || mount -t tmpfs tmpfs /run/systemd || exit 99
	for sign in /etc/exports /var/lib/nfs/etab /etc/ksmbd/ksmbd.conf \
		/usr/sbin/smbd /etc/ganesha/ganesha.conf; do
		[ ! -s $sign ] || mount --bind /dev/null $sign || exit 99
	done
	if [ -n "$SERVES" ]; then
		mount -t tmpfs tmpfs /var/lib && mkdir /var/lib/nfs &&
			echo "/srv *(rw)" >/var/lib/nfs/etab || exit 99
	fi
	exec "$@"' sh "$@"
}
export SERVES=

check 'a namespace of time' new_boot true || {
	finish
	exit
}

check 'the daemon starts' start_daemon --root "$FS"
new_repo repo bare
one=$(new_commit repo one)
two=$(new_commit repo two "$one")
cp -r "$T/repo" "$FS/repo.git"
repo=$FS/repo.git
git -C "$repo" config core.logAllRefUpdates false
"$REFD" update -C "$repo" refs/heads/x "$one"
"$REFD" checkpoint >/dev/null
"$REFD" update -C "$repo" refs/heads/x "$two"
"$REFD" update -C "$repo" refs/heads/y "$two"
kill_daemon

# Git dies with the machine. Its lock is on the disk, and the ref is not.
mkfifo "$T/to_git"
git -C "$repo" update-ref --stdin <"$T/to_git" >"$T/says" &
holder=$!
own "$holder"
exec 7>"$T/to_git"
printf 'start\nupdate refs/heads/x %s\nprepare\n' "$one" >&7
check 'git holds the lock' await 10 grep -q 'prepare: ok' "$T/says"
kill -KILL "$holder"
reap "$holder"
exec 7>&-
check 'and leaves it' test -f "$repo/refs/heads/x.lock"
rm "$repo/refs/heads/x" "$repo/refs/heads/y"
mounted_anew() {
	umount "$FS" && mount -o loop "$FS.img" "$FS"
}
check 'mounted anew' mounted_anew
sleep 2

recover() { # COMMAND...
	"$@" timeout 240 "$REFD" recover --state "$STATE" --root "$FS" \
		>"$T/found" 2>"$T/err"
}

found() { # WORD TEXT: about x
	grep -q "^  $1  *refs/heads/x: .*$2" "$T/found"
}

kept() { # REPORTED-AS REASON COMMAND...
	local name=$1 why=$2
	shift 2
	recover "$@"
	is "$name: the exit status" 1 $?
	check "$name: the reason" found deferred "not proved dead, because $why"
	check "$name: the command" found deferred \
		"\"refd locks --clear-dead $repo\""
	check "$name: the lock stays" test -f "$repo/refs/heads/x.lock"
}

# ---- recovery ----

# The machine of this test booted before the lock, unless its clock was set.
kept 'this boot' ''
is 'other refs are redone' "$two" "$(git -C "$repo" rev-parse refs/heads/y)"
UP=3600 kept 'a clock that was set' 'the clock was set' new_boot
SERVES=yes kept 'a file server' 'this machine has a file server' new_boot
kept 'a container' 'refd runs in a container' new_boot \
	unshare --pid --fork --mount-proc
touch "$repo/refs/heads/x.lock"
UP=60 kept 'a lock of this boot' 'a process of this boot' new_boot
sleep 2
recover new_boot
is 'a new boot: the exit status' 0 $?
sed 's/^/# /' "$T/found"
check 'the report' found unlocked 'older than this boot'
is 'the ref is redone' "$two" "$(git -C "$repo" rev-parse refs/heads/x)"
is 'no lock is left' '' "$(find "$FS" -name '*.lock')"

# ---- the command ----

clear_dead() { # COMMAND...
	"$@" "$REFD" locks --clear-dead --yes --wait 0 "$repo" >"$T/out" \
		2>"$T/err"
}
touch "$repo/refs/heads/x.lock" "$repo/packed-refs.lock"
sleep 2
clear_dead env
is 'locks of root: the exit status' 1 $?
is 'are kept' 2 "$(grep -c '^kept: .*it belongs to root' "$T/out")"
SERVES=yes clear_dead new_boot
is 'beside a file server, too' 2 \
	"$(grep -c '^kept: .*this machine has a file server' "$T/out")"
clear_dead new_boot
is 'older than the boot: the exit status' 0 $?
is 'they are removed' 2 "$(grep -c '^removed: ' "$T/out")"
finish
