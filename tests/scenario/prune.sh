#!/bin/bash
# Proves that an update whose objects git removes while the update waits is
# refused: git gc --prune=now during a pause, and git prune while a lock is
# held. The repository stays sound, and the same push succeeds afterwards. A gc
# that only packs the new objects costs no update.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

repo=$T/repo.git
new=

# A new commit with NR files. Of more than 100 objects, git keeps the pack.
commit() { # NR
	local i
	old=$new
	rm -rf "$T/work/d"
	mkdir "$T/work/d"
	for ((i = 0; i < $1; i++)); do
		echo "$1 $i $RANDOM" >"$T/work/d/$i"
	done
	git -C "$T/work" add . && git -C "$T/work" commit -q -m "$1"
	new=$(git -C "$T/work" rev-parse HEAD)
}

push() { # REF
	git -C "$T/work" push -q origin "HEAD:refs/heads/$1"
}

one_waits() {
	[ "$(stat_of waiting)" = 1 ]
}

lacks() { # OBJECT
	! git -C "$repo" cat-file -e "$1" 2>/dev/null
}

value() { # REF
	git -C "$repo" rev-parse -q --verify "refs/heads/$1"
}

is_sound() { # NAME
	check "$1: git fsck" git -C "$repo" fsck --strict --no-dangling
}

# Runs a command while a push waits for the end of a pause. $status is the
# status of the push.
push_and() { # REF COMMAND...
	local pid ref=$1
	shift
	"$REFD" pause >/dev/null
	push "$ref" >"$T/said" 2>&1 &
	pid=$!
	check "$ref: the push waits" await 30 one_waits
	"$@"
	"$REFD" resume >/dev/null
	status=0
	wait "$pid" || status=$?
}

pauses() { # REF NR-OF-FILES
	commit "$2"
	push_and "$1" git -C "$repo" gc --quiet
	is "$1: a gc that packs costs no push" "0 $new" "$status $(value "$1")"
	is_sound "$1 and a gc"
	commit "$2"
	push_and "$1" git -C "$repo" gc --quiet --prune=now
}

pruned_loose() {
	pauses loose 3
	check 'loose: the objects are gone' lacks "$new"
	is 'loose: the push is refused' "1 $old" "$status $(value loose)"
	check 'loose: the push names an object' grep -q "$new" "$T/said"
	is_sound loose
	check 'loose: the same push again' push loose
	is 'loose: the ref has its value' "$new" "$(value loose)"
}

# receive-pack keeps a pack until the hook has ended.
pruned_pack() {
	pauses pack 200
	is 'pack: git keeps the objects' "0 $new" "$status $(value pack)"
	is_sound pack
}

# As after a pruning that was killed: a tree is gone, and the commit is there.
half_pruned() {
	local tree
	# No directory of objects is new any more.
	sleep 0.3
	commit 4
	tree=$(git -C "$T/work" rev-parse 'HEAD:d')
	push_and half rm -f "$repo/objects/${tree:0:2}/${tree:2}"
	check 'half pruned: a tree is gone' lacks "$tree"
	is 'half pruned: the push is refused' '1 ' "$status $(value half)"
	check 'half pruned: the push names the tree' grep -q "$tree" "$T/said"
	check 'half pruned: the same push again' push half
	is_sound 'half pruned'
}

waits_for_lock() {
	"$REFD" locks | grep -qF refs/heads/held.lock
}

# refd update checks objects less than git push.
locked() {
	local lock=$repo/refs/heads/held.lock pid
	old=$(value held)
	new=$(new_commit repo.git 'while the lock is held' "$old")
	echo 'somebody else' >"$lock"
	"$REFD" update -C "$repo" --timeout 60000 refs/heads/held "$new" \
		>"$T/said" 2>&1 &
	pid=$!
	check 'locked: the update waits' await 30 waits_for_lock
	git -C "$repo" prune --expire=now
	check 'locked: the object is gone' lacks "$new"
	sleep 1.2
	rm "$lock"
	status=0
	wait "$pid" || status=$?
	is 'locked: the update is refused' "no $old" \
		"$([ $status -ne 0 ] && echo no) $(value held)"
	check 'locked: the update names the object' grep -q "$new" "$T/said"
	is_sound locked
}

# A checkpoint could make the objects durable, so that no record contains them.
printf '[checkpoint]\n\tinterval = 1h\n' >"$T/config"
check 'the daemon starts' start_daemon --config "$T/config"
new_repo repo.git bare
git -C "$repo" config core.filesRefLockTimeout 60000
"$REFD" enable "$repo" >/dev/null
git clone -q "$repo" "$T/work" 2>/dev/null
commit 1
check 'the first push' push main
check 'a second branch' push held

half_pruned
pruned_loose
pruned_pack
if [ "$REF_FORMAT" = files ]; then
	locked
fi
check 'the daemon stops' stop_daemon
finish
