#!/bin/bash
# Proves that `refd update --stdin` works as a dialogue. Every dialogue is held
# with refd in one repository and with git in a copy. Messages, exit status and
# refs must be the same. Then come the effects of a prepared transaction on
# other writers and back: locks that git and other clients meet, clients and
# daemons that are killed, and time limits. The last parts cover the client's
# configuration and environment, and work that is left to git.
# Alone: it measures times.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

export GIT_COMMITTER_DATE='1700000000 +0100'
export GIT_AUTHOR_DATE=$GIT_COMMITTER_DATE
export REFD_COMPAT=2.39

# ---- side by side ----

make_pair() {
	new_repo ours
	first=$(new_commit ours first)
	second=$(new_commit ours second "$first")
	cp -r "$T/ours" "$T/theirs"
}

picture() { # NAME
	(
		cd "$T/$1/.git" || exit 1
		git for-each-ref
		find logs -type f -exec grep -H . {} + | sort
		find . -name '*.lock'
	)
}

# The input with F and S for the commits.
both() { # NAME INPUT [OPTION...]
	local name=$1 input=${2//F/$first} ours theirs
	input=${input//S/$second}
	shift 2
	printf '%b' "$input" | "$REFD" update -C "$T/ours" --stdin "$@" \
		>"$T/ours.said" 2>&1
	ours=$?
	printf '%b' "$input" | git -C "$T/theirs" update-ref --stdin "$@" \
		>"$T/theirs.said" 2>&1
	theirs=$?
	picture ours >>"$T/ours.said"
	picture theirs >>"$T/theirs.said"
	if [ "$ours" != "$theirs" ]; then
		not_ok "$name" "status $ours, git's $theirs"
	elif diff "$T/theirs.said" "$T/ours.said" >"$T/diff"; then
		ok "$name"
	else
		not_ok "$name" 'git (<) and refd (>) differ'
		cat "$T/diff"
	fi
}

dialogues() {
	make_pair
	both 'nothing' ''
	both 'start, commit' 'start\ncreate refs/heads/a F\ncommit\n'
	both 'start, prepare, commit' \
		'start\nupdate refs/heads/a S\nprepare\ncommit\n'
	both 'prepare, commit' 'update refs/heads/a F S\nprepare\ncommit\n'
	both 'prepare, abort' 'update refs/heads/a S\nprepare\nabort\n'
	both 'prepare, the end' 'update refs/heads/a S\nprepare\n'
	both 'start, the end' 'start\nupdate refs/heads/a S\n'
	both 'start, abort' 'start\nupdate refs/heads/a S\nabort\n'
	both 'abort' 'update refs/heads/a S\nabort\n'
	both 'nothing prepared' 'prepare\ncommit\n'
	both 'nothing, all the way' 'start\nprepare\ncommit\nstart\nabort\n'
	both 'an update when prepared' \
		'update refs/heads/a S\nprepare\nupdate refs/heads/b F\n'
	both 'start when prepared' 'update refs/heads/a S\nprepare\nstart\n'
	both 'prepare when prepared' 'prepare\nprepare\n'
	both 'an update when closed' 'commit\nupdate refs/heads/b F\n'
	both 'start when started' 'start\nstart\n'
	both 'one after the other' "start\ncreate refs/heads/b F\nprepare\n\
commit\nstart\nupdate refs/heads/b S F\ncommit\nstart\ndelete refs/heads/b S\n\
prepare\nabort\n"
	both 'prepare fails' 'update refs/heads/a S S\nprepare\ncommit\n'
	both 'one of them fails' \
		"create refs/heads/c F\ncreate refs/heads/a F\nprepare\n"
	both 'commit fails' 'start\nupdate refs/heads/a S S\ncommit\n'
	both 'HEAD, and a message' 'update HEAD S\nprepare\ncommit\n' -m why
	both 'deletions' "create refs/heads/d/e F\nprepare\ncommit\nstart\n\
delete refs/heads/d/e F\nprepare\ncommit\n"
	both 'verify' 'verify refs/heads/a F\nprepare\ncommit\n'
	both 'verify fails' 'verify refs/heads/a S\nprepare\ncommit\n'
	both 'the same twice' \
		'update refs/heads/a S\nupdate refs/heads/a S\nprepare\n'
	both 'two names of one ref' \
		'update refs/heads/main F\nupdate HEAD F\nprepare\n'
	both 'an unknown command' 'prepare\nnonsense\n'
	both 'fields that end with NUL' "start\\0000update refs/heads/z\\0000F\\0000\
\\0000prepare\\0000commit\\0000" -z
	both 'NUL, and aborted' "start\\0000update refs/heads/z\\0000S\\0000F\
\\0000prepare\\0000abort\\0000" -z
	both 'an option for the next' "option no-deref\nupdate HEAD F\nprepare\n\
commit\n"
}

# ---- a prepared transaction among other writers ----

# Starts a client for a dialogue, as ${TALK[0]} and ${TALK[1]}.
talk() { # ARGUMENT...
	coproc TALK { exec "$REFD" update --stdin "$@" 2>"$T/talk.err"; }
	# shellcheck disable=SC2153
	talk=$TALK_PID
	own "$talk"
}

put() { # LINE...
	printf '%s\n' "$@" >&"${TALK[1]}"
}

expect() { # NAME LINE
	local got=
	read -r -t 120 got <&"${TALK[0]}"
	is "$1" "$2" "$got"
}

# No more input. Sets status.
hang_up() {
	local fd=${TALK[1]}
	exec {fd}>&-
	status=0
	reap "$talk" || status=$?
}

prepared() { # NAME
	talk -C "$repo"
	put start "update refs/heads/held $second" prepare
	expect "$1: started" 'start: ok'
	expect "$1: prepared" 'prepare: ok'
}

still_first() { # NAME
	is "$1: nothing was done" "$first" "$(ref_of held.git refs/heads/held)"
	check "$1: no lock is left" \
		await 10 test ! -e "$repo/refs/heads/held.lock"
}

locks() {
	new_repo held.git bare
	repo=$T/held.git
	first=$(new_commit held.git first)
	second=$(new_commit held.git second "$first")
	git -C "$repo" update-ref refs/heads/held "$first"

	prepared 'others'
	check 'others: the lock is a file' test -e "$repo/refs/heads/held.lock"
	git -C "$repo" update-ref refs/heads/held "$second" 2>"$T/err"
	is 'others: git fails' 128 $?
	"$REFD" update -C "$repo" refs/heads/held "$second" 2>"$T/err"
	is 'others: refd fails' 128 $?
	check 'others: both for the lock' grep -q 'held.lock' "$T/err"
	"$REFD" update -C "$repo" refs/heads/free "$first"
	is 'others: other refs are free' 0 $?
	put commit
	expect 'others: and then it commits' 'commit: ok'
	hang_up
	is 'others: status' 0 "$status"
	is 'others: done' "$second" "$(ref_of held.git refs/heads/held)"
	git -C "$repo" update-ref refs/heads/held "$first"

	prepared 'abort'
	put abort
	expect 'abort: answered' 'abort: ok'
	check 'abort: the lock is gone by then' \
		test ! -e "$repo/refs/heads/held.lock"
	hang_up
	is 'abort: status' 0 "$status"
	still_first 'abort'

	prepared 'a client is killed'
	kill -KILL "$talk"
	hang_up 2>/dev/null
	still_first 'a client is killed'

	prepared 'the daemon is killed'
	kill_daemon
	check 'the daemon is killed: it starts again' start_daemon
	put commit
	hang_up
	is 'the daemon is killed: status' 75 "$status"
	check 'the daemon is killed: and why' \
		grep -q 'the session ended' "$T/talk.err"
	still_first 'the daemon is killed'
}

timed_out() {
	stop_daemon
	printf '[session]\n\ttimeout = 300ms\n' >"$T/config"
	check 'too long: the daemon starts' start_daemon --config "$T/config"
	prepared 'too long'
	check 'too long: the locks go' \
		await 10 test ! -e "$repo/refs/heads/held.lock"
	put commit
	hang_up
	check 'too long: an error' test "$status" -ne 0
	still_first 'too long'
	stop_daemon
	check 'the daemon starts again' start_daemon
}

batches() {
	local said
	said=$(printf '%s\n' start "update refs/heads/held $second $second" \
		"create refs/heads/new $first" prepare commit |
		"$REFD" update -C "$repo" --stdin --batch-updates 2>"$T/err")
	is 'batch: rejections come with the commit' "start: ok
prepare: ok
rejected refs/heads/held $second $second incorrect old value provided
commit: ok" "$said"
	is 'batch: the rest is done' "$first" "$(ref_of held.git refs/heads/new)"
	said=$(printf '%s\n' "update refs/heads/held $second $second" prepare \
		commit |
		"$REFD" update -C "$repo" --stdin --batch-updates 2>"$T/err")
	is 'batch: nothing left to do' "prepare: ok
rejected refs/heads/held $second $second incorrect old value provided
commit: ok" "$said"
	said=$(printf '%s\n' "update refs/heads/held $second $second" prepare \
		abort |
		"$REFD" update -C "$repo" --stdin --batch-updates 2>&1)
	is 'batch: aborted' "prepare: ok
abort: ok" "$said"
}

# ---- the client's configuration and environment ----

context() {
	local began
	GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.logAllRefUpdates \
		GIT_CONFIG_VALUE_0=always \
		"$REFD" update -C "$repo" refs/other/logged "$first"
	check 'configuration: of the environment' \
		test -e "$repo/logs/refs/other/logged"
	GIT_CONFIG_PARAMETERS="'core.sharedRepository'='0660'" \
		"$REFD" update -C "$repo" refs/heads/shared "$first"
	is 'configuration: modes' 660 \
		"$(stat -c %a "$repo/refs/heads/shared")"
	printf '[core]\n\tlogAllRefUpdates = always\n' >"$T/more"
	GIT_CONFIG_PARAMETERS="'include.path'='$T/more'" \
		"$REFD" update -C "$repo" refs/other/included "$first"
	check 'configuration: included' \
		test -e "$repo/logs/refs/other/included"
	: >"$repo/refs/heads/foreign.lock"
	git -C "$repo" config core.filesRefLockTimeout 300000
	began=$SECONDS
	GIT_CONFIG_PARAMETERS="'core.filesRefLockTimeout'='0'" \
		"$REFD" update -C "$repo" refs/heads/foreign "$first" \
		2>"$T/err"
	is 'configuration: no wait for a lock' 128 $?
	check 'configuration: and none there was' \
		test $((SECONDS - began)) -lt 250
	git -C "$repo" config --unset core.filesRefLockTimeout
	GIT_CONFIG_PARAMETERS="'core.filesRefLockTimeout'='soon'" \
		"$REFD" update -C "$repo" refs/heads/foreign "$first" \
		2>"$T/err"
	is 'configuration: no number' 128 $?
	is 'configuration: no number, in words' "fatal: bad numeric config \
value 'soon' for 'core.filesreflocktimeout': invalid unit" "$(cat "$T/err")"
	rm "$repo/refs/heads/foreign.lock"
	GIT_QUARANTINE_PATH=$repo/objects "$REFD" update -C "$repo" \
		refs/heads/foreign "$first" 2>"$T/err"
	is 'quarantine: refused' 128 $?
	check 'quarantine: with the reason' \
		grep -q 'forbidden inside quarantine' "$T/err"
	GIT_NAMESPACE=ns "$REFD" update -C "$repo" refs/heads/plain "$first"
	is 'a namespace is none of its business' "$first" \
		"$(ref_of held.git refs/heads/plain)"
}

worktrees() {
	new_repo tree
	git -C "$T/tree" worktree add -q --detach "$T/linked" main
	first=$(new_commit tree first)
	"$REFD" update -C "$T/linked" HEAD "$first"
	is 'worktree: its HEAD' "$first" \
		"$(git -C "$T/linked" rev-parse HEAD)"
	check 'worktree: not the other one' test "$first" != "$(ref_of tree HEAD)"
	GIT_DIR=$T/tree/.git/worktrees/linked "$REFD" update \
		refs/bisect/good "$first"
	check 'worktree: by GIT_DIR' \
		test -e "$T/tree/.git/worktrees/linked/refs/bisect/good"
	(cd "$T/linked" && GIT_COMMON_DIR=$T/tree/.git \
		GIT_DIR=$T/tree/.git/worktrees/linked \
		"$REFD" update refs/heads/common "$first")
	is 'worktree: by GIT_COMMON_DIR' "$first" \
		"$(ref_of tree refs/heads/common)"
}

# ---- work that is left to git ----

# git did the work if the update is done and refd's daemon has no record.
left_to_git() { # NAME REPO ID
	local before said
	before=$(stat_of transactions)
	"$REFD" update -v -C "$T/$2" -m why refs/heads/left "$3" 2>"$T/err"
	is "$1: status" 0 $?
	is "$1: done" "$3" "$(ref_of "$2" refs/heads/left)"
	check "$1: by git" grep -q 'git does it' "$T/err"
	said=$(printf '%s\n' start "create refs/heads/more $3" prepare commit |
		"$REFD" update -C "$T/$2" --stdin)
	is "$1: a dialogue" "start: ok
prepare: ok
commit: ok" "$said"
	"$REFD" update -C "$T/$2" -d refs/heads/left "$3" 2>"$T/err"
	is "$1: delete" 0 $?
	"$REFD" update -C "$T/$2" -d refs/heads/more 1111 2>"$T/err"
	is "$1: git's own status" 128 $?
	is "$1: not by refd" "$before" "$(stat_of transactions)"
	"$REFD" update -C "$T/$2" --porcelain refs/heads/left "$3" 2>"$T/err"
	is "$1: git has no --porcelain" 128 $?
	check "$1: in words" grep -q 'git has no --porcelain' "$T/err"
	git -C "$T/$2" update-ref -d refs/heads/more
}

no_loop() { # ID
	mkdir "$T/loop"
	cat >"$T/loop/git" <<-END
		#!/bin/sh
		case \$1 in
		update-ref) shift; exec '$REFD' update "\$@" ;;
		*) PATH=\${PATH#*:} exec git "\$@" ;;
		esac
	END
	chmod +x "$T/loop/git"
	(cd "$T/looped" && PATH=$T/loop:$PATH "$REFD" update \
		refs/heads/loop "$1" 2>"$T/err")
	is 'git is refd: no loop' 128 $?
	check 'git is refd: in words' grep -q REFD_SHIM_REAL "$T/err"
	(cd "$T/looped" && REFD_SHIM_REAL=$(command -v git) \
		PATH=$T/loop:$PATH "$REFD" update refs/heads/loop "$1")
	is 'git is refd: the real one can be named' 0 $?
}

not_refds() {
	local id
	mkdir "$T/objects"
	new_repo looped bare
	id=$(new_commit looped first)
	export GIT_ALTERNATE_OBJECT_DIRECTORIES=$T/objects
	no_loop "$id"
	unset GIT_ALTERNATE_OBJECT_DIRECTORIES

	new_repo elsewhere bare
	mv "$T/elsewhere/objects/"* "$T/objects"
	export GIT_OBJECT_DIRECTORY=$T/objects
	id=$(new_commit elsewhere first)
	left_to_git 'objects elsewhere' elsewhere "$id"
	unset GIT_OBJECT_DIRECTORY
	GIT_ALTERNATE_OBJECT_DIRECTORIES=$T/objects "$REFD" update -v \
		-C "$T/elsewhere" refs/heads/alternate "$id" 2>"$T/err"
	is 'alternates: status' 0 $?
	check 'alternates: by git' grep -q 'git does it' "$T/err"
}

# refd serves a partial clone, and leaves absent objects to git, which fetches
# them.
partial_clone() {
	local id blob before
	new_repo source bare
	blob=$(echo content | git -C "$T/source" hash-object -w --stdin)
	id=$(printf '100644 blob %s\tfile\n' "$blob" |
		git -C "$T/source" mktree)
	id=$(git -C "$T/source" commit-tree -m first "$id")
	git -C "$T/source" update-ref refs/heads/main "$id"
	git -C "$T/source" config uploadpack.allowFilter true
	git -C "$T/source" config uploadpack.allowAnySHA1InWant true
	git clone -q --bare --filter=blob:none "file://$T/source" \
		"$T/partial" 2>"$T/err"
	is 'partial clone: the object is absent' 1 \
		"$(git -C "$T/partial" rev-list --all --objects \
			--missing=print | grep -c "^?$blob")"
	before=$(stat_of transactions)
	check 'partial clone: an object that is there' \
		"$REFD" update -C "$T/partial" refs/heads/there "$id"
	is 'partial clone: by refd' $((before + 1)) \
		"$(stat_of transactions)"
	"$REFD" update -v -C "$T/partial" refs/tags/blob "$blob" 2>"$T/err"
	is 'partial clone: git fetches an absent object' "0 $blob" \
		"$? $(git -C "$T/partial" rev-parse refs/tags/blob)"
	check 'partial clone: the reason' \
		grep -q "object $blob is not in the repository, a partial" \
		"$T/err"
	before=$(stat_of transactions)
	check 'partial clone: the object has arrived' \
		"$REFD" update -C "$T/partial" refs/tags/again "$blob"
	is 'partial clone: by refd again' $((before + 1)) \
		"$(stat_of transactions)"
	# Git before 2.24 marked partial clones by an extension.
	git -C "$T/partial" config --unset remote.origin.promisor
	git -C "$T/partial" config --unset remote.origin.partialclonefilter
	git -C "$T/partial" config extensions.partialClone origin
	git -C "$T/partial" config remote.origin.url "$T/nowhere"
	"$REFD" update -C "$T/partial" refs/heads/absent "$ABSENT" 2>"$T/err"
	is 'partial clone: an object that nobody has' 128 $?
	printf 'update refs/heads/a %s\nupdate refs/heads/b %s\n' "$id" \
		"$ABSENT" | "$REFD" update -C "$T/partial" --stdin \
		--batch-updates --porcelain >"$T/out" 2>"$T/err"
	check 'partial clone: one of two' grep -q \
		"^ng refs/heads/b unsupported .*object $ABSENT is not in" \
		"$T/out"
	is 'partial clone: the other' "$id" "$(ref_of partial refs/heads/a)"
}

# Git 2.54 and later write into the ref store that the variable names. An older
# git ignores the variable.
other_store() { # VARIABLE
	local id before
	new_repo "$1" bare
	id=$(new_commit "$1" first)
	before=$(stat_of transactions)
	env "$1=files://$T/store" "$REFD" update -v -C "$T/$1" \
		refs/heads/one "$id" 2>"$T/err"
	check "$1: the reason is given" grep -q "$1 names another" "$T/err"
	printf '%s\n' start "create refs/heads/two $id" prepare commit |
		env "$1=files://$T/store" "$REFD" update -v -C "$T/$1" \
			--stdin >/dev/null 2>"$T/err"
	check "$1: of a session too" grep -q "$1 names another" "$T/err"
	is "$1: not by refd" "$before" "$(stat_of transactions)"
	env "$1=files" "$REFD" update -C "$T/$1" refs/heads/three "$id"
	is "$1=files is the repository's own store" "$id $((before + 1))" \
		"$(ref_of "$1" refs/heads/three) $(stat_of transactions)"
}

check 'the daemon starts' start_daemon
dialogues
locks
timed_out
batches
context
worktrees
not_refds
partial_clone
other_store GIT_REFERENCE_BACKEND
other_store GIT_REF_STORAGE_FORMAT
check 'the daemon stops' stop_daemon
finish
