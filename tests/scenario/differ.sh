#!/bin/bash
# git update-ref and refd update side by side (tests/differ/README.md): a fixed
# set of random cases, and as many from a random one on as twenty seconds have
# room for. A difference is printed as a script that shows it.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

differ() { # ARGUMENT...
	BUILD=$BUILD "$ROOT/tests/differ/differ.py" "$@" >"$T/said" 2>&1
}

if ! command -v python3 >/dev/null; then
	skip differ 'no python3'
	finish
fi
for run in '--seeds 1-40' '--seconds 20'; do
	# shellcheck disable=SC2086 # it is two words
	if differ $run; then
		ok "differ $run"
	else
		not_ok "differ $run" 'refd differs from git'
		cat "$T/said"
	fi
	grep -E '^# |cases,' "$T/said" | sed 's/^#* */# /'
done
finish
