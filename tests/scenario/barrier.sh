#!/bin/bash
# Proves that the object barrier works across file systems: the alternates of a
# repository lie on a second file system. New objects there, loose or packed,
# become durable there before a ref names them. Known durable objects cost
# nothing. A power loss of that file system right after the answer keeps the
# objects. Missing objects are refused.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

printf '[checkpoint]\n\tinterval = 1h\n' >"$T/config"

# Runs a command and counts its cost: $syncs and $fsyncs.
cost_of() { # COMMAND...
	local status=0
	syncs=$(stat_of barrier_syncs) fsyncs=$(stat_of barrier_fsyncs)
	"$@" 2>"$T/err" || status=$?
	syncs=$(($(stat_of barrier_syncs) - syncs))
	fsyncs=$(($(stat_of barrier_fsyncs) - fsyncs))
	return $status
}

update() { # BRANCH VALUE
	"$REFD" update -C "$repo" "refs/heads/$1" "$2"
}

there() { # NAME-OF-THE-ALTERNATE MESSAGE
	new_commit "${pool#"$T/"}" "$1"
}

across() { # FILE-SYSTEM SIZE
	local one two three big files
	with_fs ext4 64M || return
	SERVED=$FS
	repo=$FS/repo.git
	STATE=$FS/state
	with_fs "$1" "$2" || return
	pool=$FS/of/pool.git
	mkdir -p "$FS/of"
	git init -q --bare "$pool"
	git init -q --bare "$repo"
	echo "$pool/objects" >"$repo/objects/info/alternates"
	one=$(there one)
	# A file from the last second before a syncfs counts as new in a file
	# system with objects only.
	sleep 1.3
	check "$1: the daemon starts" start_daemon --config "$T/config" \
		--root "$FS"
	cost_of update a "$one"
	is "$1: after the start a syncfs of each, at most" 2 "$syncs"
	cost_of update b "$one"
	is "$1: then nothing is new in either" '0 0' "$syncs $fsyncs"
	two=$(there two)
	cost_of update c "$two"
	is "$1: loose ones that are new there" '1 0' "$syncs $fsyncs"
	check "$1: are made durable" cut_pool "$1"
	is "$1: and are there after a cut" commit \
		"$(git -C "$repo" cat-file -t "$two")"
	check "$1: the daemon starts again" start_daemon --config "$T/config" \
		--root "$FS"
	cost_of update d "$two"
	sleep 0.3
	three=$(there three)
	big=$(echo "$three" | git -C "$pool" pack-objects -q --revs \
		objects/pack/pack) && git -C "$pool" prune-packed
	check "$1: a pack is there" test -e "$pool/objects/pack/pack-$big.pack"
	# A pack's files (git from 2.41 on makes a reverse index too), and the
	# directory.
	files=$(find "$pool/objects/pack" -type f | wc -l)
	cost_of update e "$three"
	check "$1: packs that are new there ($syncs, $fsyncs)" \
		test "$syncs $fsyncs" = '1 0' -o \
		"$syncs $fsyncs" = "0 $((files + 1))"
	cut_pool "$1"
	is "$1: and are there after a cut" commit \
		"$(git -C "$repo" cat-file -t "$three")"
	check "$1: it starts" start_daemon --config "$T/config" \
		--root "$FS"
	update f 1234567890123456789012345678901234567890 2>"$T/err"
	is "$1: one that nobody has is refused" 128 $?
	check "$1: and said to be missing" grep -q 'nonexistent object' "$T/err"
	check "$1: it stops" stop_daemon
}

# Only the alternates' file system loses the power.
cut_pool() { # FILE-SYSTEM
	"$BUILD/tests/helper/shutdown_fs" nologflush "$FS" || return 1
	kill_daemon
	umount "$FS" && mount -o loop "$FS.img" "$FS"
}

if [ "$(id -u)" -ne 0 ]; then
	skip barrier 'only root can mount'
	finish
fi
across xfs 300M
across ext4 64M
finish
