#!/bin/bash
# Proves that proto/PROTOCOL.md is true: a client in another language
# (tests/python) asks for everything that the document promises, and sends the
# malformed requests of proto/vectors.json.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

start_daemon || finish
new_repo repo.git bare
one=$(new_commit repo.git one)
two=$(new_commit repo.git two "$one")
PYTHONPATH=$ROOT/client/python timeout 240 python3 -B \
	"$ROOT/tests/python/protocol.py" "$SOCKET" "$T/repo.git" "$one" "$two" \
	"$ROOT/proto/vectors.json" >"$T/said" 2>&1
check 'the client comes to its end' test $? -eq 0
while IFS= read -r line; do
	case $line in
	'ok '*) ok "${line#ok }" ;;
	*) not_ok "${line#not ok }" ;;
	esac
done <"$T/said"
check 'git sees what it made' \
	test "$(git -C "$T/repo.git" for-each-ref | wc -l)" -eq 204
no_locks 'no lock is left' repo.git
finish
