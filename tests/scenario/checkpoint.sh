#!/bin/bash
# Proves the promises of the checkpoint. The amount of work that may await
# replay is bounded, also under load without a pause. `refd checkpoint` returns
# when no earlier answer needs replay: after a power loss all of it is there
# before any replay. Only root and the daemon's user may ask. A failed
# checkpoint is reported. A power loss keeps foreign changes to a ref between
# its publication and its checkpoint.
# Alone: it measures times.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

never() {
	printf '[checkpoint]\n\tinterval = 1h\n' >"$T/config"
}

pending() { # how many records await replay
	"$REFD" status -v | awk '/^last_lsn/ { last = $2 }
		/^forgotten_lsn/ { print last - $2 }'
}

nothing_pending() {
	[ "$(pending)" -eq 0 ]
}

forgotten() {
	"$REFD" status -v | sed -n 's/^forgotten_lsn: //p'
}

more_forgotten() { # THAN
	[ "$(forgotten)" -gt "$1" ]
}

# ---- bounded ----

bounded() {
	local most=0 now i
	check 'the daemon starts' start_daemon
	new_repo repo.git bare
	one=$(new_commit repo.git one)
	two=$(new_commit repo.git two)
	"$REFD" update -C "$T/repo.git" refs/heads/first "$one"
	await 10 nothing_pending
	is 'after a moment nothing awaits replay' 0 "$(pending)"
	"$BUILD/tests/helper/storm" --socket "$SOCKET" --repo "$T/repo.git" \
		--oid "$one" --oid "$two" --clients 4 --txns 250000 \
		>"$T/storm" &
	own $!
	local storm=$! forgotten
	forgotten=$(forgotten)
	for ((i = 0; i < 4; i++)); do
		await 10 more_forgotten "$forgotten" || break
		forgotten=$(forgotten)
		now=$(pending)
		[ "$now" -le "$most" ] || most=$now
	done
	is "under load it goes on, with $most pending at most" 4 "$i"
	check 'asked for under load' timeout 120 "$REFD" checkpoint
	kill -KILL "$storm"
	reap "$storm"
	check 'the daemon stops' stop_daemon
}

# ---- users who may ask ----

asked_by_others() {
	with_people 'asked for by others' || return
	as 65534 "$REFD" checkpoint --socket "$SOCKET" 2>/dev/null
	is 'asked for by others: denied' 128 $?
}

# ---- on real disks ----

# The file system of the repository loses the power. The refs are checked before
# any replay.
cut_alone() {
	local name="$1: cut and mounted again"
	kill -STOP "$DAEMON"
	"$BUILD/tests/helper/shutdown_fs" nologflush "$FS" || return 1
	kill_daemon
	umount "$FS" && mount -o loop "$FS.img" "$FS" || return 1
	check "$name" true
}

on_disk() { # FILE-SYSTEM SIZE
	local repo i asked
	with_fs "$1" "$2" || return
	SERVED=$FS
	STATE=$T/state.$1
	repo=$FS/repo.git
	git init -q --bare "$repo"
	one=$(new_commit "${repo#"$T/"}" one)
	two=$(new_commit "${repo#"$T/"}" two)
	check "$1: the daemon starts" start_daemon --config "$T/config"
	for i in {1..30}; do
		echo "create refs/heads/a/$i $one"
	done | "$REFD" update -C "$repo" --stdin
	check "$1: they await replay" test "$(pending)" -gt 0
	# Between publication and checkpoint: moved, deleted, packed by git,
	# which syncs nothing.
	for i in 1 2 3; do
		git -C "$repo" update-ref "refs/heads/a/$i" "$two"
	done
	for i in 4 5 6; do
		git -C "$repo" update-ref -d "refs/heads/a/$i"
	done
	git -C "$repo" -c core.fsync=none pack-refs --all --prune
	git -C "$repo" update-ref refs/heads/a/7 "$two"
	"$REFD" update -C "$repo" refs/heads/b "$one"
	asked=$(git -C "$repo" for-each-ref)
	check "$1: refd checkpoint" "$REFD" checkpoint
	is "$1: then nothing does" 0 "$(pending)"
	cut_alone "$1" || { not_ok "$1" 'could not be cut'; return; }
	is "$1: all is there" "$asked" "$(git -C "$repo" for-each-ref)"
	check "$1: git fsck" git -C "$repo" fsck --no-dangling

	# The remaining replay undoes no foreign change.
	check "$1: it starts again" start_daemon --config "$T/config"
	is "$1: and leaves it so" "$asked" "$(git -C "$repo" for-each-ref)"
	"$REFD" update -C "$repo" refs/heads/c "$one"
	kill -STOP "$DAEMON"
	"$BUILD/tests/helper/shutdown_fs" nologflush "$FS"
	kill -CONT "$DAEMON"
	"$REFD" checkpoint 2>"$T/said"
	is "$1: a disk that fails" 128 $?
	check "$1: a disk that fails: says so" \
		grep -q "can't sync the file system of '$FS" "$T/said"
	kill_daemon
	umount "$FS" && mount -o loop "$FS.img" "$FS"
	check "$1: nothing was forgotten" start_daemon
	is "$1: it is there" "$one" "$(git -C "$repo" rev-parse refs/heads/c)"
	check "$1: the daemon stops" stop_daemon
	"$REFD" recover --state "$STATE" --root "$FS" >"$T/found"
	is "$1: a stop leaves nothing to replay" \
		'0 refs repaired, 0 left as another wrote them, 0 dropped, 0 deferred' \
		"$(cat "$T/found")"
}

bounded
check 'the daemon starts again' start_daemon
asked_by_others
check 'and stops' stop_daemon
"$REFD" checkpoint 2>"$T/said"
is 'with no daemon' 75 $?
never
if [ "$(id -u)" -ne 0 ]; then
	skip checkpoint 'only root can mount'
	finish
fi
on_disk ext4 96M
on_disk xfs 300M
finish
