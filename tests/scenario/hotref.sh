#!/bin/bash
# Proves that refd is fair to git on a single busy ref. git update-ref sets the
# ref in a loop, while sixteen clients of refd swap it, and then while sixteen
# loops of plain git do. git must not find the lock taken more often beside refd
# than beside git. No client of refd may see a lock at all.
# Alone: it counts what two storms get done, side by side.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

ref=refs/heads/storm/same
clients=16
seconds=8
# Failures of git beside git are rare and may be chance: hence an allowance per
# thousand, and an allowance in total. On a busy machine, the holder of the lock
# may wait for a processor, so the test is tried again. A real difference shows
# each time.
slack=5
few=3

# Sets the ref to two commits in turn until the time is over. Counts the results
# in FILE, a line each: "ok", or git's message.
set_by_git() { # FILE
	local oid=$one why
	while [ ! -e "$T/over" ]; do
		if why=$(git -C "$T/repo.git" update-ref $ref "$oid" 2>&1); then
			echo ok
		else
			head -n 1 <<<"$why"
		fi >>"$1"
		if [ "$oid" = "$one" ]; then oid=$two; else oid=$one; fi
	done
}

# Runs COMMAND sixteen times beside the observed git.
beside() { # NAME COMMAND...
	local name=$1 i pid pids=()
	shift
	rm -f "$T/over" "$T/watched.$name" "$T/$name".[0-9] "$T/$name".1[0-9]
	for ((i = 0; i < clients; i++)); do
		"$@" "$T/$name.$i" &
		own $!
		pids+=($!)
	done
	set_by_git "$T/watched.$name" &
	own $!
	pids+=($!)
	sleep "$seconds"
	: >"$T/over"
	for pid in "${pids[@]}"; do reap "$pid"; done
}

set_by_refd() { # FILE
	local oid=$one
	while [ ! -e "$T/over" ]; do
		if "$REFD" update -C "$T/repo.git" "$ref" "$oid" \
			2>>"$1.why"; then
			echo ok
		else
			echo failed
		fi >>"$1"
		if [ "$oid" = "$one" ]; then oid=$two; else oid=$one; fi
	done
}

# Per thousand.
failures() { # FILE...
	awk '{ n++ } $0 != "ok" { bad++ } END { print int(1000 * bad / n) }' \
		"$@"
}

# No more than beside git.
fails_no_more() { # FILE
	awk -v most="$((plain + slack))" -v few="$few" '{ n++ }
		$0 != "ok" { bad++ } END {
		exit n == 0 || (bad > few && 1000 * bad / n > most) }' "$1"
}

count() { # FILE...
	cat "$@" | wc -l
}

check 'the daemon starts' start_daemon
new_repo repo.git bare
one=$(new_commit repo.git one)
two=$(new_commit repo.git two "$one")
git -C "$T/repo.git" update-ref $ref "$one"

for try in 1 2 3; do
	beside git set_by_git
	plain=$(failures "$T/watched.git")
	beside refd set_by_refd
	with_refd=$(failures "$T/watched.refd")
	! fails_no_more "$T/watched.refd" || break
	echo "# try $try: beside git $plain of 1000 failed, beside refd" \
		"$with_refd"
done
echo "# beside git: $(count "$T/watched.git") updates, $plain of 1000 failed;" \
	"the others made $(count "$T"/git.*)"
echo "# beside refd: $(count "$T/watched.refd") updates, $with_refd of 1000" \
	"failed; the others made $(count "$T"/refd.[0-9] "$T"/refd.1[0-9])"
check 'git finds the lock taken no more often than beside git' \
	fails_no_more "$T/watched.refd"
is 'nobody of refd fails' '' "$(cat "$T"/refd.*.why | head -n 3)"
is 'and git for no other reason' '' \
	"$(grep -hv '^ok$' "$T"/watched.* | grep -v 'Unable to create' |
		head -n 3)"

# As fast as possible, without a process for each update.
beside_storm() {
	local loop
	rm -f "$T/over" "$T/watched.storm"
	set_by_git "$T/watched.storm" &
	own $!
	loop=$!
	"$BUILD/tests/helper/storm" --socket "$SOCKET" --repo "$T/repo.git" \
		--oid "$one" --oid "$two" --clients $clients --txns 40 \
		--same-ref >"$T/storm" 2>&1 &
	own $!
	reap $!
	: >"$T/over"
	reap $loop
}
for try in 1 2 3; do
	beside_storm
	! fails_no_more "$T/watched.storm" || break
done
storm=$(failures "$T/watched.storm")
echo "# beside a storm: $(count "$T/watched.storm") updates, $storm of 1000" \
	"failed; $(cat "$T/storm")"
check 'nor beside a storm' fails_no_more "$T/watched.storm"
is 'no client of the storm fails' '"failed":{},"unknown":0' \
	"$(grep -oE '"failed":\{[^}]*\},"unknown":[0-9]+' "$T/storm")"
no_locks 'no lock is left' repo.git
finish
