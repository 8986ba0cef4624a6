#!/bin/bash
# Proves that users of a daemon, and users with write access to the files of a
# repository, neither stop an innocent user of the same daemon nor reach any
# file outside of the repository:
#	P1..P5, G1, Q1	a pusher, who may push to a repository of his own: G1 with
#		notes of the gate, Q1 with questions about large outcomes
#	M1..M7	a member of a shared repository's group, who changes any file of
#		the repository at any time, and pushes to the repository
#	O1	an owner of other repositories does M1..M6 to a daemon of his own
# Required during each attack: no request of the innocent user fails, the 99th
# percentile of the latency stays below five times the value without an attack,
# the daemon's memory grows by less than 200 MB, the daemon lives and serves
# afterwards, the innocent user's repository is in order, and a tree outside
# stays the same to the byte, with modes and times. M5 runs again under TSan, if
# PROFILE=tsan is built.
#
# Attackers, and the daemon of O1, have one processor. ATTACK_SECONDS (60) is
# the time of each attack; ATTACKS (all) names the attacks to run.
#
# A 99th percentile below 50 ms is never too much. Without an attack the value
# is a few milliseconds. A single turn of the scheduler, or a flush of a shared
# disk, multiplies such a small value. A push that runs git and its hooks takes
# longer than 50 ms even without an attack.
# Alone: it measures times.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

