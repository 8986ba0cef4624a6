# shellcheck shell=bash
# Runs the comparison of git update-ref and refd update
# (tests/differ/README.md). Needs scenario.sh.

# Reports NAME. Prints each difference as a script that shows the difference.
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

# Compares with the newest git in Debian.
differ_newest() { # NAME ARGUMENT...
	local name=$1 dir=$BUILD/git-experimental why
	shift
	if why=$("$ROOT/scripts/git-new" "$dir" experimental 2>&1); then
		differ "$name" --git "$dir/git" "$@"
	else
		skip "$name" "not to be had: ${why//$'\n'/; }"
	fi
}
