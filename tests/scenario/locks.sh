#!/bin/bash
# Proves that a foreign lock stops only its own ref. Every other ref goes on at
# once. The locked ref waits for the time limit of foreign locks and then is
# `locked`, or is done as soon as the lock goes. refd never touches the lock.
# The same holds for packed-refs.lock, which deletions need, and for HEAD.lock.
# Clients of refd never see each other's locks: they take turns, also in
# rewrites of packed-refs.
# Alone: it measures times.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

# The same commit in two repositories, at any time.
export GIT_COMMITTER_DATE='1700000000 +0000' GIT_AUTHOR_DATE='1700000000 +0000'

repo=$T/repo.git

now_ms() {
	awk '{ print int($1 * 1000) }' /proc/uptime
}

update() {
	"$REFD" update -C "$repo" --porcelain "$@" 2>/dev/null
}

# With a very long time limit: updates that finish beside it did not wait for
# the lock.
patiently() {
	GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=core.filesRefLockTimeout \
		GIT_CONFIG_VALUE_0=300000 \
		GIT_CONFIG_KEY_1=core.packedRefsTimeout \
		GIT_CONFIG_VALUE_1=300000 update --timeout 300000 "$@"
}

somebody_waits() {
	"$REFD" locks | grep -qF "$held"
}

# Holds a lock as a foreign program would, and remembers its inode.
hold() { # PATH
	held=$1
	echo 'somebody else' >"$held"
	identity=$(stat -c '%i %Y %s' "$held")
}

still_held() { # REPORTED-AS
	is "$1: the lock is as it was" "$identity" \
		"$(stat -c '%i %Y %s' "$held" 2>&1)"
}

# Sets $status to the status of REF, which may be one of several in the command,
# and $took to the milliseconds of the command.
timed() { # REF COMMAND...
	local ref=$1 begun
	shift
	begun=$(now_ms)
	"$@" >"$T/out"
	took=$(($(now_ms) - begun))
	status=$(awk -v ref="$ref" \
		'$2 == ref { print $1 == "ok" ? "ok" : $3 }' "$T/out")
}

batch() {
	update --stdin --batch-updates <<-END
		update refs/heads/free1 $two
		update refs/heads/held $two
		update refs/heads/free2 $two
	END
}

check 'the daemon starts' start_daemon
new_repo repo.git bare
new_repo other.git bare
one=$(new_commit repo.git one)
two=$(new_commit repo.git two "$one")
new_commit other.git one >/dev/null
for ref in held free1 free2 free3; do
	echo "create refs/heads/$ref $one"
done | "$REFD" update -C "$repo" --stdin

# ---- a single ref ----

hold "$repo/refs/heads/held.lock"
timed refs/heads/held batch
is 'a held ref in a batch' locked "$status"
check "it waited for about a second ($took ms)" \
	test "$took" -ge 800 -a "$took" -le 20000
is 'its neighbours were done' "$two$two" \
	"$(ref_of repo.git refs/heads/free1)$(ref_of repo.git refs/heads/free2)"
is 'it was not' "$one" "$(ref_of repo.git refs/heads/held)"
still_held 'after the batch'

"$REFD" update -C "$repo" refs/heads/held "$two" 2>"$T/err"
is 'in git'"'"'s words: status' 128 $?
check 'in git'"'"'s words: the lock is named' \
	grep -q "Unable to create '.*/refs/heads/held.lock': File exists" \
	"$T/err"
still_held 'after all that'

# ---- git names the process that took the lock (core.lockfilePid) ----

echo "pid $$" >"$repo/refs/heads/held~pid.lock"
"$REFD" update -C "$repo" refs/heads/held "$two" 2>"$T/err"
check 'in the words of git 2.54: the process' \
	grep -q "^Lock may be held by process $$; if no git process" "$T/err"
sleep 0 &
gone=$!
wait "$gone"
echo "pid $gone" >"$repo/refs/heads/held~pid.lock"
patiently refs/heads/held "$two" >"$T/waits" &
waits=$!
own $waits
check 'one waits for it' await 10 somebody_waits
"$REFD" locks >"$T/out"
check 'refd locks: the process has ended' \
	grep -q "taken by process $gone, which has ended" "$T/out"
