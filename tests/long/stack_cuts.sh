#!/bin/bash
# Proves that a repository with refs in reftables survives a power loss after
# any step of refd. The daemon stops after a system call, the device of the
# mounted file system is copied, and the copy is mounted: the copy has what the
# disk had. Git must find a whole stack there, with the old or the new refs, and
# every ref that was acknowledged before. After recovery, the journal and the
# refs agree, no lock of refd is left, and git and refd go on. On ext4, XFS and
# btrfs.
#
#	rename	an update: the staged table, the list, the rename
#	beside	the same, and before the power loss a different program syncs a
#		file: its commit makes the step durable
#	hole	git has appended a table without a sync just before
#	unlink	git merges the tables of refd just before
#	lock	a lock of git survives the power loss, and refd leaves the lock
#	fold	refd folds tables and merges
#
# CASES and KINDS select cases and file systems; REFD_TEST_REFS=files runs the
# cases rename and lock with refs in files.

# shellcheck source=tests/lib/scenario.sh
export REFD_TEST_REFS=${REFD_TEST_REFS:-reftable}
. "$(dirname "$0")/../lib/scenario.sh"

calls='linkat renameat unlinkat fsync fdatasync sync_file_range'
kinds=${KINDS:-ext4 xfs btrfs}
cases=${CASES:-rename beside hole unlink lock fold}

if ! can_mount; then
	skip 'power losses' 'only root can mount'
	finish
	exit
fi
if ! strace -o /dev/null true 2>/dev/null; then
	skip 'power losses' 'no strace, or it may not trace'
	finish
	exit
fi
if [ "$REF_FORMAT" = reftable ] &&
	! why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" \
		experimental 2>&1); then
	skip 'power losses' "no git with reftables: ${why//$'\n'/; }"
	finish
	exit
fi

declare -A size=([ext4]=64M [xfs]=300M [btrfs]=128M)
declare -A option=([ext4]=loop [xfs]="loop,nouuid" [btrfs]=loop)
disk=$T/disk
mkdir "$disk"
SERVED=$disk
STATE=$disk/state
repo=$disk/repo.git

# A file system with a repository, refd/ and the journal, made once for each
# kind. Refs: base of two updates by refd.
make_image() { # KIND
	local options=(-q)
	[ "$1" != ext4 ] || options+=(-F -m 0)
	truncate -s "${size[$1]}" "$T/$1.img" &&
		"mkfs.$1" "${options[@]}" "$T/$1.img" >/dev/null 2>&1 || return
	put_in "$1" "$T/$1.img" || return
	git init -q --bare "$repo"
	git -C "$repo" config core.logAllRefUpdates always
	git -C "$repo" config core.fsync committed,loose-object,reference
	one=$(git -C "$repo" commit-tree -m one \
		"$(git -C "$repo" mktree </dev/null)")
	two=$(git -C "$repo" commit-tree -m two -p "$one" "$one^{tree}")
	sync -f "$disk"
	start_daemon || return
	"$REFD" update -C "$repo" refs/heads/base "$one"
	"$REFD" update -C "$repo" refs/heads/moved "$one"
	stop_daemon
	take_out
}

put_in() { # KIND IMAGE
	mount -o "${option[$1]}" "$2" "$disk" && scenario_mounts+=("$disk")
}

take_out() {
	local i
	for ((i = 0; i < 50; i++)); do
		umount "$disk" 2>/dev/null && break
		sleep 0.1
	done
	scenario_mounts=()
}

refs_now() {
	git -C "$repo" for-each-ref --format='%(refname:lstrip=2) %(objectname)' \
		2>&1 | sed "s/$one/1/; s/$two/2/" | tr '\n' ' '
}

bad() { # TEXT
	failures=$((failures + 1))
	not_ok "$at" "$1"
}

# What happens before the step that is cut. Prints nothing.
before() { # CASE
	case $1 in
	hole)
		git -C "$repo" -c core.fsync=none update-ref \
			refs/heads/foreign "$one"
		;;
	unlink) git -C "$repo" pack-refs --all ;;
	fold)
		local i
		for i in 1 2 3 4 5 6 7 8 9; do
			"$REFD" update -C "$repo" "refs/heads/f$i" "$one" ||
				return
		done
		;;
	esac
}

# Stops the daemon after call number N of CALL, or returns 1 if there is no such
# call before the answer.
stop_after() { # CALL N
	local i
	strace -f -q -o "$T/trace" -e trace="$1" \
		-e inject="$1:signal=SIGSTOP:when=$2" -p "$DAEMON" \
		2>"$T/strace.err" &
	tracer=$!
	own "$tracer"
	await_tracer "$tracer"
	"$REFD" update -C "$repo" --timeout 20000 -m cut --stdin \
		>"$T/said" 2>&1 <<-END &
		update refs/heads/moved $two $one
		create refs/heads/new $two
	END
	client=$!
	own "$client"
	for ((i = 0; i < 1000; i++)); do
		grep -q 'stopped by SIGSTOP' "$T/trace" && return 0
		kill -0 "$client" 2>/dev/null || return 1
		sleep 0.01
	done
	return 1
}

