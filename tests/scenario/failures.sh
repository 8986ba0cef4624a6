#!/bin/bash
# Proves that a failing disk costs only the affected updates, with the real
# programs. First, strace makes one system call of the daemon fail at a time,
# with EIO, ENOSPC and EDQUOT: lockfile, directories, packed-refs, journal,
# barrier. The affected ref reports the failure and keeps its value, the daemon
# goes on, and the journal agrees with the refs. If the journal cannot be
# reopened, the daemon ends with status 74. Then a real disk takes no more
# writes. The kernel marks the unwritten pages clean, and the answer by id is
# still true, also after a power loss.
# Slow: a client waits ten seconds for a daemon.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

cat >"$T/config" <<'CONFIG'
[checkpoint]
	interval = 1h
CONFIG

new_id() {
	# An id begins with its birth time.
	printf '%012x%s' "$(date +%s%3N)" \
		"$(od -An -N10 -tx1 /dev/urandom | tr -d ' \n')"
}

timeout_ms=60000

# Sets $status to the status of the ref, or to the transaction's outcome without
# a ref.
update() { # ARGUMENT...
	id=$(new_id)
	"$REFD" update -C "$repo" --porcelain --txid "$id" \
		--timeout "$timeout_ms" "$@" \
		>"$T/said" 2>"$T/err"
	status=$(awk '$1 == "ok" { print "ok" } $1 == "ng" { print $3 }' \
		"$T/said")
	[ -n "$status" ] || status=$(awk '$1 == "txn" { print $3 }' "$T/said")
}

ask() {
	"$REFD" query "$id" 2>/dev/null | awk '$1 == "txn" { print $3 }'
}

at() { # REF
	git -C "$repo" rev-parse --verify -q "$1"
}

prepare() { # REPOSITORY
	repo=$1
	new_repo "${repo#"$T/"}" bare
	one=$(new_commit "${repo#"$T/"}" one)
	two=$(new_commit "${repo#"$T/"}" two "$one")
	for name in a b c d e f g h; do
		echo "create refs/heads/$name $one"
		echo "create refs/heads/packed/$name $one"
	done | git -C "$repo" update-ref --stdin
	git -C "$repo" pack-refs --all --prune
	sleep 0.2
	"$REFD" update -C "$repo" refs/heads/first "$one"
}

# Call NTH (1) of each thread of the daemon fails; NTH+: this call and all later
# calls.
failing() { # CALL ERRNO [NTH]
	strace -f -q -o "$T/trace" -e trace="$1" \
		-e inject="$1:error=$2:when=${3:-1}" -p "$DAEMON" 2>/dev/null &
	tracer=$!
	own "$tracer"
	await_tracer "$tracer" || not_ok "$1 $2" 'strace can not watch'
}

mended() {
	kill -INT "$tracer"
	reap "$tracer"
}

no_litter() { # NAME
	prints_nothing "$1: no lock, nothing staged" \
		find "$repo" -name '*.lock' -o -path '*/refd/stage/*'
}

# Expects WANTED from `refd update ARGUMENT...` while CALL fails. The update is
# about REF. An update of another ref goes on at once.
costs() { # CALL ERRNO WANTED REF ARGUMENT...
	local what="$1 $2" wanted=$3 ref=$4 before
	before=$(at "$ref")
	# The question completes the index, so that only the thread of the
	# update makes such a call.
	"$REFD" log --repo "$repo" -n 1 >"$T/log" || not_ok "$what" 'no history'
	failing "$1" "$2"
	shift 4
	update "$@"
	mended
	is "$what: the answer" "$wanted" "$status"
	[ "$wanted" = ok ] || is "$what: the value" "$before" "$(at "$ref")"
	case $status,$(ask) in
	ok,committed | io,rejected | nospace,rejected | io,never-seen | \
		nospace,never-seen) ok "$what: by its id" ;;
	*) not_ok "$what: by its id" "$status, but $(ask)" ;;
	esac
	[ "$wanted" != io ] || check "$what: the log has the reason" grep -q \
		" status=io refs=1 .* ref=\"$ref\" error=\"" "$LOG"
	no_litter "$what"
	update "$@"
	is "$what: and once more" ok "$status"
}

