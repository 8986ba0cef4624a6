#!/bin/bash
# Proves the upgrade from journal format 1, whose rows have no checksum, and
# from version 1 of the wire. The test turns a journal of this release into the
# older format. tests/long/upgrade.sh uses the former release itself.
#
# A stopped journal is converted: a resend gets its first answer, and the
# history is the same. A journal that was not stopped is refused, byte for byte
# unchanged. A client that meets a daemon of version 1 reports this, and a push
# changes nothing.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

# Leaves a journal as the former release does: stopped, or killed with a commit
# in the WAL.
make_former() { # stopped|killed
	python3 - "$STATE/journal.db" "$1" <<'PYTHON'
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
for table in "record", "past":
    db.execute("ALTER TABLE %s DROP COLUMN checksum" % table)
db.execute("ALTER TABLE meta DROP COLUMN seal")
db.execute("PRAGMA user_version = 1")
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
if sys.argv[2] == "killed":
    db.execute("INSERT INTO start VALUES(1000, '', 0)")
    os._exit(0)
db.close()
PYTHON
}
ask_journal() { # SQL
	python3 -c 'import sqlite3, sys
for row in sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True).execute(
        sys.argv[2]): print(*row)' "$STATE/journal.db" "$1"
}

# Twenty creations, a refused move and a successful move, each under its own id.
# The history ends with a row that a flush has followed.
ids=$(printf '%012x' "$(date +%s%3N)")
send_all() {
	local n
	for n in {1..20}; do
		printf '%s %s %s\n' "refs/heads/x$n" "$one" "${one//?/0}"
	done | cat - <(echo "refs/heads/x2 $two $two") \
		<(echo "refs/heads/x1 $two $one") | nl -w1 |
		while read -r n ref new old; do
			"$REFD" update -C "$T/repo.git" --porcelain --txid \
				"$ids$(printf '%020x' "$n")" "$ref" "$new" "$old"
		done 2>/dev/null
}
history() { "$REFD" log --repo "$T/repo.git" --json; }
refs() { git -C "$T/repo.git" for-each-ref; }

# ---- stopped ----

check 'the daemon starts' start_daemon
new_repo repo.git bare
git -C "$T/repo.git" config core.logAllRefUpdates always
check 'refd enable' "$REFD" enable --socket "$SOCKET" "$T/repo.git" >"$T/said"
one=$(new_commit repo.git one)
two=$(new_commit repo.git two "$one")
send_all >"$T/answers"
is 'what was answered' '21 ok 1 ng' \
	"$(grep -c ^ok "$T/answers") ok $(grep -c ^ng "$T/answers") ng"
history >"$T/history"
refs >"$T/refs"
check 'it stops' stop_daemon
check 'a journal of the former release' make_former stopped
is 'is of format 1' 1 "$(ask_journal 'PRAGMA user_version')"
"$REFD" verify --state "$STATE" "$T/repo.git" >"$T/said" 2>&1
check 'refd verify leaves it to the daemon' grep -q \
	'an older refd (format 1): start the daemon, which converts it' "$T/said"
check 'the daemon starts with it' start_daemon
is 'the history is the same' '' "$(history | diff "$T/history" -)"
is 'what is sent again gets its first answer' '' \
	"$(send_all | diff "$T/answers" -)"
is 'and changes nothing' '' "$(refs | diff "$T/refs" -)"
check 'it serves' "$REFD" update -C "$T/repo.git" refs/heads/new "$one"
check 'it stops again' stop_daemon
is 'it is of format 2' 2 "$(ask_journal 'PRAGMA user_version')"
# One row of the former journal comes from refd enable.
is 'its rows, and the new one with a checksum' '23 1' "$(ask_journal \
	'SELECT sum(checksum IS NULL), count(checksum) FROM record')"
check 'refd verify' "$REFD" verify --state "$STATE" "$T/repo.git" >/dev/null

# ---- not stopped ----

check 'one that was killed' make_former killed
sums() {
	find "$STATE" "$T/repo.git" -type f ! -name '*-shm' \
		-exec sha256sum {} + | sort
}
sums >"$T/sums"
for by in 'daemon --socket refused.sock' recover; do
	# shellcheck disable=SC2086
	(cd "$T" && timeout 120 "$REFD" $by --state "$STATE" --root "$T") \
		>"$T/said" 2>&1
	check "refd ${by%% *} refuses it" test $? -ne 0
	check 'and says what to do' grep -q "written by an older refd (format \
1), which was not stopped: start that refd again, run 'refd checkpoint', stop \
it, and start this one" "$T/said"
done
is 'byte for byte unchanged' '' "$(sums | diff "$T/sums" -)"

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
