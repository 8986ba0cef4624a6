#!/bin/bash
# Proves that a git which packs refs it has read long ago undoes no acknowledged
# update unseen. `git pack-refs --auto` of git 2.47 and later reads the refs
# before it locks packed-refs. Meanwhile refd deletes a ref, and deletes another
# one and creates it again as a line of packed-refs. Then the daemon tells of
# both. refd verify finds them, also after a restart of the daemon, and its
# commands put the recorded values back. With the gate, git is refused, and
# nothing returns. A value that git writes on purpose stays. An enabled
# repository is not packed by git at all.
#
# The file that such a git would write is put there by hand. The cases with the
# git itself run in tests/long/stale_pack.sh, which brings one.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

git -C / pack-refs -h 2>&1 | grep -q -- --auto && has_auto=yes

# A new repository $repo: d and x at $one, as loose refs of refd, beside 40
# others.
prepare() { # NAME [enabled | --gate]
	local i
	repo=$T/$1
	new_repo "$1" bare
	one=$(new_commit "$1" one)
	two=$(new_commit "$1" two "$one")
	[ "${2:-}" != enabled ] || "$REFD" enable "$repo" >/dev/null
	[ "${2:-}" != --gate ] || "$REFD" enable --gate "$repo" >/dev/null
	for i in d x {1..40}; do
		echo "create refs/heads/$i $one"
	done | "$REFD" update -C "$repo" --batch-updates --stdin
}

# d is gone. x is $two, in packed-refs alone.
move() {
	local i
	"$REFD" update -C "$repo" -d refs/heads/d &&
		"$REFD" update -C "$repo" -d refs/heads/x &&
		for i in {1..120}; do
			echo "create refs/tags/$i $two"
		done | sed '$ a create refs/heads/x '"$two" |
		"$REFD" update -C "$repo" --stdin &&
		[ ! -e "$repo/refs/heads/x" ]
}

refs() {
	echo "d=$(git -C "$repo" rev-parse -q --verify refs/heads/d)" \
		"x=$(git -C "$repo" rev-parse -q --verify refs/heads/x)"
}

# Git is stopped behind its reads of the refs, in front of packed-refs.lock.
git_reads() {
	: >"$repo/packed-refs.lock"
	git -C "$repo" -c core.packedRefsTimeout=600000 pack-refs --all --auto \
		2>"$T/git" &
	packer=$!
	own "$packer"
	# poll(2), in which git waits for the lock.
	await 10 grep -q '^7 ' "/proc/$packer/syscall" &&
		kill -STOP "$packer" &&
		await 10 grep -q '^State:.T' "/proc/$packer/status" &&
		rm "$repo/packed-refs.lock"
}

git_packs() {
	kill -CONT "$packer"
	reap "$packer"
}

# The same file as git_reads, move and git_packs leave behind.
git_packs_by_hand() {
	{
		sed '/ refs\/heads\/x$/d' "$repo/packed-refs"
		printf '%s refs/heads/%s\n' "$one" d "$one" x
	} | LC_ALL=C sort -k 2 >"$T/packed" &&
		sed -i '/^#/d; 1i # pack-refs with: peeled fully-peeled sorted ' \
			"$T/packed" &&
		mv "$T/packed" "$repo/packed-refs"
}

# The refs with a finding ref-returned, and the exit status.
returned() {
	local status=0
	"$REFD" verify --json "$repo" >"$T/said" 2>"$T/err" || status=$?
	python3 - "$T/said" "$status" <<'PYTHON'
import json, sys
found = json.load(open(sys.argv[1]))["findings"]
print(*sorted(f["ref"] for f in found if f["id"] == "ref-returned"),
      sys.argv[2])
PYTHON
}

# Runs the commands of the findings.
put_back() {
	python3 - "$T/said" <<'PYTHON' >"$T/commands"
import json, re, sys
for f in json.load(open(sys.argv[1]))["findings"]:
    if f["id"] == "ref-returned":
        print(re.search("'refd (restore [^']*)'", f["text"])[1])
PYTHON
	local command
	while read -ra command; do
		"$REFD" "${command[@]}" --repo "$repo" </dev/null >"$T/out" 2>&1 ||
			return
	done <"$T/commands"
}

# verify leaves records of the last seconds to the daemon.
await_returned() { # WANTED
	[ "$(returned)" = "$1" ]
}

tells() { # NAME
	grep 'event=ref-returned' "$LOG" | grep "$repo" |
		grep -q "refs/heads/$1: packed-refs has $one"
}

tells_after_update() { # NAME
	"$REFD" update -C "$repo" refs/heads/1 "$two"
	sleep 1
	tells "$1"
}

