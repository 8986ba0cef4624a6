#!/bin/bash
# Proves that the bench can be trusted. The results of every participant are
# checked afterwards, and a participant that claims too many refs is found out.
# The output is JSON.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if ldd "$BUILD/bin/refd-daemon" | grep -qE 'lib(a|t|ub)san'; then
	skip bench 'a sanitizer would be measured'
	finish
fi

export PYTHONDONTWRITEBYTECODE=1

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
mkdir "$T/page"
printf '%s\n' 'before' '<!-- bench: begin -->' '<!-- bench: end -->' 'after' |
	tee "$T/page.md" >"$T/page/notes.md"
check 'its page has figures, and the notes have the plots' \
	python3 - "$ROOT/tests/bench" "$T/b/none.json" "$T/page.md" <<'PYTHON'
import sys, xml.dom.minidom
sys.path.insert(0, sys.argv[1])
import page
page.main([sys.argv[2]], sys.argv[3])
folder = sys.argv[3][:-3]
for path, figure in ((sys.argv[3], "| a transaction of 1 ref, ms |"),
                     (folder + "/notes.md", "(transaction.svg)")):
    with open(path) as f:
        text = f.read()
    assert text.startswith("before\n<!--") and text.endswith("-->\nafter\n")
    assert figure in text, path
plot = xml.dom.minidom.parse(folder + "/transaction.svg")
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
finish
