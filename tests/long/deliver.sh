#!/bin/bash
# Proves that none of a million deliveries is missing although refd-deliver and
# the daemon are killed again and again; that the repetitions have the id of the
# last delivery of their repository; and that a kill costs at most one
# repetition per repository.
#
# TRANSACTIONS=N sets the number of transactions, with a thousand changes each.
# KILL_EVERY=S sets the seconds between two kills of refd-deliver.

# shellcheck disable=SC2317 # the functions that await calls
# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/deliver.sh
. "$ROOT/tests/lib/deliver.sh"
TRANSACTIONS=${TRANSACTIONS:-1000}
KILL_EVERY=${KILL_EVERY:-2}
REFS=1000
REPOS=16

start_daemon || finish
# All repositories have the same two commits.
export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
for ((i = 0; i < REPOS; i++)); do
	new_repo $i.git bare
	one=$(new_commit $i.git 1)
	other=$(new_commit $i.git 2)
done
start_hook || finish
cat >"$T/deliver.conf" <<CONFIG
[deliver "hook"]
	url = http://127.0.0.1:$HOOK_PORT/
	secretFile = $T/secret
	parallel = $REPOS
	tries = 1000
CONFIG
start_service
check 'the service begins' await 10 has_begun hook

# Sends each transaction until its commit is known.
cat >"$T/writer.py" <<'PYTHON'
import os, subprocess, sys, time
refd, top, repos, transactions, refs, *values = sys.argv[1:]
for n in range(int(transactions)):
    txid = '%012x%s' % (int(time.time() * 1000), os.urandom(10).hex())
    text = ''.join(
        f'update refs/heads/r{i} {values[n // int(repos) % 2]}\n'
        for i in range(int(refs)))
    while subprocess.run([refd, 'update', '--git-dir',
            f'{top}/{n % int(repos)}.git', '--txid', txid, '--stdin'],
            input=text, text=True, stderr=subprocess.DEVNULL).returncode:
        time.sleep(0.1)
PYTHON
SECONDS=0
python3 "$T/writer.py" "$REFD" "$T" $REPOS "$TRANSACTIONS" $REFS \
	"$one" "$other" &
writer=$!
own $writer

wanted=$((TRANSACTIONS * REFS))
kills=0
reads=0
while [ "$(hook_count new)" -lt $wanted ] && [ $SECONDS -lt 3000 ]; do
	sleep "$KILL_EVERY.$((RANDOM % 10))"
	kill_service
	kills=$((kills + 1))
	if [ $((kills % 20)) -eq 10 ]; then
		kill_daemon
		start_daemon
		reads=$((reads + 1))
	fi
	start_service
done
check 'the writer came to an end' wait $writer
reap $writer
took=$SECONDS
again=$(hook_count again)
echo "# $wanted changes, delivered $(hook_count requests) times, $again" \
	"repetitions, in $took s; refd-deliver was killed $kills times, the" \
	"daemon $reads times"
is 'none is missing, none is counted twice' $wanted "$(hook_count new)"
is 'in order, and repetitions have the last id' 0 "$(hook_count disorder)"
is 'all signed' 0 "$(hook_count unsigned)"
check 'a kill repeats at most one delivery per repository' \
	[ "$again" -le $((kills * REPOS)) ]
# The last delivery is recorded a moment later.
is_idle() { [ "$(metric waiting hook)" = 0 ]; }
check 'nothing waits' await 10 is_idle
is 'no dead letters' 0 "$(metric died_total hook)"
is 'no gaps' 0 "$(metric gaps_total hook)"
finish
