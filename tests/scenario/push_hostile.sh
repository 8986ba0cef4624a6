#!/bin/bash
# Proves that pushes that no git would send do no harm. The test speaks to
# receive-pack by hand: names that lead out of the repository or break a report
# apart, NUL bytes, ids of nothing, duplicate refs, thousands of refs, and a
# hang-up at every packet and every few bytes, also of receive-pack itself. No
# file outside the repository's refs changes. Reports are true, an atomic push
# is never half done, no lock stays, and the daemon goes on. If the hook or
# receive-pack is killed while the push waits, the push does not happen later.
# Slow: it hangs up after every few bytes.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

ZERO=0000000000000000000000000000000000000000
NONE=1111111111111111111111111111111111111111
RAW=$ROOT/tests/lib/raw_push.py

raw() { # OPTION... < commands
	python3 "$RAW" "$T/s.git" "$@" 2>"$T/raw.err" >"$T/raw.out"
}

# As commands for raw_push.py.
create() { # NAME...
	local name
	for name; do printf '%s %s %s\0' "$ZERO" "$one" "$name"; done
}

# Lists names and contents of all files, except files that a push may change.
outside() {
	find "$T" -path "$T/s.git/objects" -prune -o -path "$T/s.git/refs" \
		-prune -o -path "$T/s.git/refd" -prune -o -path "$T/state" \
		-prune -o -path "$T/raw.*" -prune -o -name daemon.log -prune \
		-o -name outside.\* -prune -o -name refd.sock\* -prune -o \
		-name packed-refs -prune -o -type f -print0 | sort -z |
		xargs -0 sha1sum
}

refs() {
	git -C "$T/s.git" for-each-ref --format='%(objectname) %(refname)'
}

# Nothing was changed, nothing is left behind, and the daemon serves.
unharmed() { # REPORTED-AS
	outside >"$T/outside.now"
	if ! diff "$T/outside.before" "$T/outside.now" >"$T/outside.diff"; then
		not_ok "$1: nothing outside" "$(cat "$T/outside.diff")"
	elif [ -n "$(find "$T/s.git" -name '*.lock')" ]; then
		not_ok "$1: no lock" "$(find "$T/s.git" -name '*.lock')"
	elif ! "$REFD" ping >/dev/null; then
		not_ok "$1: the daemon serves" 'no answer'
	else
		ok "$1: unharmed"
	fi
}

# ---- names ----

# %00 is a NUL byte.
names=(refs/heads/../../../escape refs/heads/../../config ../../escape
	/tmp/escape refs/heads/../../HEAD refs/../HEAD HEAD config refs
	refs/ refs/heads refs/heads/ refs/x refs//heads/x refs/heads//x
	refs/heads/. refs/heads/.. refs/heads/.x refs/heads/x. refs/heads/x..y
	refs/heads/a.lock refs/heads/a.lock/b packed-refs 'refs/heads/@{x}'
	'refs/heads/a b' $'refs/heads/a\nok refs/heads/b' $'refs/heads/tab\t'
	$'refs/heads/cr\r' refs/heads/%00x $'refs/heads/\033[31m'
	$'refs/heads/\177' 'refs/heads/a~' 'refs/heads/a^' 'refs/heads/a:b'
	'refs/heads/a?' 'refs/heads/a*' 'refs/heads/a[' 'refs/heads/a\b'
	@ '' worktrees/x/HEAD main-worktree/HEAD
	refs/heads/worktrees/../../../x logs/HEAD objects/info/alternates
	hooks/update)

bad_names() {
	local before name wrong=0
	before=$(refs)
	for name in "${names[@]}"; do
		create refs/heads/beside "$name" | raw --atomic
		if grep -q "^b'ok" "$T/raw.out" || [ "$(refs)" != "$before" ]; then
			not_ok "atomic with a bad name: $name" \
				"$(cat "$T/raw.out")"
			wrong=$((wrong + 1))
		fi
	done
	is 'names: each atomic with a good one: nothing done' 0 "$wrong"
	unharmed 'names, atomic'
	create "${names[@]}" refs/heads/beside | raw
	is 'names: all with a good one: that is done' "$one" \
		"$(ref_of s.git refs/heads/beside)"
	is 'names: and no other' "$before" \
		"$(refs | grep -v refs/heads/beside)"
	is 'names: nor is another called done' 1 \
		"$(grep -c "^b'ok" "$T/raw.out")"
	unharmed 'names, all'
	printf '%s %s %s\0' "$one" "$ZERO" refs/heads/../../config "$one" \
		"$ZERO" refs/heads/../../../victim "$one" "$ZERO" HEAD "$one" \
		"$ZERO" refs/heads/x.lock | raw
	unharmed 'deletions of such names'
}

# ---- ids ----

bad_ids() {
	local before
	before=$(refs)
	printf '%s %s %s\0' "$ZERO" "$NONE" refs/heads/none \
		"$NONE" "$one" refs/heads/main "$NONE" "$ZERO" refs/heads/main \
		"$one" "$NONE" refs/heads/main "$ZERO" "$ZERO" refs/heads/zero |
		raw
	is 'ids of nothing: nothing done' "$before" "$(refs)"
	unharmed 'ids of nothing'
	printf '%s %s %s\0' "$ZERO" "$one" refs/heads/twice \
		"$ZERO" "$two" refs/heads/twice "$ZERO" "$one" refs/heads/t3 |
		raw
	is 'the same ref twice: nothing done' "$before" "$(refs)"
	is 'the same ref twice: so it is said' 3 \
		"$(grep -c "^b'ng " "$T/raw.out")"
	printf '%s %s %s\0' "$one" "$one" refs/heads/main | raw
	is 'from a value to itself: nothing done' "$before" "$(refs)"
	unharmed 'the same'
}

