#!/bin/bash
# Proves that git push reports the truth while the daemon is killed. kill -9
# comes again and again during pushes of a hundred refs, at moments spread over
# the push, and a new daemon starts at once. A ref that git push calls done has
# the new value, a refused ref has the old value, and no later start finds
# unfinished work. The pushes create, update and delete; every third push is
# atomic. An unknown outcome may be either, and is reported as unknown.
# Alone: it kills at moments it has measured.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

rounds=10
refs=100
wrong=0
unknown=0
refused=0
done_=0
struck=0 # pushes during which the daemon died

make_repos() {
	local base i
	new_repo work
	base=$(git -C "$T/work" rev-parse HEAD)
	git -C "$T/work" update-ref refs/heads/base "$base"
	git clone -q --bare "$T/work" "$T/server.git"
	git -C "$T/server.git" config core.logAllRefUpdates true
	"$REFD" enable --socket "$SOCKET" "$T/server.git" >/dev/null
	# Every ref moves between these two values, or is created and deleted.
	one=$(new_commit work one "$base")
	two=$(new_commit work two "$base")
	git -C "$T/work" push -q "$T/server.git" "$one:refs/tags/one" \
		"$two:refs/tags/two"
	for ((i = 0; i < refs; i += 2)); do
		echo "create refs/heads/r$i $one"
	done | git -C "$T/server.git" update-ref --stdin
}

# Prints a refspec for each ref: to the other value, to nothing, or from
# nothing. The plan goes to $T/wanted as "REF OLD NEW", "-" for no ref.
plan() {
	local i old new
	git -C "$T/server.git" for-each-ref \
		--format='%(refname) %(objectname)' refs/heads/r* |
		sort >"$T/before"
	for ((i = 0; i < refs; i++)); do
		old=$(grep -m1 "^refs/heads/r$i " "$T/before")
		old=${old#* }
		case $old in
		'') old=- new=$one ;;
		"$one") new=$two ;;
		*) new=- ;;
		esac
		echo "refs/heads/r$i $old $new"
	done >"$T/wanted"
	sed 's/^\([^ ]*\) [^ ]* -$/:\1/; t; s/^\([^ ]*\) [^ ]* \(.*\)/+\2:\1/' \
		"$T/wanted"
}

# Measures a push without disturbance, in milliseconds, at most 999.
measure() {
	local specs begin
	mapfile -t specs < <(plan)
	begin=$(date +%s%3N)
	git -C "$T/work" push -q "$T/server.git" "${specs[@]}" 2>/dev/null
	took_ms=$(($(date +%s%3N) - begin))
	[ $took_ms -lt 1000 ] || took_ms=999
}

value() { # REF
	ref_of server.git "$1" || echo -
}

# Compares the report about each ref with the ref.
judge() { # ROUND
	local ref old new line now
	while read -r ref old new; do
		line=$(grep -P ":$ref\t" "$T/push.out")
		now=$(value "$ref")
		case $line in
		'!'*'outcome unknown'*)
			unknown=$((unknown + 1))
			[ "$now" = "$old" ] || [ "$now" = "$new" ]
			;;
		'!'*)
			refused=$((refused + 1))
			[ "$now" = "$old" ]
			;;
		?*)
			done_=$((done_ + 1))
			[ "$now" = "$new" ]
			;;
		*) false ;;
		esac || {
			wrong=$((wrong + 1))
			echo "round $1: $ref was $old, to be $new, is $now; said: $line"
		}
	done <"$T/wanted"
}

# All refs of an atomic push have the same fate.
one_fate() {
	local ref old new now fates=''
	while read -r ref old new; do
		now=$(value "$ref")
		if [ "$now" = "$new" ]; then fates+=n; else fates+=o; fi
	done <"$T/wanted"
	[[ $fates != *no* && $fates != *on* ]]
}

push_and_kill() { # ROUND
	local pid options=() specs before=$DAEMON
	mapfile -t specs < <(plan)
	[ $(($1 % 3)) -ne 0 ] || options=(--atomic)
	git -C "$T/work" push --porcelain ${options[@]+"${options[@]}"} \
		"$T/server.git" "${specs[@]}" >"$T/push.out" 2>"$T/push.err" &
	pid=$!
	own $pid
	sleep "$(printf '0.%03d' $((took_ms * (($1 - 1) % rounds + 1) / rounds)))"
	# If the push was over, the machine has become faster since the
	# measurement.
	if kill -0 $pid 2>/dev/null; then
		struck=$((struck + 1))
	else
		took_ms=$((took_ms / 2))
	fi
	kill_daemon
	# shellcheck disable=SC2119
	start_daemon || return 1
	reap $pid
	judge "$1"
	if [ ${#options[@]} -gt 0 ] && ! one_fate; then
		wrong=$((wrong + 1))
		echo "round $1: an atomic push came apart"
	fi
	[ "$before" != "$DAEMON" ]
}

check 'the daemon starts' start_daemon
make_repos
measure
round=0
while [ $round -lt $rounds ] || { [ $struck -lt 3 ] && [ $round -lt 40 ]; }; do
	push_and_kill $((round + 1)) || break
	round=$((round + 1))
done
check "$round rounds" test $round -ge $rounds
is 'nothing wrong was said' 0 $wrong
check "the daemon died under $struck of $round pushes" test $struck -ge 3
check "done $done_, refused $refused, unknown $unknown" \
	test $((done_ + refused + unknown)) -eq $((round * refs))
is 'and refd came back each time' 0 $unknown
no_locks 'no lock is left' server.git
check 'git fsck' git -C "$T/server.git" fsck --no-dangling --no-progress
finish
