#!/bin/bash
# Proves the gate with real git. `refd enable --gate` and `refd disable` leave
# hooks and configuration as they were, and an existing hook runs in all phases.
# Each change of a ref by plain git gives one change in history, with the values
# before and after; pack-refs and gc give none. A look finds the new names of
# renamed and copied branches, of which git tells nobody. A change is durable
# when git returns, by one flush for all that wait. refd's own updates do not
# run the gate, and cost the same flushes. A forged call of the hook records
# nothing false. Without a daemon, refd.fallback decides; before recovery, git is
# refused. Refnames that are too long for refd are left to git, with a line, and
# the other refs of the transaction are recorded; `refd update` and pushes leave
# the whole transaction to git. After any mix of plain git, pushes and kill -9 of
# the daemon, the feed leads to the refs on disk. After a power loss, recovery
# restores what git had written without a sync.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"
# shellcheck source=tests/lib/changes.sh
. "$ROOT/tests/lib/changes.sh"

gate=hooks/reference-transaction
export REFD_SOCKET=$SOCKET
unset GIT_REFLOG_ACTION

quiet() { # COMMAND...
	"$@" >"$T/said" 2>&1
}

news() { # NAME
	news_of "$1"
}

gated() { # NAME [bare]
	new_repo "$@" && quiet "$REFD" enable --gate "$T/$1"
}

expect() { # REPORTED-AS NAME LINE...
	is "$1" "$(printf '%s\n' "${@:3}" | sort)" "$(news "$2")"
}

# ---- enable and disable ----

there_and_back() {
	local hook=$T/one.git/$gate
	new_repo one.git bare
	cp "$T/one.git/config" "$T/config"
	check 'enable --gate' quiet "$REFD" enable --gate "$T/one.git"
	is 'the gate is a link to refd' "$(readlink -f "$REFD")" \
		"$(readlink "$hook")"
	check 'enable again: nothing to do' quiet "$REFD" enable "$T/one.git"
	check 'the gate stays' test -L "$hook"
	rm "$hook"
	check 'without the link: incomplete' grep -q enable-incomplete \
		<("$REFD" doctor "$T/one.git")
	check 'enable --all' quiet "$REFD" enable --all
	check 'the gate is back' test -L "$hook"
	check 'disable' quiet "$REFD" disable "$T/one.git"
	check 'no gate any more' test ! -e "$hook" -a ! -L "$hook"
	check 'the configuration is as before' \
		cmp "$T/config" "$T/one.git/config"

	# shellcheck disable=SC2016 # the hook expands these
	printf '#!/bin/sh\necho "$1 $(cat)" >>%q\n' "$T/calls" >"$hook"
	chmod +x "$hook"
	cp "$hook" "$T/hook"
	check 'enable beside a hook' quiet "$REFD" enable --gate "$T/one.git"
	check 'the hook is chained' cmp "$T/hook" "$hook.refd-chained"
	one=$(new_commit one.git 1)
	check 'git updates a ref' \
		git -C "$T/one.git" update-ref refs/heads/a "$one"
	is 'the chained hook ran in all phases' 'prepared committed' \
		"$(awk '$4 != "refs/heads/a" { print "!" }
			$1 != "preparing" { print $1 }' "$T/calls" | xargs)"
	expect 'recorded once' one.git "refs/heads/a - $one"
	printf '#!/bin/sh\nexit 1\n' >"$hook.refd-chained"
	check 'the chained hook refuses' not \
		quiet git -C "$T/one.git" update-ref refs/heads/b "$one"
	expect 'and nothing is recorded' one.git
	cp "$T/hook" "$hook.refd-chained"
	: >"$T/calls"
	check 'refd updates a ref' "$REFD" update --git-dir "$T/one.git" \
		refs/heads/c "$one"
	is 'the chained hook runs for refd too' \
		'preparing prepared committed' \
		"$(awk '{ print $1 }' "$T/calls" | xargs)"
	expect 'and the update is recorded once' one.git "refs/heads/c - $one"
	check 'disable beside a hook' quiet "$REFD" disable "$T/one.git"
	check 'the hook is back' cmp "$T/hook" "$hook"
	check 'the second name is gone' test ! -e "$hook.refd-chained"
	interrupted "$hook"
}

