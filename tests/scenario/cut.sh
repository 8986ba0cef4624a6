#!/bin/bash
# Proves that real power losses lose no acknowledged update. Repositories and
# journal lie on loop-mounted file systems that are shut down (FS_IOC_SHUTDOWN)
# in the middle of the load: once with a last write of the file system's
# journal, which leaves named but empty refs, and once without. The daemon dies,
# the file systems are mounted again, and recovery runs. Every ref has its
# acknowledged value, or a value that its client had already requested. Symbolic
# refs and HEAD's log are as acknowledged. No ref is empty, deleted refs stay
# deleted, reflogs and objects are whole, and no lock is left.
# Slow: it cuts the power on two file systems.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

branches=200

if [ "$(id -u)" -ne 0 ]; then
	skip cut 'only root can mount'
	finish
fi

# ---- the file systems ----

# $on: where the repository is; $state_on: where the journal is.
mount_both() {
	local fs
	for fs in "$on" ${state_on:+"$state_on"}; do
		mountpoint -q "$fs" || mount -o loop "$fs.img" "$fs" ||
			return 1
	done
}

# The repository's file system stops first, so no answer comes after the power
# loss. In the other order, ext4 may report a flush as done although the
# shutdown prevented it, and the daemon would believe the report. All processes
# are stopped before that, because a machine without power answers nobody: a
# file system in shutdown may still confirm a sync and then drop the data.
cut_power() { # logflush|nologflush
	local fs
	kill -STOP "$DAEMON"
	kill -STOP -- "-$storm" 2>/dev/null
	for fs in "$on" ${state_on:+"$state_on"}; do
		"$BUILD/tests/helper/shutdown_fs" "$1" "$fs" || return 1
	done
	kill_daemon
	# The clients lost their machine too.
	kill -KILL -- "-$storm" 2>/dev/null
	reap "$storm"
	for fs in ${state_on:+"$state_on"} "$on"; do
		umount "$fs" && is_gone "$fs" || return 1
	done
}

# If the file system lives on in another namespace, the next mount shows the
# same file system, and every call fails.
is_gone() { # FILE-SYSTEM
	await 5 has_no_device "$1.img" && return
	echo "# somebody else has $1 still mounted"
	return 1
}

has_no_device() { # IMAGE
	[ -z "$(losetup -j "$1")" ]
}

# ---- before the power loss ----

prepare() {
	local i
	git init -q --bare "$repo"
	git -C "$repo" config core.logAllRefUpdates always
	"$REFD" enable --socket "$SOCKET" "$repo" >/dev/null
	# So many commits that no two lines of a reflog are equal: recovery
	# counts lines, and cannot tell equal lines apart.
	for ((i = 1; i <= 2000; i++)); do
		printf 'commit refs/heads/values\nmark :%d\n' "$i"
		printf 'committer A U Thor <author@example.com> %d +0000\n' "$i"
		printf 'data 0\n'
	done | git -C "$repo" fast-import --quiet --export-marks="$T/marks"
	mapfile -t values < <(cut -d' ' -f2 "$T/marks")
	git -C "$repo" update-ref refs/heads/main "${values[0]}"
	# refd does not promise the creation of a repository.
	sync -f "$repo"
}

# In a separate process group, so that all of its processes can be ended.
start_storm() {
	setsid "$BUILD/tests/helper/storm" --socket "$SOCKET" --repo "$repo" \
		--clients 4 --refs 5 --txns 100000 --log "$T/log" \
		--prefix "refs/heads/storm$round" \
		"${values[@]/#/--oid=}" >"$T/storm" 2>&1 &
	storm=$!
	own "$storm"
}

# A push with new objects, moves, and deletions of packed refs.
push_and_delete() {
	local i
	rm -rf "$T/work"
	git init -q "$T/work"
	git -C "$T/work" commit -q --allow-empty -m "pushed in round $round"
	pushed=$(git -C "$T/work" rev-parse HEAD)
	for ((i = 0; i < branches; i++)); do
		echo "create refs/heads/pushed$round/$i $pushed"
	done | git -C "$T/work" update-ref --stdin
	for ((i = 0; i < 40; i++)); do
		echo "create refs/heads/gone$round/$i ${values[1]}"
	done | "$REFD" update -C "$repo" --stdin &&
	git -C "$repo" pack-refs --all --prune 2>/dev/null
	git -C "$T/work" push -q "$repo" "refs/heads/pushed$round/*" \
		2>"$T/push.err" || { cat "$T/push.err"; return 1; }
	for ((i = 0; i < 40; i++)); do
		echo "delete refs/heads/gone$round/$i"
	done | "$REFD" update -C "$repo" --stdin
}

# Updates HEAD's branch through HEAD, and a symbolic ref.
follow() {
	"$REFD" update -C "$repo" -m "round $round" HEAD "${values[round]}" &&
	echo "symref-update refs/heads/way$round refs/heads/main" |
		"$REFD" update -C "$repo" --no-deref -m way --stdin
}

# Many at once and without logs, so that they go to packed-refs.
make_many() {
	local i
	for ((i = 0; i < 300; i++)); do
		echo "create refs/heads/many$round/$i ${values[2]}"
	done | GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.logAllRefUpdates \
		GIT_CONFIG_VALUE_0=false \
		"$REFD" update -C "$repo" --stdin &&
	test "$(grep -c " refs/heads/many$round/" "$repo/packed-refs")" -eq 300
}

# ---- after the power loss ----

