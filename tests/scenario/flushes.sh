#!/bin/bash
# Proves the cost of durability in flushes, counted and not timed. The daemon
# runs under strace, and every flush is attributed to its purpose. A batch costs
# one flush of the journal, however many refs come from a transaction, a push or
# many clients. A few new objects cost no flush, many objects one syncfs, and a
# pack a few fsyncs. Deletions cost one packed-refs.new.
# Alone: how many share a flush depends on what else runs.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

flushes=$T/flushes

if ! command -v strace >/dev/null || ! strace -o /dev/null true 2>/dev/null; then
	skip flushes 'no strace, or it may not trace'
	finish
fi

# Flushes of checkpoints would only blur the count.
cat >"$T/config" <<'CONFIG'
[checkpoint]
	interval = 1h
CONFIG

attach() { # OPTION...
	strace -f -y -q -o "$flushes" "$@" \
		-e trace=fsync,fdatasync,syncfs,sync_file_range \
		-p "$DAEMON" 2>"$T/strace.err" &
	tracer=$!
	own "$tracer"
	await_tracer "$tracer"
}

# Runs a command and counts its flushes: $journal, $barriers, $packed, $others.
cost_of() { # COMMAND...
	local from
	from=$(wc -l <"$flushes")
	"$@" >"$T/out" 2>&1 || { cat "$T/out"; return 1; }
	tail -n +$((from + 1)) "$flushes" |
		grep -v -e resumed -e exited >"$T/cost"
	journal=$(grep -c 'fdatasync.*/journal.db-wal>' "$T/cost")
	barriers=$(grep -c 'syncfs(' "$T/cost")
	packed=$(grep -c 'fsync.*/packed-refs.new>' "$T/cost")
	others=$(grep -v -e journal.db-wal -e 'syncfs(' -e packed-refs.new \
		-c "$T/cost")
}

costs() { # NAME JOURNAL BARRIERS PACKED
	is "$1: journal, barriers, packed-refs, anything else" \
		"$2 $3 $4 0" "$journal $barriers $packed $others"
}

many() { # COUNT COMMAND-WITH-#-FOR-THE-NUMBER
	local i
	for ((i = 1; i <= $1; i++)); do echo "${2//#/$i}"; done
}

update_many() { # COUNT COMMAND
	many "$@" | "$REFD" update -C "$T/repo.git" --stdin
}

check 'the daemon starts' start_daemon --config "$T/config"
new_repo repo.git bare
one=$(new_commit repo.git one)
two=$(new_commit repo.git two "$one")
"$REFD" enable "$T/repo.git" >/dev/null
# The first transaction makes the repository known, is the first of a WAL,
# which costs SQLite a flush more, and makes the objects durable: these are
# known to be so where they are older than the barrier by a tenth of a second.
sleep 0.3
"$REFD" update -C "$T/repo.git" refs/heads/first "$one"
check 'strace watches' attach

cost_of "$REFD" update -C "$T/repo.git" refs/heads/third "$one"
costs 'one ref' 1 0 0
cost_of update_many 90 "create refs/heads/loose/# $one"
costs '90 refs created in one transaction' 1 0 0
cost_of update_many 90 "delete refs/heads/loose/# $one"
costs '90 loose refs deleted in one transaction' 1 0 0
cost_of update_many 1000 "create refs/heads/many/# $one"
costs '1000 refs created in one transaction, packed' 1 0 1
cost_of update_many 1000 "update refs/heads/many/# $two $one"
costs '1000 refs moved in one transaction' 1 0 0
cost_of update_many 1000 "update refs/heads/many/# $two"
costs '1000 confirmed in one transaction' 1 0 0
cost_of update_many 300 "delete refs/heads/many/# $two"
costs '300 refs deleted in one transaction, loose and packed' 1 0 1
git -C "$T/repo.git" pack-refs --all
many 1000 'delete refs/heads/many/#' | tail -n 300 >"$T/input"
cost_of "$REFD" update -C "$T/repo.git" --stdin <"$T/input"
costs '300 packed refs deleted in one transaction' 1 0 1
is 'all of it happened' 400 \
	"$(git -C "$T/repo.git" for-each-ref refs/heads/many | wc -l)"

# A batch ends after 10 ms of preparing, under strace perhaps before all hundred
# updates. Sets $batches to the number of batches of the last command.
few_batches() {
	local before=${batches_before:-0}
	batches_before=$(stat_of batches)
	batches=$((batches_before - before))
	check "in $batches batch(s)" test "$batches" -ge 1 -a "$batches" -le 25
}

batches_before=$(stat_of batches)
new_repo work
many 90 "create refs/heads/push/# $(git -C "$T/work" rev-parse HEAD)" |
	git -C "$T/work" update-ref --stdin
