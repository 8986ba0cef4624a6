#!/bin/bash
# Proves that kill -9 of the real daemon at any system call of a transaction
# does no harm. strace counts the calls: the daemon dies before the first, the
# second, ... of each kind. Whatever the client was told, after the next start
# the refs agree with the journal: an atomic transaction is whole or absent.
# After a resend under the same id it has happened once, each log has one line
# of it, and no lock and no staged file is left.
#
# KILL_CALLS=all: every call of every kind (tests/long/kill_calls.sh).

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if ! command -v strace >/dev/null || ! strace -o /dev/null true 2>/dev/null; then
	skip kill_calls 'no strace, or it may not trace'
	finish
fi

# Kinds of calls that mark the stages.
kinds='linkat pwrite64 fdatasync renameat unlinkat'
[ "$REF_FORMAT" = files ] || kinds+=' fsync'
max=1000

# Checkpoints would only blur the count.
cat >"$T/config" <<'CONFIG'
[checkpoint]
	interval = 1h
CONFIG

attach() { # OPTION...
	strace -f -q -o "$T/trace" "$@" -p "$DAEMON" 2>"$T/strace.err" &
	tracer=$!
	own "$tracer"
	await 10 is_attached
}

# An idle daemon may wait in the call that kills it.
is_attached() {
	! kill -0 "$DAEMON" || is_traced "$tracer"
}

# Transaction number $round: a new ref in a new directory, a move of a packed
# ref, an update through HEAD, a deletion of a packed ref.
commands() {
	local in=refs/heads/r$round
	printf '%s\n' "create $in/n/new $one" "update $in/moved $two $one" \
		"update $in/at $two $one" "delete $in/gone $one"
}

# Its pid is in $client.
send() {
	commands >"$T/commands"
	"$REFD" update -C "$repo" --stdin --atomic --txid "$id" \
		--timeout 60000 <"$T/commands" >"$T/said" 2>&1 &
	client=$!
	own "$client"
}

ask() {
	"$REFD" query "$id" 2>/dev/null | awk '$1 == "txn" { print $3 }'
}

# Prints "old", "new", or the unexpected state.
state() {
	local in=refs/heads/r$round got
	got=$(git -C "$repo" for-each-ref --format='%(refname) %(objectname)' \
		"$in" | sed "s,$in/,,; s,$one,1,; s,$two,2," | tr '\n' ' ')
	case $got in
	'at 1 gone 1 moved 1 ') echo old ;;
	'at 2 moved 2 n/new 1 ') echo new ;;
	*) echo "$got" ;;
	esac
}

# Logs of this round that have not exactly one line, and logs of deleted refs.
odd_lines() {
	local in=refs/heads/r$round name
	for name in n/new moved at; do
		[ "$(git -C "$repo" reflog show --format=%H "$in/$name" -- |
			wc -l)" -eq 1 ] || echo "logs/$in/$name"
	done
	! git -C "$repo" reflog exists "$in/gone" || echo "logs/$in/gone"
}

complain() { # TEXT
	bad=$((bad + 1))
	not_ok "killed at $call number $nth" "$1"
}

# A killed daemon is a zombie until strace has seen the end of all threads, and
# strace sometimes waits for that without end.
lives() {
	grep -qs '^State:.[^Z]' "/proc/$DAEMON/status"
}

# 1: the transaction was over before the NTH CALL.
one_kill() { # CALL NTH
	local said found
	call=$1
	nth=$2
	round=$((round + 1))
	id=$(new_id)
	git -C "$repo" symbolic-ref HEAD "refs/heads/r$round/at"
	attach -e trace="$call" -e inject="$call:signal=SIGKILL:when=$nth" ||
		return 2
	send
	while kill -0 "$client" 2>/dev/null && lives; do
		sleep 0.01
	done
	if lives; then
		kill -INT "$tracer"
		reap "$tracer"
		reap "$client"
		return 1
	fi
	# The client would ask again, but here the test asks.
	kill -KILL "$client" 2>/dev/null
	reap "$client"
	said=$?
	# strace sometimes waits for a thread that strace itself keeps from
	# dying.
	for _ in {1..100}; do
		kill -0 "$tracer" 2>/dev/null || break
		sleep 0.01
	done
	kill -KILL "$tracer" 2>/dev/null
	reap "$tracer"
	reap "$DAEMON"
	points=$((points + 1))
	start_daemon --config "$T/config" || return 2
	found=$(ask)
	case $found,$(state) in
	committed,new | never-seen,old) ;;
	*) complain "the journal says '$found', the refs are $(state)" ;;
	esac
	[ $said -ne 0 ] || [ "$found" = committed ] ||
		complain 'acknowledged, and not there'
	[ "$found" != committed ] || committed=$((committed + 1))
	send
	reap "$client" || complain "sent again: $(cat "$T/said")"
	[ "$(state)" = new ] || complain "sent again: the refs are $(state)"
	found=$(odd_lines)
	[ -z "$found" ] || complain "sent again: log lines: $found"
	found=$(find "$repo" -name '*.lock' -o -path '*/refd/stage/*')
	[ -z "$found" ] || complain "left: $found"
}

new_id() {
	# An id begins with its birth time.
	printf '%012x%s' "$(date +%s%3N)" \
		"$(od -An -N10 -tx1 /dev/urandom | tr -d ' \n')"
}

check 'the daemon starts' start_daemon --config "$T/config"
new_repo repo.git bare
repo=$T/repo.git
git -C "$repo" config core.logAllRefUpdates false
one=$(new_commit repo.git one)
two=$(new_commit repo.git two "$one")
for ((i = 1; i <= max; i++)); do
	for name in moved at gone; do
		echo "create refs/heads/r$i/$name $one"
	done
done | git -C "$repo" update-ref --stdin
git -C "$repo" pack-refs --all
git -C "$repo" config core.logAllRefUpdates always
"$REFD" update -C "$repo" refs/heads/first "$one"

# Prints all kinds of calls of one transaction.
all_kinds() {
	round=$((round + 1))
	id=$(new_id)
	attach && send && reap "$client"
	kill -INT "$tracer"
	reap "$tracer"
	sed -nE 's/^[0-9]+ +([a-z0-9_]+)\(.*/\1/p' "$T/trace" | sort -u
}

round=0 points=0 bad=0 committed=0
[ "${KILL_CALLS:-few}" != all ] || kinds=$(all_kinds)
[ "${KILL_CALLS:-few}" != all ] || round=1
for kind in $kinds; do
	for ((n = 1; ; n++)); do
		# The shell would report each killed process.
		one_kill "$kind" $n 2>/dev/null
		status=$?
		[ $status -lt 2 ] || not_ok "$kind $n" 'could not be tried'
		[ $status -eq 0 ] || break
		[ "${KILL_CALLS:-few}" = all ] || break
	done
done
echo "# ${kinds//$'\n'/ }"
check "killed at $points points, $committed of them after the commit" \
	test $points -ge 5 -a $committed -ge 1
check 'nothing was wrong' test $bad -eq 0
[ "$REF_FORMAT" = files ] || check 'the stack' git -C "$repo" refs verify
check 'git fsck' git -C "$repo" fsck --no-dangling 2>/dev/null
check 'the daemon stops' stop_daemon
finish
