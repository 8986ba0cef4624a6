#!/bin/bash
# Proves the cost of every mode of durability, counted by strace and attributed
# to its purpose: transactions of 1 to 1000 refs, with new directories, with log
# lines, and with deletions of loose and packed refs. One file system makes many
# files durable in one flush (ext4), another needs syncfs for this (btrfs). The
# daemon itself promises nothing; every transaction asks for its mode through
# git's configuration. The sums are the table in docs/durability.md.
# Slow: each mode runs on three file systems.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

flushes=$T/flushes

if ! command -v strace >/dev/null || ! strace -o /dev/null true 2>/dev/null; then
	skip modes 'no strace, or it may not trace'
	finish
fi

# Nothing in the background blurs the count.
cat >"$T/config" <<'CONFIG'
[durability]
	mode = none
	interval = 1h
[checkpoint]
	interval = 1h
[pack]
	loose-refs = 0
CONFIG

attach() {
	: >"$flushes"
	strace -f -y -q -o "$flushes" --seccomp-bpf \
		-e trace=fsync,fdatasync,syncfs,sync_file_range \
		-p "$DAEMON" 2>"$T/strace.err" &
	tracer=$!
	own "$tracer"
	await_tracer "$tracer"
}

count() { # [-e] PATTERN...
	grep -c "$@" "$T/cost"
}

# Runs refd update --stdin in MODE and prints its cost: flushes of the journal,
# of values, of logs, of directories, of packed-refs.new, of many files at once,
# and of other files.
cost_of() { # MODE COUNT COMMAND-WITH-#-FOR-THE-NUMBER
	local from i all
	from=$(wc -l <"$flushes")
	for ((i = 1; i <= $2; i++)); do echo "${3//#/$i}"; done |
		GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=refd.durability \
			GIT_CONFIG_VALUE_0=$1 \
			"$REFD" update -C "$repo" --stdin >"$T/out" 2>&1 ||
		{ sed 's/^/# /' "$T/out"; echo failed; return 1; }
	tail -n +$((from + 1)) "$flushes" |
		grep -v -e resumed -e exited -e sync_file_range >"$T/cost"
	journal=$(count 'fdatasync.*/journal.db-wal>')
	values=$(count "fsync.*/refd/stage/[0-9a-f]*-[0-9]\{1,9\}>")
	logs=$(count 'fsync.*\.git/logs/.*/[0-9]*-\?[0-9]\+>')
	packed=$(count 'fsync.*/packed-refs.new>')
	many=$(count -e 'syncfs(' -e 'fsync.*/refd/stage/[0-9a-f]*-4294967295>')
	dirs=$(grep 'fsync.*\.git' "$T/cost" | sed 's/[^<]*<\([^>]*\)>.*/\1/' |
		while read -r dir; do [ ! -d "$dir" ] || echo; done | wc -l)
	all=$((journal + values + logs + packed + many + dirs))
	echo "$journal+$values+$logs+$dirs+$packed+$many" \
		"$(($(wc -l <"$T/cost") - all))"
}

costs() { # MODE WHAT WANTED COUNT COMMAND
	is "$on, $1, $2: journal+values+logs+directories+packed-refs+many" \
		"$3 0" "$(cost_of "$1" "$4" "$5")"
}

# The cost for 1, 10, 90, 100 and 1000 refs: the parts that do not depend on the
# number, and whether each value needs a flush. For 100 new refs and more, no
# value does, because the refs go to packed-refs.
per_mode() { # MODE JOURNAL EACH LOGS DIRS MANY
	local mode=$1 journal=$2 each=$3 logs=$4 dir=$5 many=$6 n d=refs/heads/$1
	"$REFD" update -C "$repo" "$d/warm" "$one"
	for n in 1 10 90; do
		costs "$mode" "$n created" \
			"$journal+$((each * n))+0+$dir+0+$many" \
			"$n" "create $d/$n-# $one"
	done
	costs "$mode" '10 moved' "$journal+$((each * 10))+0+$dir+0+$many" \
		10 "update $d/10-# $two $one"
	costs "$mode" '10 created, two directories made' \
		"$journal+$((each * 10))+0+$((dir * 3))+0+$many" \
		10 "create $d/x/y/# $one"
	# refd opens the repository again for this, and the id must be older
	# than some sync.
	"$REFD" checkpoint >/dev/null
	git -C "$repo" config core.logAllRefUpdates always
	costs "$mode" '10 moved, with new logs' \
		"$journal+$((each * 10))+$((logs * 10))+$((dir * 3))+0+$many" \
		10 "update $d/90-# $two $one"
	costs "$mode" '10 moved, with logs' \
		"$journal+$((each * 10))+$((logs * 10))+$dir+0+$many" \
		10 "update $d/90-# $one $two"
	git -C "$repo" config core.logAllRefUpdates false
	# The directories of the refs, of their logs, and of packed-refs.
	costs "$mode" '10 loose deleted' "$journal+0+0+$((dir * 3))+0+$(((many + 1) / 2))" \
		10 "delete $d/90-#"
	for n in 100 1000; do
		costs "$mode" "$n created" \
			"$journal+0+0+$((dir * 2))+1+$(((many + 1) / 2))" \
			"$n" "create $d/$n-# $one"
	done
	# The refs are loose now.
	costs "$mode" '1000 moved' "$journal+$((each * 1000))+0+$dir+0+$many" \
		1000 "update $d/1000-# $two $one"
	git -C "$repo" pack-refs --all
	costs "$mode" '10 packed deleted' \
		"$journal+0+0+$((dir * 3))+1+$(((many + 1) / 2))" \
		10 "delete $d/10-#"
	# Into a large packed-refs a hundred would not go.
	git -C "$repo" for-each-ref --format='delete %(refname)' "$d" |
		git -C "$repo" update-ref --stdin
}

