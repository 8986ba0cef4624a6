#!/bin/bash
# Proves that snapshots of a running server are one moment of all repositories.
# Clients update one repository and then another one, without a pause. A single
# snapshot of journal and repositories has every update that was answered before
# the snapshot, after the replay of the next start. With two file systems, the
# script of docs/operations.md makes two snapshots that need no replay. In both
# cases no repository is ahead of the other one, and the log agrees with the
# refs.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/readme.sh
. "$ROOT/tests/lib/readme.sh"

# A file system of btrfs with one subvolume, "live", which is at PLACE.
with_live() { # PLACE
	with_fs btrfs 300M || return
	mkdir "$1"
	btrfs -q subvolume create "$FS/live"
	mount_live "$FS" live "$1"
	scenario_mounts+=("$1")
}
mount_live() { # FILE-SYSTEM SUBVOLUME PLACE
	mount -o "subvol=$2" "$(findmnt -no SOURCE "$1")" "$3"
}
# What is at PLACE becomes SNAPSHOT, as when an administrator restores it. The
# file system stays mounted at FILE-SYSTEM, so its memory lives on.
put_back() { # FILE-SYSTEM SNAPSHOT PLACE
	btrfs -q subvolume snapshot "$1/$2" "$1/$2.live"
	umount "$3" && mount_live "$1" "$2.live" "$3"
}

# ---- clients ----

clients='x y z'

# Makes one ref after another in a.git, and then in b.git, until $T/stop exists.
client() { # NAME
	local i repo
	for ((i = 1; ; i++)); do
		[ ! -e "$T/stop" ] || break
		for repo in a b; do
			"$REFD" update -C "$SERVED/$repo.git" \
				"refs/heads/$1-$i" "$one" || break 2
		done
		echo "$i" >"$T/new.$1"
		mv "$T/new.$1" "$T/answered.$1"
	done 2>>"$T/failed"
}
begin_load() {
	local name
	for name in a b; do git init -q --bare "$SERVED/$name.git"; done
	one=$(new_commit "${SERVED#"$T/"}/a.git" one)
	cp -r "$SERVED"/a.git/objects/* "$SERVED/b.git/objects"
	rm -f "$T/stop"
	users=()
	for name in $clients; do
		echo 0 >"$T/answered.$name"
		client "$name" &
		own $!
		users+=($!)
	done
}
end_load() { # REPORTED-AS
	local pid
	touch "$T/stop"
	for pid in "${users[@]}"; do reap "$pid"; done
	is "$1: no client was refused" '' "$(cat "$T/failed")"
}
# Each client has more answers than NUMBER.
are_beyond() { # NUMBER
	local name
	for name in $clients; do
		[ "$(cat "$T/answered.$name")" -gt "$1" ] || return
	done
}
# Keeps what was answered before SNAPSHOT.
note_answered() { # SNAPSHOT
	local name
	for name in $clients; do
		cp "$T/answered.$name" "$T/before.$1.$name"
	done
}

# ---- what a snapshot has ----

nr_refs() { # REPOSITORY CLIENT
	git -C "$SERVED/$1.git" for-each-ref "refs/heads/$2-*" | wc -l
}
# The daemon runs on the snapshot.
is_one_moment() { # SNAPSHOT
	local name repo a b
	for name in $clients; do
		a=$(nr_refs a "$name") b=$(nr_refs b "$name")
		check "$1: b.git is not ahead of a.git" [ "$b" -le "$a" ]
		check "$1: and at most one update behind" [ "$a" -le $((b + 1)) ]
		check "$1: what was answered before is there" \
			[ "$b" -ge "$(cat "$T/before.$1.$name")" ]
		is "$1: and nothing before is missing" "$one" "$(git -C \
			"$SERVED/b.git" rev-parse "refs/heads/$name-$b")"
	done
	for repo in "$SERVED"/[ab].git; do
		is "$1: the log has what $(basename "$repo") has" \
			"$(git -C "$repo" for-each-ref | wc -l)" \
			"$("$REFD" log --repo "$repo" -n 1000000 --json | wc -l)"
		check "$1: git fsck" git -C "$repo" fsck
		check "$1: refd verify" \
			"$REFD" verify --state "$STATE" "$repo"
	done
}

# ---- one snapshot of journal and repositories ----

one_snapshot() {
	local i since
	with_live "$T/all" || return
	SERVED=$T/all/srv STATE=$T/all/state
	mkdir "$SERVED"
	check 'one: the daemon starts' start_daemon
	begin_load
	for i in 1 2 3 4 5; do
		since=$(cat "$T/answered.x")
		await 10 are_beyond "$since"
		note_answered "s$i"
		btrfs -q subvolume snapshot -r "$T/all" "$FS/s$i"
	done
	end_load one
	check 'one: the daemon stops' stop_daemon
	for i in 1 2 3 4 5; do
		put_back "$FS" "s$i" "$T/all"
		check "s$i: the daemon starts" start_daemon
		is_one_moment "s$i"
		check "s$i: the daemon stops" stop_daemon
	done
	is 'one: the log has no complaint' '' "$(complaints)"
}

# ---- two snapshots, while clients wait ----

two_snapshots() {
	local journal
	with_live "$T/journal" || return
	journal=$FS
	with_live "$T/srv" || return
	SERVED=$T/srv STATE=$T/journal/state
	readme_block "$ROOT/docs/operations.md" 'Two snapshots of one moment' |
		sed "s| /var/lib/refd .*| $T/journal $journal/copy|
			s| /srv/git .*| $T/srv $FS/copy|" >"$T/script"
	is 'two: the script makes both snapshots' 2 \
		"$(grep -c "^btrfs subvolume .*/copy\$" "$T/script")"
	check 'two: the daemon starts' start_daemon
	begin_load
	await 10 are_beyond 5
	note_answered copy
	check 'two: the script' env PATH="$BUILD/bin:$PATH" \
		bash "$T/script" >"$T/said"
	check 'two: the wait is printed' \
		grep -q '^writers waited for about [0-9]* seconds' "$T/said"
	await 10 are_beyond "$(cat "$T/answered.x")"
	end_load two
	check 'two: the daemon stops' stop_daemon
	put_back "$journal" copy "$T/journal"
	put_back "$FS" copy "$T/srv"
	is 'two: the copy needs no replay' \
		'0 refs repaired, 0 left as another wrote them, 0 dropped, 0 deferred' \
		"$("$REFD" recover --state "$STATE" --root "$SERVED")"
	check 'two: the daemon starts on the copy' start_daemon
	is_one_moment copy
	sed 's|^btrfs .*|false|' "$T/script" >"$T/fails"
	check 'failed: the script ends' \
		not env PATH="$BUILD/bin:$PATH" bash "$T/fails"
	check 'failed: writers go on' "$REFD" update -C "$SERVED/a.git" \
		refs/heads/after "$one"
	check 'two: the daemon stops again' stop_daemon
	is 'two: the log has no complaint' '' "$(complaints)"
}

not() { ! "$@"; }

one_snapshot
two_snapshots
finish