# Enable makes the second name before the gate takes the first.
interrupted() { # HOOK
	check 'enable' quiet "$REFD" enable --gate "$T/one.git"
	ln -f "$1.refd-chained" "$1"
	check 'an interrupted enable is repeated' \
		quiet "$REFD" enable --gate "$T/one.git"
	check 'the gate is there' test -L "$1"
	ln -f "$1.refd-chained" "$1"
	check 'an interrupted enable is undone' \
		quiet "$REFD" disable "$T/one.git"
	check 'the hook has its name' cmp "$T/hook" "$1"
	check 'and no other' test ! -e "$1.refd-chained"
	check 'enable once more' quiet "$REFD" enable --gate "$T/one.git"
	rm "$1"
	check 'disable after the gate was removed' \
		quiet "$REFD" disable "$T/one.git"
	check 'the hook has its name again' cmp "$T/hook" "$1"
	rm "$1"
}

not() { ! "$@"; }

# ---- each command of git ----

each_command() {
	local repo=$T/two.git a b c tag
	gated two.git bare
	a=$(new_commit two.git 1) b=$(new_commit two.git 2 "$a")
	c=$(new_commit two.git 3 "$b")
	g() { git -C "$repo" "$@" >"$T/said" 2>&1; }

	check 'update-ref' g update-ref refs/heads/x "$a"
	expect 'a new ref' two.git "refs/heads/x - $a"
	check 'update-ref again' g update-ref refs/heads/x "$b"
	expect 'without an old value: refd knows it' two.git \
		"refs/heads/x $a $b"
	check 'update-ref to the same value' g update-ref refs/heads/x "$b"
	expect 'no change' two.git
	check 'a wrong old value' not g update-ref refs/heads/x "$c" "$a"
	expect 'is no change' two.git
	check 'several at once' eval "printf '%s\n' \
		'create refs/heads/d/1 $a' 'create refs/heads/d/2 $b' \
		'update refs/heads/x $c' | g update-ref --stdin"
	expect 'are several changes' two.git "refs/heads/d/1 - $a" \
		"refs/heads/d/2 - $b" "refs/heads/x $b $c"
	check 'aborted after prepare, and tried again' eval "printf '%s\n' \
		start 'update refs/heads/x $b' prepare abort \
		start 'update refs/heads/x $b' commit \
		start 'update refs/heads/x $c' commit | g update-ref --stdin"
	expect 'is recorded' two.git "refs/heads/x $c $b" "refs/heads/x $b $c"
	check 'pack-refs' g pack-refs --all
	expect 'changes nothing' two.git
	check 'a packed branch is deleted' g branch -D d/1
	expect 'once' two.git "refs/heads/d/1 $a -"
	check 'a packed and moved ref' g update-ref refs/heads/d/2 "$c"
	check 'is deleted' g update-ref -d refs/heads/d/2
	expect 'both are seen' two.git "refs/heads/d/2 $b $c" \
		"refs/heads/d/2 $c -"
	check 'a ref in the place of the directory' \
		g update-ref refs/heads/d "$a"
	expect 'is seen' two.git "refs/heads/d - $a"
	check 'gc' g gc --quiet
	expect 'changes nothing either' two.git
	check 'a tag' g tag -a -m t t "$a"
	tag=$(ref_of two.git refs/tags/t)
	expect 'is seen' two.git "refs/tags/t - $tag"
	no_locks 'no lock is left' two.git
	prints_nothing 'the feed leads to the refs' differs two.git

	new_repo source
	git -C "$T/source" tag v1
	one=$(ref_of source HEAD)
	check 'fetch' g fetch -q "$T/source" '+HEAD:refs/heads/f' \
		'+refs/tags/*:refs/tags/*'
	expect 'is seen' two.git "refs/heads/f - $one" "refs/tags/v1 - $one"
	git -C "$T/source" commit -q --allow-empty -m 2
	check 'fetch again' g fetch -q "$T/source" '+HEAD:refs/heads/f'
	expect 'with the value before' two.git \
		"refs/heads/f $one $(ref_of source HEAD)"
	check 'push by refd' git -C "$T/source" push -q "$repo" HEAD:refs/heads/p
	expect 'is recorded once' two.git \
		"refs/heads/p - $(ref_of source HEAD)"
	g config --unset-all receive.procReceiveRefs
	check 'push by plain receive-pack' git -C "$T/source" push -q "$repo" \
		HEAD:refs/heads/q :refs/heads/p
	expect 'is seen' two.git "refs/heads/q - $(ref_of source HEAD)" \
		"refs/heads/p $(ref_of source HEAD) -"
	prints_nothing 'the feed still leads to the refs' differs two.git
}