tsan=$BUILD/tsan/bin
with_people attacks || finish
seconds=${ATTACK_SECONDS:-60}
FLOOR_US=50000
MEMORY_KB=200000
GIT=64001 INNOCENT=64002 PUSHER=64003 MEMBER=64004 OTHER=64005
# The groups of the repositories i.git, a.git and m.git.
I_GROUP=64012 A_GROUP=64013 M_GROUP=64014
last_cpu=$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status)
last_cpu=${last_cpu##*[,-]}

cp -r "$ROOT/tests/hostile" "$ROOT/tests/python" "$T"
cp -r "$ROOT/client/python/refd" "$T/python"
mkdir "$T/tsan"
[ ! -d "$tsan" ] || cp -r "$tsan/." "$T/tsan"
chmod -R a+rX "$T/hostile" "$T/python" "$T/tsan"
for uid in $GIT $INNOCENT $PUSHER $MEMBER $OTHER; do
	install -d -m 700 -o "$uid" -g "$uid" "$T/of$uid"
	printf '[safe]\n\tdirectory = *\n[gc]\n\tauto = 0\n' >"$T/of$uid/.gitconfig"
done

# Replaces this shell, so that the shell's process id becomes the program's.
become() { # UID GROUPS COMMAND...
	local uid=$1 groups=$2
	shift 2
	exec setpriv --reuid "$uid" --regid "$uid" --groups "$groups" \
		env HOME="$T/of$uid" "$@"
}

# ---- a place for one attack ----

# A repository of UID with write access for GROUP, with packed tags and commits;
# prints the id of a commit.
shared_repo() { # UID GROUP PATH
	local GROUPS_OF=$2 nr
	as "$1" git init -q --bare "$3"
	as "$1" git -C "$3" config core.sharedRepository group
	for nr in {1..300}; do
		printf 'commit refs/heads/main\nmark :%d\ncommitter A <a@b> %d +0000\ndata 1\nx' \
			"$nr" $((1785542400 + nr))
		printf '\ntag t%d\nfrom :%d\ntagger A <a@b> 1785542400 +0000\ndata 1\ny\n' \
			"$nr" "$nr"
	done | as "$1" git -C "$3" fast-import --quiet
	as "$1" git -C "$3" rev-parse refs/heads/main
	as "$1" git -C "$3" for-each-ref --format='delete %(refname)' |
		as "$1" git -C "$3" update-ref --stdin
	chgrp -R "$2" "$3"
	chmod -R g+rwX "$3"
	find "$3" -type d -exec chmod g+s {} +
}

# A closed tree that nobody may touch, with the target names of the links of M5.
make_outside() { # UID DIRECTORY
	local nr
	as "$1" git init -q --bare "$2"
	as "$1" git init -q --bare "$2/closed.git"
	as "$1" git -C "$2/closed.git" hash-object -t tree -w /dev/null >"$T/out"
	as "$1" mkdir -p "$2/refs/heads/m" "$2/logs/refs/heads/m" "$2/refd/stage"
	for nr in {0..19}; do
		echo "$commit" >"$2/refs/heads/m/$nr"
		echo "a line of a log" >"$2/logs/refs/heads/m/$nr"
	done
	echo 'a secret' >"$2/secret"
	echo "# pack-refs with: peeled fully-peeled sorted " >"$2/packed-refs"
	echo 'a line of a log' >"$2/logs/HEAD"
	chown -R "$1:$1" "$2"
	chmod 700 "$2"
}

look_outside() {
	find "$A/outside" -printf '%P %y %m %U %G %s %T@ %C@ %l\n' | sort
	find "$A/outside" -type f -exec sha256sum {} + | sort
}

daemon_as() { # UID GROUPS SOCKET STATE ROOT
	printf '[daemon]\nroot = %s\n' "$5" >"$4.config"
	printf 'allowUser = %s\n' $INNOCENT "$PUSHER" "$MEMBER" >>"$4.config"
	become "$1" "$2" "$REFD" daemon --socket "$3" --state "$4" \
		--config "$4.config" >>"$LOG" 2>&1 </dev/null &
	own $!
}

# A daemon of GIT, with repositories, and a tree that the daemon must not touch.
arena() { # NAME
	A=$T/$1
	LOG=$A/log
	SOCKET=$A/run/sock
	export REFD_SOCKET=$SOCKET
	install -d -m 755 -o $GIT -g $GIT "$A" "$A/srv" "$A/run"
	commit=$(shared_repo $GIT $I_GROUP "$A/srv/i.git")
	shared_repo $GIT "$A_GROUP" "$A/srv/a.git" >"$T/out"
	shared_repo $GIT "$M_GROUP" "$A/srv/m.git" >"$T/out"
	make_outside $GIT "$A/outside"
	daemon_as $GIT $I_GROUP,$A_GROUP,$M_GROUP "$SOCKET" "$A/state" "$A/srv"
	DAEMON=$!
	"$REFD" ping --socket "$SOCKET" --wait 120 >/dev/null || {
		not_ok "$1: the daemon starts" "$(tail -n 5 "$LOG")"
		return 1
	}
	look_outside >"$A/before"
}

leave_arena() {
	stop_daemon
	[ "$scenario_bad" -gt 0 ] || rm -rf "$A"
}

# ---- users ----

innocent() { # KIND RATE SECONDS
	become $INNOCENT $I_GROUP python3 -B "$T/hostile/innocent.py" "$1" \
		"$SOCKET" "$A/srv/i.git" "$commit" "$2" "$3" \
		>"$A/said.$1" 2>&1 &
	own $!
	innocents+=($!)
}

start_innocents() { # SECONDS
	innocents=()
	innocent updates 20 "$1"
	innocent commits 5 "$1"
	innocent questions 5 "$1"
}

await_innocents() {
	local pid
	for pid in "${innocents[@]}"; do reap "$pid"; done
}

attackers=()
endless=()
bad_user() { # UID GROUP COMMAND...
	become "$1" "$2" taskset -c "$last_cpu" "${@:3}" \
		>>"$A/said.attack" 2>&1 &
	own $!
}

attacker() { # UID GROUP COMMAND...
	bad_user "$@"
	attackers+=($!)
}

attack() { # UID GROUP KIND SOCKET REPOSITORY SECONDS
	attacker "$1" "$2" python3 -B "$T/hostile/attack.py" "$3" "$4" "$5" \
		"$commit" "$6" "$A/outside"
}

pusher() { # KIND
	attack "$PUSHER" "$A_GROUP" "$1" "$SOCKET" "$A/srv/a.git" "$seconds"
}

member() { # KIND
	attack "$MEMBER" "$M_GROUP" "$1" "$SOCKET" "$A/srv/m.git" "$seconds"
}

# The clients end with the daemon.
storm() { # CLIENTS REFS
	bad_user "$PUSHER" "$A_GROUP" "$BUILD/tests/helper/storm" \
		--socket "$SOCKET" --repo "$A/srv/a.git" --oid "$commit" \
		--clients "$1" --txns $((9000000 / $1)) --refs "$2" \
		--prefix refs/heads/storm
	endless+=($!)
}

is_there() { # PID
	[ -e "/proc/$1/status" ] && ! grep -q '^State:.Z' "/proc/$1/status"
}

end_attackers() { # NAME
	local pid
	for pid in ${attackers[@]+"${attackers[@]}"}; do reap "$pid"; done
	for pid in ${endless[@]+"${endless[@]}"}; do
		check "$1: the attacker's own program lives" is_there "$pid"
		kill -KILL "$pid"
		reap "$pid" 2>"$T/out"
	done
	attackers=()
	endless=()
}

# ---- the attacks ----

attack_G1() { pusher notes; }
attack_Q1() { pusher outcomes; }
attack_P1() { pusher tags; }
attack_P2() { pusher halves; }
attack_P3() {
	# Names that almost match a pattern of many stars.
	GROUPS_OF=$A_GROUP as "$PUSHER" "$BUILD/tests/helper/storm" \
		--socket "$SOCKET" --repo "$A/srv/a.git" --oid "$commit" \
		--clients 1 --txns 20 --refs 1000 --create \
		--prefix "refs/heads/$(printf 'a%.0s' {1..200})" >"$T/out"
	pusher globs
}
attack_P4a() { storm 32 1; }
attack_P4b() { storm 2 100000; }
attack_P5() {
	local kind
	for kind in slow huge half disorder mangled deaf crowd gifts; do
		attacker "$PUSHER" "$A_GROUP" python3 -B "$T/hostile/hostile.py" \
			"$kind" "$SOCKET" "$A/srv/a.git" "$commit" \
			"$A/srv/i.git" "$seconds" 20
	done
	pusher holders
}
attack_M1() { member packed; }
attack_M2() { member files; }
attack_M3() { member packs; }
attack_M4() { member config; }
attack_M5() { member race; }
attack_M6() { member alternates; }
attack_M7() { member many; }

# Each attack in a separate repository, all at the same time.
attack_O1() {
	local kind others
	install -d -o "$OTHER" -g "$OTHER" "$A/other" "$A/other/srv"
	daemon_as "$OTHER" "$OTHER" "$A/other/sock" "$A/other/state" "$A/other/srv"
	others=$!
	taskset -a -c -p "$last_cpu" "$others" >"$T/out"
	endless+=("$others")
	"$REFD" ping --socket "$A/other/sock" --wait 120 >"$T/out" ||
		not_ok 'O1: the other daemon starts' "$(tail -n 5 "$LOG")"
	for kind in packed files packs config race alternates; do
		shared_repo "$OTHER" "$OTHER" "$A/other/srv/$kind.git" >"$T/out"
		attack "$OTHER" "$OTHER" "$kind" "$A/other/sock" \
			"$A/other/srv/$kind.git" "$seconds"
	done
}

# ---- results ----

# Judges the answers to one kind of requests of the innocent user.
judge_kind() { # NAME KIND
	local said_all=() nr failed p99 worst limit=$((5 * alone[$2]))
	read -r -a said_all <"$A/said.$2"
	nr=${said_all[1]:-0} failed=${said_all[2]:-all}
	p99=${said_all[4]:-0} worst=${said_all[5]:-0}
	[ $limit -gt $FLOOR_US ] || limit=$FLOOR_US
	is "$1: no failure of $nr $2" 0 "$failed"
	[ "$failed" = 0 ] || echo "    ${said_all[*]:6}"
	[ -n "$under_tsan" ] ||
		check "$1: $2: 99% within $p99 us, ${alone[$2]} us alone" \
			test "$p99" -gt 0 -a "$p99" -lt $limit
	said+=" $2 $nr/$failed p99 $((p99 / 1000)).$((p99 / 100 % 10))"
	said+=" alone $((alone[$2] / 1000)).$((alone[$2] / 100 % 10))"
	said+=" max $((worst / 1000)) ms;"
}

# An attack without effect proves nothing.
has_attacked() {
	grep -qE 'turns [1-9]' "$A/said.attack" ||
		[ -n "$(git --git-dir="$A/srv/a.git" -c safe.directory='*' \
			for-each-ref --count=1 refs/heads/storm)" ]
}

peak_kb() {
	awk '/^VmHWM/ { print $2 }' "/proc/$DAEMON/status" 2>/dev/null
}

judge_daemon() { # NAME RSS-BEFORE
	local grown=$(($(peak_kb) - $2))
	said+=" memory +$((grown / 1000)) MB"
	check "$1: the daemon lives" is_there "$DAEMON" || return
	[ -n "$under_tsan" ] || check "$1: memory: $grown kB more" \
		test $grown -lt $MEMORY_KB
	is "$1: no report of a sanitizer" '' "$(grep -m 1 Sanitizer "$LOG")"
	GROUPS_OF=$I_GROUP
	check "$1: it serves" as $INNOCENT "$REFD" update --git-dir \
		"$A/srv/i.git" refs/heads/innocent/after "$commit"
	unset GROUPS_OF
}

judge_files() { # NAME
	look_outside >"$A/after"
	is "$1: nothing outside changed" '' \
		"$(diff "$A/before" "$A/after" | head -n 5)"
	is "$1: nor anything foreign in i.git" '' \
		"$(git --git-dir="$A/srv/i.git" -c safe.directory='*' \
			for-each-ref --format='%(refname)' |
			grep -v '^refs/heads/innocent/')"
	is "$1: i.git is in order" ' 0 errors, 0 warnings' "$(as $GIT "$REFD" \
		verify --state "$A/state" "$A/srv/i.git" 2>&1 |
		grep -o ' 0 errors, 0 warnings')"
}

