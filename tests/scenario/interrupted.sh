#!/bin/bash
# Proves that a long command shows its progress on a terminal, and nowhere else,
# and that Control-C in refd verify and refd doctor prints the findings so far.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

# Each broken ref costs verify half a second.
broken=()
for i in 1 2 3 4 5 6; do
	new_repo "$i.git" bare
	printf 'x' >"$T/$i.git/refs/heads/broken"
	broken+=("$T/$i.git")
done
# And each call of this git costs doctor half a second.
mkdir "$T/slow"
printf '#!/bin/sh\nsleep 0.5\nexec %s "$@"\n' "$(command -v git)" >"$T/slow/git"
chmod +x "$T/slow/git"
PATH=$T/slow:$PATH

# Runs a command with a terminal as standard error, in the foreground. Presses
# Control-C when the terminal shows PATTERN. The terminal's bytes go to $T/shown,
# standard output to $T/said.
on_terminal() { # PATTERN COMMAND...
	python3 - "$T/shown" "$T/said" "$@" <<'PYTHON'
import os, pty, re, sys
shown, said, pattern, *argv = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.execv(argv[0], argv)
text = b""
while True:
    try:
        more = os.read(terminal, 4096)
    except OSError:
        break
    if not more:
        break
    text += more
    if pattern and re.search(pattern.encode(), text):
        os.write(terminal, b"\x03")
        pattern = None
open(shown, "wb").write(text)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
}

shows() { # PATTERN
	grep -qaE "$1" "$T/shown"
}

# ---- progress ----

on_terminal '' "$REFD" verify --state "$STATE" "${broken[@]}"
is 'verify on a terminal' 1 $?
check 'shows its progress' \
	shows 'Verifying repositories:  [1-9]+% \([0-9]/6\), /.*\.git'
check 'and removes the line' grep -qaE $'\r +\r$' "$T/shown"
check 'and has the findings' grep -q '6 repositories: 6 errors' "$T/said"
on_terminal '' "$REFD" doctor "${broken[@]:3}"
check 'doctor shows its progress' \
	shows 'Checking repositories: +[0-9]+% \([0-9]/3\)'
is 'no terminal, no progress' '' \
	"$("$REFD" doctor "${broken[@]:3}" 2>&1 >/dev/null)"

# ---- Control-C ----

on_terminal '[1-9]/6' "$REFD" verify --state "$STATE" "${broken[@]}"
is 'verify, interrupted' 130 $?
check 'says so' grep -q '^interrupted: ' "$T/said"
check 'with the findings so far' grep -q "^error: ref-broken: " "$T/said"
prints_no 'and not all' '6 repositories' cat "$T/said"
on_terminal '[1-9]/6' "$REFD" verify --json --state "$STATE" "${broken[@]}"
is 'as JSON' 'True True' "$(python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
print(d["interrupted"], 0 < len(d["findings"]) < 6)' "$T/said")"

on_terminal '[1-9]/6' "$REFD" doctor "${broken[@]}"
is 'doctor, interrupted' 130 $?
check 'says so, too' grep -q '^interrupted: ' "$T/said"
check 'and has the first repository' grep -q "$T/1.git" "$T/said"
prints_no 'and not the last' "/6\.git" cat "$T/said"
finish
