#!/bin/bash
# Proves that refd moves loose refs to packed-refs beside all other writers.
# `refd pack` packs a repository, counts the refs, and needs the right to write
# there. A repository packs itself at the threshold. Ten thousand refs are
# packed while git and refd write, and no update fails. With git's update-ref,
# its deletions and pack-refs beside, and kill -9 of the daemon in between, refs
# equal a model. If the daemon does not come back, the client gives up.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

repo=$T/repo.git

loose() { # DIRECTORY
	find "$1/refs" -type f | wc -l
}

refs() {
	git -C "$repo" for-each-ref --format='%(objectname) %(refname)' "$@"
}

# Loose refs without git: a process for each would take long. Another program
# may remove the directory while it is empty.
make_loose() { # REPOSITORY PREFIX FROM TO OID
	local i
	for ((i = $3; i < $4; i++)); do
		until { echo "$5" >"$1/$2$i"; } 2>/dev/null; do
			mkdir -p "$1/$2" 2>/dev/null
		done
	done
}

pack() {
	"$REFD" pack "$repo"
}

check 'the daemon starts' start_daemon
new_repo repo.git bare
one=$(new_commit repo.git one)
two=$(new_commit repo.git two "$one")

# ---- once ----

git -C "$repo" tag -a -m annotated v1 "$one"
git -C "$repo" update-ref refs/heads/main "$one"
git -C "$repo" symbolic-ref refs/heads/alias refs/heads/main
git -C "$repo" update-ref refs/bisect/bad "$one"
make_loose "$repo" refs/pull/1/ 0 100 "$one"
echo "$ABSENT" >"$repo/refs/heads/nothing"
refs >"$T/before" 2>/dev/null
is 'it prints the number of refs' 'packed 102 refs' "$(pack)"
refs >"$T/after" 2>/dev/null
check 'git reads the same refs' cmp "$T/before" "$T/after"
is 'symbolic, broken and per-worktree refs stay' 3 "$(loose "$repo")"
check 'empty directories are gone' test ! -e "$repo/refs/pull/1"
cp "$repo/packed-refs" "$T/packed"
rm "$repo/refs/heads/nothing"
git -C "$repo" pack-refs --all
check 'the file is the file of git' cmp "$T/packed" "$repo/packed-refs"
is 'nothing is left to do' 'packed 0 refs' "$(pack)"
is 'JSON' '{"refs-format":"files","packed":0,"left":0}' \
	"$("$REFD" pack --json "$repo" | tr -d ' \n')"
is 'the counter counts' 102 "$(stat_of packed_refs)"
is 'in the repository' 'packed 0 refs' "$(cd "$repo" && "$REFD" pack)"

echo held >"$repo/packed-refs.lock"
git -C "$repo" update-ref refs/heads/more "$one"
"$REFD" pack "$repo" >"$T/out" 2>&1
is 'a foreign lock is named' 1 "$(grep -c "locked: '$repo/packed-refs.lock'" "$T/out")"
is 'and stays' held "$(cat "$repo/packed-refs.lock")"
is 'and costs no ref' "$one" "$(git -C "$repo" rev-parse refs/heads/more)"
rm "$repo/packed-refs.lock"

"$REFD" pack "$T/missing.git" >"$T/out" 2>&1
is 'no repository' 128 $?
"$REFD" pause >/dev/null
"$REFD" pack "$repo" >"$T/out" 2>&1
is 'not while the daemon is paused' 75 $?
"$REFD" resume >/dev/null
is 'but afterwards' 'packed 1 refs' "$(pack)"
no_locks 'no lock is left' repo.git

# ---- a daemon that does not come back ----

# The rest of the test goes on while the client waits. More refs than a round.
mkdir "$T/lost"
new_repo lost/repo.git bare
cp -r "$repo/objects" "$T/lost/repo.git/"
make_loose "$T/lost/repo.git" refs/heads/ 0 5000 "$one"
"$REFD" daemon --socket "$T/lost.sock" --state "$T/lost.state" \
	--root "$T/lost" >>"$T/lost.log" 2>&1 </dev/null &
