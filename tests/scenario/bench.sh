#!/bin/bash
# Proves that the bench can be trusted. The results of every participant are
# checked afterwards, and a participant that claims too many refs is found out.
# The output is JSON. refd bench measures, and leaves nothing behind.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if ldd "$BUILD/bin/refd-daemon" | grep -qE 'lib(a|t|ub)san'; then
	skip bench 'a sanitizer would be measured'
	finish
fi

export PYTHONDONTWRITEBYTECODE=1

# ---- make bench ----

"$ROOT/scripts/bench" --tiny --only B2 --dir "$T/b" >"$T/out" 2>&1
is 'the smallest run' 0 $?
grep '^without' "$T/out"
check 'its JSON has everybody, each with what was measured' \
	python3 - "$T/b/none.json" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1]))
there = {r["contestant"] for r in report["results"]
         if all(run["p50_us"] > 0 for run in r["runs"])}
wanted = {"git", "git durable", "refd", "refd connected", "sqlite", "raw log",
          "rename floor"}
wanted |= {"redis", "reftable", "reftable durable", "refd reftable",
           "refd connected reftable"} - set(report["missing"])
assert there == wanted, there ^ wanted
assert len(report["flush"]) == 2 and report["claims"]
PYTHON
printf '%s\n' 'before' '<!-- bench: begin -->' '<!-- bench: end -->' 'after' \
	>"$T/page.md"
check 'its page has the plots' \
	python3 - "$ROOT/tests/bench" "$T/b/none.json" "$T/page.md" <<'PYTHON'
import sys, xml.dom.minidom
sys.path.insert(0, sys.argv[1])
import page
page.main([sys.argv[2]], sys.argv[3])
with open(sys.argv[3]) as f:
    text = f.read()
assert text.startswith("before\n<!--") and text.endswith("-->\nafter\n")
assert "(page/transaction.svg)" in text
plot = xml.dom.minidom.parse(sys.argv[3][:-3] + "/transaction.svg")
assert len(plot.getElementsByTagName("path")) >= 14
PYTHON
is 'nothing but that is left' 'none.json none.txt' \
	"$(cd "$T/b" && find . -maxdepth 1 -type f -name '*.*[nt]' \
		-printf '%P\n' | sort | paste -sd ' ')"
prints_nothing 'no directory of a run' find "$T/b" -name 'run.*'

check 'who claims a ref too much is found out' \
	python3 - "$ROOT/tests/bench" "$T/lie" <<'PYTHON'
import sys, time
sys.path.insert(0, sys.argv[1])
import transactions
from contestants import Stage
from place import Place, Unavailable
place = Place(sys.argv[2], "none", 0)
try:
    stage = Stage(place, 0)
    for one in transactions.contestants(stage):
        try:
            turn = one.prepare({"refs": 2})
        except Unavailable:
            continue
        time.sleep(0.15)
        one.warm(turn)
        one.measure(turn)
        one.check(turn)
        turn.parts[0][0]["done"] += 1
        try:
            one.check(turn)
        except RuntimeError:
            one.leave(turn)
            continue
        raise SystemExit(f"{one.name} was believed")
finally:
    place.close()
PYTHON

# ---- refd bench ----

mkdir "$T/here" "$T/there"
"$REFD" bench --dir "$T/here" --state "$T/there" --clients 4 --refs 10 \
	--seconds 1 --json >"$T/json"
is 'refd bench' 0 $?
check 'its JSON' python3 - "$T/json" <<'PYTHON'
import json, sys
said = json.load(open(sys.argv[1]))
assert said["flush"]["done"] == 200
assert said["one"]["done"] > 0
assert [s["clients"] for s in said["storm"]] == [1, 4]
assert [t["refs"] for t in said["transactions"]] == [1, 10]
assert said["open"]["rate"] > 0 and said["open"]["load"]["failed"] == 0
PYTHON
prints_nothing 'it leaves nothing' find "$T/here" "$T/there" -mindepth 1

: >"$T/out" # an earlier run has written the same words
"$REFD" bench --dir "$T/here" --seconds 60 >"$T/out" 2>&1 &
bench=$!
own $bench
await 60 grep -q 'flush of the journal' "$T/out"
kill -TERM $bench
reap $bench
is 'nor when it is interrupted: status' 143 $?
prints_nothing 'nor when it is interrupted: files' find "$T/here" -mindepth 1

# As the daemon under test does after a checkpoint, but all the time.
write_notes() {
	local dir
	while [ ! -e "$T/over" ]; do
		for dir in "$T"/here/*/repo.git/refd; do
			: >"$dir/note.$((RANDOM % 8))"
		done
	done 2>/dev/null
}

start_daemon
write_notes &
own $!
"$REFD" bench --dir "$T/here" --socket "$SOCKET" --clients 1 --refs 1 \
	--seconds 1 >"$T/out" 2>&1
is 'of a daemon that runs' 0 $?
: >"$T/over"
prints_nothing 'it leaves nothing, whatever is written meanwhile' \
	find "$T/here" -mindepth 1
check 'which goes on running' "$REFD" ping --socket "$SOCKET"
"$REFD" bench --dir /dev/shm --socket "$SOCKET" >"$T/out" 2>&1
is 'and does not serve that directory' 128 $?
check 'which is said' grep -q 'below one of its roots' "$T/out"
finish
