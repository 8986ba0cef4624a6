#!/bin/bash
# Proves a real `git push` through receive-pack, hook and daemon. Of a hundred
# branches three fail, and the others land as with git alone. The test covers
# atomic pushes, deletions and reflogs, and pushes that the hook leaves to git
# as a whole, but not while refs may await recovery. tests/long/push.sh adds the
# cases that wait for the minute of a hook: refs that may await recovery, and a
# push with an unknown outcome. The hook reports these cases, and does not call
# the push a failure.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

work=$T/work

# Prints git push's lines, one per ref, sorted. Its status goes to $pushed.
push() { # ARGUMENT...
	git -C "$work" push --porcelain "$@" >"$T/push.out" 2>"$T/push.err"
	pushed=$?
	grep -P '^[ +\-*!=]\t' "$T/push.out" | sort >"$T/lines"
}

line_of() { # REMOTE-REF
	grep -P ":$1\t" "$T/lines" | cut -f1,3
}

refused() { # REPORTED-AS REMOTE-REF WORDS
	local line
	line=$(line_of "$2")
	if [[ $line == '!'*"[remote rejected] ($3"* ]]; then
		ok "$1"
	else
		not_ok "$1" "git push said: $line"
	fi
}

# ---- a hundred branches ----

# Makes $T/NAME.git with an enabled hook, with a ref at the place of a
# directory, and with a ref that pre-receive moves during the push.
new_server() { # NAME
	git clone -q --bare "$work" "$T/$1.git"
	git -C "$T/$1.git" update-ref refs/heads/taken/already "$base"
	cat >"$T/$1.git/hooks/pre-receive" <<-END
		#!/bin/sh
		while read -r old new ref; do
			test \$ref != refs/heads/moved ||
			env -u GIT_QUARANTINE_PATH git update-ref \$ref $other
		done
	END
	chmod +x "$T/$1.git/hooks/pre-receive"
}

make_work() {
	local i
	new_repo work
	base=$(git -C "$work" rev-parse HEAD)
	other=$(new_commit work 'another one' "$base")
	git -C "$work" update-ref refs/heads/moved "$base"
	git -C "$work" update-ref refs/tags/other "$other"
	new_server refd
	new_server git
	"$REFD" enable --socket "$SOCKET" "$T/refd.git" >/dev/null
	next=$(new_commit work next "$base")
	git -C "$work" update-ref refs/heads/moved "$next"
	git -C "$work" update-ref refs/heads/taken "$next"
	for ((i = 1; i <= 97; i++)); do
		echo "create refs/heads/many/$i $(new_commit work "$i" "$next")"
	done | git -C "$work" update-ref --stdin
}

many_with_failures() {
	local before
	before=$(stat_of transactions)
	push "$T/refd.git" 'refs/heads/many/*' refs/heads/moved \
		refs/heads/taken 'HEAD^{tree}:refs/heads/tree'
	is 'a hundred: git push fails' 1 "$pushed"
	is 'a hundred: one transaction' $((before + 1)) "$(stat_of transactions)"
	is 'a hundred: 97 landed' 97 "$(grep -c '^\*' "$T/lines")"
	is 'a hundred: three did not' 3 "$(grep -c '^!' "$T/lines")"
	refused 'moved away under the push' refs/heads/moved \
		'incorrect old value provided)'
	check 'and what it is at' grep -q "is at $other but expected $base" \
		"$T/push.err"
	refused 'the name is a directory' refs/heads/taken 'refname conflict'
	refused 'a tree for a branch' refs/heads/tree \
		'invalid new value provided'
	cut -f1,2 "$T/lines" >"$T/lines.refd"

	push "$T/git.git" 'refs/heads/many/*' refs/heads/moved \
		refs/heads/taken 'HEAD^{tree}:refs/heads/tree'
	cut -f1,2 "$T/lines" >"$T/lines.git"
	check 'git alone refuses and takes the same' \
		diff "$T/lines.git" "$T/lines.refd"
	git -C "$T/git.git" for-each-ref >"$T/refs.git"
	git -C "$T/refd.git" for-each-ref >"$T/refs.refd"
	check 'and has the same refs afterwards' \
		diff "$T/refs.git" "$T/refs.refd"
	no_locks 'a hundred: no lock' refd.git
	check 'a hundred: git fsck' git -C "$T/refd.git" fsck --no-dangling 2>/dev/null
}