in_a_work_tree() {
	local first second third
	gated three
	first=$(ref_of three HEAD)
	check 'commit' git -C "$T/three" commit -q --allow-empty -m 2
	second=$(ref_of three HEAD)
	is 'commit is seen' "refs/heads/main $first $second" \
		"$(news three | grep ' refs/heads\|^refs/heads')"
	git -C "$T/three" worktree add -q "$T/linked" 2>/dev/null
	news three >/dev/null
	check 'commit in a linked work tree' \
		git -C "$T/linked" commit -q --allow-empty -m 3
	third=$(git -C "$T/linked" rev-parse HEAD)
	is 'is seen' "refs/heads/linked $second $third" \
		"$(news three | grep '^refs/heads')"
	check 'reset' git -C "$T/linked" reset -q --hard HEAD~
	is 'reset is seen' "refs/heads/linked $third $second" \
		"$(news three | grep '^refs/heads')"
	check 'checkout --detach' git -C "$T/three" checkout -q --detach
	check 'commit without a branch' \
		git -C "$T/three" commit -q --allow-empty -m 4
	is 'HEAD is seen' "HEAD $second $(ref_of three HEAD)" \
		"$(news three | grep "^HEAD $second")"
}

# ---- new names of branches ----

is_told() { # NAME
	differs "$1" >/dev/null
}

head_of_history() { # NAME
	"$REFD" log --repo "$T/$1" --ref HEAD --json -n 1 | python3 -c '
import json, sys
print(json.loads(sys.stdin.readline())["target"])'
}

# Git calls no hook for the new name, and with reftables not for the old one.
renamed() {
	local repo=$T/names.git a
	gated names.git bare
	a=$(new_commit names.git 1)
	check 'the first transaction of the gate' eval "printf '%s\n' \
		'create refs/heads/'{m,n,c,d,e,current}' $a' |
		g update-ref --stdin"
	check 'HEAD' g symbolic-ref HEAD refs/heads/current
	news names.git >/dev/null
	check 'branch -c' g branch -c c c2
	check 'calls no hook' not is_told names.git
	check 'branch -m' g branch -m m m2
	check 'branch -M' g branch -M n d
	check 'branch -m of the current branch' g branch -m current now
	! git refs rename -h 2>&1 | grep -q 'git refs rename' ||
		check 'refs rename' g refs rename refs/heads/d refs/heads/d2
	[ "$REF_FORMAT" = files ] ||
		check 'the next deletion' g update-ref -d refs/heads/e
	check 'a look finds all new names' await 5 is_told names.git
	is 'and HEAD' refs/heads/now "$(head_of_history names.git)"
	news names.git >/dev/null
	check 'a further look' quiet "$REFD" look "$repo"
	expect 'finds nothing' names.git
}

look_of() { # REPO
	ps -ww -eo pid=,args= |
		awk -v repo="$1" '/ look --after / && $NF == repo { print $1 }'
}

end_looks() { # REPO
	look_of "$1" | xargs kill
}

