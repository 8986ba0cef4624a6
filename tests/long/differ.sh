#!/bin/bash
# git update-ref and refd update side by side (tests/differ/README.md): more of
# the cases that are the same every time; then new ones, for ten minutes with
# the machine's git, and ten with the newest that Debian has.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

differ() { # NAME ARGUMENT...
	local name=$1
	shift
	if BUILD=$BUILD "$ROOT/tests/differ/differ.py" "$@" \
		>"$T/said" 2>&1; then
		ok "$name"
	else
		not_ok "$name" 'refd differs from git'
		cat "$T/said"
	fi
	grep -E '^# |cases,' "$T/said" | sed 's/^#* */# /'
}

differ 'the fixed ones' --seeds 31-300
differ "the machine's git" --seconds 600
if why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" experimental \
	2>&1); then
	differ 'the newest' --seconds 600 --git "$BUILD/git-experimental/git"
else
	skip 'the newest' "not to be had: ${why//$'\n'/; }"
fi
finish