atomic() {
	local refs
	refs=$(git -C "$T/refd.git" for-each-ref)
	push --atomic "$T/refd.git" "$next:refs/heads/x1" \
		'HEAD^{tree}:refs/heads/x2' "$next:refs/heads/x3"
	is 'atomic: fails' 1 "$pushed"
	is 'atomic: nothing of it' "$refs" "$(git -C "$T/refd.git" for-each-ref)"
	refused 'atomic: the culprit' refs/heads/x2 'invalid new value provided'
	refused 'atomic: the others' refs/heads/x1 'atomic push failure'
	push --atomic "$T/refd.git" "$next:refs/heads/x1" "$next:refs/heads/x3"
	is 'atomic: succeeds' 0 "$pushed"
	is 'atomic: all of it' "$next$next" \
		"$(ref_of refd.git refs/heads/x1)$(ref_of refd.git refs/heads/x3)"
}

deletions_and_logs() {
	git -C "$T/refd.git" config core.logAllRefUpdates true
	push "$T/refd.git" "$base:refs/heads/logged"
	push "$T/refd.git" "$next:refs/heads/logged"
	is 'the reflog says push' "push
push" "$(git -C "$T/refd.git" log -g --format=%gs refs/heads/logged)"
	is 'and who' 'C O Mitter <committer@example.com>' \
		"$(git -C "$T/refd.git" log -g -1 --format='%gn <%ge>' \
			refs/heads/logged)"
	git -C "$T/refd.git" pack-refs --all --prune
	push "$T/refd.git" :refs/heads/logged :refs/heads/many/1 \
		"$other:refs/heads/many/2" "+$base:refs/heads/many/3"
	is 'deletions with others: git push fails' 1 "$pushed"
	is 'a deletion, told' '-	[deleted]' "$(line_of refs/heads/logged)"
	check 'and done' test -z "$(ref_of refd.git refs/heads/logged)" \
		-a -z "$(ref_of refd.git refs/heads/many/1)"
	check 'its log too' test ! -e "$T/refd.git/logs/refs/heads/logged"
	is 'a forced one' "$base" "$(ref_of refd.git refs/heads/many/3)"
	git -C "$T/refd.git" config --unset core.logAllRefUpdates
}