# A look that finds a transaction of git tries again. Meanwhile, it holds
# nothing that the caller of git has open.
held() {
	local repo=$T/held.git a writer
	# A lock of reftables would stop git, too.
	[ "$REF_FORMAT" = files ] || return 0
	gated held.git bare
	a=$(new_commit held.git 1)
	check 'two branches' eval "printf '%s\n' \
		'create refs/heads/'{x,y}' $a' | g update-ref --stdin"
	echo "$a" >"$repo/refs/heads/z"
	mkfifo "$T/asked" "$T/pipe"
	git -C "$repo" update-ref --stdin <"$T/asked" >"$T/answered" &
	writer=$!
	exec 8>"$T/asked"
	printf '%s\n' start "update refs/heads/z $(new_commit held.git 2)" \
		prepare >&8
	check 'git holds a ref' await 5 grep -q 'prepare: ok' "$T/answered"
	timeout 30 cat "$T/pipe" &
	g branch -D x 8>&- 9>"$T/pipe"
	check 'a look holds no pipe of its caller' wait $!
	sleep 2
	check 'a ref that git holds waits' not is_told held.git
	# One try takes two seconds at most.
	sleep 1
	check 'for a look that tries again' end_looks "$repo"
	exec 8>&-
	wait $writer
}

# ---- forged calls ----

forged() {
	local hook=$T/two.git/$gate a zero
	a=$(git -C "$T/two.git" rev-parse refs/heads/x~)
	zero=$(printf '%040d' 0)
	news two.git >/dev/null
	lie() { # PHASE OLD NEW REF
		echo "$2 $3 $4" | (cd "$T/two.git" && GIT_DIR=. "$hook" "$1") \
			>"$T/said" 2>&1
	}
	check 'a false value' lie committed "$zero" "$a" refs/heads/x
	check 'a false deletion' lie committed "$a" "$zero" refs/heads/x
	check 'a false creation' lie committed "$zero" "$a" refs/heads/none
	expect 'are no changes' two.git
	prints_nothing 'and the feed leads to the refs' differs two.git
	check 'a line of no form is refused' not lie prepared x y z
	no_locks 'no lock is left' two.git
}

# ---- flushes ----

# The number of flushes of all processes while COMMAND runs.
flushes_of() { # COMMAND...
	local from
	from=$(od -An -tu8 -N8 "$T/count")
	"$@" >"$T/said" 2>&1
	echo $(($(od -An -tu8 -N8 "$T/count") - from))
}

many_refs() { # NAME PREFIX
	local i
	for ((i = 0; i < 500; i++)); do
		echo "create refs/heads/$2/$i $one"
	done | "$REFD" update -C "$T/$1" --stdin
}

# Work in the background may flush too: the least of four counts.
least_flushes() { # NAME
	local prefix
	for prefix in a b c d; do
		flushes_of many_refs "$1" $prefix
	done | sort -n | head -n 1
}

sixteen() {
	local i pids=()
	for ((i = 0; i < 16; i++)); do
		git -C "$T/two.git" -c reftable.lockTimeout=5000 \
			update-ref "refs/heads/at-once/$i" "$one" &
		pids+=($!)
	done
	wait "${pids[@]}"
}

flushes() {
	local without with at_once
	stop_daemon
	head -c 8 /dev/zero >"$T/count"
	printf '[checkpoint]\n\tinterval = 1h\n' >"$T/slow"
	REFD_FLUSH_COUNT=$T/count REFD_FLUSH_DELAY_US=100000 \
		LD_PRELOAD=$SLOW_FLUSH start_daemon --config "$T/slow"
	gated four.git bare
	new_repo five.git bare
	quiet "$REFD" enable "$T/five.git"
	one=$(new_commit two.git flushes)
	for name in four five; do
		git -C "$T/$name.git" fetch -q "$T/two.git" "$one"
		many_refs $name.git first >/dev/null
	done
	without=$(least_flushes five.git)
	with=$(least_flushes four.git)
	is 'as many flushes with the gate as without' "$without" "$with"
	is 'refd needs no session with the gate' 0 \
		"$(stat_of sessions_prepared)"
	at_once=$(flushes_of sixteen)
	# Tables are flushed too.
	[ "$REF_FORMAT" != files ] ||
		between 'sixteen gits at once share flushes' 1 "$at_once" 12
	is 'and each is recorded' 16 "$(news two.git | grep -c at-once)"
	stop_daemon
	start_daemon
}

