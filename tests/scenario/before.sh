#!/bin/bash
# Proves the state of refs after a power loss and before recovery, by mode of
# durability. 300 refs were just answered, half of them moved and half created,
# each with a log. The test counts right refs, stale refs (at the old value, or
# missing), and empty or broken refs. The file system is shut down at once, with
# or without a last write of its own log, and no checkpoint came in between. In
# modes batch and fsync all refs must be right. In mode journal all refs must be
# right after recovery. REFS=1000 gives the table in docs/durability.md.
# Slow: it cuts the power for each mode on two file systems.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

half=$((${REFS:-100} / 2))

if [ "$(id -u)" -ne 0 ]; then
	skip before 'only root can mount'
	finish
fi
printf '[durability]\n\tinterval = 1h\n[checkpoint]\n\tinterval = 1h\n' \
	>"$T/config"

# The daemon is stopped: a machine without power answers nobody.
cut() { # logflush|nologflush
	kill -STOP "$DAEMON"
	"$BUILD/tests/helper/shutdown_fs" "$1" "$FS"
	kill_daemon 2>/dev/null
	umount "$FS" && mount -o loop "$FS.img" "$FS"
}

# "RIGHT right, STALE stale, EMPTY empty"
read_refs() {
	local i name value right=0 stale=0 empty=0
	for ((i = 0; i < 2 * half; i++)); do
		name=refs/heads/$mode/$i
		value=$(cat "$repo/$name" 2>/dev/null)
		if [ "$value" = "$two" ]; then
			right=$((right + 1))
		elif [ ! -e "$repo/$name" ] || [ "$value" = "$one" ]; then
			stale=$((stale + 1))
		else
			empty=$((empty + 1))
		fi
	done
	echo "$right right, $stale stale, $empty empty"
}

# Starts the daemon, moves and creates refs, and loses the power after the
# answers.
one_cut() { # logflush|nologflush
	local i
	for ((i = 0; i < half; i++)); do
		echo "create refs/heads/$mode/$i $one"
	done | git -C "$repo" update-ref --stdin
	sync -f "$FS"
	check "$on, $1, $mode: a daemon" start_daemon --config "$T/config" \
		--durability "$mode"
	# The repository is known, and its objects are old.
	"$REFD" update -C "$repo" "refs/heads/first-$mode" "$one"
	sync -f "$FS"
	for ((i = 0; i < 2 * half; i++)); do
		echo "update refs/heads/$mode/$i $two"
	done | "$REFD" update -C "$repo" -m moved --stdin
	cut "$1"
}

one_mode() { # logflush|nologflush
	local found try all="$((2 * half)) right, 0 stale, 0 empty"
	for try in 1 2 3; do
		[ "$try" -eq 1 ] || new_bare "$mode$try"
		one_cut "$1" || {
			not_ok "$on, $1, $mode" 'could not be cut'
			return
		}
		found=$(read_refs)
		echo "# $on, $1, $mode: $found"
		# Except after a foreign sync(2) in between.
		[[ $mode = [jn]* && $found = "$all" && $try -lt 3 ]] || break
		check "$on, $1, $mode: recovered, to be cut again" start_daemon
		stop_daemon
	done
	case $mode in
	batch | fsync) is "$on, $1, $mode: what git reads" "$all" "$found" ;;
	# Otherwise the test would prove nothing about the other modes.
	journal | none) check "$on, $1, $mode: git needs a recovery" \
		test "$found" != "$all" ;;
	esac
	check "$on, $1, $mode: recovered" start_daemon
	case $mode in
	journal | batch | fsync)
		is "$on, $1, $mode: what git reads then" "$all" "$(read_refs)" ;;
	esac
	check "$on, $1, $mode: the daemon stops" stop_daemon
}

new_bare() { # NR
	repo=$FS/repo$1.git
	git init -q --bare "$repo"
	git -C "$repo" config core.logAllRefUpdates always
	one=$(new_commit "${repo#"$T/"}" one)
	two=$(new_commit "${repo#"$T/"}" two "$one")
}

on_disk() { # FILE-SYSTEM SIZE CUT
	on=$1
	with_fs "$1" "$2" || return
	STATE=$FS/state
	SERVED=$FS
	for mode in none periodic journal batch fsync; do
		new_bare "$mode"
		one_mode "$3"
	done
}

on_disk ext4 96M logflush
on_disk ext4 96M nologflush
on_disk xfs 300M logflush
on_disk xfs 300M nologflush
finish