# Calls the hook itself, with names that git push would not send.
pkt() { # TEXT
	printf '%04x%s' $((${#1} + 4)) "$1"
}

hook_with() { # COMMAND...
	local name
	{
		pkt 'version=1'
		printf 0000
		for name; do pkt "$ZERO $next $name"; done
		printf 0000
	} | (cd "$T/refd.git" && GIT_DIR=. "$REFD" hook proc-receive) \
		2>"$T/hook.err" | tr '\n' '@'
}

odd_names() {
	local refs said
	refs=$(git -C "$T/refd.git" for-each-ref)
	said=$(hook_with refs/heads/../../escape refs/heads/a.lock refs/x \
		HEAD 'refs/heads/tail.')
	is 'odd names: each refused' 5 "$(grep -o 'funny refname' <<<"$said" |
		wc -l)"
	said=$(hook_with $'refs/heads/new\nline' 'refs/heads/sp ace')
	check 'a name that cannot be reported: nothing is' \
		test -z "$(grep -o 'new\|ace' <<<"$said")"
	check 'but said' grep -q "funny ref 'refs/heads/sp ace'" "$T/hook.err"
	is 'odd names: no ref made' "$refs" "$(git -C "$T/refd.git" for-each-ref)"
	check 'odd names: no file made' \
		test ! -e "$T/escape" -a ! -e "$T/refd.git/escape"
}

# ---- pushes that are left to git ----

# The push is done, and not by the daemon.
left_to_git() { # REPORTED-AS REF PUSH-ARGUMENT...
	local name=$1 ref=$2 before
	shift 2
	before=$(stat_of transactions)
	push "$@"
	if [ "$pushed" -ne 0 ]; then
		not_ok "left to git: $name" "$(cat "$T/push.err")"
		return
	fi
	is "left to git: $name: done" "$next" "$(ref_of "$to" "$ref")"
	is "left to git: $name: not by refd" "$before" "$(stat_of transactions)"
	is "left to git: $name: said once" 1 \
		"$(grep -c '^remote: refd: .*; git updates the refs' "$T/push.err")"
}

fall_through() {
	to=refd.git
	new_repo tree
	git -C "$T/tree" config receive.denyCurrentBranch updateInstead
	git -C "$T/tree" checkout -q -b l
	git -C "$work" push -q "$T/tree" "+$base:refs/heads/start"
	git -C "$T/tree" reset -q --hard start
	"$REFD" enable --socket "$SOCKET" "$T/tree" >/dev/null
	to=tree left_to_git 'a work tree to be updated' refs/heads/l \
		"$T/tree" "$next:refs/heads/l"
	left_to_git 'a deletion of nothing' refs/heads/l "$T/refd.git" \
		:refs/heads/nothing "$next:refs/heads/l"

	new_repo large.git bare
	"$REFD" enable --socket "$SOCKET" "$T/large.git" >/dev/null
	yes '# nothing' | head -c 1100000 >>"$T/large.git/config"
	push "$T/large.git" "$next:refs/heads/l" "$next:refs/heads/m"
	is 'not served: git does it' "0 $next" \
		"$pushed $(ref_of large.git refs/heads/m)"
	is 'not served: one line, with the reason of the daemon' 1 \
		"$(grep -c 'larger than 1 MiB.*; git updates' "$T/push.err")"

	# A new shallow root makes receive-pack set GIT_SHALLOW_FILE.
	git clone -q --bare "file://$work" "$T/shallow.git"
	git -C "$T/shallow.git" update-ref -d refs/heads/taken
	"$REFD" enable --socket "$SOCKET" "$T/shallow.git" >/dev/null
	git -C "$T/shallow.git" config receive.shallowUpdate true
	git clone -q --depth 1 --no-tags "file://$T/git.git" "$T/short"
	git -C "$T/short" commit -q --allow-empty -m 'on a shallow root'
	work=$T/short next=$(git -C "$T/short" rev-parse HEAD) \
		to=shallow.git left_to_git 'a shallow push' refs/heads/l \
		"$T/shallow.git" HEAD:refs/heads/l
}

# Refs may await replay. Git would compare with their stale values, and
# recovery would keep the values of git.
before_recovery() {
	local later
	later=$(new_commit work 'before recovery' "$next")
	push "$T/tree" "$next:refs/heads/served"
	kill_daemon
	mv "$SOCKET.replayed" "$T/replayed"
	start_stranger
	push "$T/tree" "$later:refs/heads/l"
	is 'before recovery: a work tree: refused' "1 $next" \
		"$pushed $(ref_of tree refs/heads/l)"
	refused 'before recovery: a work tree: in words' refs/heads/l \
		"failed to \
update ref: refd: only git can do this, and not while refs may await recovery: \
a work tree"
	push "$T/refd.git" :refs/heads/nothing2 "$later:refs/heads/l"
	is 'before recovery: a deletion of nothing: refused' "1 $next" \
		"$pushed $(ref_of refd.git refs/heads/l)"
	mv "$T/replayed" "$SOCKET.replayed"
	push "$T/tree" "$later:refs/heads/l"
	is 'after recovery: git does it' "0 $later" \
		"$pushed $(ref_of tree refs/heads/l)"
	stop_stranger
	check 'after recovery: the daemon is back' start_daemon
	mv "$SOCKET.replayed" "$T/replayed"
	push "$T/tree" "+$next:refs/heads/l"
	mv "$T/replayed" "$SOCKET.replayed"
	is 'a daemon that serves has recovered: git does it' "0 $next" \
		"$pushed $(ref_of tree refs/heads/l)"
}

daemon_away() {
	kill_daemon
	push "$T/refd.git" "$next:refs/heads/away1"
	is 'daemon away: git does it' "0 $next" \
		"$pushed $(ref_of refd.git refs/heads/away1)"
	check 'daemon away: it is said' \
		grep -q 'git updates the refs itself' "$T/push.err"
	git -C "$T/refd.git" config refd.fallback refuse
	push "$T/refd.git" "$next:refs/heads/away2"
	is 'refd.fallback=refuse: refused' 1 "$pushed"
	refused 'refd.fallback=refuse: in words' refs/heads/away2 \
		'failed to update ref: refd: the daemon is away'
	check 'refd.fallback=refuse: nothing done' \
		test -z "$(ref_of refd.git refs/heads/away2)"
	git -C "$T/refd.git" config --unset refd.fallback
	check 'refd hook says what it takes' "$REFD" hook -h
	check 'the daemon is back' start_daemon
	push "$T/refd.git" "$next:refs/heads/away2"
	is 'and serves again' "0 $next" \
		"$pushed $(ref_of refd.git refs/heads/away2)"
}

# The daemon dies in the middle of a transaction and soon returns.
dies_and_returns() {
	local pid
	: >"$T/refd.git/refs/heads/again.lock"
	git -C "$T/refd.git" config core.filesRefLockTimeout 300000
	git -C "$work" push -q "$T/refd.git" "$next:refs/heads/again" \
		2>"$T/again.err" &
	pid=$!
	own $pid
	wait_for_submission "$SOCKET"
	kill_daemon
	rm "$T/refd.git/refs/heads/again.lock"
	check 'restarted under a push' start_daemon
	reap $pid
	is 'the push goes on where it was' "0 $next" \
		"$? $(ref_of refd.git refs/heads/again)"
}

wait_for_submission() { # SOCKET
	await 10 has_something "$1"
}

has_something() { # SOCKET
	[ "$("$REFD" stats --socket "$1" |
		awk '/^(waiting|in_store):/ { n += $2 } END { print n + 0 }')" -gt 0 ]
}

# ---- parts that wait for the minute of a hook, beside all other parts ----

slow_start() {
	# The repository was served once. No recovery ran since the start of the
	# machine.
	git clone -q --bare "$work" "$T/await.git"
	"$REFD" enable --socket "$T/nobody" "$T/await.git" >/dev/null
	mkdir -p "$T/await.git/refd"
	cp "$T/refd.git/refd/id" "$T/await.git/refd/id"
	REFD_SOCKET='' git -C "$work" push --porcelain "$T/await.git" \
		"$next:refs/heads/l" >"$T/await.out" 2>&1 &
	await_pid=$!
	own $await_pid

	# The daemon dies in the middle of a transaction and does not return in
	# time.
	git clone -q --bare "$work" "$T/lost.git"
	: >"$T/lost.git/refs/heads/l.lock"
	git -C "$T/lost.git" config core.filesRefLockTimeout 300000
	(
		SOCKET=$T/lost.sock STATE=$T/lost.state
		"$REFD" enable --socket "$SOCKET" "$T/lost.git" >/dev/null
		exec "$REFD" daemon --socket "$SOCKET" --state "$STATE" \
			--root "$T"
	) >>"$LOG" 2>&1 </dev/null &
	lost_daemon=$!
	own $lost_daemon
	"$REFD" ping --socket "$T/lost.sock" --wait 120 >/dev/null
	REFD_SOCKET='' git -C "$work" push --porcelain "$T/lost.git" \
		"$next:refs/heads/l" >"$T/lost.out" 2>&1 &
	lost_pid=$!
	own $lost_pid
	wait_for_submission "$T/lost.sock"
	kill -KILL $lost_daemon
	reap $lost_daemon
	rm "$T/lost.git/refs/heads/l.lock"
}

slow_end() {
	local id
	reap "$await_pid"
	is 'awaiting recovery: refused' 1 $?
	check 'awaiting recovery: and not done by git' \
		test -z "$(ref_of await.git refs/heads/l)"
	check 'awaiting recovery: in words' grep -q 'await recovery' \
		"$T/await.out"
	reap "$lost_pid"
	is 'outcome unknown: git push fails' 1 $?
	id=$(grep -oP 'refd query --socket \S+ \K[0-9a-f]{32}' "$T/lost.out" | head -n 1)
	check 'outcome unknown: is said, with the transaction' test -n "$id"
	check 'outcome unknown: and not done by git' \
		test -z "$(ref_of lost.git refs/heads/l)"
	STATE=$T/lost.state SOCKET=$T/lost.sock start_daemon
	is 'outcome unknown: asking later gets the truth' \
		"txn $id never-seen" \
		"$("$REFD" query --socket "$T/lost.sock" "$id")"
}

check 'the daemon starts' start_daemon
make_work
many_with_failures
! is_long || slow_start
atomic
deletions_and_logs
odd_names
fall_through
before_recovery
daemon_away
dies_and_returns
! is_long || slow_end
finish
