#!/bin/bash
# Proves that SIGTERM finishes and answers all work in flight, also for
# half-closed clients, and refuses new transactions. A second SIGTERM gives up
# waiting work; any number of signals is no failure. During recovery the daemon
# reports its state and can be stopped.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"

new_repo a.git bare
commit=$(new_commit a.git one)

start_preloaded() { # LIBRARY
	LD_PRELOAD=$1 "$REFD" daemon --socket "$SOCKET" --state "$STATE" \
		--root "$T" >>"$LOG" 2>&1 </dev/null &
	DAEMON=$!
	own "$DAEMON"
}

# Starts a daemon whose flushes do not return while the file $T/hang exists.
start_hanging() {
	REFD_FLUSH_DELAY_US=0 REFD_FLUSH_HANGS=$T/hang \
		start_preloaded "$SLOW_FLUSH"
}

in_flight() { # AT-LEAST
	[ $(($(stat_of in_store) + $(stat_of waiting))) -ge "$1" ]
}

# ---- finished and answered ----

start_hanging
"$REFD" ping --socket "$SOCKET" --wait 120 >/dev/null
touch "$T/hang"
for i in 1 2 3; do
	"$REFD" update -C "$T/a.git" --porcelain "refs/heads/b$i" "$commit" \
		>"$T/out.$i" 2>&1 &
	own $!
	clients[i]=$!
done
{
	transaction_head "$(new_txid)" "$T/a.git"
	printf '0043create refs/heads/half\0%s0000' "$commit"
} | "$RAWSOCK" "$SOCKET" --half-close >"$T/out.half" 2>&1 &
half=$!
own $half
check in-flight await 10 in_flight 4
mkfifo "$T/in"
"$RAWSOCK" "$SOCKET" --answers 2 <"$T/in" >"$T/out.late" 2>&1 &
late=$!
own $late
exec 9>"$T/in"
printf '000aping 90000' >&9
await 10 grep -q pong "$T/out.late"
kill -TERM "$DAEMON"
await 10 grep -q SIGTERM "$LOG"
is draining-hello 'state draining' "$(raw '' --answers 0 | grep '^state')"
{
	transaction_head "$(new_txid)" "$T/a.git"
	printf '0043create refs/heads/late\0%s0000' "$commit"
} >&9
await 20 gone "$late"
is late-comer-is-refused 'ng busy|refs/heads/late||the daemon is stopping' \
	"$(grep '^ng' "$T/out.late")"
rm "$T/hang"
for i in 1 2 3; do
	reap "${clients[i]}"
	is "answered-$i" 0 $?
	is "written-$i" "$commit" "$(ref_of a.git "refs/heads/b$i")"
done
reap $half
is half-closed-is-answered "ok|refs/heads/half||" \
	"$(grep '^ok' "$T/out.half")"
stop_daemon
is exit-status 0 $?
logged stopped 'info: event=stopped '
is nothing-of-the-late-one '' "$(ref_of a.git refs/heads/late)"

# ---- a second signal hurries ----

start_daemon
: >"$T/a.git/refs/heads/held.lock"
git -C "$T/a.git" config core.filesRefLockTimeout 300000
began=$SECONDS
"$REFD" update -C "$T/a.git" --timeout 5000 refs/heads/held "$commit" \
	>"$T/out.held" 2>&1 &
client=$!
own $client
await 10 in_flight 1
kill -TERM "$DAEMON"
await 10 grep -q 'event=stopping .*transactions=1 ' "$LOG"
kill -TERM "$DAEMON"
stop_daemon
is hurried-exit-status 0 $?
reap $client
check hurried-client-failed [ $? -ne 0 ]
# By the daemon, or by its own attempt to find another one.
check hurried-client-is-told \
	grep -qE 'the daemon is stopping|cannot connect' "$T/out.held"
between hurried-seconds 0 $((SECONDS - began)) 100
is held-ref-is-not-written '' "$(ref_of a.git refs/heads/held)"
rm "$T/a.git/refs/heads/held.lock"

# ---- again and again, until the daemon is gone ----

deaths=0
for i in {1..20}; do
	start_daemon
	while kill -TERM "$DAEMON" 2>/dev/null; do :; done
	reap "$DAEMON" || deaths=$((deaths + 1))
done
is told-until-it-is-gone 0 $deaths
# And as late as can be.
start_preloaded "$BUILD/tests/helper/preload_last_signal.so"
"$REFD" ping --socket "$SOCKET" --wait 120 >/dev/null
stop_daemon
is told-in-the-end 0 $?

# ---- recovering ----

# A checkpoint would leave nothing to recover.
printf '[checkpoint]\n\tinterval = 1h\n' >"$T/config"
start_daemon --config "$T/config"
"$REFD" update -C "$T/a.git" refs/heads/last "$commit"
kill_daemon
# Not the journal's flush: the daemon listens when the journal is open.
printf %s "$T/a.git" >"$T/hang"
start_hanging
await 20 [ ! -e "$SOCKET.replayed" ]
got=$({
	printf '000aping 20000'
	printf '000cstatus 30000'
	transaction_head "$(new_txid)" "$T/a.git"
	printf '0043create refs/heads/soon\0%s0000' "$commit"
} | "$RAWSOCK" "$SOCKET" --answers 3)
is recovering-hello 'state recovering' "$(grep '^state' <<<"$got")"
is recovering-ping 'answer 2 pong' "$(grep pong <<<"$got")"
is recovering-status 'pair state recovering' "$(grep 'pair state ' <<<"$got")"
is recovering-refuses 'status busy' "$(grep '^status' <<<"$got")"
check recovering-no-marker [ ! -e "$SOCKET.replayed" ]
# Recovery must not end before the daemon has the signal.
stops=$(grep -c 'event=stopping' "$LOG")
more_stops() { [ "$(grep -c 'event=stopping' "$LOG")" -gt "$stops" ]; }
kill -TERM "$DAEMON"
check recovering-gets-the-signal await 10 more_stops
rm "$T/hang"
stop_daemon
is recovering-can-be-stopped 0 $?
check recovering-stopped-no-marker [ ! -e "$SOCKET.replayed" ]
start_daemon
check recovered-serves "$REFD" update -C "$T/a.git" refs/heads/soon "$commit"
is recovered-ref "$commit" "$(ref_of a.git refs/heads/last)"
stop_daemon
no_locks no-locks a.git
finish
