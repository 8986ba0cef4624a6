#!/bin/bash
# Proves that no user can keep other users from history. Eight connections ask
# hundreds of the slowest questions at the same time, and a question of another
# connection is answered in its turn. Questions of closed connections are not
# answered at all. New rows are indexed meanwhile.

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
# Eight connections with 200 questions each. "once": that is all. "keep": each
# answer is followed by a new question, for as long as standard input stays
# open. Meanwhile others ask NUMBER short questions, one after the other. The
# program prints how many answers the eight got before such a question was
# answered (the median, and the most), and the milliseconds from one answer of
# the eight to the next. The first two numbers do not depend on the speed of the
# machine. After 400 answers, a question counts as answered.
cat >"$T/hammer.py" <<'PYTHON'
import select, sys, time
sys.path.insert(0, sys.argv[1])
from raw import Client
_, _, path, how, number = sys.argv
hostile = ["ref refs/heads/*" + "a" * (400 + i) + "?b" for i in range(16)]
clients = [Client(path) for _ in range(8)]
sent = [[c.send("log", hostile) for _ in range(200)] for c in clients]
print("sent", flush=True)
if how == "once":
    sys.exit()
answered, before = 0, []
began = time.monotonic()

def ask():
    client = Client(path)
    return client, client.send("log", ["limit 1", "reverse"]), answered

other, question, since = ask()
while True:
    ready = select.select([c.file for c in clients] + [other.file, sys.stdin],
                          [], [])[0]
    for c, ids in zip(clients, sent):
        if c.file in ready:
            c.wait(ids.pop(0))
            answered += 1
            ids.append(c.send("log", hostile))
    waits_long = answered - since > 400
    if other.file in ready or waits_long:
        assert waits_long or other.wait(question)[0] == "records"
        before.append(answered - since)
        if len(before) == int(number) or waits_long:
            print(sorted(before)[len(before) // 2], max(before),
                  round((time.monotonic() - began) * 1000 / answered),
                  flush=True)
        other, question, since = ask()
    if sys.stdin in ready:
        break
print(answered)
PYTHON

hammer() { # keep|once NUMBER
	python3 "$T/hammer.py" "$ROOT/tests/python" "$SOCKET" "$@"
}

mkfifo "$T/in"
hammer keep 30 <"$T/in" >"$T/out" 2>"$T/err" &
own $!
exec 8>"$T/in"
counts() {
	sed -n 2p "$T/out" | grep .
}
await 60 counts >"$T/counts"
read -r median most pace <"$T/counts"
# In the order of the questions, 1,600 would be answered before.
check "others are answered after ${median:-no} answers, at most ${most:-no}" \
	test "${median:-400}" -lt 40 -a "${most:-400}" -lt 200
lsn_of() { # last|indexed
	"$REFD" status -v | sed -n "s/^$1_lsn: //p"
}
is_indexed() { # LSN
	[ "$(lsn_of indexed)" -ge "$1" ]
}
many 8000
check 'and what is new is indexed' await 60 is_indexed "$(lsn_of last)"
exec 8>&-
wait "${scenario_pids[-1]}"
check 'so are the many' test "$(tail -n 1 "$T/out")" -gt 0

# The time of a quarter of these questions, and at least ten seconds.
limit=$((${pace:-0} * 400))
[ "$limit" -ge 10000 ] || limit=10000
cat >"$T/ask.py" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
from raw import Client
kind, _ = Client(sys.argv[2]).ask("log", ["limit 1", "reverse"])
assert kind == "records", kind
PYTHON
now_ms() {
	awk '{ print int($1 * 1000) }' /proc/uptime
}
within_limit() { # NAME COMMAND...
	local begun took name=$1
	shift
	begun=$(now_ms)
	check "$name" "$@"
	took=$(($(now_ms) - begun))
	check "$name: $took ms of $limit" test "$took" -lt "$limit"
}
hammer once 0 >"$T/out" 2>"$T/err"
within_limit 'those of clients that are gone keep nobody waiting' \
	python3 "$T/ask.py" "$ROOT/tests/python" "$SOCKET"
within_limit 'it stops' stop_daemon
finish
