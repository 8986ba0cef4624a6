#!/bin/bash
# Proves that a small push is durable, refs and objects, after the single flush
# of the log. The file system loses the power right after the answer, and loses
# the names of the new objects. Recovery restores the objects from the record,
# and the restored objects survive the next power loss. Nothing is restored
# after a kill. A push beyond the bounds of a record waits for the barrier. A
# value whose history git has pruned is not restored.
# Slow: it cuts the power on two file systems.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if [ "$(id -u)" -ne 0 ]; then
	skip objects 'only root can mount'
	finish
fi
# No checkpoint comes before the power loss.
printf '[checkpoint]\n\tinterval = 1h\n' >"$T/config"

# A file system in shutdown may confirm a sync and then drop the data, so the
# daemon is stopped first.
cut_power() { # nologflush|logflush
	kill -STOP "$DAEMON"
	"$BUILD/tests/helper/shutdown_fs" "$1" "$FS" || return 1
	kill_daemon
	umount "$FS" && await 5 has_no_device "$FS.img" &&
		mount -o loop "$FS.img" "$FS"
}

has_no_device() { # IMAGE
	[ -z "$(losetup -j "$1")" ]
}

# Runs a command and counts: $syncs of the barrier, $copies for records.
cost_of() { # COMMAND...
	local status=0
	syncs=$(stat_of barrier_syncs) copies=$(stat_of barrier_copies)
	"$@" >"$T/out" 2>&1 || { cat "$T/out"; status=1; }
	syncs=$(($(stat_of barrier_syncs) - syncs))
	copies=$(($(stat_of barrier_copies) - copies))
	return $status
}

# A clone of $repo with a new commit of a file in directories.
commit_in() { # CLONE TEXT
	mkdir -p "$1/a/b"
	echo "$2" >"$1/a/b/c"
	git -C "$1" add . && git -C "$1" commit -q -m "$2"
	new=$(git -C "$1" rev-parse HEAD)
	objects=$(git -C "$1" rev-list --objects HEAD --not --remotes |
		cut -d' ' -f1)
}

missing() {
	local object nr=0
	for object in $objects; do
		git -C "$repo" cat-file -e "$object" 2>/dev/null ||
			nr=$((nr + 1))
	done
	echo $nr
}

is_whole() { # NAME REF
	is "$1: the ref has its value" "$new" \
		"$(git -C "$repo" rev-parse "$2" 2>&1)"
	is "$1: all objects are there" 0 "$(missing)"
	check "$1: git fsck" git -C "$repo" fsck --strict --no-dangling
}

cut_after_push() { # NAME CLONE TEXT
	git -C "$2" fetch -q
	commit_in "$2" "$3"
	check "$1: another push" cost_of git -C "$2" push -q origin \
		HEAD:refs/heads/main
	is "$1: the same" '0 1' "$syncs $copies"
	objects=$(git -C "$2" rev-list --objects HEAD | cut -d' ' -f1)
	check "$1: the power fails" cut_power nologflush
	echo "# $1: the disk lost $(missing) of $(wc -w <<<"$objects") objects"
}