one_by_one() {
	local pid
	check 'the daemon starts' start_daemon --config "$T/config"
	pid=$DAEMON
	prepare "$T/repo.git"
	# Lockfile and directories.
	costs linkat EIO io refs/heads/a refs/heads/a "$two"
	costs linkat ENOSPC nospace refs/heads/b refs/heads/b "$two"
	costs linkat EDQUOT nospace refs/heads/c refs/heads/c "$two"
	costs mkdirat EIO io refs/heads/l/x refs/heads/l/x "$two"
	costs mkdirat ENOSPC nospace refs/heads/n/x refs/heads/n/x "$two"
	costs mkdirat EDQUOT nospace refs/heads/m/x refs/heads/m/x "$two"
	# packed-refs.new, and renamed files.
	costs fsync EIO io refs/heads/packed/a -d refs/heads/packed/a
	costs fsync ENOSPC nospace refs/heads/packed/b -d refs/heads/packed/b
	costs fsync EDQUOT nospace refs/heads/packed/d -d refs/heads/packed/d
	costs renameat ENOSPC nospace refs/heads/packed/c -d refs/heads/packed/c
	costs renameat EDQUOT nospace refs/heads/d refs/heads/d "$two"
	# A failed write of the journal is definite. The result of a failed sync
	# is found out.
	costs pwrite64 EIO io refs/heads/e refs/heads/e "$two"
	costs pwrite64 ENOSPC nospace refs/heads/f refs/heads/f "$two"
	costs pwrite64 EDQUOT nospace refs/heads/f refs/heads/f "$one"
	costs fdatasync EIO ok refs/heads/g refs/heads/g "$two"
	costs fdatasync ENOSPC ok refs/heads/h refs/heads/h "$two"
	costs fdatasync EDQUOT ok refs/heads/h refs/heads/h "$one"
	is 'it is the same daemon' "$pid" "$DAEMON"
	check 'it is alive' kill -0 "$DAEMON"
}

# One of two refs in a transaction is published, and the disk refuses the other.
# Every answer is unknown until a start has finished the transaction.
unfinished() {
	local both="update refs/heads/a $one
update refs/heads/b $one"
	failing renameat EIO 2
	update --stdin <<<"$both"
	mended
	is 'unfinished: the answer' 'ok unknown' "${status//$'\n'/ }"
	is 'unfinished: by its id' unknown "$(ask)"
	"$REFD" update -C "$repo" --porcelain --txid "$id" --stdin \
		<<<"$both" >"$T/said" 2>"$T/err"
	is 'unfinished: sent again' "txn $id unknown" "$(tail -n 1 "$T/said")"
	is 'unfinished: there and not there' "$one $two" \
		"$(at refs/heads/a) $(at refs/heads/b)"
	check 'unfinished: the daemon stops' stop_daemon
	check 'unfinished: and starts' start_daemon --config "$T/config"
	is 'unfinished: by its id, then' committed "$(ask)"
	is 'unfinished: there' "$one $one" \
		"$(at refs/heads/a) $(at refs/heads/b)"
	no_litter 'unfinished'
}

# A rename that failed may have happened. The next start finishes the update.
doubtful() { # REF WANTED ARGUMENT...
	local ref=$1 wanted=$2
	shift 2
	failing renameat EIO
	update "$@"
	mended
	is "doubtful $ref: the answer" unknown "$status"
	check "doubtful $ref: the daemon stops" stop_daemon
	check "doubtful $ref: and starts" start_daemon --config "$T/config"
	is "doubtful $ref: by its id, then" committed "$(ask)"
	is "doubtful $ref: the value" "$wanted" "$(at "$ref")"
	no_litter "doubtful $ref"
}

gone_for_good() {
	# The time that a client waits for a daemon that does not come back.
	local said=0 wanted timeout_ms=10000
	failing fdatasync EIO 1+
	update refs/heads/late "$two"
	is 'no journal any more: the answer' unknown "$status"
	[ "$status" = unknown ] || { mended; return; }
	reap "$tracer"
	reap "$DAEMON" || said=$?
	is 'no journal any more: the daemon ends' 74 $said
	check 'and comes back' start_daemon --config "$T/config"
	wanted=
	[ "$(ask)" != committed ] || wanted=$two
	is "which says: $(ask)" "$wanted" "$(at refs/heads/late)"
	no_litter 'started again'
}

# All published refs there may be lost. They are redone before the next update,
# however late the next checkpoint is.
barrier_fails() { # ERRNO WANTED
	local before what="syncfs $1"
	three=$(new_commit repo.git "$what" "$two")
	before=$(at refs/heads/a)
	failing syncfs "$1"
	# In this mode no record contains the object.
	GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=refd.durability \
		GIT_CONFIG_VALUE_0=batch update refs/heads/a "$three"
	mended
	is "$what: the answer" "$2" "$status"
	is "$what: the value" "$before" "$(at refs/heads/a)"
	no_litter "$what"
	update refs/heads/a "$three"
	is "$what: and once more" ok "$status"
	is "$what: its records were redone" 0 \
		"$("$REFD" status -v | sed -n 's/^awaiting_refs: //p')"
}

# ---- a disk without room for writes ----

