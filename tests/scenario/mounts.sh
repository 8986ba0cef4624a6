#!/bin/bash
# Proves that the life of the file system, and not its mount, tells a crash from
# a power loss. A daemon that restarts in a new mount namespace, as a hardened
# service does, or that uses a bind mount, recovers from a crash and leaves
# foreign changes alone. A new mount of the file system within the same boot
# counts as a power loss. Two mounts of one file system count as one.
#
# A client is refused with a reason if its path is a different directory than
# the daemon's. A client may see another boot id than the daemon, as in a
# container. Then it may leave the work to git while the daemon is away if the
# marker lies in memory, but not if the marker lies on a disk.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

printf '[checkpoint]\n\tinterval = 10min\n' >"$T/config"

# refd makes a branch, plain git deletes it, the daemon is killed.
made_and_deleted() { # BRANCH
	start_daemon --config "$T/config" &&
		"$REFD" update -C "$repo" "refs/heads/$1" "$one" &&
		git -C "$repo" update-ref -d "refs/heads/$1" &&
		kill_daemon
}

# As start_daemon, but in a new mount namespace.
start_apart() {
	unshare -m "$REFD" daemon --socket "$SOCKET" --state "$STATE" \
		--root "$SERVED" --config "$T/config" >>"$LOG" 2>&1 </dev/null &
	DAEMON=$!
	own "$DAEMON"
	"$REFD" ping --wait 120 >/dev/null
}

lives() { # FILE-SYSTEM SIZE
	with_fs "$1" "$2" || return
	STATE=$FS/state
	repo=$FS/repo.git
	git init -q --bare "$repo"
	one=$(new_commit "${repo#"$T/"}" one)

	check "$1: a branch made by refd and deleted by git" made_and_deleted a
	check "$1: a mount namespace of its own" start_apart
	prints_nothing "$1: is a kill, the branch stays deleted" \
		git -C "$repo" for-each-ref refs/heads/a
	check "$1: it stops" stop_daemon

	check "$1: another one" made_and_deleted b
	umount "$FS" && mount -o loop "$FS.img" "$FS"
	check "$1: mounted anew" start_daemon --config "$T/config"
	is "$1: is a cut, the record is redone" "$one" \
		"$(git -C "$repo" rev-parse -q --verify refs/heads/b)"
	check "$1: and it stops" stop_daemon
}

# The exit code of an update of $repo by a client that has DIRECTORY at this
# path.
beside_mount() { # DIRECTORY
	# shellcheck disable=SC2016
	unshare -m sh -c 'mount --bind "$1" "$2" &&
		"$3" update -C "$2" refs/heads/a "$4"
		echo $?' sh "$1" "$repo" "$REFD" "$one"
}

# One repository through two mounts, on a file system that is not in /sys/fs.
two_mounts() {
	local i before said=
	mkdir "$T/memory" "$T/bound"
	if ! mount -t tmpfs -o size=16M none "$T/memory"; then
		skip two-mounts 'no tmpfs can be mounted'
		return
	fi
	scenario_mounts+=("$T/memory")
	if [ "$(stat -f -c %i "$T/memory")" = 0 ]; then
		skip two-mounts 'a tmpfs has no id before Linux 5.13'
		return
	fi
	check 'two mounts: bound' mount --bind "$T/memory" "$T/bound"
	scenario_mounts+=("$T/bound")
	before=$(wc -l <"$LOG")
	STATE=$T/state2
	new_repo memory/repo.git bare
	one=$(new_commit memory/repo.git one)
	check 'two mounts: it starts' start_daemon --config "$T/config"
	for i in 1 2 3; do
		"$REFD" update -C "$T/memory/repo.git" "refs/heads/a$i" "$one" \
			2>>"$T/err" || said+=" a$i"
		"$REFD" update -C "$T/bound/repo.git" "refs/heads/b$i" "$one" \
			2>>"$T/err" || said+=" b$i"
	done
	is 'two mounts: each is served' '' "$said"
	is 'two mounts: neither is another life' '' \
		"$(tail -n +$((before + 1)) "$LOG" | grep event=fs-remounted)"
	check 'two mounts: it stops' stop_daemon
}

# A client in another namespace means a different repository by the same path.
apart() {
	STATE=$T/state repo=$T/one.git
	new_repo one.git bare
	new_repo two.git bare
	one=$(new_commit one.git one)
	check 'served' start_daemon
	is 'a client whose path is another directory' 128 \
		"$(beside_mount "$T/two.git" 2>"$T/err")"
	check 'is told so' grep -q 'is another directory for the daemon' \
		"$T/err"
	prints_nothing 'and nothing is written' git -C "$repo" for-each-ref
	is 'one whose path is the same directory' 0 \
		"$(beside_mount "$repo" 2>"$T/err")"
	check 'stopped' stop_daemon
}

# The exit code of an update by git, for a client with a different boot id.
in_another_boot() { # BRANCH
	cat /proc/sys/kernel/random/uuid >"$T/boot_id"
	# shellcheck disable=SC2016
	unshare -m sh -c 'mount --bind "$1" /proc/sys/kernel/random/boot_id &&
		shift && "$@"
		echo $?' sh "$T/boot_id" "$REFD" update -C "$repo" \
		--socket "$SOCKET" --timeout 300 "refs/heads/$1" "$one"
}

# The daemon served, and is stopped.
boots() { # NAME DIRECTORY EXIT-CODE
	SOCKET=$2/refd.sock STATE=$T/state3
	check "$1: served" start_daemon
	"$REFD" update -C "$repo" --socket "$SOCKET" refs/heads/main "$one"
	check "$1: stopped" stop_daemon
	is "$1: another boot id" "$3" "$(in_another_boot "${1// /-}" \
		2>"$T/err")"
}

away() {
	: >"$T/boot_id"
	if ! unshare -m mount --bind "$T/boot_id" \
		/proc/sys/kernel/random/boot_id 2>/dev/null; then
		skip 'another boot id' 'a container has mounted its own'
		return
	fi
	repo=$T/away.git
	new_repo away.git bare
	one=$(new_commit away.git one)
	git -C "$repo" config refd.fallback git
	mkdir "$T/memory2"
	mount -t tmpfs none "$T/memory2" && scenario_mounts+=("$T/memory2")
	boots 'in memory' "$T/memory2" 0
	is 'by git' "$one" "$(git -C "$repo" rev-parse refs/heads/in-memory)"
	with_fs ext4 16M || return
	boots 'on a disk' "$FS" 75
	check 'is told so' grep -q 'refs await recovery' "$T/err"
}

if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then
	skip mounts 'only root can mount'
	finish
fi
lives ext4 64M
lives xfs 300M
lives btrfs 128M
two_mounts
apart
away
finish
