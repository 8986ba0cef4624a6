#!/bin/bash
# Proves that kill -9 loses and repeats no change, under pushes and under
# `refd update` by clients that count. The daemon is killed again and again;
# hooks, receive-packs and clients are killed, too. Every reported change
# happened once, and no other change happened. Refs, reflogs, journal and
# reports agree (tests/lib/push_count.py describes the comparison).
#
# SECONDS_OF_IT and SEED select the run; tests/long/push_count.sh runs it for
# long, with a new seed.
# Slow: it kills the daemon again and again.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

seconds=${SECONDS_OF_IT:-6}
seed=${SEED:-1}
pushers=3
updaters=2
most=$((40 + seconds * 30)) # turns of a client

check 'the daemon starts' start_daemon
new_repo work
new_repo server.git bare
git -C "$T/server.git" config core.logAllRefUpdates true
git -C "$T/server.git" config receive.denyDeletes false
# As many values as any client can use, in both repositories.
{
	for ((i = 0; i < most; i++)); do
		printf 'commit refs/heads/values\n'
		printf 'committer A <a@example.com> %d +0000\ndata 1\nx\n' $i
	done
} | git -C "$T/work" fast-import --quiet
git -C "$T/work" log --format=%H refs/heads/values >"$T/work/values"
git -C "$T/work" push -q "$T/server.git" refs/heads/values:refs/tags/values
"$REFD" enable --socket "$SOCKET" "$T/server.git" >/dev/null
# A push without a daemon must not go to git: the journal would miss it.
git -C "$T/server.git" config refd.fallback refuse

# Every other time just when the journal was written: about when a client is
# answered.
kill_at_commit() {
	python3 -c '
import os, sys, time
pid, wal = int(sys.argv[1]), sys.argv[2]
was, until = os.stat(wal).st_mtime_ns, time.monotonic() + 0.5
while os.stat(wal).st_mtime_ns == was and time.monotonic() < until:
    pass
time.sleep(int(sys.argv[3]) / 1e4)
os.kill(pid, 9)' "$DAEMON" "$STATE/journal.db-wal" $((RANDOM % 40))
	kill_daemon
}

echo "# seed $seed"
python3 "$ROOT/tests/lib/push_count.py" "$REFD" "$T/work" "$T/server.git" \
	$pushers $updaters "$seconds" "$seed" >"$T/counted" 2>&1 &
counter=$!
own $counter
kills=0
RANDOM=$seed
until [ -e "$T/work/done" ] || ! kill -0 $counter 2>/dev/null; do
	sleep "0.$((RANDOM % 6))$((RANDOM % 10))"
	if [ $((kills % 2)) -eq 0 ]; then kill_daemon; else kill_at_commit; fi
	kills=$((kills + 1))
	# shellcheck disable=SC2119
	start_daemon || break
done
check 'all was counted' reap $counter
echo "# the daemon was killed $kills times; $(head -n 1 "$T/counted")"
is 'no change is missing, none is there twice, none is other than was told' '' \
	"$(sed 1d "$T/counted" | head -n 20)"
check 'there were pushes and updates' \
	grep -q '\bok [1-9].*pushes [1-9].*updates [1-9]' "$T/counted"
no_locks 'no lock is left' server.git
is 'nothing is left in the stage' '' \
	"$(find "$T/server.git/refd/stage" -type f)"
check 'git fsck' git -C "$T/server.git" fsck --no-dangling --no-progress \
	2>/dev/null
finish
