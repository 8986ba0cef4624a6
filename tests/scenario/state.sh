#!/bin/bash
# Proves that a bad state directory is refused at once, with a sentence that
# names the reason and the place: a directory that cannot be written or that
# another daemon uses, a journal that is damaged, newer or foreign, and a
# repository of another journal. refd never changes a journal that it does not
# understand, and `refd recover --discard` is the way on. Recovery by hand needs
# a journal, and makes none. After work of root there, a daemon of an
# unprivileged account can still start.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

# The daemon ends by itself, prints the reason, and leaves no socket behind.
refused() { # REPORTED-AS WORDS OPTION...
	local name=$1 words=$2 status
	shift 2
	timeout 120 "$REFD" daemon --root "$T" --socket "$T/refused.sock" "$@" \
		>"$T/said" 2>&1 </dev/null
	status=$?
	if [ $status -eq 0 ] || [ $status -ge 124 ]; then
		not_ok "$name" "status $status: $(cat "$T/said")"
	else
		check "$name: says so" grep -q "$words" "$T/said"
		check "$name: no socket" test ! -e "$T/refused.sock"
	fi
}

# ---- not to be written ----

: >"$T/file"
refused 'a file' "daemon.state is '$T/file': '$T/file' is not a directory" \
	--state "$T/file"
refused 'below a file' "'$T/file/state': '$T/file' is not a directory" \
	--state "$T/file/state"
mkdir "$T/readonly"
if mount --bind "$T/readonly" "$T/readonly" 2>/dev/null &&
	scenario_mounts+=("$T/readonly") &&
	mount -o remount,bind,ro "$T/readonly" 2>/dev/null; then
	refused 'read-only, new' "'$T/readonly/new': Read-only file system" \
		--state "$T/readonly/new"
	refused 'read-only' "'$T/readonly': Read-only file system" \
		--state "$T/readonly"
else
	skip read-only 'no bind mounts here'
fi

# ---- in use ----

check 'the daemon starts' start_daemon
new_repo repo.git bare
one=$(new_commit repo.git one)
check 'it serves' "$REFD" update -C "$T/repo.git" refs/heads/one "$one"
refused 'the same state' \
	"'$STATE' is in use by another refd: stop that one, or .* by --state\"" \
	--state "$STATE"
timeout 120 "$REFD" daemon --root "$T" --socket "$SOCKET" --state "$T/second" \
	>"$T/said" 2>&1 </dev/null
check 'the same socket: says so' \
	grep -q "another daemon listens on $SOCKET" "$T/said"
"$REFD" recover --state "$STATE" >"$T/said" 2>&1
is 'recovery by hand beside it' 75 $?
check 'the first one serves on' "$REFD" update -C "$T/repo.git" \
	refs/heads/two "$one"

# ---- two daemons and a repository ----

second() { # COMMAND...
	SOCKET=$T/second.sock STATE=$T/second REFD_SOCKET=$T/second.sock "$@"
}
first=$DAEMON
second start_daemon
second "$REFD" update -C "$T/repo.git" --porcelain refs/heads/three "$one" \
	>"$T/out" 2>"$T/said"
is 'a repository that another serves' 'ng refs/heads/three norepo' \
	"$(head -n 1 "$T/out" | cut -d' ' -f1-3)"
check 'a repository that another serves: says so' \
	grep -q 'served by another refd already' "$T/out"
DAEMON_TWO=$DAEMON DAEMON=$first
check 'the first one stops' stop_daemon
second "$REFD" update -C "$T/repo.git" --porcelain refs/heads/three "$one" \
	>"$T/out" 2>"$T/said"
is 'a repository of another journal' 'ng refs/heads/three norepo' \
	"$(head -n 1 "$T/out" | cut -d' ' -f1-3)"
check 'a repository of another journal: says so' \
	grep -q 'belongs to the journal [0-9a-f]* of another refd' "$T/out"
check 'nothing was written' test -z "$(ref_of repo.git refs/heads/three)"
DAEMON=$DAEMON_TWO
check 'the second one stops' stop_daemon

# ---- damaged journals ----