cost_of git -C "$T/work" push "$T/repo.git" 'refs/heads/push/*'
few_batches
costs 'a push of 90 branches with new objects' "$batches" 0 0
for ((i = 0; i < 100; i++)); do echo $i >"$T/work/$i"; done
git -C "$T/work" add .
git -C "$T/work" commit -q -m many
git -C "$T/repo.git" config receive.unpackLimit 1000
cost_of git -C "$T/work" push "$T/repo.git" HEAD:refs/heads/objects
few_batches
costs 'a push of a hundred objects' "$batches" 1 0
# They came within a tenth of a second of the last syncfs, or not.
sleep 0.3
cost_of git -C "$T/work" push "$T/repo.git" 'refs/heads/push/*:refs/heads/p2/*'
few_batches
check "a push of the same objects under 90 other names: $barriers syncfs" \
	test "$journal $packed $others" = "$batches 0 0" -a "$barriers" -le 1

# Objects kept as a pack: refd syncs the two files and their directory, or the
# whole file system, by the shorter recent duration.
git -C "$T/repo.git" config receive.unpackLimit 1
"$REFD" update -C "$T/repo.git" refs/heads/settled \
	"$(new_commit repo.git settled)"
sleep 0.3
git -C "$T/work" commit -q --allow-empty -m packed
cost_of git -C "$T/work" push "$T/repo.git" HEAD:refs/heads/packed
check "a push that is kept as a pack: $barriers syncfs, or $others fsyncs" \
	test "$journal $barriers $others" = '1 0 3' \
	-o "$journal $barriers $others" = '1 1 0'

storm() { # CLIENTS TRANSACTIONS
	"$BUILD/tests/helper/storm" --socket "$SOCKET" --repo "$T/repo.git" \
		--oid "$one" --oid "$two" --clients "$1" --txns "$2"
}
# If a flush costs nothing, nobody waits for a flush, and few updates share it.
kill -INT "$tracer"
reap "$tracer"
check 'strace watches on, and makes the journal slow' \
	attach -e inject=fdatasync:delay_enter=20000
"$REFD" update -C "$T/repo.git" refs/heads/fourth \
	"$(new_commit repo.git fourth)"
sleep 0.3
batches=$(stat_of batches)
cost_of storm 32 20
batches=$(($(stat_of batches) - batches))
check "32 clients, 640 updates: all acknowledged" grep -q '"ok":640' "$T/out"
# Batches that get their locks during a flush share the next flush, if the
# machine is fast enough for two batches at a time.
check "32 clients: $journal flushes for $batches batches" \
	test "$journal" -ge 1 -a "$journal" -le "$batches" -a "$journal" -le 320
check "32 clients: no other flush, but for $barriers syncfs at most" \
	test "$barriers" -le 1 -a "$packed $others" = '0 0'

# Syncs for ids, names in the journal, and objects, then for refs. A repository
# that comes during a sync waits for the next sync.
for i in {1..40}; do cp -r "$T/repo.git" "$T/new$i.git"; done
rm -r "$T"/new*/refd
crowd() {
	local i pids=()
	for i in {1..40}; do
		"$REFD" update -C "$T/new$i.git" refs/heads/new "$one" &
		pids+=($!)
	done
	wait "${pids[@]}"
}
cost_of crowd
check "40 repositories seen first: $((journal + barriers)) flushes" \
	test "$((journal + barriers))" -le 60
check '... for the journal and the file system alone' \
	test "$packed $others" = '0 0'
is '... and each has its ref' 40 \
	"$(cat "$T"/new*/refs/heads/new | grep -c "$one")"
kill -INT "$tracer"
reap "$tracer"

# Whether either flush begins while the other is under way.
beside() {
	awk '/packed-refs.new>/ { if (journal) found = 1
			packed = /unfinished/ }
		/journal.db-wal>/ { if (packed) found = 1
			journal = /unfinished/ }
		/ fsync resumed/ { packed = 0 }
		/ fdatasync resumed/ { journal = 0 }
		END { print found + 0 }' "$flushes"
}

# A slow sync of packed-refs.new runs beside the journal's flush.
new_repo beside.git bare
three=$(new_commit beside.git three)
"$REFD" enable "$T/beside.git" >/dev/null
"$REFD" update -C "$T/beside.git" refs/heads/first "$three"
check 'strace watches again, and makes both slow' \
	attach -e inject=fsync,fdatasync:delay_enter=1000000
many 400 "create refs/heads/beside/# $three" |
	"$REFD" update -C "$T/beside.git" --stdin >/dev/null
is 'packed-refs.new is synced beside the journal' 1 "$(beside)"
kill -INT "$tracer"
reap "$tracer"
finish
