# shellcheck shell=bash
# Several people, for scenarios of a daemon of root's: users without names, each
# with a home and repositories of his own. Sourced after scenario.sh.
#
#	with_people NAME || finish
#	hers=$(repo_for 64001 a.git)
#	as 64001 "$REFD" update --git-dir "$SERVED/of64001/a.git" ...

# Lets them in below $T; says `skip` and returns 1 where one can't be another.
with_people() { # NAME
	if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
		skip "$1" 'only root can be several people'
		return 1
	fi
	chmod 755 "$T"
	# Below /root, or where the umask was 077, it is root's alone.
	if ! as 65534 test -x "$REFD" 2>/dev/null; then
		mkdir -p "$T/built/tests"
		cp -r "$BUILD/bin" "$T/built"
		cp -r "$BUILD/tests/helper" "$T/built/tests"
		chmod -R a+rX "$T/built"
		BUILD=$T/built
		REFD=$BUILD/bin/refd
		cd "$T" || return
	fi
}

# With the supplementary groups GROUPS_OF, if that is set, else with none.
as() { # UID COMMAND...
	local uid=$1 groups=--clear-groups
	shift
	[ -z "${GROUPS_OF:-}" ] || groups=--groups=$GROUPS_OF
	setpriv --reuid "$uid" --regid "$uid" "$groups" \
		env HOME="$T/of$uid" "$@"
}

# Makes a repository of somebody's, in a directory of his own, and prints the id
# of a commit in it that no ref names.
repo_for() { # UID NAME
	local repo=$SERVED/of$1/$2
	[ -d "$SERVED/of$1" ] || install -d -o "$1" -g "$1" "$SERVED/of$1"
	as "$1" git init -q --bare "$repo"
	as "$1" git -C "$repo" commit-tree -m one \
		"$(as "$1" git -C "$repo" mktree </dev/null)"
}