echo "pid $$" >"$repo/refs/heads/held~pid.lock"
"$REFD" locks >"$T/out"
check 'refd locks: the process runs' grep -q "taken by process $$ (" "$T/out"
"$REFD" locks --json >"$T/out"
check 'refd locks: for programs' grep -q "\"pid\":$$,\"guessed\":false" "$T/out"
kill "$waits"
reap "$waits"
"$REFD" update -C "$repo" refs/heads/free1 "$one"
is 'a neighbour meanwhile' "$one" "$(ref_of repo.git refs/heads/free1)"
"$REFD" update -C "$repo" refs/heads/free1 "$two"
rm "$repo/refs/heads/held~pid.lock"

# This update waits until the lock goes.
patiently refs/heads/held "$two" >"$T/waits" &
waits=$!
own $waits
check 'one waits for it' await 10 somebody_waits
timed refs/heads/free3 update refs/heads/free3 "$two"
is 'another ref meanwhile' ok "$status"
repo=$T/other.git timed refs/heads/x update refs/heads/x "$one"
is 'another repository meanwhile' ok "$status"
check 'the held one waits still' kill -0 $waits
still_held 'and'
rm "$held"
reap $waits
is 'the lock goes, the ref is done' "0 $two" \
	"$? $(ref_of repo.git refs/heads/held)"

# ---- atomic ----

hold "$repo/refs/heads/held.lock"
timed refs/heads/held update --stdin <<-END
	update refs/heads/free1 $one
	update refs/heads/held $one
END
is 'in an atomic transaction' locked "$status"
is 'nothing of it is done' "$two" "$(ref_of repo.git refs/heads/free1)"
still_held 'after it'

# ---- a push ----

"$REFD" enable "$repo" >"$T/out" 2>&1
git -C "$T/other.git" push "$repo" "+$one:refs/heads/held" 2>"$T/err"
is 'a push of a held ref: status' 1 $?
check 'a push of a held ref: the lock' \
	grep -q "Unable to create '.*/refs/heads/held.lock': File exists" \
	"$T/err"
check 'a push of a held ref: age and owner of the lock' grep -q \
	"the lock is [0-9]* minutes old and belongs to the user id $(id -u);" \
	"$T/err"
still_held 'after the push'
rm "$held"

# ---- packed-refs.lock ----

git -C "$repo" pack-refs --all --prune
hold "$repo/packed-refs.lock"
timed refs/heads/free1 update -d refs/heads/free1
is 'a deletion under packed-refs.lock' locked "$status"
check "it waited ($took ms)" test "$took" -ge 800 -a "$took" -le 20000
still_held 'after the deletion'
patiently -d refs/heads/free1 >"$T/waits" &
waits=$!
own $waits
check 'one waits for it' await 10 somebody_waits
timed refs/heads/free2 update refs/heads/free2 "$one"
is 'updates do not need it' ok "$status"
check 'and do not wait for it' kill -0 $waits
rm "$held"
reap $waits
is 'the lock goes, the ref too' '' "$(ref_of repo.git refs/heads/free1)"

# ---- HEAD.lock: the checked out branch ----

new_repo work
three=$(new_commit work three HEAD)
repo=$T/work
hold "$T/work/.git/HEAD.lock"
timed refs/heads/main update refs/heads/main "$three"
is 'the current branch under HEAD.lock' locked "$status"
still_held 'after it'
timed refs/heads/b update refs/heads/b "$three"
is 'another branch' ok "$status"
rm "$held"

# ---- among clients ----

repo=$T/repo.git
"$BUILD/tests/helper/storm" --socket "$SOCKET" --repo "$repo" --same-ref \
	--clients 16 --txns 10 --oid "$one" --oid "$two" >"$T/storm"
is 'sixteen clients on one ref: no lock failures' \
	'"ok":160,"failed":{},"unknown":0' \
	"$(grep -o '"ok":.*"unknown":[0-9]*' "$T/storm")"

# Each deletion rewrites packed-refs under its lock. A flush takes long enough
# that the next batches find the lock held.
stop_daemon
LD_PRELOAD=$BUILD/tests/helper/preload_flush.so REFD_FLUSH_DELAY_US=20000 \
	start_daemon
seq 200 | sed "s|.*|create refs/heads/p/& $one|" |
	git -C "$repo" update-ref --stdin
git -C "$repo" pack-refs --all --prune
seq 200 | xargs -P 50 -I{} "$REFD" update -C "$repo" -d refs/heads/p/{} \
	2>"$T/refused"
is 'fifty clients delete packed refs: no lock failures' '' "$(<"$T/refused")"
is 'and all are gone' '' "$(git -C "$repo" for-each-ref refs/heads/p)"
no_locks 'no lock is left' .
finish
