#!/bin/bash
# Proves that the daemon does not spin without free descriptors. It reports the
# state once, serves the connected clients, and accepts new clients when there
# are descriptors again.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"

start_daemon || finish
mkfifo "$T/in" "$T/hold"
"$RAWSOCK" "$SOCKET" --answers 2 <"$T/in" >"$T/out" 2>&1 &
early=$!
own $early
exec 8>"$T/in"
printf '000aping 10000' >&8
await 5 grep -q 'answer 1 pong' "$T/out"

# Room for three more.
soft=$(prlimit --pid "$DAEMON" --nofile -o SOFT --noheadings | tr -d ' ')
highest=$(find "/proc/$DAEMON/fd" -mindepth 1 -printf '%f\n' | sort -n |
	tail -n 1)
free=$((highest + 1 - $(daemon_fds)))
prlimit --pid "$DAEMON" --nofile=$((highest + 4 - free)): ||
	{ skip emfile 'prlimit failed'; finish; }
"$MANY_CONNS" "$SOCKET" 20 <"$T/hold" >"$T/many" 2>&1 &
holder=$!
own $holder
exec 9>"$T/hold"
await 10 grep -q 'event=accept-failed' "$LOG"
await 10 grep -q connected "$T/many"

check it-does-not-spin await 1 is_quiet 20 2
is said-once 1 "$(grep -c 'event=accept-failed' "$LOG")"
is not-all-came-in '20 connected' "$(cat "$T/many")"

printf '000aping 20000' >&8
await 5 gone $early
is connected-are-served 'answer 2 pong' "$(grep 'answer 2' "$T/out")"

prlimit --pid "$DAEMON" --nofile="$soft":
await 10 grep -q answered "$T/many"
is then-they-come-in '20 connected
20 greeted
20 answered' "$(cat "$T/many")"
exec 9>&-
check still-serves serves
stop_daemon
is exit-status 0 $?
finish
