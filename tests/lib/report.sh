# shellcheck shell=bash
# Functions for the scripts in_*.sh, which run in a machine that a test boots.
# The test repeats the report (root_report in tests/lib/root.sh).

set -u
export LC_ALL=C TZ=UTC HOME=/root

ok() { printf 'ok %s\n' "$1"; }
not_ok() { printf 'not ok %s: %s\n' "$1" "${2:-}"; }
is() { # NAME WANTED GOT
	if [ "$2" = "$3" ]; then ok "$1"; else
		not_ok "$1" "wanted '$2', got '$3'"
	fi
}
check() { # NAME COMMAND...
	local name=$1
	shift
	if "$@"; then ok "$name"; else not_ok "$name" "status $? from: $*"; fi
}
fails() { ! "$@"; }
show() { systemctl show -p "$1" --value "${2:-refd.service}"; }