# The value of each ref of the storm is the last logged value, or the next.
storm_refs() {
	printf '%s\n' "${values[@]}" >"$T/values"
	git -C "$repo" for-each-ref "refs/heads/storm$round" \
		--format='%(refname) %(objectname)' >"$T/there"
	awk 'FILENAME == ARGV[1] { place[$1] = n++; next }
		FILENAME == ARGV[2] { at[$1] = place[$2]; has[$1] = 1; next }
		{ acked[$1] = place[$2] }
		END {
			for (ref in acked)
				if (!has[ref])
					print ref " is not there"
				else if (at[ref] != acked[ref] &&
					at[ref] != (acked[ref] + 1) % n)
					print ref " is at " at[ref] \
						", acknowledged " acked[ref]
		}' "$T/values" "$T/there" <(grep "/storm$round/" "$T/log")
}

# Every line is whole and begins where the line before ended. The last line ends
# at the ref's value. There are as many lines as acknowledgements, or one more.
storm_logs() {
	local ref value log
	grep "/storm$round/" "$T/log" | cut -d' ' -f1 | sort | uniq -c |
		awk '{ print $2, $1 }' >"$T/counts"
	while read -r ref value; do
		log=$repo/logs/$ref
		awk -v ref="$ref" -v value="$value" \
			-v acked="$(awk -v r="$ref" '$1 == r { print $2 }' \
				"$T/counts")" '
		!/^[0-9a-f]+ [0-9a-f]+ .* <.*> [0-9]+ [-+][0-9]+\tstorm$/ ||
		(NR > 1 && $1 != end) { print ref ": line " NR ": " $0 }
		{ end = $2 }
		END {
			if (end != value)
				print ref ": its log ends elsewhere"
			if (NR != acked && NR != acked + 1)
				print ref ": " NR " lines, " acked " acked"
		}' "$log" 2>&1
	done <"$T/there"
}

damage() {
	find "$repo/refs" -name '*.lock' -prune -o -type f \
		\( -empty -o -exec grep -qaP '\x00' {} \; \) -print | wc -l
}

recover() {
	if [ $((round % 2)) -eq 1 ]; then
		"$REFD" recover --state "$STATE" --root "$on" >"$T/found" 2>&1
		check "$name: refd recover" test $? -le 1
		head -n 3 "$T/found" | sed 's/^/# /'
	fi
	check "$name: the daemon recovers and serves" start_daemon
}

round() { # logflush|nologflush
	local acked broken saved
	round=$((round + 1))
	name="$fs_type, journal ${state_on:+not }on the same, $1"
	: >"$T/log"
	check "$name: the daemon starts" start_daemon "${options[@]}"
	start_storm
	check "$name: acknowledged a push and deletions" push_and_delete
	check "$name: acknowledged 300 new refs in packed-refs" make_many
	check "$name: acknowledged an update of HEAD, and a symref" follow
	cut_power "$1" || { not_ok "$name: cut" 'could not be done'; return; }
	acked=$(wc -l <"$T/log")
	check "$name: mounted again" mount_both
	broken=$(damage)
	echo "# $acked updates acknowledged, $broken refs empty or broken"
	rm -rf "$repo/refd/saved"
	recover
	saved=$(find "$repo/refd/saved" -type f 2>/dev/null | wc -l)
	[ "$broken" -eq 0 ] || check "$name: some are saved as evidence" \
		test "$saved" -gt 0
	is "$name: nothing acknowledged is missing" '' "$(storm_refs)"
	is "$name: the reflogs are whole" '' "$(storm_logs | head -n 5)"
	is "$name: the push is there" "$branches" \
		"$(git -C "$repo" for-each-ref "refs/heads/pushed$round" \
			--format='%(objectname)' | grep -c "$pushed")"
	is "$name: the 300 new refs are there" 300 \
		"$(git -C "$repo" for-each-ref "refs/heads/many$round" \
			--format='%(objectname)' | grep -c "${values[2]}")"
	is "$name: what HEAD points to was written" "${values[round]}" \
		"$(git -C "$repo" rev-parse refs/heads/main)"
	is "$name: HEAD's log tells of it, once" 1 \
		"$(grep -c "round $round\$" "$repo/logs/HEAD")"
	is "$name: and so does the branch's" 1 \
		"$(grep -c "round $round\$" "$repo/logs/refs/heads/main")"
	is "$name: the symbolic ref leads on" "refs/heads/main" \
		"$(git -C "$repo" symbolic-ref "refs/heads/way$round")"
	prints_nothing "$name: the deleted stay deleted" \
		git -C "$repo" for-each-ref "refs/heads/gone$round"
	is "$name: no ref is empty or broken" 0 "$(damage)"
	check "$name: git fsck" git -C "$repo" fsck --no-dangling 2>/dev/null
	no_locks "$name: no lock is left" "${repo#"$T/"}"
	check "$name: it serves on" "$REFD" update -C "$repo" \
		"refs/heads/after$round" "${values[2]}"
	check "$name: the daemon stops" stop_daemon
}

cut_on() { # FILE-SYSTEM SIZE [STATE-FILE-SYSTEM SIZE]
	fs_type=$1
	with_fs "$1" "$2" || return
	on=$FS
	state_on=
	options=(--socket "$SOCKET")
	if [ -n "${3:-}" ]; then
		with_fs "$3" "$4" || return
		state_on=$FS
		# No checkpoint comes before the power loss.
		printf '[checkpoint]\n\tinterval = 10min\n' >"$T/config"
		options=(--config "$T/config")
	fi
	STATE=${state_on:-$on}/state
	repo=$on/repo.git
	prepare
	round nologflush
	round logflush
}

round=0
cut_on ext4 96M
cut_on ext4 96M ext4 64M
cut_on xfs 300M
cut_on xfs 300M ext4 64M
finish
