#!/bin/bash
# Proves that no full or dying disk ends the daemon by SIGBUS, because the
# daemon maps no file of its state directory. The journal lies on a full btrfs,
# where a store into a mapped page finds no room, and on a loop device whose
# backing file is truncated, where a page that left the memory can't be read
# again. The daemon goes on, or ends by itself because its journal can't be
# opened again. With a copy of the second disk from before the truncation, every
# acknowledged update is there.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

update() { # REF
	"$REFD" update -C "$T/$repo" "refs/heads/$1" "$one"
}

quiet() {
	"$@" >"$T/said" 2>&1
}

verify() {
	"$REFD" verify --state "$STATE" "$T/$repo"
}

maps_nothing() { # WHAT
	check "$1: history answers" quiet "$REFD" log --repo "$T/$repo"
	check "$1: verify reads beside it" quiet verify
	prints_nothing "$1: no file of its state is mapped" \
		awk "index(\$0, \"$STATE/\")" "/proc/$DAEMON/maps"
	prints_nothing "$1: there is no file to map" \
		find "$STATE" -name '*-shm'
}

prepare() { # REPOSITORY
	STATE=$FS/state
	repo=$1
	new_repo "$repo" bare
	one=$(new_commit "$repo" one)
}

# ---- a full btrfs ----

# Without copies on write a commit needs no new block, as on a disk with a few
# blocks left.
full() {
	local i failed=0
	with_fs btrfs 128M || return
	prepare full.git
	mkdir -m 0700 "$STATE"
	touch "$STATE/journal.db-wal"
	chattr +C "$STATE/journal.db-wal"
	check 'full: the daemon starts' start_daemon
	check 'full: an update' update full/first
	maps_nothing full
	for i in 64k 4k 1k; do
		sync -f "$FS"
		dd if=/dev/zero of="$FS/filler$i" bs=$i 2>/dev/null
	done
	sync -f "$FS"
	for ((i = 0; i < 30; i++)); do
		quiet update "full/$i" || failed=$((failed + 1))
	done
	echo "# $failed of 30 failed"
	rm "$FS"/filler*
	sync -f "$FS"
	check 'full: there is room again' await 10 update full/last
	check 'full: the daemon is the same' kill -0 "$DAEMON"
	check 'full: it stops' stop_daemon
}

# ---- a truncated loop device ----

# Takes all mapped files of the state directory out of the daemon's memory.
# shellcheck disable=SC2317 # called by check
page_out() {
	python3 - "$DAEMON" "$STATE/" <<'EOF'
import ctypes, os, sys
PAGEOUT, MADVISE = 21, 440
libc = ctypes.CDLL(None, use_errno=True)
pid = os.pidfd_open(int(sys.argv[1]))
for line in open(f'/proc/{sys.argv[1]}/maps'):
    if sys.argv[2] in line:
        start, end = (int(n, 16) for n in line.split()[0].split('-'))
        place = (ctypes.c_size_t * 2)(start, end - start)
        if libc.syscall(MADVISE, pid, place, 1, PAGEOUT, 0) < 0:
            sys.exit(os.strerror(ctypes.get_errno()))
EOF
	find "$STATE" -type f -exec dd if={} iflag=nocache count=0 status=none \;
}

truncated() {
	local i failed=0 done=()
	with_fs ext4 64M || return
	prepare truncated.git
	check 'truncated: the daemon starts' start_daemon
	for ((i = 0; i < 20; i++)); do
		quiet update "truncated/$i" || break
	done
	is 'truncated: updates' 20 $i
	sync -f "$FS"
	cp --sparse=always "$FS.img" "$T/saved.img"
	check 'truncated: what is mapped leaves the memory' page_out
	truncate -s 0 "$FS.img"
	for ((i = 20; i < 40; i++)); do
		if quiet update "truncated/$i"; then
			done+=("$i")
		else
			failed=$((failed + 1))
		fi
	done
	echo "# $failed of 20 failed"
	quiet "$REFD" log --repo "$T/$repo"
	if ! kill -0 "$DAEMON" 2>/dev/null; then
		reap "$DAEMON"
		is 'truncated: the daemon ended by itself' 74 $?
		DAEMON=
	fi
	kill_daemon
	umount "$FS"
	mv "$T/saved.img" "$FS.img"
	check 'truncated: the disk comes back' mount -o loop "$FS.img" "$FS"
	# A write behind the end of the file makes the file longer. So some
	# updates can be acknowledged, and the copy of the disk lacks them. The
	# repository tells so if a checkpoint could be noted there meanwhile.
	if [ $failed -lt 20 ]; then
		"$REFD" daemon --socket "$SOCKET" --state "$STATE" \
			--root "$SERVED" >"$T/out" 2>&1 &
		DAEMON=$!
		own $DAEMON
		if quiet "$REFD" ping --wait 10; then
			for i in "${done[@]}"; do
				[ "$(ref_of "$repo" "refs/heads/truncated/$i")" = "$one" ] ||
					not_ok "truncated/$i" 'it is lost'
			done
		else
			check 'truncated: the older copy is noticed' \
				grep -q 'it is an older copy' "$T/out"
		fi
		kill_daemon
		return
	fi
	check 'truncated: the daemon starts again' start_daemon
	check 'truncated: and serves' update truncated/last
	for ((i = 0; i < 20; i++)); do
		[ "$(ref_of "$repo" "refs/heads/truncated/$i")" = "$one" ] ||
			not_ok "truncated/$i" 'it is lost'
	done
	check 'truncated: verify' quiet verify
	check 'truncated: it stops' stop_daemon
}

full
truncated
finish
