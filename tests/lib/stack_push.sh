# shellcheck shell=bash
# The same pushes for every stack: to a repository that refd serves and to its
# copy that git serves alone, in the same way and as the same user. Messages to
# the client, refs, users in the reflogs, owners and modes of files, and the
# input of hooks must be the same. Sourced after stack.sh.
#
#	pusher=alice			# pushes from ~/work
#	url_of() { ...; }		# URL for $1, refd or git
#	repo_of() { ...; }		# the directory
#	make_work alice
#	prepare_repo DIRECTORY OWNER	# both
#	stack_pushes
#
# COMPARE_OWNERS=no: files may belong to another member of the group.

stack=
pusher=
push_options=()

# main: base <- one <- two; side from base.
make_work() { # USER
	# shellcheck disable=SC2016 # it is the other shell's
	as "$1" sh -e -c '
		export GIT_AUTHOR_DATE="1700000000 +0000"
		export GIT_COMMITTER_DATE="1700000000 +0000"
		git config --global gc.auto 0
		git init -q -b main work
		cd work
		for name in base one two; do
			echo $name >file
			git add file
			git commit -q -m $name
			git tag c-$name
		done
		git branch side c-base
		git checkout -q side
		git commit -q --allow-empty -m side
		git checkout -q main'
}

# Hooks that note their input, and a hook that declines.
stack_hooks() { # DIRECTORY-OF-HOOKS
	local name
	mkdir -p "$1"
	for name in pre-receive update post-receive post-update; do
		cat >"$1/$name" <<-'HOOK'
			#!/bin/sh
			{
				echo "${0##*/} $* as $(id -un) in $GIT_DIR umask $(umask)"
				env | sed 's/=.*//' | grep -vE \
					'^(_|PWD|OLDPWD|SHLVL|GIT_(PREFIX|COMMON_DIR)|HTTP_USER_AGENT|REQUEST_ID)$' |
					LC_ALL=C sort | tr '\n' ' '
				echo
			} >>hook-log
			case ${0##*/}$1 in
			updaterefs/heads/closed/*)
				echo "$1 is closed" >&2
				exit 1
			esac
			exit 0
		HOOK
		chmod 755 "$1/$name"
	done
}

prepare_repo() { # DIRECTORY OWNER
	as "$2" git -C "$1" config core.logAllRefUpdates true
	as "$2" git -C "$1" config receive.denyNonFastForwards true
	as "$2" git -C "$1" config gc.auto 0
	stack_hooks "$1/hooks"
	chown -R "$2:" "$1/hooks"
}

# ---- a push and its results ----

push_to() { # refd|git ARGUMENT...
	local who=$1 status=0
	shift
	rm -f "$(repo_of "$who")/hook-log"
	as "$pusher" git -C work push --porcelain "${push_options[@]}" \
		"$(url_of "$who")" "$@" \
		>"$T/$who.out" 2>"$T/$who.err" </dev/null || status=$?
	echo "status $status" >>"$T/$who.out"
}

# Sorted, without messages that only refd prints.
told() { # refd|git
	cat "$T/$1.out" "$T/$1.err" | sed -E 's/^remote: ?//; s/ +$//
		/^refd: /d; /^To /d; /^Done$/d; /^error: failed to push/d
		s/ (served|native) / REPOSITORY /; /^$/d' | LC_ALL=C sort
}

# Prints refs, logs without times, owners of files, and the notes of hooks.
state_of() { # refd|git
	local format='%p %M %u:%g\n'
	[ "${COMPARE_OWNERS:-yes}" = yes ] || format='%p %M %g\n'
	(
		cd "$(repo_of "$1")" || exit
		git -c safe.directory='*' for-each-ref \
			--format='%(objectname) %(refname) %(symref)'
		find refs logs packed-refs HEAD -printf "$format" 2>/dev/null |
			LC_ALL=C sort
		find logs -type f 2>/dev/null | LC_ALL=C sort |
			while read -r log; do
				echo "== $log"
				sed -E 's/> [0-9]+ /> TIME /' "$log"
			done
		cat hook-log 2>/dev/null
	)
}

transactions() {
	refd stats | sed -n 's/^transactions: //p'
}

# Compares the last push on both servers; reports not_ok itself.
same() { # NAME
	if ! diff <(told git) <(told refd) >"$T/diff"; then
		not_ok "$1: what is told" "git < > refd: $(head -n 12 "$T/diff")"
	elif ! diff <(state_of git) <(state_of refd) >"$T/diff"; then
		not_ok "$1: what is there" "git < > refd: $(head -n 12 "$T/diff")"
	elif ! grep -q $'^[-+*!= ]\t' "$T/refd.out"; then
		not_ok "$1" "no ref is reported: $(told refd)"
	else
		return 0
	fi
	return 1
}

# Pushes to both. TRANSACTIONS: the expected number of refd's transactions.
both() { # NAME TRANSACTIONS ARGUMENT...
	local name="$stack: $1" wanted=$2 before
	shift 2
	push_to git "$@"
	before=$(transactions)
	push_to refd "$@"
	same "$name" || return
	if [ "$(($(transactions) - before))" -ne "$wanted" ]; then
		not_ok "$name: by the daemon" "$(($(transactions) - before)) \
transactions, $(cat "$T/refd.err")"
	else
		ok "$name"
	fi
}

# The daemon is away: git does the push and prints one warning.
warned_once() { # NAME
	is "$stack: $1: one warning" 1 "$(grep -c \
		'^remote: refd: .*git updates the refs itself' "$T/refd.err")"
	is "$stack: $1: and no other word of refd's" 1 \
		"$(grep -c 'refd:' "$T/refd.err")"
}

fallback() { # NAME ARGUMENT...
	local name=$1
	shift
	stop_daemon
	push_to git "$@"
	push_to refd "$@"
	same "$stack: $name" && ok "$stack: $name"
	warned_once "$name"
	start_refd
}

stack_pushes() {
	both 'a push' 1 main
	both 'many at once' 1 c-one:refs/heads/one side c-base \
		c-two:refs/heads/deep/er/two
	both 'moved' 1 c-two:refs/heads/one
	both 'a non-fast-forward is rejected' 0 +side:refs/heads/one
	both 'the update hook declines one' 1 c-one:refs/heads/closed/x \
		c-one:refs/heads/open/x
	both 'atomic' 1 --atomic main:refs/heads/a/1 main:refs/heads/a/2
	both 'atomic, and one is declined' 0 --atomic \
		side:refs/heads/b/1 main:refs/heads/closed/2
	both 'deleted' 1 :refs/heads/a/1 :refs/heads/deep/er/two
	fallback 'the daemon is stopped' c-one:refs/heads/away :side
	both 'the daemon is back' 1 c-two:refs/heads/away \
		main:refs/heads/side
	prints_nothing "$stack: no locks" find "$(repo_of refd)" -name '*.lock'
}
