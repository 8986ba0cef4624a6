#!/bin/bash
# Proves that refd survives schedules that a plausible design loses
# (tests/SCHEDULES.md), with the real programs on real file systems with power
# losses (FS_IOC_SHUTDOWN). The schedules come one at a time and on purpose;
# cut.sh leaves them to chance. If git causes the loss, the test shows that git
# alone loses the update too: so the test works.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if [ "$(id -u)" -ne 0 ]; then
	skip schedules 'only root can mount'
	finish
fi

# No checkpoint comes to anybody's help.
cat >"$T/config" <<'CONFIG'
[checkpoint]
	interval = 1h
CONFIG

start() { # [MODE]
	start_daemon --config "$T/config" ${1:+--durability "$1"} 2>/dev/null
}

# A machine without power answers nobody, so the daemon stops first.
cut() { # logflush|nologflush DIRECTORY...
	local how=$1 fs
	shift
	[ -z "$DAEMON" ] || kill -STOP "$DAEMON"
	for fs; do "$BUILD/tests/helper/shutdown_fs" "$how" "$fs"; done
	kill_daemon
	for fs; do mount_again "$fs" || not_ok "cut $fs" 'not mounted again'; done
}

# From a copy of the image: if another mount namespace still has the old mount,
# its file system lives on there, and a mount would show the same file system.
mount_again() { # DIRECTORY
	local how=loop
	[ "$(findmnt -n -o FSTYPE "$1")" != xfs ] || how=loop,nouuid
	for _ in {1..100}; do
		umount "$1" 2>/dev/null && break
		sleep 0.05
	done
	mv "$1.img" "$1.cut" && cp --sparse=always "$1.cut" "$1.img" &&
		rm "$1.cut" && mount -o "$how" "$1.img" "$1"
}

# Makes $repo, $one and $two, durable.
prepare() { # NAME
	repo=$FS/$1.git
	new_repo "${repo#"$T/"}" bare
	one=$(new_commit "${repo#"$T/"}" one)
	two=$(new_commit "${repo#"$T/"}" two "$one")
	sync -f "$FS"
}

at() { # REF
	git -C "$repo" rev-parse --verify -q "refs/heads/$1"
}

refs_left() { # BELOW
	git -C "$repo" for-each-ref "refs/heads/$1" 2>/dev/null | wc -l
}

many() { # COUNT COMMAND-WITH-#-FOR-THE-NUMBER
	local i
	for ((i = 1; i <= $1; i++)); do echo "${2//#/$i}"; done
}

# ---- 1: the power loss takes our value and the value below ----

predecessor() {
	local journal=$FS try
	with_fs xfs 300M || return
	STATE=$journal/state
	for try in 1 2 3; do
		prepare "predecessor$try"
		three=$(new_commit "${repo#"$T/"}" three "$two")
		git -C "$repo" update-ref refs/heads/x "$one"
		check '1: the daemon starts' start
		# Objects that are a tenth of a second older than a barrier need
		# no further barrier.
		sleep 0.3
		"$REFD" update -C "$repo" refs/heads/first "$one"
		sync -f "$FS"
		git -C "$repo" update-ref refs/heads/x "$two" "$one"
		check '1: acknowledged' "$REFD" update -C "$repo" \
			refs/heads/x "$three" "$two"
		cut nologflush "$FS"
		# Except after a foreign sync(2) in between.
		[ "$(at x)" != "$one" ] || break
	done
	is '1: the cut has taken both' "$one" "$(at x)"
	check '1: recovered' start
	is '1: what was acknowledged is there' "$three" "$(at x)"
	kill_daemon
}

# ---- 3: unsynced journal frames ----

