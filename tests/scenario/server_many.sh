#!/bin/bash
# Proves that 10,000 connections are greeted and answered in less than 100 MB. A
# further client is told that the daemon is busy. When clients leave, new
# clients come in.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"

# Half of the daemon's descriptors are for connections.
many=10000
if [ "$(ulimit -Hn)" != unlimited ] && [ "$(ulimit -Hn)" -lt 20000 ]; then
	many=$(($(ulimit -Hn) / 2 - 100))
	skip ten-thousand "only $(ulimit -Hn) descriptors, so $many connections"
fi
start_daemon || finish
idle=$(daemon_rss_kb)
is_sanitized || between idle-memory-kb 1 "$idle" 12000

mkfifo "$T/hold"
"$MANY_CONNS" "$SOCKET" "$many" <"$T/hold" >"$T/out" 2>&1 &
holder=$!
own $holder
exec 9>"$T/hold"
await 60 grep -q answered "$T/out"
is all-are-answered "$many connected
$many greeted
$many answered" "$(cat "$T/out")"

if is_sanitized; then
	skip memory "a sanitizer's memory is not ours"
else
	between memory-kb 1 "$(daemon_rss_kb)" 100000
fi
if [ "$many" -eq 10000 ]; then
	got=$(raw '' | answers | grep -v '^text')
	is one-more $'answer 0 refused\nstatus busy\n.\n(closed)' "$got"
	for i in 1 2 3; do raw '' >/dev/null; done
	is said-once-in-the-log 1 "$(grep -c 'event=connections-full' "$LOG")"
fi

# A loop that wakes up without work would show here.
check idle-cpu await 1 is_quiet 5 1

exec 9>&-
await 20 gone $holder
check others-come-in await 20 serves
has_few_fds() {
	[ "$(daemon_fds)" -lt 100 ]
}
await 20 has_few_fds
between descriptors-come-back 1 "$(daemon_fds)" 100
stop_daemon
is exit-status 0 $?
finish