# Makes a copy of the state and damages it with a command that gets the
# journal's name.
damaged() { # REPORTED-AS WORDS COMMAND...
	local name=$1 words=$2 before
	shift 2
	rm -rf "$T/damaged"
	cp -r "$STATE" "$T/damaged"
	"$@" "$T/damaged/journal.db"
	before=$(sha1sum "$T"/damaged/journal.db)
	refused "$name" "$words" --state "$T/damaged"
	is "$name: not touched" "$before" "$(sha1sum "$T"/damaged/journal.db)"
}

overwrite() { # OFFSET BYTES FILE
	printf '%b' "$2" | dd of="$3" bs=1 seek="$1" conv=notrunc 2>/dev/null
}

zero_pages() { # FILE
	dd if=/dev/zero of="$1" bs=4096 seek=1 count=2 conv=notrunc 2>/dev/null
}

damaged 'an empty journal' 'is not a database' truncate -s 0
damaged 'a journal of text' 'is not a database' overwrite 0 'something else!'
damaged 'another database' 'is a database, but not a journal of refd' \
	overwrite 68 '\0\0\0\0'
damaged 'a newer journal' 'was written by a newer refd' \
	overwrite 60 '\0\0\0\0143'
damaged 'a damaged journal' 'is damaged\|malformed' zero_pages
rm -rf "$T/damaged"
cp -r "$STATE" "$T/damaged"
mv "$T/damaged/journal.db" "$T/damaged/journal.db-wal"
refused 'a WAL without its journal' \
	"journal.db is missing, but its WAL is there" --state "$T/damaged"

# ---- the way on ----

rm -rf "$T/damaged"
cp -r "$STATE" "$T/damaged"
truncate -s 0 "$T/damaged/journal.db"
"$REFD" recover --state "$T/damaged" --root "$T" >"$T/said" 2>&1
is 'recovery does not guess' 74 $?
"$REFD" recover --state "$T/damaged" --discard >"$T/said" 2>&1
is 'unless it is told to' 0 $?
check 'then the journal is moved aside' \
	test -e "$T"/damaged/journal.db.discarded-*
STATE=$T/damaged
check 'the daemon starts with a new one' start_daemon
# The owner of a repository chooses its name, and root copies the command.
mv "$T/repo.git" "$T/it's.git"
"$REFD" update -C "$T/it's.git" refs/heads/three "$one" 2>"$T/said"
check 'whose repository is not its own' \
	grep -q 'belongs to the journal' "$T/said"
remedy=$(sed -n 's/.*run "refd \(disown .*\)"$/\1/p' "$T/said")
check 'the command that it names' eval "'$REFD' $remedy"
check 'until it is given free' "$REFD" update -C "$T/it's.git" \
	refs/heads/three "$one"
mv "$T/it's.git" "$T/repo.git"

# ---- disabled ----

# The journal finds the history again, and another journal may take the
# repository.
id_is() { # REPORTED-AS WORDS
	if grep -q "$2" "$T/released.git/refd/id"; then ok "$1"; else
		not_ok "$1" "$(cat "$T/released.git/refd/id")"
	fi
}

new_repo released.git bare
commit=$(new_commit released.git one)
quiet() { "$@" >"$T/said" 2>&1; }
with_umask() { (umask "$1" && shift && quiet "$@"); }
check 'to be released: enabled' quiet "$REFD" enable "$T/released.git"
check 'to be released: an update' "$REFD" update -C "$T/released.git" \
	refs/heads/one "$commit"
check 'disabled' with_umask 002 "$REFD" disable "$T/released.git"
id_is 'disabled: no journal' 'journal 0\{32\}$'
is 'disabled: nobody else may write the id' 644 \
	"$(stat -c %a "$T/released.git/refd/id")"
check 'enabled again' quiet "$REFD" enable "$T/released.git"
check 'enabled again: an update' "$REFD" update -C "$T/released.git" \
	refs/heads/two "$commit"
id_is 'enabled again: a journal' 'journal .*[1-9a-f]'
is 'enabled again: with the history' 2 \
	"$("$REFD" log --repo "$T/released.git" --json | wc -l)"
