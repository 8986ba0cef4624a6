#!/bin/bash
# Proves that clients that never read their answers do no harm: the daemon's
# memory stays bounded, the daemon does not spin, and other clients are served.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"

start_daemon || finish
new_repo a.git bare
commit=$(new_commit a.git one)
serves
base=$(daemon_rss_kb)

# Requests with long answers: 40,000 answers would be 50 MB.
for ((i = 0; i < 40000; i++)); do printf '000bstats 10000'; done >"$T/asks"
for i in 1 2 3 4 5 6 7 8; do
	"$RAWSOCK" "$SOCKET" --unread <"$T/asks" >/dev/null 2>&1 &
	own $!
done
# They are stuck when the daemon has nothing more to do.
check it-does-not-spin await 3 is_quiet 2 0.5
if is_sanitized; then
	skip memory "a sanitizer's memory is not ours"
else
	# 1 MiB for each client, in buffers that double.
	between memory-kb 1 "$(daemon_rss_kb)" $((base + 8 * 4096))
fi
for i in 1 2 3; do
	check "others-are-served-$i" "$REFD" update -C "$T/a.git" \
		--timeout 60000 "refs/heads/b$i" "$commit"
done
# A stop does not wait for these clients either.
began=$SECONDS
stop_daemon
is exit-status 0 $?
between seconds-to-stop 0 $((SECONDS - began)) 100
finish
