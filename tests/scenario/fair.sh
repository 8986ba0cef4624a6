#!/bin/bash
# Proves that a hanging repository stops only its own users. While one client
# hammers the hanging repository, another client's updates of another repository
# are all done in time. Status, stats and log name the repository meanwhile.
# When the repository comes back, so do its updates, and no work is left over.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

TIMES=20
# The longest time for an update, in ms.
BOUND=5000

# The watchdog's time; a quarter of the time makes a stall.
export LD_PRELOAD=$BUILD/tests/helper/preload_hang.so WATCHDOG_USEC=2000000
export REFD_OPEN_HANGS=$T/hang
start_daemon || exit 1
unset LD_PRELOAD WATCHDOG_USEC
new_repo slow.git bare
new_repo other.git bare
one=$(new_commit slow.git one)
two=$(new_commit slow.git two)
update() { # REPOSITORY [OPTION...] REF OID
	"$REFD" update -C "$T/$1" --timeout "$BOUND" "${@:2}"
}
mine=$(new_commit other.git mine)
check 'the one is served before' update slow.git refs/heads/a "$one"
check 'and the other' update other.git refs/heads/a "$mine"

printf '%s/slow.git/' "$T" >"$T/hang"
"$BUILD/tests/helper/storm" --socket "$SOCKET" --repo "$T/slow.git" \
	--oid "$one" --oid "$two" --clients 8 --txns 20 >"$T/storm" 2>&1 &
storm=$!
own $storm
somebody_waits() { [ "$(stat_of waiting)" -ge 8 ]; }
check 'many wait for the one' await 10 somebody_waits

others_in_time() {
	local i
	for ((i = 0; i < TIMES; i++)); do
		update other.git "refs/heads/$1$i" "$mine" || return
	done
}
check 'others are served in time' others_in_time m
has_status() { "$REFD" status -v >"$T/status"; grep -qE "$1" "$T/status"; }
check 'status names it' await 7 has_status \
	"^stall: admission has worked on '$T/slow.git' for [0-9]+ s;"
check 'and begins with it' grep -q \
	'^refd serves, but the stage admission has worked on ' "$T/status"
check 'and others are, still' others_in_time n
check 'it has not come back meanwhile' kill -0 $storm
"$REFD" stats --prometheus >"$T/text"
check 'the numbers say how long' \
	grep -qE '^refd_stage_seconds\{stage="admission"\} [1-9]' "$T/text"
check 'and that one thread is stuck' \
	grep -qx 'refd_stage_stuck_threads{stage="admission"} 1' "$T/text"
logs() { grep -q "event=$1 stage=admission " "$LOG"; }
check 'the log has it' logs stall

rm "$T/hang"
check 'who waited is served' wait $storm
reap $storm
prints_no 'status names nothing any more' '^stall' "$REFD" status -v
check 'the log has the end' await 10 logs stall-over
is 'no thread is stuck' 0 "$(stat_of stage_stuck_admission)"
is 'nothing waits' 0 "$(stat_of waiting)"
check 'it is served as before' update slow.git refs/heads/b "$two"
check 'the daemon stops' stop_daemon
is 'and has nothing else to say' '' "$(complaints)"
finish
