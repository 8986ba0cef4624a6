# shellcheck shell=bash
# Several users, for scenarios: users without names, each with a home directory
# and repositories. Sourced after scenario.sh.
#
#	with_people NAME || finish
#	with_account 64000	# the daemon runs as this account
#	hers=$(repo_for 64001 a.git)
#	as 64001 "$REFD" update --git-dir "$SERVED/of64001/a.git" ...

# Opens $T to the users. Prints `skip` and returns 1 if the script cannot change
# its user.
with_people() { # NAME
	if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
		skip "$1" 'only root can be several people'
		return 1
	fi
	chmod 755 "$T"
	# Below /root, or after a build with umask 077, only root can read the
	# build.
	if ! as 65534 test -x "$REFD" 2>/dev/null; then
		mkdir -p "$T/built/tests"
		cp -r "$BUILD/bin" "$BUILD/share" "$T/built"
		cp -r "$BUILD/tests/helper" "$T/built/tests"
		chmod -R a+rX "$T/built"
		BUILD=$T/built
		REFD=$BUILD/bin/refd
		cd "$T" || return
	fi
}

# With the supplementary groups GROUPS_OF if set, else with none.
as() { # UID COMMAND...
	local uid=$1 groups=--clear-groups
	shift
	[ -z "${GROUPS_OF:-}" ] || groups=--groups=$GROUPS_OF
	setpriv --reuid "$uid" --regid "$uid" "$groups" \
		env HOME="$T/of$uid" "$@"
}

# From here on start_daemon starts the daemon as ACCOUNT, in the given groups.
# repo_for makes repositories of ACCOUNT that one user's group may write.
with_account() { # UID [GROUP]
	ACCOUNT=$1
	# shellcheck disable=SC2034 # start_daemon uses it
	AS_ACCOUNT=(setpriv --reuid "$1" --regid "$1"
		"${2:+--groups=}${2:---clear-groups}")
	chown "$1" "$T"
}

# Makes a repository of a user, in a directory of the user, and prints the id of
# a commit there without a ref.
repo_for() { # UID NAME
	local repo=$SERVED/of$1/$2 owner=${ACCOUNT:-$1}
	if [ ! -d "$SERVED/of$1" ]; then
		install -d -m 2775 -o "$owner" -g "$1" "$SERVED/of$1"
		mkdir -p "$T/of$1"
		printf '[safe]\n\tdirectory = *\n' >"$T/of$1/.gitconfig"
	fi
	if [ "$owner" = "$1" ]; then
		as "$1" git init -q --bare "$repo"
	else
		git init -q --bare --shared=group "$repo"
		chown -R "$owner:$1" "$repo"
	fi
	as "$1" git -C "$repo" commit-tree -m one \
		"$(as "$1" git -C "$repo" mktree </dev/null)"
}
