# shellcheck shell=bash
# The conformance suite of the client libraries. Sourced after scenario.sh.

# Starts a daemon, and makes two repositories: $T/repo.git with the commits $one
# and $two, and $T/repo256.git of SHA-256 with $one256.
clients_begin() {
	start_daemon || return 1
	GIT_DEFAULT_HASH=sha1 new_repo repo.git bare
	one=$(new_commit repo.git one)
	two=$(new_commit repo.git two "$one")
	GIT_DEFAULT_HASH=sha256 new_repo repo256.git bare
	one256=$(new_commit repo256.git one)
}

# Reports the ok and not ok lines of a program's output. Any other line, for
# example of a traceback, is an error.
clients_report() { # FILE
	local line
	while IFS= read -r line; do
		case $line in
		'ok '*) ok "${line#ok }" ;;
		*) not_ok "${line#not ok }" ;;
		esac
	done <"$1"
}

# Runs the cases. RUNNER is NAME=COMMAND.
clients_run() { # RUNNER...
	timeout 250 python3 -u -B "$ROOT/tests/clients/run.py" "$T" "$SOCKET" \
		"$@" -- repo="$T/repo.git" repo256="$T/repo256.git" \
		one="$one" two="$two" one256="$one256" >"$T/cases" 2>&1
	check 'the cases come to their end' test $? -eq 0
	clients_report "$T/cases"
}
