#!/bin/bash
# Proves recovery from a hundred thousand records without a checkpoint, after a
# power loss. The test measures time and memory, and checks the reports of
# progress. Recovery may be killed halfway, and interrupted by a power loss
# halfway, and then finishes. Every acknowledged ref is there, with its value
# and its log line.
#
# Takes some minutes and 3 GB below TMPDIR. RECORDS=N for fewer records.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
RECORDS=${RECORDS:-100000}
CLIENTS=20

if ! with_fs "${FS_KIND:-ext4}" 8G; then
	finish
fi
SERVED=$FS
STATE=$FS/state
repo=$FS/repo.git

cat >"$T/config" <<'CONFIG'
[checkpoint]
	interval = 1h
CONFIG

# Does not wait until the daemon serves: the test observes its recovery.
begin_daemon() {
	"$REFD" daemon --socket "$SOCKET" --state "$STATE" --root "$SERVED" \
		--config "$T/config" >>"$LOG" 2>&1 </dev/null &
	DAEMON=$!
	own "$DAEMON"
}

# A machine without power answers nobody.
cut_power() {
	kill -STOP "$DAEMON"
	"$BUILD/tests/helper/shutdown_fs" nologflush "$FS"
	kill_daemon 2>/dev/null
	umount "$FS"
	for _ in {1..50}; do
		[ -n "$(losetup -j "$FS.img")" ] || break
		sleep 0.1
	done
	mount -o loop "$FS.img" "$FS"
}

# Waits until the daemon reports that half of the work is done.
half_way() {
	local seen of total
	for _ in {1..3000}; do
		read -r seen of total < <("$REFD" status -v 2>/dev/null |
			sed -n 's/^progress: //p')
		if [ "${of:-}" = of ] && [ "$total" -gt "$RECORDS" ] &&
			[ $((2 * seen)) -ge "$total" ]; then
			echo "# stopped at $seen of $total"
			return 0
		fi
		sleep 0.02
	done
	return 1
}

# ---- the records ----

git init -q --bare "$repo"
git -C "$repo" config core.logAllRefUpdates always
commit=$(git -C "$repo" commit-tree -m x \
	"$(git -C "$repo" mktree </dev/null)")
sync -f "$FS"
check 'the daemon starts' start_daemon --config "$T/config"
SECONDS=0
check 'a record for each ref' "$BUILD/tests/helper/storm" --socket "$SOCKET" \
	--repo "$repo" --oid "$commit" --create --clients $CLIENTS \
	--txns $((RECORDS / CLIENTS)) --refs 1 --timeout 60000 \
	--log "$T/acked" >"$T/storm"
acked=$(wc -l <"$T/acked")
echo "# $acked refs acknowledged in $SECONDS s; a journal of" \
	"$(du -cm "$STATE"/journal* | tail -n 1 | cut -f1) MB"
is 'all of them acknowledged' $((RECORDS / CLIENTS * CLIENTS)) "$acked"
cut_power
echo "# $(git -C "$repo" for-each-ref 2>/dev/null | wc -l) refs left by the cut"

# ---- recovery, in three goes ----

begin_daemon
check 'half-way' half_way
kill_daemon 2>/dev/null
begin_daemon
check 'half-way again' half_way
cut_power
begin_daemon
SECONDS=0
check 'it serves in the end' "$REFD" ping --wait 600 2>/dev/null
memory=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$DAEMON/status")
grep -o 'event=recovered .*' "$LOG" | sed 's/^/# /'
echo "# $((memory / 1024)) MB at most"
check 'within two minutes, of a busy machine too' test $SECONDS -lt 120
check 'in less than 4 KB for each record, and 100 MB' \
	test "$memory" -lt $((4 * RECORDS + 100 * 1024))
check 'it told how far it was' grep -q 'event=recovering done=[0-9]* total=[0-9]*' "$LOG"
grep -o 'event=recovering done=[0-9]* total=[0-9]*' "$LOG" | sed 's/^/# /'

# ---- refs and logs ----

sort "$T/acked" >"$T/wanted"
git -C "$repo" for-each-ref --format='%(refname) %(objectname)' \
	refs/heads/storm | sort >"$T/found"
is 'every acknowledged ref' '' "$(diff "$T/wanted" "$T/found" | head -n 3)"
is 'each with its log, of one line' '' "$(cd "$repo/logs" &&
	cut -d' ' -f1 "$T/wanted" | xargs wc -l |
	awk '$1 != 1 && $2 != "total"' | head -n 3)"
prints_nothing 'no lock' find "$repo" -name '*.lock'
check 'and it serves on' "$REFD" update --git-dir "$repo" refs/heads/on \
	"$commit"
check 'the daemon stops' stop_daemon
finish
