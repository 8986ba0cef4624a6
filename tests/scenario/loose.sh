#!/bin/bash
# Proves that no acknowledged object is lost if its name reaches the disk before
# its content. A push is refused after git moved the new objects to their place.
# A foreign fsync on the file system makes their names durable, and the power is
# lost. A corrected push follows, and git sends only missing objects. With the
# settings of `refd enable`, every object is there as a whole or not at all, and
# acknowledged objects are there, after a second power loss too. Without loose
# objects in core.fsync, empty files are left, git takes these files for
# objects, and refd makes them durable. The test shows this on kernels that
# permit it. refd doctor warns beforehand.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if [ "$(id -u)" -ne 0 ]; then
	skip loose 'only root can mount'
	finish
fi

# No checkpoint comes to anybody's help.
printf '[checkpoint]\n\tinterval = 1h\n' >"$T/config"

start() {
	start_daemon --config "$T/config"
}

# A machine without power answers nobody, so the daemon stops first.
cut() {
	kill -STOP "$DAEMON"
	"$BUILD/tests/helper/shutdown_fs" nologflush "$FS"
	kill_daemon 2>/dev/null
	mount_again || not_ok "$on: cut" 'not mounted again'
}

# From a copy of the image: if another mount namespace still has the old mount,
# its file system lives on there, and a mount would show the same file system.
mount_again() {
	local how=loop
	[ "$on" != xfs ] || how=loop,nouuid
	for _ in {1..100}; do
		umount "$FS" 2>/dev/null && break
		sleep 0.05
	done
	mv "$FS.img" "$FS.cut" && cp --sparse=always "$FS.cut" "$FS.img" &&
		rm "$FS.cut" && mount -o "$how" "$FS.img" "$FS"
}

# Counts the objects of the refused push, which are in $objects: "N there, N
# empty, N broken". Broken means that git cannot read the object.
count_objects() {
	local id kind file there=0 empty=0 broken=0
	for id in $objects; do
		file=$repo/objects/${id:0:2}/${id:2}
		[ -e "$file" ] || continue
		there=$((there + 1))
		kind=$(git -C "$work" cat-file -t "$id")
		if [ ! -s "$file" ]; then
			empty=$((empty + 1))
		elif [ "$(git -C "$repo" cat-file "$kind" "$id" 2>/dev/null |
			git hash-object -t "$kind" --stdin)" != "$id" ]; then
			broken=$((broken + 1))
		fi
	done
	echo "$there there, $empty empty, $broken broken"
}

# Makes $repo, enabled, with one commit, all on disk, and $work to push from.
prepare() { # NAME [CORE.FSYNC]
	repo=$FS/$1.git
	work=$T/$on-$1
	new_repo "${repo#"$T/"}" bare
	"$REFD" enable "$repo" >"$T/said" ||
		not_ok "$on, $1: enabled" "$(cat "$T/said")"
	[ -z "${2:-}" ] || git -C "$repo" config core.fsync "$2"
	new_repo "${work#"$T/"}"
	check "$on, $1: pushed" git -C "$work" push -q "$repo" \
		HEAD:refs/heads/base
	printf '#!/bin/sh\nexit 1\n' >"$repo/hooks/update"
	chmod +x "$repo/hooks/update"
	sync -f "$FS"
}

# The push is refused, and all names of its objects are on disk. Then the power
# is lost.
refused_and_cut() { # NAME
	echo "pushed to $1" >"$work/file"
	git -C "$work" add file
	git -C "$work" commit -qm two
	objects=$(git -C "$work" rev-parse HEAD 'HEAD^{tree}' HEAD:file)
	is "$on, $1: a push is refused" '' \
		"$(git -C "$work" push -q "$repo" HEAD:refs/heads/topic \
			2>/dev/null && echo 'it was not')"
	dd if=/dev/zero of="$FS/other" bs=4k count=1 conv=fsync 2>/dev/null
	cut
}

# The same blob in a new commit and tree.
push_better() {
	rm "$repo/hooks/update"
	echo more >"$work/more"
	git -C "$work" add more
	git -C "$work" commit -q --amend -m 'two, better'
	git -C "$work" push -q "$repo" HEAD:refs/heads/topic 2>"$T/err"
}

is_all_there() { # REPORTED-AS
	local said
	said=$(git -C "$repo" fsck --full --no-dangling --no-progress \
		refs/heads/topic 2>&1) && said=
	is "$1" '' "$said"
	is "$1, the blob too" "$(cat "$work/file")" \
		"$(git -C "$repo" cat-file -p topic:file 2>&1)"
}

# ---- with the settings of refd enable ----

guarded() {
	local found
	prepare guarded
	refused_and_cut guarded
	found=$(count_objects)
	check "$on, guarded: recovered" start
	is "$on, guarded: an object is whole, or not there" \
		'0 empty, 0 broken' "${found#*, }"
	echo "# $on, guarded: $found"
	"$REFD" doctor --json "$repo" >"$T/said"
	is "$on, guarded: the doctor has nothing to say of it" '' \
		"$(grep '"id":"fsync-' "$T/said")"
	check "$on, guarded: pushed again, better" push_better
	is_all_there "$on, guarded: all of it is there"
	cut
	check "$on, guarded: recovered again" start
	is_all_there "$on, guarded: after the next cut"
}

# ---- without loose objects ----

unguarded() {
	local try found
	for try in 1 2 3; do
		prepare "unguarded$try" reference
		"$REFD" doctor --json "$repo" >"$T/said"
		check "$on, unguarded: the doctor says so" \
			grep -q '"id":"fsync-objects"' "$T/said"
		refused_and_cut "unguarded$try"
		found=$(count_objects)
		echo "# $on, unguarded: $found"
		check "$on, unguarded: recovered" start
		# Except after a foreign sync(2) in between.
		[[ $found = *', 0 empty,'* ]] || break
	done
	if [[ $found = *', 0 empty,'* ]]; then
		echo "# $on, unguarded: it could not be shown"
		return
	fi
	ok "$on, unguarded: the cut leaves objects empty"
	if push_better && [ "$(git -C "$repo" cat-file -p topic:file \
		2>/dev/null)" != "$(cat "$work/file")" ]; then
		ok "$on, unguarded: git takes one for there when it comes again"
	else
		echo "# $on, unguarded: git noticed: $(head -n 1 "$T/err")"
	fi
}

on_disk() { # FILE-SYSTEM SIZE
	on=$1
	with_fs "$1" "$2" || return
	STATE=$FS/state
	check "$on: the daemon starts" start
	guarded
	unguarded
	kill_daemon 2>/dev/null
}

on_disk ext4 96M
on_disk xfs 300M
finish
