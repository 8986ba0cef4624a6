# shellcheck shell=bash
# Two equal servers, one served by refd and one by git alone, and the same push
# to both. Status, report, messages and results (refs, symbolic refs, reflogs,
# all files with a value) must be the same. Sourced after scenario.sh.
#
#	make_server() { ... in the directory $1 ...; }	# for both
#	pair NAME [daemon|git]
#	push_pair 'what it shows' [ARGUMENT...]	# @ is the server
#
# GIT is the git that pushes and receives, `git` by default. is_old marks the
# differences of git before 2.51.

GIT=${GIT:-git}
export GIT_COMMITTER_DATE='1700000000 +0000' GIT_AUTHOR_DATE='1700000000 +0000'

is_old() {
	[ "$(printf '%s\n2.51\n' "$("$GIT" version | cut -d' ' -f3)" |
		sort -V | head -n 1)" != 2.51 ]
}

# The work repository: $base <- $one <- $two, and $side from $base; a $tree.
make_work() {
	new_repo work
	base=$(git -C "$T/work" rev-parse HEAD)
	one=$(new_commit work one "$base")
	two=$(new_commit work two "$one")
	side=$(new_commit work side "$base")
	# shellcheck disable=SC2034 # for whoever pushes it
	tree=$(git -C "$T/work" rev-parse 'HEAD^{tree}')
	git -C "$T/work" update-ref refs/keep/two "$two"
	git -C "$T/work" update-ref refs/keep/side "$side"
}

# A bare server with main at $one, other at $side, v1 at $base.
bare_server() { # DIRECTORY
	git init -q --bare "$1"
	git -C "$T/work" push -q "$1" "$one:refs/heads/main" \
		"$side:refs/heads/other" "$base:refs/tags/v1"
	git -C "$1" config core.logAllRefUpdates true
}

# A server with a work tree, and the same refs.
tree_server() { # DIRECTORY
	git init -q "$1"
	git -C "$T/work" push -q "$1" "$side:refs/heads/other" \
		"$base:refs/tags/v1" "$one:refs/heads/start"
	git -C "$1" checkout -q -B main start
	git -C "$1" branch -q -D start
}

# Shared hooks are set up by hand.
enable_server() { # DIRECTORY
	if git -C "$1" config core.hooksPath >/dev/null; then
		git -C "$1" config refd.socket "$SOCKET"
		git -C "$1" config --add receive.procReceiveRefs refs
		git -C "$1" config --add receive.procReceiveRefs 'adm!:refs'
	else
		"$REFD" enable --socket "$SOCKET" "$1" >/dev/null 2>&1 ||
			not_ok "$pair_name: enable" 'see above'
	fi
}

# Makes both servers. The next pushes are work for the daemon, or for git.
pair() { # NAME [daemon|git]
	pair_name=$1
	pair_by=${2:-daemon}
	rm -rf "$T/refd" "$T/git"
	mkdir "$T/refd" "$T/git"
	make_server "$T/refd/s"
	make_server "$T/git/s"
	enable_server "$T/refd/s"
	rm -f "$T"/hook-log.*
}

# Lists the files of a server that a push may change.
snapshot() { # DIRECTORY
	local dir=$1 file
	[ ! -d "$1/.git" ] || dir=$1/.git
	(
		cd "$dir" || exit
		git for-each-ref --format='%(objectname) %(refname) %(symref)' \
			2>/dev/null
		find . -path ./objects -prune -o -path ./refd -prune -o \
			-path ./hooks -prune -o -name config -prune -o \
			-name refd.gitconfig -prune -o \
			-name index -prune -o -type f -print | LC_ALL=C sort |
			while read -r file; do
				echo "== $file"
				cat "$file"
			done
		find refs -type d | LC_ALL=C sort
	)
}

