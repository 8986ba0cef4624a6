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
