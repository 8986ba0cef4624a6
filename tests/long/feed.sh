#!/bin/bash
# Proves that a reader of the feed misses none of a million changes, although
# reader and daemon are killed again and again. The reader continues at its last
# position.
#
# Takes some minutes if renames are cheap (TMPDIR on a tmpfs), much longer
# elsewhere. TRANSACTIONS=N sets the number of transactions, with a thousand
# changes each.
. "$(dirname "$0")/../lib/scenario.sh"
TRANSACTIONS=${TRANSACTIONS:-1000}
REFS=1000

start_daemon
new_repo a.git bare
cd "$T" || exit 1
one=$(new_commit a.git 1)
other=$(new_commit a.git 2)

# Sends each transaction until its commit is known.
cat >writer.py <<'PYTHON'
import os, subprocess, sys, time
refd, repo, transactions, refs, *values = sys.argv[1:]
made = open('made', 'w')
for n in range(int(transactions)):
    txid = '%012x%s' % (int(time.time() * 1000), os.urandom(10).hex())
    text = ''.join(f'update refs/heads/r{i} {values[n % 2]}\n'
        for i in range(int(refs)))
    while True:
        p = subprocess.run([refd, 'update', '--git-dir', repo, '--txid', txid,
            '--stdin'], input=text, text=True, stderr=subprocess.DEVNULL)
        if p.returncode == 0:
            break
        time.sleep(0.1)
    print(txid, file=made, flush=True)
print('end', file=made, flush=True)
PYTHON

# Reads some changes, is killed (unhandled changes are lost), reads on.
cat >reader.py <<'PYTHON'
import json, random, subprocess, sys
refd, refs = sys.argv[1], int(sys.argv[2])
position, seen, told, restarts, gaps = '0', {}, 0, 0, 0
random.seed(1)

def is_complete():
    lines = open('made').read().split()
    return lines[-1:] == ['end'] and \
        all(len(seen.get(t, ())) == refs for t in lines[:-1])

while True:
    p = subprocess.Popen([refd, 'watch', '--json', '--since', position],
        stdout=subprocess.PIPE, text=True)
    left = random.randrange(1, 60000)
    for line in p.stdout:
        d = json.loads(line)
        if 'gap' in d:
            gaps += 1
        else:
            seen.setdefault(d['txn'], set()).add(d['ref'])
            told += 1
        position = d['position']
        left -= 1
        if left == 0:
            break
        if told % refs == 0 and is_complete():
            break
    p.kill()
    p.wait()
    restarts += 1
    if is_complete():
        break
changes = sum(len(s) for s in seen.values())
print(f'{changes} {told} {restarts} {gaps}')
PYTHON

: >made
python3 writer.py "$REFD" "$T/a.git" "$TRANSACTIONS" $REFS "$one" "$other" &
writer=$!
own $writer
SECONDS=0
timeout 3000 python3 reader.py "$REFD" $REFS >counted &
reader=$!
own $reader
for _ in 1 2 3 4 5 6; do
	sleep 3
	kill_daemon
	start_daemon
done
check 'the reader came to an end' wait $reader
read -r changes times restarts gaps <counted
echo "# $changes changes, told $times times, in $SECONDS s; the reader was" \
	"killed $restarts times, the daemon 6 times"
is 'every change was told' $((TRANSACTIONS * REFS)) "$changes"
is 'without a gap' 0 "$gaps"
finish
