#!/bin/bash
# Proves that half a packet, or half a request, followed by silence delays no
# other client. When the rest comes, the request is answered as usual.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"

start_daemon || finish
new_repo a.git bare
commit=$(new_commit a.git one)

# Starts a client that sends only the bytes written into $T/in.NAME.
say_into() { # NAME FD
	mkfifo "$T/in.$1"
	"$RAWSOCK" "$SOCKET" --answers 1 <"$T/in.$1" >"$T/out.$1" 2>&1 &
	own $!
	eval "$1=$!; exec $2>\"\$T/in.$1\""
}
say_into digits 7
say_into packet 8
say_into request 9
printf '00' >&7
printf '000apin' >&8
transaction_head "$(new_txid)" "$T/a.git" >&9

for i in 1 2 3; do
	check "others-are-served-$i" "$REFD" update -C "$T/a.git" \
		"refs/heads/b$i" "$commit"
done
is and-silence-is-not-answered '' \
	"$(cat "$T"/out.* | sed '1,/^\.$/d' | grep answer)"

printf '0aping 10000' >&7
printf 'g 10000' >&8
printf '0044create refs/heads/topic\0%s0000' "$commit" >&9
for name in digits packet request; do
	await 10 gone "${!name}" || not_ok "$name" 'no answer'
done
is digits $'answer 1 pong\n.\n(open)' "$(answers <"$T/out.digits")"
is packet $'answer 1 pong\n.\n(open)' "$(answers <"$T/out.packet")"
is request 'ok|refs/heads/topic||' "$(grep '^ok' "$T/out.request")"
is ref-written "$commit" "$(ref_of a.git refs/heads/topic)"

# A client that vanishes in the middle of a request leaves nothing behind.
printf '000apin' | "$RAWSOCK" "$SOCKET" --wait 100 >/dev/null
transaction_head "$(new_txid)" "$T/a.git" |
	"$RAWSOCK" "$SOCKET" --half-close >"$T/out" 2>&1
is half-a-request-is-never-answered '(closed)' "$(answers <"$T/out")"
check still-serves serves
stop_daemon
is exit-status 0 $?
finish