# Returns 1 if this file system is not available.
modes_on() { # FILE-SYSTEM SIZE
	on=$1
	with_fs "$1" "$2" || return
	STATE=$FS/state
	SERVED=$FS
	repo=$FS/repo.git
	check "$on: the daemon starts" start_daemon --config "$T/config"
	git init -q --bare "$repo"
	git -C "$repo" config core.logAllRefUpdates false
	tree=$(git -C "$repo" mktree </dev/null)
	one=$(git -C "$repo" commit-tree -m one "$tree")
	two=$(git -C "$repo" commit-tree -m two "$tree")
	# The first transaction makes repository and objects durable.
	sleep 0.3
	git -C "$repo" config refd.durability journal
	"$REFD" update -C "$repo" refs/heads/first "$one"
	# A new repository starts a new round of the WAL, which costs a flush.
	"$REFD" checkpoint >/dev/null
	git -C "$repo" config --unset refd.durability
	check "$on: strace watches" attach
	per_mode none 0 0 0 0 0
	per_mode periodic 0 0 0 0 0
	per_mode journal 1 0 0 0 0
	per_mode batch 1 0 0 0 2
	per_mode fsync 1 1 1 1 0
	kill -INT "$tracer"
	reap "$tracer"
	check "$on: the daemon stops" stop_daemon
}

# Mode none never checkpoints anything.
is_checkpointed() { # MODE
	[ "$1" = none ] || "$REFD" status -v | awk '/^last_lsn/ { last = $2 }
		/^forgotten_lsn/ { forgotten = $2 }
		END { exit last != forgotten }'
}

# The daemon's own mode, and its work in the background.
in_background() { # MODE SYNCFS JOURNAL-IS-FLUSHED
	local from
	printf '[durability]\n\tmode = %s\n\tinterval = 300ms\n' "$1" \
		>"$T/config2"
	printf '[checkpoint]\n\tinterval = 300ms\n' >>"$T/config2"
	check "a daemon in mode $1" start_daemon --config "$T/config2"
	is "$1: its status says so" "$1" \
		"$("$REFD" status -v | sed -n 's/^durability: *//p')"
	"$REFD" update -C "$repo" "refs/heads/warm-$1" "$one"
	await 5 is_checkpointed "$1"
	check "$1: strace watches" attach
	from=$(wc -l <"$flushes")
	"$REFD" update -C "$repo" "refs/heads/background-$1" "$one"
	await 5 is_checkpointed "$1"
	# More than one interval, without further work.
	sleep 1
	tail -n +$((from + 1)) "$flushes" | grep -v resumed >"$T/cost"
	is "$1: the checkpoint's syncfs" "$2" "$(count 'syncfs(')"
	is "$1: flushes of the journal, sooner or later" "$3" \
		"$(($(count 'fdatasync.*/journal.db-wal>') > 0))"
	kill -INT "$tracer"
	reap "$tracer"
	check "$1: the daemon stops" stop_daemon
}

# A client asks for a mode through git's configuration.
wishes() {
	git -C "$repo" config refd.durability always
	check 'a wish that means nothing is an error' \
		wishes_fail "refd.durability is 'always'" \
		"$REFD" update -C "$repo" refs/heads/wish "$one"
	prints_nothing 'and nothing happened' \
		git -C "$repo" for-each-ref refs/heads/wish
	"$REFD" enable "$repo" >/dev/null
	git init -q "$T/work"
	git -C "$T/work" commit -q --allow-empty -m pushed
	check 'nor does a push get less than what was meant' \
		wishes_fail "refd.durability is 'always'" \
		git -C "$T/work" push "$repo" HEAD:refs/heads/wish
	git -C "$repo" config refd.durability batch
	check 'a push asks by it too' \
		git -C "$T/work" push -q "$repo" HEAD:refs/heads/wish
}

wishes_fail() { # TEXT COMMAND...
	local text=$1
	shift
	! "$@" >"$T/out" 2>&1 && grep -q "$text" "$T/out"
}

if modes_on ext4 128M; then
	in_background none 0 0
	in_background periodic 1 1
	in_background journal 1 1
	check 'a daemon' start_daemon --config "$T/config"
	wishes
	check 'stops' stop_daemon
fi
modes_on btrfs 256M
finish