# ---- without a daemon ----

away() {
	local repo=$T/two.git two
	stop_daemon
	check 'away: git goes on alone' g update-ref refs/heads/alone "$one"
	check 'and says so' grep -q 'git updates the refs alone' "$T/said"
	check 'and that history lacks the change' \
		grep -q 'history and feed lack' "$T/said"
	g config refd.fallback refuse
	check 'away, refd.fallback=refuse: git is refused' not \
		g update-ref refs/heads/never "$one"
	is 'nothing was written' '' "$(ref_of two.git refs/heads/never)"
	g config --unset refd.fallback
	start_daemon
	two=$(new_commit two.git back)
	check 'back: the next change' g update-ref refs/heads/alone "$two"
	expect 'has the value before' two.git "refs/heads/alone $one $two"
	stop_daemon
	repo=$T/late.git
	new_repo late.git bare
	two=$(new_commit late.git late)
	quiet "$REFD" enable --gate "$repo"
	g config refd.fallback refuse
	mkdir "$T/else"
	SERVED=$T/else start_daemon
	check 'not served, refd.fallback=refuse: git is refused' not \
		g update-ref refs/heads/never "$two"
	g config --unset refd.fallback
	check 'not served: git goes on' g update-ref refs/heads/late "$two"
	stop_daemon
	start_daemon
}

# ---- names that are too long for refd ----

# The last command of git was told that history lacks the only long name.
said_once() { # REPORTED-AS
	is "$1: says what history lacks" 1 "$(grep -c "could not record: refname \
is too long for refd: 'refs/heads/long.*history and feed lack" "$T/said")"
}

long_name() { # LONG
	local repo=$T/long.git long=$1 stdin=(update-ref --stdin)
	check 'a long name: git makes the ref' g update-ref "$long" "$a"
	said_once 'a long name'
	is 'a long name: is there' "$a" "$(ref_of long.git "$long")"
	expect 'a long name: has no record' long.git
	check 'a long name among others' eval "printf '%s\n' \
		'create refs/heads/1 $a' 'update $long $b' \
		'create refs/heads/two $b' | g ${stdin[*]}"
	said_once 'a long name among others'
	expect 'the others are recorded' long.git "refs/heads/1 - $a" \
		"refs/heads/two - $b"
	check 'a long name beside a deletion, at the second attempt' eval "
		printf '%s\n' start 'update $long $a' 'delete refs/heads/1' \
		prepare abort start 'update $long $a' 'delete refs/heads/1' \
		commit | g ${stdin[*]}"
	expect 'the deletion is recorded' long.git "refs/heads/1 $a -"
	check 'refd update leaves all to git' eval "printf '%s\n' \
		'update $long $b' 'delete refs/heads/two' |
		quiet '$REFD' update --git-dir '$repo' --stdin"
	check 'refd update says so' grep -q 'too long for refd.*; git does it' \
		"$T/said"
	said_once 'refd update'
	expect 'refd update: the other is recorded' long.git \
		"refs/heads/two $b -"
	check 'a push leaves all to git' g push . "+$a:$long" "$a:refs/heads/p"
	check 'a push says so' grep -q 'too long for refd.*; git updates' \
		"$T/said"
	said_once 'a push'
	expect 'a push: the other is recorded' long.git "refs/heads/p - $a"
	is 'a push: the long one is there' "$a" "$(ref_of long.git "$long")"
	g symbolic-ref HEAD "$long"
	news long.git >/dev/null
	check 'refd update by a symbolic ref' quiet "$REFD" update \
		--git-dir "$repo" HEAD "$b"
	said_once 'refd update by a symbolic ref'
	is 'git has moved the ref' "$b" "$(ref_of long.git "$long")"
	g symbolic-ref HEAD refs/heads/main
	news long.git >/dev/null
	check 'git packs a long name' g pack-refs --all
	expect 'git packs a long name: no change' long.git
	check 'a long name is deleted' g update-ref -d "$long"
	check 'a short name is deleted' g update-ref -d refs/heads/p
	news long.git >/dev/null
	prints_nothing 'a long name: the feed leads to the other refs' \
		differs long.git
	no_locks 'a long name: no lock is left' long.git
}

