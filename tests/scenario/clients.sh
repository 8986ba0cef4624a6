#!/bin/bash
# Proves that the Python clients follow the protocol, with the real daemon and
# with broken servers: no answer, lost connection or malformed message becomes
# a success or a failure that the daemon did not report. tests/long/clients.sh
# runs the same cases for Go and Rust.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/clients.sh
. "$ROOT/tests/lib/clients.sh"

clients_begin || finish
runner="python3 -B $ROOT/tests/clients/runner.py $ROOT/client/python"
clients_run "python=$runner blocking" "asyncio=$runner asyncio"

# The sentences of details are those of the protocol, in all clients.
for file in python/refd/details.py go/detail.go rust/src/detail.rs; do
	check "$file has the sentences of PROTOCOL.md" python3 - \
		"$ROOT/proto/PROTOCOL.md" "$ROOT/client/$file" <<-'PYTHON'
		import re, sys
		protocol, client = (open(f, encoding="utf-8").read() for f in sys.argv[1:])
		details = protocol.split("\n### Details\n")[1].split("\n### ")[0]
		lines = []
		for word, names, said in re.findall(
		        r"^\| `([a-z-]+)` \| (.+?) \| (.+) \|$", details, re.M):
		    said = said.split(" (and an empty")[0].split(" (likewise")[0]
		    for nr, name in enumerate(names.split(", "), 1):
		        said = said.replace(f"*{name}*", f"%{nr}")
		    lines.append(f"{word}: {said}")
		assert len(lines) == 27, lines
		assert "\n" + "\n".join(lines) + "\n" in client, lines
	PYTHON
done
# So are the statuses, and which of them permit a retry.
for file in proto/status.h client/go/status.go client/python/refd/errors.py \
	client/rust/src/status.rs; do
	check "$file has the codes of PROTOCOL.md" python3 - \
		"$ROOT/proto/PROTOCOL.md" "$ROOT/$file" <<-'PYTHON'
		import re, sys
		protocol, text = (open(f, encoding="utf-8").read() for f in sys.argv[1:])
		rows = re.findall(r"^\| `([a-z-]+)` \| .+ \| (yes)? ?\|$",
		    protocol.split("\n### Codes\n")[1].split("\n## ")[0], re.M)
		codes = {name: bool(retry) for name, retry in rows}
		assert len(codes) > 20, codes
		# How each language says: the words of the statuses, and the symbols
		# of those that permit a retry.
		table, retry = {
		    "h": (r'^\tX\((\w+), \d+, \w+,\s*(?:\\\s*)?"([a-z-]+)"',
		        r"^\tX\((\w+), \d+, RETRY,"),
		    "go": (r'^\t(\w+) +Status = "([a-z-]+)"$',
		        r"MayRetry\(\) bool \{\n\tswitch s \{\n\tcase (.+?):"),
		    "py": (r'^    ([A-Z_]+) = "([a-z-]+)"$',
		        r"return self in \((.+?)\)"),
		    "rs": (r'^    (\w+) "([a-z-]+)"$', r"matches!\(self, (.+?)\)"),
		}[sys.argv[2].rsplit(".", 1)[1]]
		# The outcomes come behind the statuses, in all four files.
		end = min(i for i in (text.find(mark, text.find("Status")) for mark in
		    ("enum refd_outcome", "type Outcome ", "class Origin", "    Outcome\n"))
		    if i > 0)
		words = dict(re.findall(table, text[:end], re.M))
		again = set(re.findall(r"\w+", " ".join(
		    re.findall(retry, text[:end], re.M | re.S)))) - {"Status"}
		assert {w: s in again for s, w in words.items()} == codes, (words, again)
	PYTHON
done
is 'a detail becomes a sentence' \
	"refs/heads/a: cannot lock ref 'refs/heads/a': is at x%3 but expected y" \
	"$(PYTHONPATH=$ROOT/client/python python3 -B -c 'import refd
print(refd.Result("refs/heads/a", refd.Status.STALE,
    detail=("differs", "refs/heads/a", "x%3", "y")))')"
is 'an unknown one the status' 'refs/heads/a: stale' \
	"$(PYTHONPATH=$ROOT/client/python python3 -B -c 'import refd
print(refd.Result("refs/heads/a", refd.Status.STALE, detail=("new", "x")))')"

export PYTHONPATH=$ROOT/client/python
timeout 240 python3 -B "$ROOT/tests/clients/python_own.py" "$SOCKET" \
	"$T/repo.git" "$one" >"$T/own" 2>&1
check 'the tests of Python come to their end' test $? -eq 0
clients_report "$T/own"
is 'the example' 2 "$(python3 -B "$ROOT/client/python/example.py" \
	"$T/repo.git" refs/heads/python/example "$one" |
	grep -c -- "-> $one\$")"
no_locks 'no lock is left' repo.git
finish