# Removes differences of paths, and of git 2.39's words for them.
same_places() {
	# shellcheck disable=SC2016 # they are git's
	sed -E 's,/(refd|git)/s,/SERVER/s,g; s,/\./,/,g
		s/`git config advice/`git config set advice/'
}

# Sorts the lines: git prints them in the order of its work, ref by ref, and not
# all of them through the sideband.
said() { # FILE
	sed -E 's/^remote: ?//; s/ +$//; /^refd: /d; /^To /d; /^Done$/d' "$1" |
		grep -v -e '^$' -e "^error: failed to push" | said_then |
		same_places | LC_ALL=C sort
}

# refd prints the messages of git 2.55. git before 2.51 had one message for most
# failures.
said_then() {
	if is_old; then
		sed -E 's/\[remote rejected\] \((refname conflict|reference already exists|reference does not exist|incorrect old value provided|invalid new value provided|failed to update refs)\)/[remote rejected] (failed to update ref)/
			s/refusing to create funny ref/refusing to update funny ref/
			s/^error: cannot lock ref [^ ]*: ('\''\S*'\'' exists; cannot create)/error: \1/
			s/^error: cannot (update|lock) ref [^ ]*: trying/error: trying/
			/^Another git process/,/^(if no|remove)/d
			/^an editor opened|^are terminated|^may have crashed|^processes|^process$|^remove the file|^in this repo/d'
	else
		sed -E 's/^error: cannot lock ref [^ ]*: ('\''\S*'\'' exists; cannot create)/error: \1/'
	fi
}

# Prints the notes of the hooks.
hook_log() { # refd|git
	[ ! -e "$T/hook-log.$1" ] || cat "$T/hook-log.$1"
}

push_one() { # refd|git ARGUMENT...
	local who=$1 arg args=()
	shift
	for arg; do args+=("${arg/#@/$T/$who/s}"); done
	(
		export HOOK_LOG=$T/hook-log.$who
		"$GIT" -C "$T/work" push --porcelain "${args[@]}" \
			>"$T/$who.out" 2>"$T/$who.err" </dev/null
		echo "status $?" >>"$T/$who.out"
	)
	{
		said "$T/$who.out"
		said "$T/$who.err"
	} >"$T/$who.said"
	{
		snapshot "$T/$who/s"
		hook_log "$who"
	} | same_places >"$T/$who.state"
}

push_pair() { # REPORTED-AS ARGUMENT...
	local name="$pair_name: $1" before after
	shift
	push_one git "$@"
	before=$(stat_of transactions)
	push_one refd "$@"
	after=$(stat_of transactions)
	if ! diff "$T/git.said" "$T/refd.said" >"$T/diff"; then
		not_ok "$name: what is said" "git < > refd: $(cat "$T/diff")"
	elif ! diff "$T/git.state" "$T/refd.state" >"$T/diff"; then
		not_ok "$name: what is there" "git < > refd: $(cat "$T/diff")"
	elif [ "$pair_by" = git ] && [ "$before" != "$after" ]; then
		not_ok "$name: left to git" 'the daemon did it'
	elif [ "$pair_by" = daemon ] &&
		grep -q '^remote: refd: .*git updates' "$T/refd.err"; then
		not_ok "$name: by the daemon" 'git did it'
	else
		ok "$name"
	fi
	served=$((after - before))
}

# Compares only the state: git dies in this push.
push_pair_state() { # REPORTED-AS ARGUMENT...
	local name="$pair_name: $1"
	shift
	push_one git "$@"
	push_one refd "$@"
	if diff "$T/git.state" "$T/refd.state" >"$T/diff"; then
		ok "$name"
	else
		not_ok "$name: what is there" "git < > refd: $(cat "$T/diff")"
	fi
}

# As push_pair, and the daemon must have done the push.
served_pair() { # REPORTED-AS ARGUMENT...
	push_pair "$@"
	[ "$served" -gt 0 ] || not_ok "$pair_name: $1: by the daemon" 'it was not'
}
