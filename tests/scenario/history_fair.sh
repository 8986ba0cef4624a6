#!/bin/bash
# Proves that no user can keep other users from history. Eight connections ask
# hundreds of the slowest questions at the same time, and all other users are
# answered within a second. Questions of closed connections are not answered at
# all. New rows are indexed meanwhile.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

new_repo r.git bare
R=$T/r.git
start_daemon || exit 1

# Rows of many names: each pattern of a question is compared with all names.
long=$(printf 'a%.0s' {1..230})
many() { # FIRST
	local i oid
	oid=$(new_commit r.git one)
	for ((i = $1; i < $1 + 4000; i++)); do
		echo "create refs/heads/$long/$long/$long/$i $oid"
	done | "$REFD" update --git-dir "$R" --stdin
}
check 'many refs' many 0
check 'and more' many 4000

export PYTHONPATH=$ROOT/client/python
# Eight connections with 200 questions each, for as long as standard input stays
# open, or once (and then closed); prints a line when all questions were sent.
cat >"$T/hammer.py" <<'PYTHON'
import select, sys
sys.path.insert(0, sys.argv[1])
from raw import Client
_, _, path, repo, how = sys.argv
hostile = ["ref refs/heads/*" + "a" * (400 + i) + "?b" for i in range(16)]
clients = [Client(path) for _ in range(8)]
sent = [[c.send("log", hostile) for _ in range(200)] for c in clients]
print("sent", flush=True)
if how == "once":
    sys.exit()
answered = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    ready = select.select([c.file for c in clients] + [sys.stdin], [], [])[0]
    for c, ids in zip(clients, sent):
        if c.file in ready:
            c.wait(ids.pop(0))
            answered += 1
            ids.append(c.send("log", hostile))
print(answered)
PYTHON
# The median and the longest time of a number of short questions, in
# milliseconds.
cat >"$T/ask.py" <<'PYTHON'
import sys, time
sys.path.insert(0, sys.argv[1])
from raw import Client
took = []
for i in range(int(sys.argv[3])):
    begin = time.monotonic()
    kind, _ = Client(sys.argv[2]).ask("log", ["limit 1", "reverse"])
    took.append(round((time.monotonic() - begin) * 1000))
    assert kind == "records", kind
print(sorted(took)[len(took) // 2], max(took))
PYTHON

hammer() { # keep|once
	python3 "$T/hammer.py" "$ROOT/tests/python" "$SOCKET" "$R" "$1"
}

# The bound on the longest time has room for a busy machine.
answered() { # NAME NUMBER
	local median longest
	read -r median longest < <(timeout 60 python3 "$T/ask.py" \
		"$ROOT/tests/python" "$SOCKET" "$2")
	check "$1: ${median:-no answer} ms, at most ${longest:-60000}" \
		test "${median:-60000}" -lt 1000 -a "${longest:-60000}" -lt 5000
}

mkfifo "$T/in"
hammer keep <"$T/in" >"$T/out" 2>"$T/err" &
own $!
exec 8>"$T/in"
await 30 grep -q sent "$T/out"
answered 'others are answered meanwhile' 30
lsn_of() { # last|indexed
	"$REFD" status -v | sed -n "s/^$1_lsn: //p"
}
is_indexed() { # LSN
	[ "$(lsn_of indexed)" -ge "$1" ]
}
many 8000
check 'and what is new is indexed' await 10 is_indexed "$(lsn_of last)"
exec 8>&-
wait "${scenario_pids[-1]}"
check 'so are the many' test "$(tail -n 1 "$T/out")" -gt 0

hammer once >"$T/out" 2>"$T/err"
answered 'those of clients that are gone keep nobody waiting' 1
begin=$SECONDS
check 'it stops' stop_daemon
check 'at once' test $((SECONDS - begin)) -lt 10
finish
