#!/bin/bash
# Proves that a journal of an older format is refused, byte for byte unchanged,
# with a sentence that says what to do, and that the named steps lead to a
# daemon that serves. Also proves that a client that meets a daemon of version 1
# of the protocol reports this, and that a push changes nothing.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

refs() { git -C "$T/repo.git" for-each-ref; }
sums() {
	find "$STATE" "$T/repo.git" -type f ! -name '*-shm' \
		-exec sha256sum {} + | sort
}
# Leaves a journal of an older release: only the number of the format counts.
make_older() {
	python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA user_version = 2")
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")' "$STATE/journal.db"
}

# ---- a journal of an older format ----

check 'the daemon starts' start_daemon
new_repo repo.git bare
check 'refd enable' "$REFD" enable --socket "$SOCKET" "$T/repo.git" >"$T/said"
one=$(new_commit repo.git one)
check 'an update' "$REFD" update -C "$T/repo.git" refs/heads/x "$one"
check 'a checkpoint' "$REFD" checkpoint
check 'it stops' stop_daemon
refs >"$T/refs"
check 'an older journal' make_older
sums >"$T/sums"
for by in 'daemon --socket refused.sock' recover; do
	# shellcheck disable=SC2086
	(cd "$T" && timeout 120 "$REFD" $by --state "$STATE" --root "$T") \
		>"$T/said" 2>&1
	check "refd ${by%% *} refuses it" test $? -ne 0
	check 'and says what to do' grep -q "written by an older refd (format \
2, this one knows 9): a node of a group stops its units, and runs 'refd group \
join'; otherwise, with that refd, run 'refd checkpoint' and stop the \
daemon; then move the journal aside by 'refd recover --discard', and run \
'refd disown' for each repository" "$T/said"
done
is 'byte for byte unchanged' '' "$(sums | diff "$T/sums" -)"
check 'refd recover --discard' "$REFD" recover --discard --state "$STATE" \
	>"$T/said"
check 'refd disown' "$REFD" disown "$T/repo.git" >"$T/said"
check 'the daemon starts with a new journal' start_daemon
is 'every ref is there' '' "$(refs | diff "$T/refs" -)"
check 'it serves' "$REFD" update -C "$T/repo.git" refs/heads/new "$one"
check 'it stops again' stop_daemon

# ---- a daemon of version 1 ----

python3 - "$SOCKET" <<'PYTHON' &
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1] + ".new")
s.listen(8)
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    c, _ = s.accept()
    c.sendall(b"0012refd version=1" b"0011state serving" b"0000")
PYTHON
own $!
check 'a daemon of version 1' await 10 test -S "$SOCKET"
refs >"$T/refs"
words='speaks version 1 .* this program version 2: install the same release of'
"$REFD" update -C "$T/repo.git" refs/heads/old "$one" 2>"$T/said"
is 'an update fails' 75 $?
check 'and says why' grep -q "$words" "$T/said"
new_repo work
for fallback in git refuse; do
	git -C "$T/repo.git" config refd.fallback $fallback
	git -C "$T/work" push -q "$T/repo.git" HEAD:refs/heads/a \
		HEAD:refs/heads/b 2>"$T/said"
	is "a push fails, refd.fallback=$fallback" 1 $?
	check 'and says why' grep -q "rejected.*$words" "$T/said"
done
is 'nothing is there' '' "$(refs | diff "$T/refs" -)"
finish