# A file system in a sparse image on a tmpfs which becomes full. Writes to
# existing pages of the image succeed. All other writes fail, after the write
# call has returned. mkfs makes holes instead of writing zeros, and fallocate
# fills the holes. Blocks are as large as pages: a request of smaller blocks can
# end in the middle of a page.
with_thin_fs() {
	local outer=$T/thin
	FS=$outer/inner
	{
		mkdir "$outer" && mount -t tmpfs -o size=40M thin "$outer" &&
			scenario_mounts+=("$outer") && mkdir "$FS" &&
			mkfs.ext4 -q -F -m 0 -b 4096 -E \
				nodiscard,lazy_itable_init=0,lazy_journal_init=0 \
				"$FS.img" 24M && fallocate -l 24M "$FS.img" &&
			mount -o loop "$FS.img" "$FS" &&
			scenario_mounts+=("$FS") && single_pages
	} >/dev/null 2>"$T/err" && return
	skip thin "no file system made: $(head -n 1 "$T/err")"
	return 1
}

# Makes each request to the loop device one page. If the image has room for the
# first pages of a longer request alone, the loop device writes these pages, and
# reports success for the whole request (seen with Linux 6.18). A flush reports
# success too. No program can notice that the other pages are lost.
single_pages() {
	local device
	device=$(findmnt -n -o SOURCE "$FS") || return
	request_limit=/sys/block/${device#/dev/}/queue/max_sectors_kb
	request_kb=$(cat "$request_limit") && echo 4 >"$request_limit"
}

# The device keeps the limit for the next user.
any_pages() {
	local status=$?
	[ -z "${request_kb:-}" ] || echo "$request_kb" >"$request_limit"
	request_kb=
	return $status
}
trap 'any_pages; scenario_cleanup' EXIT

thin_disk() {
	local i n failed=() acked=() asked=() bad=0 outer
	with_thin_fs || return
	outer=${FS%/inner}
	STATE=$FS/state
	# Made while there is no more than this, the WAL has next to no room.
	check 'thin: the journal is made' start_daemon --config "$T/config"
	check 'thin: and closed' stop_daemon
	dd if=/dev/zero of="$FS/filler" bs=4k 2>/dev/null
	truncate -s -100k "$FS/filler"
	sync -f "$FS"
	check 'thin: the daemon starts' start_daemon --config "$T/config"
	rm "$FS/filler"
	sync -f "$FS"
	prepare "$T/thin.git"
	if ! fstrim "$FS" 2>"$T/err"; then
		skip thin "no fstrim: $(head -n 1 "$T/err")"
		return
	fi
	dd if=/dev/zero of="$outer/filler" bs=4k 2>/dev/null
	# The room ends in the middle of an update.
	truncate -s -20k "$outer/filler"
	for ((i = 0; i < 12; i++)); do
		update "refs/heads/thin$i" "$two"
		[ "$status" != ok ] || acked+=("$id")
		[ "$status" = ok ] || failed+=("$i $id $status")
	done
	echo "# ${#failed[@]} of 12 failed: ${failed[*]##* }"
	check 'thin: syncs have failed' test ${#failed[@]} -gt 0
	check 'thin: the daemon lives' kill -0 "$DAEMON"
	rm "$outer/filler"
	any_pages
	# A failed update has not happened, or is there.
	for i in ${failed[@]+"${failed[@]}"}; do
		read -r n id status <<<"$i"
		asked+=("$(ask)")
		case $(ask),$(at "refs/heads/thin$n") in
		committed,"$two" | rejected, | never-seen,) ;;
		*) bad=$((bad + 1)) ;;
		esac
	done
	is "thin: by their ids: ${asked[*]}" 0 $bad
	update refs/heads/thinner "$two"
	is 'thin: room again' ok "$status"
	kill -STOP "$DAEMON"
	"$BUILD/tests/helper/shutdown_fs" nologflush "$FS"
	kill_daemon 2>/dev/null
	umount "$FS" && mount -o loop "$FS.img" "$FS"
	check 'thin: started after a cut' start_daemon --config "$T/config"
	for id in ${acked[@]+"${acked[@]}"}; do
		[ "$(ask)" = committed ] || not_ok "thin $id" \
			"it was acknowledged, and now it is $(ask)"
	done
	bad=0
	for i in ${failed[@]+"${failed[@]}"}; do
		read -r n id status <<<"$i"
		case $(ask),$(at "refs/heads/thin$n") in
		committed,"$two" | rejected, | never-seen,) ;;
		*) bad=$((bad + 1)) ;;
		esac
	done
	is 'thin: after the cut, by their ids' 0 $bad
	check 'thin: the daemon stops' stop_daemon
}

if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	one_by_one
	unfinished
	doubtful refs/heads/d "$one" refs/heads/d "$one"
	doubtful refs/heads/packed/g '' -d refs/heads/packed/g
	gone_for_good 2>/dev/null
	barrier_fails EIO io
	barrier_fails ENOSPC nospace
	barrier_fails EDQUOT nospace
	check 'the daemon stops' stop_daemon
else
	skip failures 'no strace, or it may not trace'
fi
thin_disk
finish
