#!/bin/bash
# Proves the handling of a file system that dies under a running daemon, is
# unmounted, and comes back with its old contents. Meanwhile no update there is
# acknowledged, other repositories are served, and the daemon closes its files
# there. Once the file system is back, refd redoes all acknowledged updates by
# itself and serves the repositories again.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if [ "$(id -u)" -ne 0 ]; then
	skip fsfail 'only root can mount'
	finish
fi

value_of() {
	git -C "$repo" rev-parse -q --verify "$1" 2>/dev/null
}

is_at() { # REF VALUE
	[ "$(value_of "$1")" = "$2" ]
}

die_and_return() { # FILE-SYSTEM SIZE
	local name="$1" one two
	with_fs "$1" "$2" || return
	repo=$FS/repo.git
	git init -q --bare "$repo"
	git -C "$repo" config core.logAllRefUpdates always
	one=$(git -C "$repo" commit-tree -m one "$(git -C "$repo" mktree </dev/null)")
	two=$(git -C "$repo" commit-tree -m two "$(git -C "$repo" mktree </dev/null)")
	sync -f "$repo"
	# No checkpoint comes before the failure.
	printf '[checkpoint]\n\tinterval = 2s\n' >"$T/config"
	check "$name: the daemon starts" start_daemon --config "$T/config" \
		--socket "$SOCKET"
	check "$name: acknowledged" "$REFD" update -C "$repo" -m one \
		refs/heads/a "$one"
	check "$name: acknowledged again" "$REFD" update -C "$repo" -m two \
		refs/heads/a "$two"
	"$BUILD/tests/helper/shutdown_fs" nologflush "$FS"
	# The first checkpoint notices the failure, or the lock file does.
	"$REFD" update -C "$repo" refs/heads/b "$one" >/dev/null 2>&1
	is "$name: no more" no "$(test $? -eq 0 || echo no)"
	check "$name: others are served" "$REFD" update -C "$T/other.git" \
		"refs/heads/$1" "$other"
	check "$name: the daemon lets go of it" await 15 umount "$FS"
	check "$name: it comes back" mount -o loop "$FS.img" "$FS"
	echo "# the disk has '$(value_of refs/heads/a)'"
	await 15 is_at refs/heads/a "$two"
	is "$name: redone" "$two" "$(value_of refs/heads/a)"
	is "$name: and its log" 2 \
		"$(git -C "$repo" reflog refs/heads/a | wc -l)"
	check "$name: it is served again" await 5 "$REFD" update -C "$repo" \
		refs/heads/b "$one"
	no_locks "$name: no lock is left" "${repo#"$T/"}"
	check "$name: the daemon stops" stop_daemon
}

new_repo other.git bare
other=$(new_commit other.git other)
die_and_return ext4 64M
die_and_return xfs 300M
finish
