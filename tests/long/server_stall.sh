#!/bin/bash
# Proves the time limit of one minute for clients. Half a request followed by
# silence is refused. A client that takes no answers is disconnected. A client
# that is only idle stays.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"

start_daemon || finish
mkfifo "$T/idle" "$T/half"
"$RAWSOCK" "$SOCKET" --answers 1 <"$T/idle" >"$T/out.idle" 2>&1 &
idle=$!
own $idle
exec 8>"$T/idle"
began=$SECONDS
"$RAWSOCK" "$SOCKET" <"$T/half" >"$T/out.half" 2>&1 &
half=$!
own $half
exec 9>"$T/half"
printf '000apin' >&9
for ((i = 0; i < 40000; i++)); do printf '000bstats 10000'; done >"$T/asks"
"$RAWSOCK" "$SOCKET" --unread <"$T/asks" >"$T/out.unread" 2>&1 &
unread=$!
own $unread

check half-is-told await 90 gone $half
between half-seconds 60 $((SECONDS - began)) 70
is half-is-refused $'answer 0 refused\nstatus deadline\n.\n(closed)' \
	"$(answers <"$T/out.half" | grep -v '^text')"
check unread-is-hung-up-on await 30 gone $unread
is unread-closed '(closed)' "$(tail -n 1 "$T/out.unread")"

printf '000aping 10000' >&8
await 5 gone $idle
is idle-is-answered $'answer 1 pong\n.\n(open)' "$(answers <"$T/out.idle")"
stop_daemon
is exit-status 0 $?
finish
