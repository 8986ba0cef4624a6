#!/bin/bash
# What ended the last run, a kill or a cut, is told by the life of the file
# system and not by its mount: a daemon that is started again in a mount
# namespace of its own, as a hardened service is, or that reaches its
# repositories by a bind mount, takes a kill for a kill, and leaves alone what
# others did; one whose file system was mounted anew within the same boot
# takes it for a cut.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

printf '[checkpoint]\n\tinterval = 600000\n' >"$T/config"

# refd makes a branch, plain git deletes it, the daemon is killed.
made_and_deleted() { # BRANCH
	start_daemon --config "$T/config" &&
		"$REFD" update -C "$repo" "refs/heads/$1" "$one" &&
		git -C "$repo" update-ref -d "refs/heads/$1" &&
		kill_daemon
}

# As start_daemon, but in a mount namespace of its own.
start_apart() {
	unshare -m "$REFD" daemon --socket "$SOCKET" --state "$STATE" \
		--root "$SERVED" --config "$T/config" >>"$LOG" 2>&1 </dev/null &
	DAEMON=$!
	own "$DAEMON"
	"$REFD" ping --wait 10 >/dev/null
}

lives() { # FILE-SYSTEM SIZE
	with_fs "$1" "$2" || return
	STATE=$FS/state
	repo=$FS/repo.git
	git init -q --bare "$repo"
	one=$(new_commit "${repo#"$T/"}" one)

	check "$1: a branch made by refd and deleted by git" made_and_deleted a
	check "$1: a mount namespace of its own" start_apart
	is "$1: is a kill, the branch stays deleted" '' \
		"$(git -C "$repo" for-each-ref refs/heads/a)"
	check "$1: it stops" stop_daemon

	check "$1: another one" made_and_deleted b
	umount "$FS" && mount -o loop "$FS.img" "$FS"
	check "$1: mounted anew" start_daemon --config "$T/config"
	is "$1: is a cut, the record is redone" "$one" \
		"$(git -C "$repo" rev-parse -q --verify refs/heads/b)"
	check "$1: and it stops" stop_daemon
}

if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then
	skip mounts 'only root can mount'
	finish
fi
lives ext4 64M
lives xfs 300M
lives btrfs 128M
finish
