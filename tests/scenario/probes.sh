#!/bin/bash
# Proves that daemon/base/probe.h and docs/operations.md list the probes of the
# daemon, each with all its arguments, and no other probe. A build without the
# header of the probes names the command that installs the header.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

# Each probe with the number of its arguments.
in_program() {
	readelf -n "$1" | awk '
		$1 == "Provider:" { provider = $2 }
		$1 == "Name:" { name = $2 }
		$1 == "Arguments:" && provider == "refd" { print name, NF - 1 }' |
		sort -u
}

# Each probe with its thread and its arguments.
in_header() {
	sed -nE 's/^ \* ([a-z_]+)\t+(worker|loop|any)\t(.*)/\1 \2 \3/p' \
		"$ROOT/daemon/base/probe.h"
}

in_document() {
	sed -nE 's/^\| .([a-z_]+). \| (worker|loop|any) \| ([^|]*) \|.*/\1 \2 \3/p' \
		"$ROOT/docs/operations.md"
}

in_program "$BUILD/bin/refd-daemon" >"$T/program"
is 'probes of the program' 11 "$(wc -l <"$T/program")"
is 'daemon/base/probe.h lists the same' "$(cat "$T/program")" \
	"$(in_header | awk '{ print $1, NF - 2 }' | sort)"
is 'docs/operations.md lists the same' "$(in_header)" "$(in_document)"
is 'more arguments than bpftrace reads' '' "$(awk '$2 > 6' "$T/program")"
is 'probes of the client' '' "$(in_program "$REFD")"

gcc -nostdinc -I"$ROOT" -x c -c -o "$T/o" "$ROOT/daemon/base/probe.h" \
	2>"$T/err"
check 'a build without sys/sdt.h fails, with a remedy' \
	grep -q 'sys/sdt.h is missing: run scripts/deps --build' "$T/err"

finish
