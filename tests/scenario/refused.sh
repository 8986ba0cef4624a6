#!/bin/bash
# Proves that a refused client learns the reason. A client waits for a daemon
# with too many connections until the time is over (75). It does not wait for a
# daemon that denies the caller (128): every ref of a push gets the reason, and
# the work is never left to git. A refname that is too long for refd is
# left to git, with all of its transaction, and the caller is told.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

exit_of() { # COMMAND...
	local status=0
	"$@" >"$T/out" 2>"$T/err" || status=$?
	echo $status
}

said_why() { # WHAT-FOLLOWS
	check "the line that says so: $1" grep -q \
		"refname is too long for refd: 'refs/heads/xxx.*; $1" "$T/err"
}

long_names() {
	local x long
	x=$(printf 'x%.0s' {1..240})
	long=refs/heads/$x/$x/$x/$x/$x
	is 'a long name, and an option that git lacks' 128 "$(printf \
		'create %s\n' "refs/heads/a $id" "$long $id" |
		exit_of "$REFD" update --git-dir "$repo" --stdin --porcelain)"
	said_why 'git has no --porcelain'
	is 'nothing is done' '' "$(git -C "$repo" for-each-ref)"
	is 'a long name' 0 "$(printf 'create %s\n' \
		"refs/heads/c $id" "$long/u $id" |
		exit_of "$REFD" update --git-dir "$repo" --stdin)"
	said_why 'git does it'
	is 'git does the whole of it' "$id $id" \
		"$(ref_of r.git refs/heads/c) $(ref_of r.git "$long/u")"
	git -C "$repo" push --porcelain . "$id:refs/heads/p" "$id:$long/p" \
		>"$T/out" 2>"$T/err"
	said_why 'git updates the refs itself'
	is 'in a push: git does the whole of it' "$id $id" \
		"$(ref_of r.git refs/heads/p) $(ref_of r.git "$long/p")"
}

# Two connections are all there are, and they are held.
too_many() {
	local holder pid
	mkfifo "$T/hold"
	"$MANY_CONNS" "$SOCKET" 2 <"$T/hold" >"$T/held" 2>&1 &
	holder=$!
	own $holder
	exec 9>"$T/hold"
	await 20 grep -q answered "$T/held"
	is 'too many: ping' 75 "$(exit_of "$REFD" ping)"
	check 'too many: in words' grep -q 'too many connections' "$T/err"
	is 'too many: update' 75 "$(exit_of "$REFD" update --timeout 5000 \
		--git-dir "$repo" refs/heads/full "$id")"
	check 'too many: in words, at the end too' \
		grep -q 'too many connections' "$T/err"
	"$REFD" update --git-dir "$repo" refs/heads/full "$id" 9>&- &
	pid=$!
	own $pid
	sleep 0.2
	exec 9>&-
	reap $pid
	is 'too many: waited for' "0 $id" "$? $(ref_of r.git refs/heads/full)"
	await 20 gone $holder
}

denied() { # REPORTED-AS WORDS
	local before
	before=$(git -C "$repo" for-each-ref)
	is "$1: ping, at once" 128 \
		"$(exit_of as 65534 "$bin" ping --wait 30)"
	check "$1: in words" grep -q "$2" "$T/err"
	is "$1: update" 128 "$(exit_of as 65534 "$bin" update --git-dir "$repo" \
		refs/heads/d "$id")"
	check "$1: update's words" grep -q "$2" "$T/err"
	is "$1: push" 1 "$(exit_of as 65534 git -C "$repo" push --porcelain . \
		"$id:refs/heads/d" "$id:refs/heads/e")"
	is "$1: every ref says so" 2 "$(grep -c "^!.*refd: .*$2" "$T/out")"
	is "$1: nothing is done" "$before" "$(git -C "$repo" for-each-ref)"
}

strangers() {
	with_people strangers || return
	# From the view of the other user: this user owns the repository, and
	# git could do the work.
	mkdir "$T/of65534" "$T/bin"
	cp "$REFD" "$T/bin/refd"
	bin=$T/bin/refd
	ln -sf "$bin" "$repo/hooks/proc-receive"
	git -C "$repo" config refd.fallback git
	chown -R 65534 "$repo" "$T/of65534"
	git config --global --add safe.directory '*'
	chmod 666 "$SOCKET"
	denied 'denied' 'you are not among those who may use the daemon'
	chmod 600 "$SOCKET"
	denied 'no entry' 'Permission denied'
}

printf '[limits]\n\tconnections = 2\n' >"$T/config"
check 'the daemon starts' start_daemon --config "$T/config"
new_repo r.git bare
repo=$T/r.git
id=$(new_commit r.git one)
"$REFD" enable "$repo" >/dev/null
long_names
too_many
strangers
finish
