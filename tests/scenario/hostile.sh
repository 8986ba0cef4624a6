#!/bin/bash
# Proves that hostile clients, all kinds at once (tests/hostile/hostile.py), do
# no harm: slow, huge, half-closed, out of order, mangled, deaf, thousands at
# once. The daemon stays up, its memory and descriptors stay bounded, other
# clients are served, and nothing is left behind. A BUILD of PROFILE=asan runs
# under the sanitizers. HOSTILE_SECONDS is 6 (tests/long/hostile.sh: 120).
# HOSTILE_MANY is the number of connections of each kind at once, 50 (200); one
# kind has twenty times as many.
# Alone: it measures times.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"

seconds=${HOSTILE_SECONDS:-6}
many=${HOSTILE_MANY:-50}
kinds=(slow huge half disorder mangled deaf crowd gifts)

# The hostile clients run as a second user. Only root can start processes of two
# users.
BAD=64001
[ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null || BAD=
as_bad() { # COMMAND...
	[ -z "$BAD" ] || set -- setpriv --reuid $BAD --regid $BAD \
		--clear-groups env HOME="$T/bad" "$@"
	"$@"
}

chmod 755 "$T"
cp -r "$ROOT/tests/hostile" "$ROOT/tests/python" "$T"
cp -r "$ROOT/client/python/refd" "$T/python"
chmod -R a+rX "$T/hostile" "$T/python"
mkdir "$T/bad"
[ -z "$BAD" ] || chown $BAD:$BAD "$T/bad"
# The daemon's account owns their repository, and their group may write there.
new_repo bad/repo.git bare
theirs=$(new_commit bad/repo.git one)
git -C "$T/bad/repo.git" config core.sharedRepository group
[ -z "$BAD" ] || chgrp -R $BAD "$T/bad/repo.git"
chmod -R g+rwX "$T/bad/repo.git"
new_repo good.git bare
ours=$(new_commit good.git one)

# A sanitizer keeps freed memory, which counts as used: keep only a little.
export ASAN_OPTIONS=quarantine_size_mb=8${ASAN_OPTIONS:+:$ASAN_OPTIONS}
printf '[daemon]\nallowUser = %s\n' "${BAD:-$(id -u)}" >"$T/config"
start_daemon --config "$T/config" || finish
pid=$DAEMON
"$REFD" update -C "$T/good.git" refs/heads/first "$ours"
"$REFD" query 0123456789abcdef0123456789abcdef >/dev/null 2>&1
"$REFD" log -n 1 >/dev/null
before=$(daemon_fds)

client() { # KIND REPO COMMIT
	timeout $((seconds + 500)) python3 -B "$T/hostile/hostile.py" "$1" \
		"$SOCKET" "$2" "$3" "$T/good.git" "$seconds" "$many"
}
export -f client
export T SOCKET seconds many
pids=()
for kind in "${kinds[@]}"; do
	as_bad bash -c 'client "$@"' bash "$kind" "$T/bad/repo.git" "$theirs" \
		>"$T/said.$kind" 2>&1 &
	own $!
	pids+=($!)
done
client good "$T/good.git" "$ours" >"$T/said.good" 2>&1 &
own $!
pids+=($!)

# The highest value of each third.
most=(0 0 0)
for ((third = 0; third < 3; third++)); do
	end=$((SECONDS + (seconds + 2) / 3))
	while [ $SECONDS -lt $end ]; do
		kb=$(daemon_rss_kb)
		[ "${kb:-0}" -le "${most[third]}" ] || most[third]=$kb
		sleep 0.2
	done
done
for i in "${pids[@]}"; do reap "$i"; done

# ---- leftovers ----

for kind in "${kinds[@]}"; do
	turns=$(sed -n 's/^turns //p' "$T/said.$kind")
	check "$kind: ${turns:-no} turns" test "${turns:-0}" -gt 0
	grep -v '^turns ' "$T/said.$kind"
done
# These kinds damage a request that the daemon would accept.
for kind in half mangled; do
	check "$kind: some requests are taken" test -n \
		"$(git -C "$T/bad/repo.git" for-each-ref "refs/heads/hostile/$kind")"
done
# Under a sanitizer all takes several times as long.
slowest=20000
! is_sanitized || slowest=60000
read -r word served median worst <<<"$(head -n 1 "$T/said.good")"
is 'others are served' served "$word"
[ "$word" = served ] || cat "$T/said.good"
check "each time: $served, half of them in $median ms, the slowest in $worst" \
	test "${worst:-99999}" -lt $slowest
is 'it is the same daemon' "$pid" "$(sed -n 's/.* pid \([0-9]*\) .*/\1/p' \
	<<<"$("$REFD" ping)")"
# Requests at work may take half a GiB, 64 MiB each, and no more. The last third
# may have met one that the others did not meet.
check "memory: at most ${most[*]} kB in each third" \
	test "${most[2]}" -le $(((most[0] > most[1] ? most[0] : most[1]) * 2 + \
		20000 + 65536))
has_no_more_fds() {
	[ "$(daemon_fds)" -le $((before + 20)) ]
}
check 'descriptors come back' await 60 has_no_more_fds
# The end of a session follows the end of its connection, when its turn comes.
await 10 has_no_locks bad || "$REFD" locks
no_locks 'no lock is left, of theirs' bad/repo.git
no_locks 'no lock is left, of ours' good.git
git -C "$T/good.git" for-each-ref refs/heads/hostile >"$T/ours"
check 'our refs can be listed' test -s "$T/ours"
is 'nothing of ours is theirs' 0 "$(grep -vc /good/ "$T/ours")"
# Root leaves a repository alone that others can exchange.
mv "$T/bad/repo.git" "$T/theirs.git"
check 'refd verify' "$REFD" verify "$T/good.git" "$T/theirs.git" >"$T/verify"
stop_daemon
is 'a clean stop' 0 $?
is 'no error was logged' '' "$(complaints | grep ' error: ' | head -n 3)"
finish