unsynced_frames() { # FILE-SYSTEM
	local id pid
	prepare "frames-$1"
	STATE=$FS/state
	check "3, $1: the daemon starts" start
	"$REFD" update -C "$repo" refs/heads/first "$one"
	# Builds the index of history now, because this causes flushes.
	"$REFD" log --repo "$repo" >/dev/null
	id=$(printf '%012x%020d' "$(date +%s%3N)" 0)
	strace -f -q -o /dev/null -e trace=fdatasync \
		-e inject=fdatasync:signal=SIGKILL:when=1 -p "$DAEMON" \
		2>/dev/null &
	pid=$!
	own $pid
	await_tracer $pid
	"$REFD" update -C "$repo" --txid "$id" --timeout 60000 refs/heads/x \
		"$two" 2>/dev/null &
	own $!
	reap $pid
	reap "$DAEMON" 2>/dev/null
	kill -KILL "${scenario_pids[-1]}" 2>/dev/null
	check "3, $1: started after the kill" start
	# The frames are in memory: they were written, not synced.
	is "3, $1: it says that it happened" committed \
		"$("$REFD" query "$id" | awk '$1 == "txn" { print $3 }')"
	cut nologflush "$FS"
	check "3, $1: started after the cut" start
	is "3, $1: it still says so" committed \
		"$("$REFD" query "$id" | awk '$1 == "txn" { print $3 }')"
	is "3, $1: and the ref is there" "$two" "$(at x)"
	kill_daemon
}

# ---- 5: packed-refs rewritten and renamed ----

rewritten() { # FILE-SYSTEM
	prepare "rewritten-$1"
	STATE=$FS/state
	many 500 "create refs/heads/old/# $one" | git -C "$repo" update-ref --stdin
	git -C "$repo" pack-refs --all
	sync -f "$FS"
	check "5, $1: the daemon starts" start
	check "5, $1: one of 500 deleted" "$REFD" update -C "$repo" \
		-d refs/heads/old/7
	cut logflush "$FS"
	is "5, $1: before anything is recovered the others are there" 1 \
		"$(($(refs_left old) >= 499))"
	check "5, $1: recovered" start
	is "5, $1: all but that one" 499 "$(refs_left old)"
	kill_daemon
}

# The rewrite comes from a client of mode none. The other refs in the file were
# promised durability.
rewritten_in_none() { # FILE-SYSTEM
	prepare "none-$1"
	STATE=$FS/state
	check "5, $1: a daemon in mode none" start none
	git -C "$repo" config refd.durability journal
	many 500 "create refs/heads/old/# $one" |
		"$REFD" update -C "$repo" --stdin
	git -C "$repo" config --unset refd.durability
	check "5, $1: nothing awaits replay" "$REFD" checkpoint
	check "5, $1: one deleted in mode none" "$REFD" update -C "$repo" \
		-d refs/heads/old/7
	many 500 "create refs/heads/new/# $one" |
		"$REFD" update -C "$repo" --stdin
	cut logflush "$FS"
	is "5, $1: what others were promised is there" 1 \
		"$(($(refs_left old) >= 499))"
	check "5, $1: recovered" start
	is "5, $1: all of it" 1 "$(($(refs_left old) >= 499))"
	kill_daemon
}

# ---- 6: packed by git, long after ----

packed_by_git() { # FILE-SYSTEM enabled|stock
	local try
	for try in 1 2 3; do
		prepare "packed-$1-$2$try"
		STATE=$FS/state
		check "6, $1, $2: the daemon starts" start
		many 50 "create refs/heads/old/# $one" |
			"$REFD" update -C "$repo" --stdin
		# A clean stop: all is checkpointed, the records are forgotten.
		stop_daemon
		[ "$2" = stock ] || check "6, $1: enabled" "$REFD" enable \
			"$repo" >/dev/null
		git -C "$repo" pack-refs --all --prune
		cut logflush "$FS"
		# Except after a foreign sync(2) in between.
		[ "$2" != stock ] || [ "$(refs_left old)" -eq 0 ] && break
	done
	if [ "$2" = stock ]; then
		is "6, $1: a git that does not sync loses them" 0 \
			"$(refs_left old)"
	else
		is "6, $1: enabled, all are there" 50 "$(refs_left old)"
	fi
}

# ---- 8: locks and the barrier ----

