#!/bin/bash
# git update-ref and refd update side by side (tests/differ/README.md): a fixed
# set of random cases. A difference is printed as a script that shows it. More
# of them, and new ones, are for tests/long/differ.sh: this one says the same
# every time.
# Slow: it runs hundreds of cases, each with git and with refd.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

differ() { # ARGUMENT...
	BUILD=$BUILD "$ROOT/tests/differ/differ.py" "$@" >"$T/said" 2>&1
}

if ! command -v python3 >/dev/null; then
	skip differ 'no python3'
	finish
fi
if differ --seeds 1-30; then
	ok 'the same by git and by refd'
else
	not_ok 'the same by git and by refd' 'refd differs'
	cat "$T/said"
fi
grep -E '^# |cases,' "$T/said" | sed 's/^#* */# /'
finish