pushes() { # FILE-SYSTEM FORMAT
	local name="$1, $2" work=$T/work-$1-$2 try
	repo=$FS/$2.git
	git init -q --bare --object-format="$2" "$repo"
	"$REFD" enable --socket "$SOCKET" "$repo" >/dev/null
	# A directory of the last tenth of a second before a syncfs counts as
	# new, also objects/pack.
	sleep 0.3
	check "$name: the daemon starts" start_daemon --config "$T/config"
	git init -q --object-format="$2" "$work"
	git -C "$work" remote add origin "$repo"
	commit_in "$work" first
	check "$name: the first push" cost_of git -C "$work" push -q origin \
		HEAD:refs/heads/main
	git -C "$work" fetch -q
	# The barrier of this push made everything older durable.
	sleep 0.3

	commit_in "$work" second
	check "$name: a push" cost_of git -C "$work" push -q origin \
		HEAD:refs/heads/main HEAD:refs/heads/other
	is "$name: costs a copy, and no sync of objects" '0 1' "$syncs $copies"
	cut_after_push "$name" "$work" third
	# If the log grew, its flush wrote the names of the objects too.
	for try in {1..5}; do
		[ "$(missing)" -eq 0 ] || break
		check "$name: starts after $try cut(s) without a loss" \
			start_daemon --config "$T/config"
		commit_in "$work" "synced $try"
		check "$name: a push with a sync" git -C "$work" push -q \
			origin HEAD:refs/heads/main
		sleep 0.3
		cut_after_push "$name" "$work" "third $try"
	done
	check "$name: the disk lost objects" test "$(missing)" -gt 0
	check "$name: recovers" start_daemon --config "$T/config"
	is_whole "$name" main
	check "$name: the log says so" grep -q objects-restored "$LOG"
	prints_nothing "$name: with git's modes" \
		find "$repo/objects" -path "$repo/objects/??/*" ! -perm 0444
	is "$name: the same directories as git" 755 \
		"$(find "$repo/objects" -mindepth 1 -maxdepth 1 -name '??' \
			-printf '%m\n' | sort -u)"
	check "$name: the power fails again" cut_power nologflush
	check "$name: recovers again" start_daemon --config "$T/config"
	is_whole "$name, again" main

	# The page cache of a killed daemon is exact.
	commit_in "$work" fourth
	check "$name: a push" git -C "$work" push -q origin \
		HEAD:refs/heads/main
	kill_daemon
	: >"$LOG"
	check "$name: the daemon starts" start_daemon --config "$T/config"
	prints_no "$name: a kill needs no objects" objects-restored \
		cat "$LOG"
	is_whole "$name, after a kill" main
	check "$name: stops" stop_daemon
}

# Git deletes a ref and its objects. After the power loss the ref looks lost, and
# the record has only the newest of the objects.
pruned() { # FILE-SYSTEM
	local work=$T/work-$1-sha1
	repo=$FS/sha1.git
	check "$1: the daemon starts" start_daemon --config "$T/config"
	git -C "$work" switch -q -c topic
	commit_in "$work" older
	check "$1: a push" git -C "$work" push -q origin HEAD:refs/heads/topic
	# Objects of the last tenth of a second before a syncfs count as new.
	sleep 0.3
	check "$1: whose record is forgotten" "$REFD" checkpoint
	commit_in "$work" newer
	cost_of git -C "$work" push -q origin HEAD:refs/heads/topic
	is "$1: a push of the next commit" '0 1' "$syncs $copies"
	git -C "$repo" update-ref -d refs/heads/topic
	git -C "$repo" prune --expire=now
	check "$1: git has pruned both" test "$(missing)" -gt 0
	sync -f "$repo"
	check "$1: the power fails" cut_power nologflush
	check "$1: recovers" start_daemon --config "$T/config"
	check "$1: a commit without its parent stays away" \
		grep -q object-missing "$LOG"
	is "$1: and so does the ref" '' \
		"$(git -C "$repo" for-each-ref refs/heads/topic)"
	check "$1: git fsck" git -C "$repo" fsck --strict --no-dangling
	check "$1: stops" stop_daemon
	git -C "$work" switch -q -
}

# More objects than a record may contain.
beyond() { # FILE-SYSTEM
	local work=$T/work-$1-sha1 i
	repo=$FS/sha1.git
	check "$1: the daemon starts" start_daemon --config "$T/config"
	for ((i = 0; i < 70; i++)); do
		echo "$1 $i" >"$work/many$i"
	done
	commit_in "$work" many
	cost_of git -C "$work" push -q origin HEAD:refs/heads/many
	is "$1: a push of many objects waits for a sync" '1 0' "$syncs $copies"
	check "$1: the power fails" cut_power nologflush
	check "$1: recovers" start_daemon --config "$T/config"
	is_whole "$1, many" many
	check "$1: stops" stop_daemon
}

for fs in ext4:96M xfs:300M; do
	with_fs "${fs%:*}" "${fs#*:}" || continue
	SERVED=$FS
	STATE=$FS/state
	pushes "${fs%:*}" sha1
	pushes "${fs%:*}" sha256
	beyond "${fs%:*}"
	pruned "${fs%:*}"
done
finish
