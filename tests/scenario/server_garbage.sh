#!/bin/bash
# Proves that bytes that are no request are refused and the connection is
# closed, without cost for other clients and without a trace in the daemon.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"

start_daemon || finish
# The journal keeps the files of its first look-up open, and history its index.
"$REFD" query 0123456789abcdef0123456789abcdef >/dev/null 2>&1
"$REFD" log -n 1 >/dev/null
before=$(daemon_fds)

refused() { # NAME FORMAT
	local got
	got=$(raw "$2" | answers)
	is "$1" $'answer 0 refused\nstatus badrequest\n.\n(closed)' \
		"$(grep -v '^text ' <<<"$got")"
}
refused http 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
refused zeroes '\0\0\0\0\0\0\0\0'
refused all-ones '\377\377\377\377\377\377\377\377'
refused longest-length 'ffff'
refused one-too-long 'fff1'
refused response-end '0002'
refused length-of-three '0003'
refused empty-packet '0004'
refused negative-length '-001'
refused four-GiB-length 'ffffffff'
refused flush-first '0000'
refused delim-first '0001'

# Parts of requests as packets, in any order, some truncated or with a wrong
# length. The daemon must go on.
babble() { # SEED
	awk -v seed="$1" 'BEGIN {
		srand(seed)
		n = split("transaction 1|session 2|commit 3|query 4|ping 5|" \
		    "status 6|ping 0|ping|txid 0123456789abcdef0123456789abcd" \
		    "ef|txid x|git-dir /|git-dir x|common-dir 1 2|" \
		    "object-format sha1|object-format sha256|atomic|push|" \
		    "umask 0022|umask 9|deadline 1|durability fsync|message m|" \
		    "create refs/heads/x|option no-deref|delete refs/heads/x|" \
		    "x", word, "|")
		for (i = 0; i < 60; i++) {
			r = rand()
			if (r < 0.25)
				printf "0000"
			else if (r < 0.35)
				printf "0001"
			w = word[1 + int(rand() * n)]
			len = length(w) + 4
			if (rand() < 0.01)
				len += int(rand() * 9) - 4
			printf "%04x%s", len, w
		}
	}'
}
for seed in {1..100}; do
	babble "$seed" | "$RAWSOCK" "$SOCKET" --half-close >"$T/babble"
	tail -n 1 "$T/babble"
done | sort -u >"$T/ends"
is babble '(closed)' "$(cat "$T/ends")"
check babble-was-answered grep -q '^answer' "$T/babble"

# The framing is intact: only this request is refused.
got=$(raw '0010frobnicate 70000000aping 80000' --answers 2 | answers)
is unknown-verb \
	$'answer 7 refused\nstatus badrequest\ntext unknown verb\n.\nanswer 8 pong\n.\n(open)' \
	"$got"
got=$(raw '000aping 00000000aping 80000' --answers 2 | answers)
is no-request-id \
	$'answer 0 refused\nstatus badrequest\ntext malformed request id\n.\nanswer 8 pong\n.\n(open)' \
	"$got"

# More updates than a transaction may have, all correct: the transaction is
# refused at its end and not kept. 66,000 updates of 1,036 bytes.
new_repo a.git bare
ref=refs/heads/$(printf '%01013d' 0)
for ((i = 0; i < 1000; i++)); do
	printf '040cdelete %s\0' "$ref"
done >"$T/updates"
base=$(daemon_rss_kb)
got=$({
	transaction_head "$(new_txid)" "$T/a.git"
	for ((i = 0; i < 66; i++)); do cat "$T/updates"; done
	printf 0000
} | "$RAWSOCK" "$SOCKET" --answers 1 | answers | grep -v '^txid')
is too-large $'answer 1 refused\nstatus limit\ntext the transaction is too large\n.\n(open)' \
	"$got"
if is_sanitized; then
	skip memory-is-given-back "a sanitizer's memory is not ours"
else
	between memory-is-given-back 0 "$(daemon_rss_kb)" $((base + 20000))
fi

check still-serves serves
has_no_more_fds() {
	[ "$(daemon_fds)" -le "$before" ]
}
await 5 has_no_more_fds
between descriptors 1 "$(daemon_fds)" "$before"
is nothing-logged '' "$(complaints)"
stop_daemon
is exit-status 0 $?
finish