found_and_put_back() { # NAME
	is "$1: d and x are back" "d=$one x=$one" "$(refs)"
	# An update meets the file, and one of ten seconds later compares it.
	check "$1: the daemon tells of d" await 20 tells_after_update d
	check "$1: the daemon tells of x" tells x
	await 2 await_returned 'refs/heads/d refs/heads/x 1'
	is "$1: verify finds both" 'refs/heads/d refs/heads/x 1' "$(returned)"
	kill_daemon
	check "$1: the daemon starts anew" start_daemon
	is "$1: verify still finds both" 'refs/heads/d refs/heads/x 1' \
		"$(returned)"
	check "$1: the commands succeed" put_back
	is "$1: d is gone, and x is right" "d= x=$two" "$(refs)"
	is "$1: verify is content" 0 "$(returned)"
	is "$1: history has the repair" "$one $ZERO" \
		"$("$REFD" log --repo "$repo" --ref refs/heads/d -n 1 --json |
			python3 -c '
import json, sys
d = json.load(sys.stdin)
print(d["old"], d["new"])')"
}

check 'the daemon starts' start_daemon

# ---- without a gate ----

prepare hand.git
check 'by hand: refd moves them' move
is 'by hand: verify is content' 0 "$(returned)"
git_packs_by_hand
found_and_put_back 'by hand'

if [ -n "${has_auto:-}" ]; then
	prepare held.git
	check 'git reads' git_reads
	check 'git reads: refd moves them' move
	is 'git reads: as refd says' "d= x=$two" "$(refs)"
	check 'git packs' git_packs
	found_and_put_back 'git packs'
fi

# A loose ref counts, and so does a confirmed value.
"$REFD" pack "$repo" >/dev/null
git_packs_by_hand
echo "$one" >"$repo/refs/heads/d"
"$REFD" update -C "$repo" refs/heads/x "$one" "$one"
is 'a loose ref, a confirmed value: no finding' 0 "$(returned)"
is 'both stay' "d=$one x=$one" "$(refs)"

# ---- with a gate ----

gate() { # PHASE NAME VALUE
	printf '%s %s refs/heads/%s\n' "$ZERO" "$3" "$2" |
		GIT_DIR="$repo" "$repo/hooks/reference-transaction" "$1" \
			2>"$T/gate"
}

refuses() {
	! gate prepared "$@" && grep -q "stale.*refs/heads/$1.*pack the refs" \
		"$T/gate"
}

prepare gate.git --gate
check 'gate: refd moves them' move
check 'gate: no packing' gate prepared d "$one"
: >"$repo/packed-refs.lock"
check 'gate: a deleted ref is not packed' refuses d "$one"
check 'gate: an older value is not packed' refuses x "$one"
check 'gate: the value of packed-refs is' gate prepared x "$two"
check 'gate: below a loose file it does not matter' gate prepared 7 "$two"
: >"$repo/refs/heads/d.lock"
check 'gate: a locked ref is written, not packed' gate prepared d "$one"
rm "$repo/packed-refs.lock" "$repo/refs/heads/d.lock"

check 'gate: git writes d' git -C "$repo" update-ref refs/heads/d "$one"
check 'gate: git writes x' git -C "$repo" update-ref refs/heads/x "$one"
check 'gate: git packs them' git -C "$repo" pack-refs --all
is 'gate: in packed-refs alone' '' \
	"$(find "$repo/refs/heads" -name d -o -name x)"
is 'gate: nothing is found' 0 "$(returned)"
is 'gate: both stay' "d=$one x=$one" "$(refs)"

if [ -n "${has_auto:-}" ]; then
	prepare gated.git --gate
	check 'gate: git reads' git_reads
	check 'gate: refd moves them meanwhile' move
	git_packs
	is 'gate: git is refused' 128 $?
	check 'gate: git says why' grep -q 'stale.*pack the refs again' "$T/git"
	is 'gate: as refd says' "d= x=$two" "$(refs)"
	check 'gate: git packs the next time' git -C "$repo" pack-refs --all --auto
	is 'gate: still' "d= x=$two" "$(refs)"
	is 'gate: verify is content' 0 "$(returned)"
	no_locks 'gate: no locks' gated.git
fi

# ---- enabled ----

# Both commands that pack refs by themselves.
git_maintains() { # STRATEGY
	local i
	for i in {1..600}; do
		echo "blob"
		echo "data <<END"
		echo "$i"
		echo "END"
	done | git -C "$repo" -c fastimport.unpackLimit=1000 fast-import --quiet
	git -C "$repo" -c "maintenance.strategy=$1" -c gc.auto=1 \
		maintenance run --auto --no-detach 2>"$T/git"
}

if git maintenance run -h 2>&1 | grep -q detach; then
	for strategy in geometric gc; do
		prepare "$strategy.git"
		git_maintains $strategy
		check "$strategy: git packs by itself" \
			test ! -e "$repo/refs/heads/d"
		prepare "$strategy-off.git" enabled
		git_maintains $strategy
		check "$strategy, enabled: git does not pack" \
			test -e "$repo/refs/heads/d"
	done
fi

finish
