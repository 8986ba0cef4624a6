#!/bin/bash
# Proves sessions over the wire. A prepared ref is locked, for git and for other
# clients, until commit or abort; or until the client is gone, its time is over,
# or the daemon stops or dies. No lock is left in any of these cases.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"

new_repo a.git bare
one=$(new_commit a.git one)
lock=$T/a.git/refs/heads/s.lock

# Starts a client NAME. It sends everything that is written to descriptor 9, and
# writes the answers to $T/NAME.
dial() { # NAME
	rm -f "$T/in"
	mkfifo "$T/in"
	"$RAWSOCK" "$SOCKET" --wait 60000 <"$T/in" >"$T/$1" 2>&1 &
	client=$!
	own "$client"
	exec 9>"$T/in"
}

heard() { # NAME LINE
	grep -qxF -- "$2" "$T/$1"
}

# Request 1 of client NAME, in $id: a session of refs/heads/s, prepared.
prepare() { # NAME
	id=$(new_txid)
	dial "$1"
	{
		transaction_head "$id" "$T/a.git" |
			sed 's/^0011transaction 1/000dsession 1/'
		printf '0040create refs/heads/s\0%s0000' "$one"
	} >&9
	await 10 heard "$1" 'answer 1 prepared'
}

# Ends the session, as request 2 of the connected client.
end() { # commit|abort
	local verb="$1 2"
	printf '%04x%s0029txid %s0000' $((${#verb} + 4)) "$verb" "$id" >&9
}

is_unlocked() {
	[ ! -e "$lock" ]
}

outcome_of() { # TXID
	"$REFD" query "$1" 2>&1
}

# ---- prepared, and then? ----

start_daemon || finish
prepare first
is prepared 'ok|refs/heads/s||' "$(grep '^ok' "$T/first")"
check locked [ -e "$lock" ]
is not-written '' "$(ref_of a.git refs/heads/s)"
check pending grep -q pending <<<"$(outcome_of "$id")"
is counted 1 "$(stat_of prepared)"
check git-is-kept-out grep -q 'File exists' \
	<<<"$(git -C "$T/a.git" update-ref refs/heads/s "$one" 2>&1)"
check others-are-kept-out grep -qF "Unable to create '$lock': File exists" \
	<<<"$("$REFD" update -C "$T/a.git" refs/heads/s "$one" 2>&1)"
check other-refs-are-not "$REFD" update -C "$T/a.git" refs/heads/t "$one"
end commit
check committed await 10 grep -q '^outcome committed' "$T/first"
is written "$one" "$(ref_of a.git refs/heads/s)"
check unlocked is_unlocked
"$REFD" update -C "$T/a.git" -d refs/heads/s

# A session under the id of a finished transaction.
id=$(new_txid)
for verb in '0011transaction 1' '000dsession 1'; do
	dial "$verb"
	{
		transaction_head "$id" "$T/a.git" |
			sed "s/^0011transaction 1/$verb/"
		printf '0040create refs/heads/s\0%s0000' "$one"
	} >&9
	await 10 grep -q '^outcome' "$T/$verb"
	"$REFD" update -C "$T/a.git" -d refs/heads/s
done
check used-id grep -q '^ng badrequest|refs/heads/s|' "$T/000dsession 1"
is used-id-does-nothing '' "$(ref_of a.git refs/heads/s)"

prepare second
end abort
check aborted await 10 grep -q '^outcome rejected' "$T/second"
check abort-unlocks is_unlocked
is abort-writes-nothing '' "$(ref_of a.git refs/heads/s)"
rejected_twice() {
	[ "$(grep -c '^outcome rejected' "$T/second")" = 2 ]
}
end commit
check aborted-for-good await 10 rejected_twice
is late-commit-writes-nothing '' "$(ref_of a.git refs/heads/s)"

prepare left
kill "$client"
reap "$client"
check client-gone-unlocks await 10 is_unlocked
is_aborted() {
	grep -q aborted <<<"$(outcome_of "$id")"
}
check client-gone-is-aborted await 10 is_aborted

prepare killed
kill_daemon
check killed-leaves-a-lock [ -e "$lock" ]
start_daemon || finish
check start-unlocks is_unlocked
check killed-never-happened grep -q never <<<"$(outcome_of "$id")"

# ---- stopping ----

prepare drained
kill -TERM "$DAEMON"
await 10 grep -q 'event=stopping .*transactions=1 ' "$LOG"
end commit
check drain-commits await 10 grep -q '^outcome committed' "$T/drained"
# The daemon is stopping by itself. A signal could come too late to be caught.
reap "$DAEMON"
is drain-exit-status 0 $?
is drain-writes "$one" "$(ref_of a.git refs/heads/s)"
git -C "$T/a.git" update-ref -d refs/heads/s

start_daemon || finish
: >"$LOG"
prepare hurried
kill -TERM "$DAEMON"
await 10 grep -q 'event=stopping .*transactions=1 ' "$LOG"
kill -TERM "$DAEMON"
reap "$DAEMON"
is hurry-exit-status 0 $?
check hurry-unlocks is_unlocked
is hurry-writes-nothing '' "$(ref_of a.git refs/heads/s)"

# ---- too long ----

printf '[session]\n\ttimeout = 300ms\n' >"$T/config"
start_daemon --config "$T/config" || finish
prepare slow
check time-unlocks await 10 is_unlocked
end commit
check time-is-over await 10 grep -q '^outcome rejected' "$T/slow"
check and-it-says-so grep -q '^ng deadline|refs/heads/s|' "$T/slow"
is time-writes-nothing '' "$(ref_of a.git refs/heads/s)"
stop_daemon
is exit-status 0 $?
no_locks no-locks a.git
finish