run_attack() { # ATTACK [under TSan]
	local name=$* said='' before stalls under_tsan=${2:-} kind
	arena "$1" || return
	before=$(daemon_rss_kb)
	echo 5 >"/proc/$DAEMON/clear_refs"
	start_innocents "$seconds"
	"attack_$1"
	sleep $((seconds / 2))
	stalls=$(timeout 10 "$REFD" status -v --socket "$SOCKET" 2>&1 |
		grep -E 'stall|^state:' | paste -sd ' ')
	await_innocents
	end_attackers "$name"
	check "$name: there was an attack" has_attacked
	for kind in updates commits questions; do
		judge_kind "$name" "$kind"
	done
	judge_daemon "$name" "$before"
	judge_files "$name"
	echo "$name:$said; status: ${stalls:-none}"
	sed "s/^/    $name: /" "$A/said.attack" | tail -n 12 | tr -d '\0'
	leave_arena
}

# Times and memory mean nothing under TSan.
under_tsan() {
	local REFD=$T/tsan/refd
	if [ -x "$REFD" ]; then
		run_attack M5 'under TSan'
	else
		skip 'M5 under TSan' 'PROFILE=tsan is not built'
	fi
}

declare -A alone
measure_alone() {
	local kind p99 time=$((seconds < 20 ? seconds : 20))
	arena alone || finish
	start_innocents $time
	await_innocents
	for kind in updates commits questions; do
		read -r _ _ _ _ p99 _ <"$A/said.$kind"
		alone[$kind]=${p99:-0}
		check "alone: $(cat "$A/said.$kind")" \
			grep -qE "^$kind [1-9][0-9]* 0 " "$A/said.$kind"
	done
	leave_arena
}

measure_alone
for attack in ${ATTACKS:-P1 P2 P3 P4a P4b P5 G1 Q1 M1 M2 M3 M4 M5 M6 M7 O1 TSan}; do
	case $attack in
	TSan) under_tsan ;;
	*) run_attack "$attack" ;;
	esac
done
finish