long_names() {
	local a b x
	gated long.git bare
	a=$(new_commit long.git 1) b=$(new_commit long.git 2 "$a")
	x=$(printf 'x%.0s' {1..199})
	long_name "refs/heads/long/$x/$x/$x/$x/$x/$x"
	# No file can have this name.
	[ "$REF_FORMAT" = files ] || long_name "refs/heads/long$x$x"
}

# Refs may await replay: git would compare with their stale values.
before_recovery() {
	local repo=$T/long.git long a
	long=refs/heads/late/$(printf 'x/%.0s' {1..600})x
	a=$(new_commit long.git late)
	stop_daemon
	mv "$SOCKET.replayed" "$T/replayed"
	start_stranger
	check 'before recovery: a long name is refused' not \
		g update-ref "$long" "$a"
	check 'before recovery: in words' grep -q \
		'may await recovery: refname is too long' "$T/said"
	check 'before recovery: objects elsewhere are refused' not quiet env \
		GIT_ALTERNATE_OBJECT_DIRECTORIES="$T/two.git/objects" \
		git -C "$repo" update-ref refs/heads/late-too "$a"
	mv "$T/replayed" "$SOCKET.replayed"
	check 'after recovery: a long name is taken' g update-ref "$long" "$a"
	check 'after recovery: objects elsewhere are taken' quiet env \
		GIT_ALTERNATE_OBJECT_DIRECTORIES="$T/two.git/objects" \
		git -C "$repo" update-ref refs/heads/late-too "$a"
	stop_stranger
	start_daemon
}

# ---- a mix ----

# Writers of plain git and refd beside each other, on few refs. Lists refs that
# git could not have recorded.
writer() { # NUMBER COUNT
	local i ref value
	RANDOM=$((seed + $1))
	for ((i = 0; i < $2; i++)); do
		ref=refs/heads/mix/$((RANDOM % 8))
		value=${values[RANDOM % ${#values[@]}]}
		case $((RANDOM % 8)) in
		0) "$REFD" update --git-dir "$T/mix.git" "$ref" "$value" ;;
		1) "$REFD" update --git-dir "$T/mix.git" -d "$ref" ;;
		2) git -C "$T/mix.git" update-ref -d "$ref" ;;
		3) git -C "$T/mix.git" pack-refs --all ;;
		4) git -C "$T/work" push -q "$T/mix.git" "+$value:$ref" ;;
		5) git -C "$T/mix.git" fetch -q "$T/work" "+main:$ref" ;;
		*) git -C "$T/mix.git" update-ref "$ref" "$value" ;;
		esac
	done >>"$T/out.$1" 2>&1
}

mix() {
	local i pids writers=4 count=25
	seed=${GATE_SEED:-$RANDOM}
	! is_long || count=60
	echo "# GATE_SEED=$seed"
	gated mix.git bare
	new_repo work
	for i in 1 2 3; do
		git -C "$T/work" commit -q --allow-empty -m "$i"
	done
	mapfile -t values < <(git -C "$T/work" rev-list main)
	git -C "$T/mix.git" fetch -q "$T/work" main
	for round in 1 2 3; do
		pids=()
		for ((i = 0; i < writers; i++)); do
			writer "$round$i" $count &
			pids+=($!)
		done
		wait "${pids[@]}"
		prints_nothing "round $round: the feed leads to the refs" \
			differs mix.git
		no_locks "round $round: no lock is left" mix.git
	done
	echo "# $(changes mix.git | wc -l) changes"
	is 'no git lacked the daemon' 0 \
		"$(cat "$T"/out.* | grep -c 'history and feed lack')"
}

