#!/bin/bash
# Proves that a fixed piece of work costs refd no more flushes, system calls and
# instructions than tests/bench/limits permits. The test compares counts, never
# times.
# Alone: on a busy machine an update lasts longer, and the daemon wakes more
# often meanwhile: up to 8 % more instructions.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if ldd "$BUILD/bin/refd-daemon" | grep -qE 'lib(a|t|ub)san'; then
	skip counts 'a sanitizer makes calls of its own'
	finish
fi

gate() { # LIMITS
	BUILD=$BUILD PYTHONDONTWRITEBYTECODE=1 \
		python3 "$ROOT/tests/bench/gate.py" "$T/gate" "$1" 2>&1
}

while read -r line; do
	case $line in
	'ok '*) ok "${line#ok }" ;;
	'skip '*) line=${line#skip } && skip "${line%%: *}" "${line#*: }" ;;
	*) not_ok counts "$line" ;;
	esac
done < <(gate "$ROOT/tests/bench/limits")
finish
