#!/bin/bash
# Proves that history is fast with ten million records. Look-ups by ref,
# repository, user, time and transaction take milliseconds. Building the index
# and trimming old rows do not slow down commits.
#
# Takes some minutes and about 6 GB below TMPDIR. RECORDS=N for fewer records.
. "$(dirname "$0")/../lib/scenario.sh"
RECORDS=${RECORDS:-10000000}

start_daemon
new_repo a.git bare
cd "$T" || exit 1
commit=$(new_commit a.git 1)
"$REFD" update --git-dir a.git refs/heads/main "$commit"
stop_daemon

SECONDS=0
check "filled" "$BUILD/tests/helper/fill_journal" "$STATE" "$RECORDS" \
	"$T/a.git"
echo "# filled in $SECONDS s: $(du -m "$STATE/journal.db" | cut -f1) MB"

# Keeps all history; then only 1 MiB, so that history is trimmed.
configure() { # MIB
	printf '[journal]\n\tretention = 3650 days\n\tretention-size = %sMiB\n' "$1"
}
configure 1000000 >config
start_daemon --config "$T/config"

# Prints the milliseconds of the slowest of a thousand successive updates, and
# of the median.
commits() {
	python3 - "$REFD" "$T/a.git" "$commit" <<'PYTHON'
import subprocess, sys, time
refd, repo, commit = sys.argv[1:]
p = subprocess.Popen([refd, 'update', '--git-dir', repo, '--stdin'],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
took = []
for n in range(300):
    t = time.monotonic()
    for line in ('start', f'update refs/heads/c{n % 7} {commit}', 'commit'):
        print(line, file=p.stdin, flush=True)
    p.stdout.readline(), p.stdout.readline()
    took.append((time.monotonic() - t) * 1000)
p.stdin.close()
took.sort()
print(f'middle {took[len(took)//2]:.1f} ms, 99th {took[len(took)*99//100]:.1f} ms, slowest {took[-1]:.1f} ms')
PYTHON
}

status() { "$REFD" status -v | sed -n "s/^$1: //p"; }

SECONDS=0
echo "# commits while it is indexed: $(commits)"
last=$(status last_lsn)
until [ "$(status indexed_lsn)" -ge "$last" ]; do
	sleep 1
	[ $SECONDS -lt 3000 ] || break
done
echo "# indexed in $SECONDS s: $(du -m "$STATE/history.db" | cut -f1) MB"
check 'indexed' test "$(status indexed_lsn)" -ge "$last"
echo "# commits with nothing beside them: $(commits)"

# ok if COMMAND finds NUMBER lines in less than LIMIT milliseconds, in the best
# of three runs. The time includes the program's start, and git's answer about a
# time.
LIMIT=250
quickly() { # NAME NUMBER COMMAND...
	local name=$1 number=$2 found best=99999999 from took _
	shift 2
	for _ in 1 2 3; do
		from=$(date +%s%N)
		found=$("$@" | wc -l)
		took=$((($(date +%s%N) - from) / 1000))
		[ $took -ge $best ] || best=$took
	done
	echo "# $name: $((best / 1000)).$((best / 100 % 10)) ms"
	[ "$found" = "$number" ] ||
		not_ok "$name" "wanted $number, found $found"
	check "$name" test $best -lt $((LIMIT * 1000))
}

txid=$("$REFD" log --repo a.git --ref refs/heads/rare -n 1 --json |
	sed 's/.*"txn":"\([0-9a-f]*\)".*/\1/')
quickly 'a rare ref of a repository' 10 \
	"$REFD" log --repo a.git --ref refs/heads/rare
quickly 'a rare ref of any repository' 10 \
	"$REFD" log --ref refs/heads/rare
quickly 'a pattern' 10 "$REFD" log --repo a.git --ref 'refs/heads/ra*'
quickly 'a busy ref, the last hundred' 100 \
	"$REFD" log --repo a.git --ref refs/heads/b0 -n 100
quickly 'a repository, the last hundred' 100 "$REFD" log --repo a.git -n 100
quickly 'a repository, the first hundred' 100 \
	"$REFD" log --repo a.git --reverse -n 100
quickly 'a user' 20 "$REFD" log --user seldom
quickly 'a uid' 20 "$REFD" log --user 4242
quickly 'a transaction' 1 "$REFD" log --txid "$txid"
quickly 'an hour, three days ago' 100 "$REFD" log --since '73 hours ago' \
	--until '72 hours ago' -n 100
quickly 'what there is not' 0 "$REFD" log --repo a.git --ref refs/heads/none

# ---- trimming, beside commits ----

stop_daemon
configure 1 >config
start_daemon --config "$T/config"
echo "# commits while it is trimmed: $(commits)"
check 'trimmed meanwhile' test "$(status trimmed_lsn)" -gt 1000
"$REFD" status -v | grep lsn | sed 's/^/# /'
finish