# Git goes on alone while no daemon is there. Every other change is recorded.
killed() {
	local i pid lacking
	gated kill.git bare
	one=$(new_commit kill.git 1)
	two=$(new_commit kill.git 2)
	for ((i = 0; i < 4; i++)); do
		(
			n=0
			while [ ! -e "$T/enough" ]; do
				git -C "$T/kill.git" update-ref \
					"refs/heads/$i/$n" "$one" ||
					echo "refs/heads/$i/$n refused"
				n=$((n + 1))
			done 2>&1 | sed "s/^/$i /" >"$T/kill.$i"
		) &
		pids+=($!)
	done
	for i in 1 2 3; do
		sleep 0.7
		kill_daemon
		start_daemon
	done
	sleep 0.3
	touch "$T/enough"
	wait "${pids[@]}"
	lacking=$(cat "$T"/kill.? | grep -c 'history and feed lack')
	differs kill.git >"$T/differ"
	# A look may have found some of them already.
	between 'kill -9: only reported changes are missing in the feed' 0 \
		"$(grep -c '^>' "$T/differ")" "$lacking"
	is 'kill -9: no change that never was' 0 "$(grep -c '^<' "$T/differ")"
	echo "# $(wc -l <"$T/there") refs, $lacking of them without a daemon"
	no_locks 'kill -9: no lock is left' kill.git
}

# ---- a power loss ----

# Values that git neither syncs nor has on disk, without their last write.
cut() { # FILE-SYSTEM
	local i a b lost
	with_fs "$1" 300M || return 0
	stop_daemon
	start_daemon --config "$T/slow"
	git init -q --bare "$FS/cut.git"
	a=$(new_commit "${FS#"$T"/}/cut.git" 1)
	b=$(new_commit "${FS#"$T"/}/cut.git" 2)
	for ((i = 0; i < 100; i++)); do
		[ $i -lt 50 ] || echo "create refs/heads/$i $a"
	done | git -C "$FS/cut.git" update-ref --stdin
	sync -f "$FS"
	quiet "$REFD" enable --gate "$FS/cut.git"
	git -C "$FS/cut.git" config core.fsync none
	# The first update of a repository syncs the file system, and so does
	# an update while objects are younger than a tenth of a second.
	sleep 0.3
	git -C "$FS/cut.git" update-ref refs/heads/first "$b"
	quiet "$REFD" checkpoint
	for ((i = 0; i < 100; i++)); do
		case $((i / 25)) in
		[01]) echo "create refs/heads/$i $b" ;;
		2) echo "update refs/heads/$i $b" ;;
		3) echo "delete refs/heads/$i" ;;
		esac
	done | git -C "$FS/cut.git" update-ref --stdin
	kill -STOP "$DAEMON"
	"$BUILD/tests/helper/shutdown_fs" nologflush "$FS"
	kill_daemon
	umount "$FS" && mount -o loop "$FS.img" "$FS"
	for i in {0..74} first; do echo "$b refs/heads/$i"; done |
		sort >"$T/wanted"
	refs() {
		git -C "$FS/cut.git" for-each-ref \
			--format='%(objectname) %(refname)' 2>/dev/null | sort
	}
	lost=$(refs | diff - "$T/wanted" | grep -c '^[<>]')
	start_daemon
	is "$1: every change of git survives a power loss" '' \
		"$(refs | diff - "$T/wanted")"
	# refd flushes the tables that it reads.
	[ "$REF_FORMAT" != files ] ||
		check "$1: git had lost some of them" test "$lost" -gt 0
	echo "# $1: $lost differences before recovery"
}

start_daemon || exit 1
cd "$T" || exit 1
there_and_back
each_command
in_a_work_tree
renamed
held
forged
flushes
away
long_names
before_recovery
mix
killed
cut ext4
cut xfs
stop_daemon
is 'no complaint in the log' '' "$(complaints_beside_git)"
finish
