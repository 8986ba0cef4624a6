#!/bin/bash
# Proves that a daemon takes over the socket of a dead daemon, but not of a
# living one, and never removes any other file. The test also checks the users
# who may connect, and other errors at the start.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

boot_id=$(cat /proc/sys/kernel/random/boot_id)

# Starts a daemon that must refuse to start, and prints its status and error
# message.
refuses() { # NAME STATUS TEXT OPTION...
	local name=$1 status=$2 text=$3 got
	shift 3
	timeout 120 "$REFD" daemon "$@" >"$T/refused" 2>&1 </dev/null
	got=$?
	is "$name-status" "$status" "$got"
	check "$name-says-so" grep -qF -- "$text" "$T/refused"
}

start_daemon || finish
is mode 660 "$(stat -c %a "$SOCKET")"
is marker "$boot_id" "$(cat "$SOCKET.replayed")"

refuses same-socket 69 "another daemon listens on $SOCKET" \
	--socket "$SOCKET" --state "$T/other" --root "$T"
refuses same-state 69 "in use by another" \
	--socket "$T/other.sock" --state "$STATE" --root "$T"
check first-still-serves serves
is marker-untouched "$boot_id" "$(cat "$SOCKET.replayed")"
check no-socket-of-the-second [ ! -e "$T/other.sock" ]

kill_daemon
check dead-socket-is-left [ -S "$SOCKET" ]
is marker-is-left "$boot_id" "$(cat "$SOCKET.replayed")"
start_daemon
check dead-socket-is-taken-over serves

# Somebody else's socket at our path is not ours to remove.
rm "$SOCKET"
"$REFD" daemon --socket "$SOCKET" --state "$T/other" --root "$T" \
	>>"$LOG" 2>&1 </dev/null &
second=$!
own $second
await 10 serves
stop_daemon
check stop-leaves-anothers-socket serves
kill -TERM $second
await 10 gone $second
reap $second
check stop-removes-its-own [ ! -e "$SOCKET" ]
is marker-outlives-it "$boot_id" "$(cat "$SOCKET.replayed")"

: >"$T/file"
refuses no-socket-there 78 'exists already: name a path that is free' \
	--socket "$T/file" --state "$STATE" --root "$T"
check file-is-left [ -f "$T/file" ]
long=$T/$(printf '%0110d' 0)
refuses path-too-long 69 'longer than' \
	--socket "$long" --state "$STATE" --root "$T"
: >"$T/occupied"
refuses no-directory 69 'Not a directory' \
	--socket "$T/occupied/s" --state "$STATE" --root "$T"

refuses unknown-option 64 "unknown option \`frob'" --frob
refuses no-root 78 'no root' --socket "$SOCKET" --state "$STATE"
refuses missing-root 78 'No such file' --socket "$SOCKET" \
	--state "$STATE" --root "$T/nowhere"
printf '[daemon]\n\tsokcet = /x\n' >"$T/config"
refuses unknown-key 78 \
	"$T/config:2: unknown key 'daemon.sokcet'; did you mean daemon.socket?" \
	--config "$T/config"
refuses durability 64 "'nnoe' is not a durability mode" --durability nnoe
is version "refd-daemon $("$REFD" version | cut -d ' ' -f 2)" \
	"$("$REFD" daemon --version)"

# Another uid is refused even if the mode permits access.
start_daemon
if with_people another-uid; then
	chmod 777 "$SOCKET"
	install -m 755 "$RAWSOCK" "$T/rawsock"
	got=$(as 65534 "$T/rawsock" "$SOCKET" </dev/null | answers |
		grep -v '^text')
	is another-uid $'answer 0 refused\nstatus denied\n.\n(closed)' "$got"
	logged another-uid-is-logged 'uid=65534'

	for _ in 1 2 3; do
		as 65534 "$T/rawsock" "$SOCKET" </dev/null >/dev/null
	done
	is another-uid-is-logged-once 1 "$(grep -c 'uid=65534' "$LOG")"

	# A user or group, by name or number, gives access.
	for key in 'allowUser = nobody' 'allowUser = 65534' 'allowGroup = 65534'
	do
		stop_daemon
		printf '[daemon]\n\t%s\n' "$key" >"$T/config"
		start_daemon --config "$T/config"
		is "$key: mode" 666 "$(stat -c %a "$SOCKET")"
		is "$key: is let in" $'answer 1 pong\n.\n(open)' "$(printf \
			'000aping 10000' | as 65534 "$T/rawsock" "$SOCKET" \
			--answers 1 | answers)"
		is "$key: another is not" 'status denied' "$(as 65533 \
			"$T/rawsock" "$SOCKET" </dev/null | answers |
			grep '^status')"
	done
fi
stop_daemon
is exit-status 0 $?

# A question finds the only daemon of an account, and does not choose among
# several. Root's /run is hidden in this scenario's mount namespace.
question() { env -u REFD_SOCKET -u XDG_RUNTIME_DIR "$REFD" "$@" 2>&1; }
if [ -n "${OWN_MOUNTS:-}" ] && mount -t tmpfs tmpfs /run; then
	scenario_mounts+=(/run)
	mkdir /run/refd-alice
	SOCKET=/run/refd-alice/refd.sock
	start_daemon
	check only-daemon-of-an-account question ping
	check doctor-finds-it grep -q /run/refd-alice/refd.sock \
		<<<"$(question doctor)"
	git init -q "$T/malformed"
	echo '[core' >>"$T/malformed/.git/config"
	is 'a malformed configuration: no daemon is guessed' 128 \
		"$(cd "$T/malformed" && question pause >/dev/null; echo $?)"
	check 'a malformed configuration: says what to do' grep -q \
		'socket: correct .* or name the socket by --socket$' \
		<<<"$(cd "$T/malformed" && question status)"
	check 'a malformed configuration: with --socket' grep -q \
		'^refd serves ' \
		<<<"$(cd "$T/malformed" && question status --socket "$SOCKET")"
	mkdir /run/refd-bob
	: >/run/refd-bob/refd.sock
	is several-daemons 128 "$(question ping >/dev/null; echo $?)"
	check doctor-looks-at-each [ "$(question doctor | grep -cE \
		'looked at the (socket|daemon on) /run/refd-(alice|bob)/')" \
		-eq 2 ]
	check several-daemons-are-listed grep -q \
		'socket /run/refd-bob/refd.sock' <<<"$(question ping)"
	mkdir /run/refd
	: >/run/refd/refd.sock
	check system-daemon-comes-first grep -q ' /run/refd/refd.sock' \
		<<<"$(question ping)"
	stop_daemon
else
	skip daemon-of-an-account 'no private /run'
fi
finish