# No lock stands while objects are made durable, however long the sync takes.
barrier() {
	local pid tracer lock=no
	prepare barrier
	STATE=$FS/state
	check '8: the daemon starts' start
	"$REFD" update -C "$repo" refs/heads/first "$one"
	strace -f -q -o "$T/barrier" -e trace=syncfs \
		-e inject=syncfs:delay_enter=100000000 -p "$DAEMON" 2>/dev/null &
	tracer=$!
	own $tracer
	await_tracer $tracer
	three=$(new_commit "${repo#"$T/"}" three "$two")
	# In this mode no record contains the object.
	GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=refd.durability \
		GIT_CONFIG_VALUE_0=batch \
		"$REFD" update -C "$repo" refs/heads/new "$three" &
	pid=$!
	own $pid
	while ! grep -q syncfs "$T/barrier" && kill -0 $pid; do sleep 0.01; done
	[ -z "$(find "$repo" -name '*.lock')" ] || lock=yes
	is '8: no lock while the barrier is under way' no $lock
	check '8: it was under way' kill -0 $pid
	# Without the tracer, the daemon goes on.
	kill -INT $tracer
	reap $tracer
	check '8: and then it is acknowledged' reap $pid
	kill_daemon
}

# ---- 10: a git that runs while refd rewrites packed-refs ----

# git knows packed-refs by size, inode and second. If one name is deleted and
# another name of the same length is packed, git could see the file that it
# knows. The function makes the second next new file get this inode number, if
# the number is free. The next new file is packed-refs.lock.
occupy_below() { # INODE
	local i
	for ((i = 0; i < 500; i++)); do
		: >"$repo/filler$i"
		[ "$(stat -c %i "$repo/filler$i")" -lt "$1" ] || break
	done
	rm -f "$repo/filler$i" "$repo/spare"
}

# The next step has a whole second for itself.
wait_for_second() {
	sleep "$(printf '0.%09d' $((1000000000 - 10#$(date +%N))))"
}

fooled() {
	local i git to from inode known same=0 fooled=0
	prepare fooled
	STATE=$FS/state
	check '10: the daemon starts' start
	for ((i = 0; i < 3; i++)); do
		"$REFD" update -C "$repo" "refs/heads/a$i" "$one"
		: >"$repo/spare"
		git -C "$repo" pack-refs --all --prune
		wait_for_second
		inode=$(stat -c %i "$repo/packed-refs")
		touch "$repo/packed-refs"
		known=$(stat -c '%i %Y' "$repo/packed-refs")
		coproc GIT { exec git -C "$repo" update-ref --stdin 2>&1; }
		git=$GIT_PID
		own "$git"
		exec {to}>&"${GIT[1]}"- {from}<&"${GIT[0]}"-
		# After this, git has read packed-refs.
		printf '%s\n' start "create refs/heads/none $one" prepare abort \
			>&$to
		for _ in 1 2 3; do read -r _ <&$from; done
		"$REFD" update -C "$repo" -d "refs/heads/a$i"
		"$REFD" update -C "$repo" "refs/heads/b$i" "$two"
		occupy_below "$inode"
		git -C "$repo" pack-refs --all --prune
		[ "$(stat -c '%i %Y' "$repo/packed-refs")" != "$known" ] ||
			same=$((same + 1))
		printf '%s\n' start "create refs/heads/b$i $one" commit >&$to
		exec {to}>&-
		cat <&$from >"$T/git.said"
		exec {from}<&-
		reap "$git"
		[ "$(at "b$i")" = "$two" ] || fooled=$((fooled + 1))
	done
	is '10: no file came back as another' 0 $same
	is '10: git was never fooled' 0 $fooled
	kill_daemon
}

# ---- 15: an empty HEAD ----

empty_head() {
	prepare head
	STATE=$FS/state
	check '15: the daemon starts' start
	"$REFD" update -C "$repo" refs/heads/x "$one"
	cut nologflush "$FS"
	: >"$repo/HEAD"
	check '15: recovered' start
	is '15: beside an empty HEAD the ref is there' "$one" \
		"$(cat "$repo/refs/heads/x")"
	kill_daemon
}

if with_fs ext4 96M; then
	has_strace=$(command -v strace)
	[ -z "$has_strace" ] || unsynced_frames ext4
	rewritten ext4
	rewritten_in_none ext4
	packed_by_git ext4 stock
	packed_by_git ext4 enabled
	[ -z "$has_strace" ] || barrier
	fooled
	empty_head
	predecessor
fi
# The file system of predecessor, if there is any.
if [ -n "${FS:-}" ] && mountpoint -q "$FS" && [ -n "${has_strace:-}" ]; then
	unsynced_frames xfs
	rewritten xfs
	rewritten_in_none xfs
	packed_by_git xfs enabled
fi
finish