lost=$!
own "$lost"
"$REFD" ping --socket "$T/lost.sock" --wait 60 >/dev/null
timeout 120 "$REFD" pack --socket "$T/lost.sock" "$T/lost/repo.git" \
	>"$T/lost.out" 2>&1 &
waits=$!
own "$waits"
check 'a packing begins' await 30 test -e "$T/lost/repo.git/packed-refs"
kill -9 "$lost"
reap "$lost"

# ---- at the threshold ----

stop_daemon
printf '[pack]\n\tloose-refs = 50\n[daemon]\n\tallowUser = nobody\n' >"$T/config"
check 'the daemon starts with a threshold' start_daemon --config "$T/config"
new_repo auto.git bare
cp -r "$repo/objects" "$T/auto.git/"
for ((i = 0; i < 60; i++)); do
	echo "create refs/heads/a$i $one"
done | "$REFD" update -C "$T/auto.git" --stdin
has_packed() {
	[ "$(loose "$T/auto.git")" -eq 0 ]
}
check 'the refs are packed by themselves' await 10 has_packed
is 'all of them' 60 "$(git -C "$T/auto.git" for-each-ref | wc -l)"

# ---- beside writers ----

many=10000
is_long && many=100000
make_loose "$repo" refs/heads/many/ 0 $many "$one"
touch "$T/go"
write_with_git() {
	local n=0
	while [ -e "$T/go" ]; do
		n=$((n + 1))
		git -C "$repo" update-ref "refs/heads/many/$((n * 7 % many))" \
			"$two" || echo "update $n"
		git -C "$repo" update-ref "refs/heads/new/g$n" "$two" ||
			echo "create $n"
		git -C "$repo" update-ref -d "refs/heads/new/g$n" ||
			echo "delete $n"
	done
	echo "$n" >"$T/git.n"
}
write_with_refd() {
	local n=0
	while [ -e "$T/go" ]; do
		n=$((n + 1))
		"$REFD" update -C "$repo" "refs/heads/many/$((n * 11 % many))" \
			"$two" || echo "update $n"
		"$REFD" update -C "$repo" "refs/heads/new/r$n" "$two" ||
			echo "create $n"
		"$REFD" update -C "$repo" -d "refs/heads/new/r$n" ||
			echo "delete $n"
	done
	echo "$n" >"$T/refd.n"
}
write_with_git >"$T/git.out" 2>&1 &
own $!
git_pid=$!
write_with_refd >"$T/refd.out" 2>&1 &
own $!
refd_pid=$!
pack >"$T/out" 2>&1
rm "$T/go"
reap $git_pid
reap $refd_pid
is 'no update of git fails' '' "$(cat "$T/git.out")"
is 'no update through refd fails' '' "$(cat "$T/refd.out")"
check 'both wrote' test "$(cat "$T/git.n")" -gt 1 -a "$(cat "$T/refd.n")" -gt 1
pack >>"$T/out" 2>&1
is 'everything is packed' 0 "$(find "$repo/refs/heads/many" -type f 2>/dev/null | wc -l)"
is 'all refs are there' $many "$(refs refs/heads/many | wc -l)"
for ((i = 1; i <= $(cat "$T/git.n"); i++)); do echo $((i * 7 % many)); done \
	>"$T/moved"
for ((i = 1; i <= $(cat "$T/refd.n"); i++)); do echo $((i * 11 % many)); done \
	>>"$T/moved"
is 'the moved refs have their new value' \
	"$(sort -u "$T/moved" | sed "s,.*,$two refs/heads/many/&," | sort)" \
	"$(refs refs/heads/many | grep "^$two" | sort)"
is 'no deleted ref is back' '' "$(refs refs/heads/new)"

