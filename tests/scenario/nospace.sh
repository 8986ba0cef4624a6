#!/bin/bash
# Proves that a full disk does no lasting harm, once on the repository's disk
# and once on the journal's. Every ref that cannot be written says `nospace` and
# keeps its value. No lock and no empty ref is left. The daemon goes on by
# itself once there is room. A start on a full disk says that the disk is full.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

# Fills the file system, to the last block.
fill() { # DIRECTORY
	dd if=/dev/zero of="$1/filler" bs=64k 2>/dev/null
	dd if=/dev/zero of="$1/filler2" bs=1k 2>/dev/null
	sync -f "$1"
}

make_room() { # DIRECTORY
	rm -f "$1/filler" "$1/filler2"
	sync -f "$1"
}

many() { # COMMAND-WITH-#-FOR-THE-NUMBER
	local i
	for ((i = 1; i <= 100; i++)); do echo "${1//#/$i}"; done
}

# Updates refs one by one; prints each status and its number.
statuses() { # COMMAND [NUMBER]
	many "$1" | head -n "${2:-100}" | "$REFD" update -C "$repo" --porcelain --batch-updates \
		--stdin 2>/dev/null |
		awk '$1 == "ok" { n["ok"]++ } $1 == "ng" { n[$3]++ }
			END { for (s in n) printf "%s %d\n", s, n[s] }'
}

# The disk of WHAT has room again. The daemon was not restarted.
back_again() { # WHAT
	is "$1: room again: moved" 'ok 100' \
		"$(statuses "update refs/heads/old/# $two $one")"
	is "$1: room again: created" 'ok 100' \
		"$(statuses "create refs/heads/$1/# $one")"
	is "$1: room again: deleted" 'ok 100' \
		"$(statuses "delete refs/heads/$1/#")"
	statuses "update refs/heads/old/# $one" >/dev/null
	check "$1: room again: the daemon is the same" kill -0 "$DAEMON"
	no_locks "$1: no lock is left" "${repo#"$T/"}"
	prints_nothing "$1: no empty ref" find "$repo/refs" -type f -empty
	check "$1: git fsck" git -C "$repo" fsck --no-dangling 2>/dev/null
}

nothing_changed() { # WHAT
	is "$1: full: every old value stands" 100 \
		"$(git -C "$repo" for-each-ref refs/heads/old \
			--format='%(objectname)' | grep -c "$one")"
	no_locks "$1: full: no lock" "${repo#"$T/"}"
}

prepare() { # DIRECTORY-OF-THE-REPOSITORY
	repo=$1/repo.git
	new_repo "${repo#"$T/"}" bare
	git -C "$repo" config core.logAllRefUpdates always
	one=$(new_commit "${repo#"$T/"}" one)
	two=$(new_commit "${repo#"$T/"}" two "$one")
	is 'while there is room' 'ok 100' \
		"$(statuses "create refs/heads/old/# $one")"
}

# Room for some of them: as many refs as were said to be made.
some_room() {
	local said made
	# The directory exists: values are staged first, and would leave no room
	# for a directory.
	"$REFD" update -C "$repo" refs/heads/some/first "$one"
	fill "$FS"
	truncate -s -50k "$FS/filler"
	sync -f "$FS"
	git -C "$repo" config core.logAllRefUpdates false
	# A hundred refs without logs would go to packed-refs, all or none.
	said=$(statuses "create refs/heads/some/# $one" 99)
	made=$(awk '$1 == "ok" { print $2 }' <<<"$said")
	check "room for some: ${said//$'\n'/, }" \
		test "${made:-0}" -gt 0 -a "${made:-0}" -lt 99
	is 'room for some: these are there, and no others' $((made + 1)) \
		"$(git -C "$repo" for-each-ref refs/heads/some | wc -l)"
	no_locks 'room for some: no lock' "${repo#"$T/"}"
	make_room "$FS"
}

full_repository() {
	local said
	with_fs ext4 8M || return
	check 'repository: the daemon starts' start_daemon
	prepare "$FS"
	fill "$FS"
	said=$(statuses "create refs/heads/repository/# $one")
	is 'repository: full: creations' 'nospace 100' "$said"
	said=$(statuses "update refs/heads/old/# $two $one")
	is 'repository: full: moves' 'nospace 100' "$said"
	check 'repository: full: status' grep -Eq \
		'^refd serves, but [0-9]+ refs failed in the last [0-9]+ s because a disk is full' \
		<<<"$("$REFD" status)"
	nothing_changed repository
	"$REFD" update -C "$repo" refs/heads/one "$one" 2>"$T/err"
	is 'repository: full: in words, status' 128 $?
	check 'repository: full: in words' grep -qi 'no space' "$T/err"
	# A second repository has a separate disk.
	new_repo elsewhere.git bare
	check 'repository: full: others go on' "$REFD" update \
		-C "$T/elsewhere.git" refs/heads/x \
		"$(new_commit elsewhere.git x)"
	make_room "$FS"
	back_again repository
	# A reftable has the refs of all updates.
	[ "$REF_FORMAT" != files ] || some_room
	check 'repository: the daemon stops' stop_daemon
}

full_journal() {
	with_fs ext4 8M || return
	STATE=$FS/state
	check 'journal: the daemon starts' start_daemon
	prepare "$T"
	fill "$FS"
	# The WAL has its own room, which is used up sooner or later, also by
	# the small batches of a slow machine.
	for _ in {1..200}; do
		said=$(statuses "update refs/heads/other/# $one"
			statuses "update refs/heads/other/# $two")
		[ "$said" != $'nospace 100\nnospace 100' ] || break
	done
	is 'journal: full: moves' 'nospace 100' \
		"$(statuses "update refs/heads/old/# $two $one")"
	is 'journal: full: creations' 'nospace 100' \
		"$(statuses "create refs/heads/journal/# $one")"
	nothing_changed journal
	make_room "$FS"
	back_again journal
	check 'journal: the daemon stops' stop_daemon
}

# A start without room says so, and where: it may lack the room for the journal,
# or for another file of the state. The next start serves.
full_start() { # ext4|xfs SIZE
	with_fs "$1" "$2" || return
	STATE=$FS/state
	check "$1: start: the daemon starts" start_daemon
	check "$1: start: the daemon stops" stop_daemon
	fill "$FS"
	"$REFD" daemon --socket "$SOCKET" --state "$STATE" --root "$SERVED" \
		>"$T/out" 2>&1
	is "$1: start: full: status" 69 $?
	check "$1: start: full: the reason" \
		grep -q "'$STATE': .*make room there" "$T/out"
	make_room "$FS"
	check "$1: start: room again: the daemon starts" start_daemon
	check "$1: start: room again: the daemon stops" stop_daemon
}

full_repository
full_journal
full_start ext4 8M
full_start xfs 300M
finish