# ---- many ----

many() {
	local i
	for ((i = 0; i < 3000; i++)); do create "refs/many/$i"; done | raw
	is 'thousands: each is reported' 3000 \
		"$(grep -c "^b'ok refs/many/" "$T/raw.out")"
	is 'thousands: each is there' 3000 "$(refs | grep -c refs/many/)"
	for ((i = 0; i < 3000; i++)); do
		printf '%s %s refs/many/%s\0' "$one" "$ZERO" "$i"
	done | raw --atomic --no-pack
	prints_no 'thousands: and gone, all at once' refs/many/ refs
	{
		for ((i = 0; i < 3000; i++)); do create "refs/many/$i"; done
		create refs/heads/main/below
	} | raw --atomic
	prints_no 'thousands and one that fails: nothing done' refs/many/ refs
	unharmed thousands
}

# ---- hang-ups ----

# Three refs, atomic: all have the new value or none.
trio() {
	local name
	for name in a b c; do
		printf '%s %s refs/trio/%s\0' "$ZERO" "$one" $name
	done
}

is_idle() {
	[ "$("$REFD" stats | awk '/^(waiting|in_store):/ { n += $2 }
		END { print NR ? n + 0 : "no answer" }')" = 0 ]
}

all_or_none() { # NAME
	local n
	# A killed hook may have sent the transaction already.
	await 10 is_idle
	n=$(refs | grep -c refs/trio/)
	[ "$n" -eq 0 ] || [ "$n" -eq 3 ] || {
		not_ok "$1: all or nothing" "$n of 3"
		split=1
	}
	[ "$n" -eq 0 ] || git -C "$T/s.git" for-each-ref \
		--format='delete %(refname)' refs/trio |
		git -C "$T/s.git" update-ref --stdin
}

hang_ups() {
	local i split=0
	for ((i = 0; i <= 5; i++)); do
		trio | raw --atomic --stop $i
		all_or_none "after packet $i"
		trio | raw --atomic --stop $i --kill
		all_or_none "after packet $i, killed"
	done
	for ((i = 1; i < 350; i += 53)); do
		trio | raw --atomic --bytes $i
		all_or_none "after $i bytes"
	done
	is 'receive-pack, hung up on anywhere: all or nothing' 0 $split
	unharmed 'receive-pack, hung up on'
	split=0
	for ((i = 0; i <= 5; i++)); do
		trio | raw --hook "$REFD" --atomic --stop $i
		[ "$(refs | grep -c refs/trio/)" -eq 0 ] || split=1
		! grep -q "^b'o" "$T/raw.out" || split=1
	done
	for ((i = 0; i < 300; i += 29)); do
		trio | raw --hook "$REFD" --atomic --bytes $i
		[ "$(refs | grep -c refs/trio/)" -eq 0 ] || split=1
	done
	is 'the hook, hung up on before the last packet: nothing' 0 $split
	trio | raw --hook "$REFD" --atomic --stop 6
	is 'the hook, with the last packet: done' 3 \
		"$(refs | grep -c refs/trio/)"
	printf 'zzzz' | (cd "$T/s.git" && GIT_DIR=. "$REFD" hook proc-receive) \
		>/dev/null 2>&1
	is 'the hook, no packets at all: fails' 128 $?
	unharmed 'the hook, hung up on'
}

# ---- kills of a push that waits ----

# The process below PID that runs refd, and its parent, receive-pack.
find_hook() { # PID
	local pid=$1 below
	while below=$(pgrep -o -P "$pid"); do
		# shellcheck disable=SC2034 # by name
		receive_pack=$pid
		pid=$below
	done
	hook=$pid
	[ "$(readlink "/proc/$hook/exe")" = "$(readlink -f "$REFD")" ]
}

waits() {
	[ "$("$REFD" stats | awk '/^waiting:/ { print $2 }')" = 1 ]
}

is_gone() {
	[ ! -e "/proc/$hook" ]
}

# Git tells the pusher that nothing happened. So nothing may happen later.
killed_waiting() { # NAME, of a variable with the pid
	local push i
	"$REFD" pause >/dev/null
	git -C "$T/work" push -q "$T/s.git" "$two:refs/heads/killed" \
		2>/dev/null &
	push=$!
	await 10 waits
	check "a push waits, before the end of $1" find_hook $push
	kill -9 "${!1}"
	if wait $push; then
		not_ok "without its $1 the push fails" 'it succeeds'
	fi
	await 10 is_gone
	# Long before the daemon would refuse because of the pause.
	for ((i = 0; i < 40; i++)); do
		! is_idle || break
		sleep 0.25
	done
	check "without its $1 nothing waits" is_idle
	"$REFD" resume >/dev/null
	create refs/heads/later | raw
	is "without its $1 the push stays undone" '' \
		"$(refs | grep refs/heads/killed)"
	git -C "$T/s.git" update-ref -d refs/heads/later
}

if ! command -v python3 >/dev/null; then
	skip 'hostile pushes' 'no python3'
	finish
fi
check 'the daemon starts' start_daemon
new_repo work
git clone -q --bare "$T/work" "$T/s.git"
one=$(git -C "$T/s.git" rev-parse HEAD)
two=$(new_commit s.git two "$one")
echo mine >"$T/victim"
"$REFD" enable --socket "$SOCKET" "$T/s.git" >/dev/null
# Files that the first push makes do not count.
create refs/heads/first | raw
outside >"$T/outside.before"
bad_names
bad_ids
many
hang_ups
git -C "$T/work" fetch -q "$T/s.git"
git -C "$T/work" fetch -q "$T/s.git" "$two"
killed_waiting hook
killed_waiting receive_pack
finish