check 'disabled again' quiet "$REFD" disable "$T/released.git"
# The daemon has it open, and does not look at the id again.
new_repo open.git bare
check 'an id that others may write: an update' "$REFD" update \
	-C "$T/open.git" refs/heads/one "$(new_commit open.git one)"
chmod 664 "$T/open.git/refd/id"
check 'an id that others may write: disabled' quiet "$REFD" disable \
	"$T/open.git"
check 'an id that others may write: it is gone' \
	test ! -e "$T/open.git/refd/id"
stop_daemon
rm -rf "$T/purged"
mv "$STATE" "$T/purged"
check 'purged: a new state' start_daemon
check 'purged: enabled' quiet "$REFD" enable "$T/released.git"
is 'purged: without a warning' '' "$(grep -i 'warning' "$T/said")"
check 'purged: an update' "$REFD" update -C "$T/released.git" \
	refs/heads/three "$commit"
stop_daemon
"$REFD" disable "$T/released.git" >"$T/said" 2>&1
is 'no daemon: disabled' 0 $?
check 'no daemon: the id stays, and how to give it free' \
	grep -q "its id stays .*refd disown $T/released.git" "$T/said"
id_is 'no daemon: the journal stays' 'journal .*[1-9a-f]'
sed -i 's/^journal ......../journal 01234567/' "$T/released.git/refd/id"
check 'no daemon: it starts again' start_daemon
quiet "$REFD" disable "$T/released.git"
id_is 'another daemon: the journal stays' 'journal 01234567'

# ---- no journal ----

no_journal() { # REPORTED-AS DIRECTORY
	local name=$1
	"$REFD" recover --state "$2" >"$T/said" 2>&1
	is "$name: recovery is refused" 74 $?
	check "$name: says so" grep -q \
		"there is no journal in '$2': name .* by --state" "$T/said"
	"$REFD" recover --discard --state "$2" >"$T/said" 2>&1
	is "$name: nothing is discarded" 74 $?
}

no_journal 'a directory that does not exist' "$T/typo/state"
check 'a directory that does not exist: is not made' test ! -e "$T/typo"
no_journal 'a file instead of a directory' "$T/file"
mkdir "$T/empty"
no_journal 'a directory without a journal' "$T/empty"
prints_nothing 'a directory without a journal: stays empty' ls -A "$T/empty"
touch "$T/empty/journal.db-wal"
no_journal 'the empty WAL of a clean stop' "$T/empty"

# ---- work by root in the state of another account ----

with_people 'root by hand' || finish
stop_daemon
export SERVED=$T
GIT=64001
hers=$(repo_for $GIT a.git)
install -d -o $GIT -g $GIT -m 700 "$T/theirs"

# The account's daemon starts from the state that root has left.
serves() { # REPORTED-AS
	local others daemon
	others=$(find "$T/theirs" ! -uid $GIT)
	is "$1: all is that account's" '' "$others"
	# Not by as(): $! is to be the daemon's.
	setpriv --reuid $GIT --regid $GIT --clear-groups \
		"$REFD" daemon --root "$T/of$GIT" --state "$T/theirs" \
		--socket "$T/of$GIT/sock" >"$T/of$GIT.log" 2>&1 &
	daemon=$!
	if check "$1: its daemon starts" as $GIT "$REFD" ping --wait 120 \
		--socket "$T/of$GIT/sock"; then
		check "$1: and serves" as $GIT "$REFD" update --git-dir \
			"$T/of$GIT/a.git" --socket "$T/of$GIT/sock" \
			refs/heads/main "$hers"
		kill $daemon
	fi
	wait $daemon
}

serves 'a new journal'
"$REFD" recover --state "$T/theirs" >"$T/said" 2>&1
is 'root recovers' 0 $?
serves 'recovered by root'
"$REFD" disown "$T/of$GIT/a.git" >"$T/said" 2>&1
"$REFD" recover --state "$T/theirs" --discard >"$T/said" 2>&1
is 'root discards' 0 $?
serves 'discarded by root'
finish