end_all() {
	kill -KILL "$tracer" "$client" 2>/dev/null
	reap "$tracer"
	reap "$client"
	kill_daemon
}

# The copy after the power loss, before and after recovery.
judge() { # KIND CASE ACKNOWLEDGED
	local found wanted1 wanted2 more=
	[ "$2" != fold ] || more='f1 1 f2 1 f3 1 f4 1 f5 1 f6 1 f7 1 f8 1 f9 1 '
	wanted1="base 1 ${more}moved 1 "
	wanted2="base 1 ${more}moved 2 new 2 "
	put_in "$1" "$T/cut.img" || {
		bad "cannot mount: $(dmesg 2>/dev/null | tail -n 1)"
		return
	}
	found=$(refs_now | sed 's/foreign 1 //')
	if [ "$REF_FORMAT" = reftable ]; then
		git -C "$repo" refs verify >"$T/verify" 2>&1 ||
			bad "git finds a fault: $(head -n 1 "$T/verify")"
		# A power loss can take the last rename of refd, here of f9.
		[ "$found" = "$wanted1" ] || [ "$found" = "$wanted2" ] ||
			[ "$found" = "${wanted1/f9 1 /}" ] ||
			bad "before recovery, the refs are $found"
		[ "$3" = no ] || [ "$found" = "$wanted2" ] ||
			losses=$((losses + 1))
	fi
	if [ "$2" = lock ]; then
		lock=$repo/reftable/tables.list.lock
		[ "$REF_FORMAT" = reftable ] || lock=$repo/refs/heads/moved.lock
		rm -f "$lock"
		: >"$lock"
	fi
	start_daemon || {
		bad 'the daemon does not start'
		take_out
		return
	}
	if [ "$2" = lock ]; then
		[ -e "$lock" ] || bad 'the lock of git was removed'
		rm -f "$lock"
		kill_daemon
		start_daemon || bad 'the daemon does not start again'
	fi
	found=$(refs_now | sed 's/foreign 1 //')
	[ "$found" = "$wanted1" ] || [ "$found" = "$wanted2" ] ||
		bad "after recovery, the refs are $found"
	[ "$3" = no ] || [ "$found" = "$wanted2" ] ||
		bad "acknowledged, and the refs are $found"
	found=$(find "$repo" -name '*.lock' -o -path '*/refd/stage/*')
	[ -z "$found" ] || bad "left: $found"
	[ "$REF_FORMAT" = files ] || git -C "$repo" refs verify >"$T/verify" 2>&1 ||
		bad "after recovery: $(head -n 1 "$T/verify")"
	git -C "$repo" update-ref refs/heads/git "$one" ||
		bad 'git does not go on'
	"$REFD" update -C "$repo" refs/heads/refd "$one" ||
		bad 'refd does not go on'
	found=$(git -C "$repo" reflog show --format=%H refs/heads/moved -- |
		wc -l)
	[ "$found" -le 2 ] || bad "the log of moved has $found lines"
	stop_daemon
	take_out
}

# 1: there is no such call.
cut() { # KIND CASE CALL N
	local acknowledged=no
	at="$2 on $1: after $3 $4"
	cp --sparse=always "$T/$1.img" "$T/now.img"
	put_in "$1" "$T/now.img" || return 1
	start_daemon || return 1
	before "$2" || bad 'the updates before'
	if [ "$3" = answer ]; then
		"$REFD" update -C "$repo" -m cut --stdin >"$T/said" 2>&1 <<-END &&
			update refs/heads/moved $two $one
			create refs/heads/new $two
		END
			acknowledged=yes
		tracer=0
		client=0
	elif ! stop_after "$3" "$4"; then
		end_all 2>/dev/null
		take_out
		return 1
	fi
	if [ "$2" = beside ]; then
		echo "$3 $4" >"$disk/beside"
		sync "$disk/beside"
	fi
	cp --sparse=always "$T/now.img" "$T/cut.img"
	if [ "$3" = answer ]; then kill_daemon; else end_all; fi 2>/dev/null
	take_out
	cuts=$((cuts + 1))
	judge "$1" "$2" "$acknowledged"
}

for kind in $kinds; do
	if ! command -v "mkfs.$kind" >/dev/null || ! make_image "$kind"; then
		skip "$kind" 'no such file system here'
		take_out
		continue
	fi
	for case in $cases; do
		cuts=0 failures=0 losses=0
		for call in $calls; do
			for ((n = 1; n < 12; n++)); do
				cut "$kind" "$case" "$call" "$n" || break
			done
		done
		for n in 1 2 3; do cut "$kind" "$case" answer "$n"; done
		[ "$failures" -gt 0 ] || ok "$case on $kind: $cuts cuts"
		echo "# $case on $kind: $cuts cuts, $losses acknowledged" \
			'updates awaited recovery'
	done
done
finish