# ---- kill -9 and git's pack-refs ----

# One writer with git, one with refd: each knows the values of its own refs.
# An update without an answer may have happened.
RANDOM=1
wander() { # NAME COMMAND...
	local name=$1 n=0 ref oid
	shift
	while [ -e "$T/go" ]; do
		n=$((n + 1))
		ref=refs/heads/$name/$((RANDOM % 20))/x
		oid=$one
		[ $((RANDOM % 2)) -eq 0 ] || oid=$two
		if [ $((RANDOM % 3)) -eq 0 ]; then
			oid=-
			"$@" -d "$ref"
		else
			"$@" "$ref" "$oid"
		fi >/dev/null 2>&1 && echo "ok $ref $oid" ||
			echo "may $ref $oid"
	done >"$T/model.$name"
}
touch "$T/go"
wander git git -C "$repo" update-ref &
own $!
git_pid=$!
wander refd "$REFD" update -C "$repo" &
own $!
refd_pid=$!
(
	while [ -e "$T/go" ]; do
		git -C "$repo" pack-refs --all
		sleep 0.1
	done
) 2>"$T/pack.err" &
own $!
pack_pid=$!
kills=20
for ((k = 0; k < kills; k++)); do
	make_loose "$repo" refs/heads/fill/ 0 300 "$one"
	pack >/dev/null 2>&1 &
	own $!
	asker=$!
	sleep "0.0$((RANDOM % 10))"
	kill_daemon
	start_daemon --config "$T/config" || break
	# The client asks again.
	reap $asker
done
rm "$T/go"
reap $git_pid
reap $refd_pid
reap $pack_pid
check 'a write redoes what waited for a lock of git' \
	"$REFD" update -C "$repo" refs/heads/quiet "$one"
is 'so no ref waits' 0 "$(stat_of awaiting_refs)"
check "the daemon was killed $kills times" test "$k" -eq $kills
# Each ref has its last certain value, or that of a later doubtful update.
agrees() { # NAME
	refs "refs/heads/$1" >"$T/now"
	awk '
	FILENAME == ARGV[1] { now[$2] = $1; next }
	$1 == "ok" { may[$2] = " " $3 " " }
	$1 == "may" {
		if (!($2 in may)) may[$2] = " - "
		may[$2] = may[$2] $3 " "
	}
	END {
		for (ref in may) {
			value = ref in now ? now[ref] : "-"
			if (index(may[ref], " " value " ") == 0)
				print ref, "is", value, "not", may[ref]
		}
	}' "$T/now" "$T/model.$1"
}
is 'the refs of git equal the model' '' "$(agrees git)"
is 'the refs of refd equal the model' '' "$(agrees refd)"
is 'no ref of nobody is lost' 300 "$(refs refs/heads/fill | wc -l)"
check 'git wrote' test "$(grep -c ^ok "$T/model.git")" -gt 20
check 'refd wrote' test "$(grep -c ^ok "$T/model.refd")" -gt 20
no_locks 'no lock is left by that' repo.git
is 'nothing is left in the stage' '' "$(find "$repo/refd/stage" -type f)"
is 'the log has no complaint' '' "$(complaints_beside_git)"
check 'git fsck' git -C "$repo" fsck --no-dangling 2>/dev/null

reap "$waits"
is 'the client does not wait for ever' 75 $?
check 'and says why' grep -q 'the daemon ended before it answered' "$T/lost.out"

# ---- rights ----

if with_people 'another user may not'; then
	git -C "$repo" update-ref refs/heads/loose "$one"
	as 65534 "$REFD" pack --socket "$SOCKET" "$repo" >"$T/out" 2>&1
	is 'another user may not' 1 "$(grep -c '^refd: denied: uid 65534 may not write' "$T/out")"
	check 'and nothing was packed' test -e "$repo/refs/heads/loose"
fi
finish
