#!/bin/bash
# Proves that refd serves repositories whose refs are in reftables, with the
# newest git of Debian beside it: updates, deletions, symbolic refs, HEAD,
# sessions, hooks, pushes, history, restore, verify, doctor, kill -9, shared
# repositories, linked worktrees, `refd pack`, and a storm of 64 writers without
# a failure beside git's writers. After each part git finds no fault in the
# stack, the reflogs are as git would write them, and no lock is left.
#
# REFD_TEST_REFS=files runs the same with refs in files.

# shellcheck source=tests/lib/scenario.sh
export REFD_TEST_REFS=${REFD_TEST_REFS:-reftable}
. "$(dirname "$0")/../lib/scenario.sh"

if ! why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" experimental \
	2>&1); then
	skip 'a git with reftables' "not to be had: ${why//$'\n'/; }"
	finish
	exit
fi
[ "$REF_FORMAT" != files ] || PATH=$(cd "$BUILD" && pwd)/git-experimental:$PATH
storm=$(cd "$BUILD" && pwd)/tests/helper/storm
export GIT_COMMITTER_DATE='1700000000 +0100'
export GIT_AUTHOR_DATE=$GIT_COMMITTER_DATE

start_daemon || exit 1
cd "$T" || exit 1

served() { # NAME
	git init -q --bare "$T/$1"
	git -C "$T/$1" config core.logAllRefUpdates always
	"$REFD" enable "$T/$1" >/dev/null 2>&1
}

# Everything that git shows of the refs and the logs.
picture() { # REPOSITORY
	local ref
	git -C "$1" for-each-ref --include-root-refs \
		--format='%(refname) %(objectname) %(symref)'
	git -C "$1" symbolic-ref -q HEAD
	for ref in $(git -C "$1" reflog list); do
		echo "== $ref"
		git -C "$1" reflog show --format='%H %gn %ge %gd %gs' \
			--date=raw "$ref" --
	done
}

quiet() { # COMMAND...
	"$@" >"$T/said" 2>&1
}

sound() { # REPORTED-AS REPOSITORY
	prints_nothing "$1: git finds no fault" git -C "$2" refs verify
	prints_nothing "$1: no locks" find "$2" -name '*.lock'
	check "$1: refd verify" quiet "$REFD" verify "$2"
}

# ---- as git does ----

# Each step by refd in one repository, by git in the other. Then everything
# that git shows is the same.
pair() {
	served ours.git
	git init -q --bare theirs.git
	git -C theirs.git config core.logAllRefUpdates always
	one=$(new_commit ours.git one)
	two=$(new_commit ours.git two "$one")
	new_commit theirs.git one >/dev/null
	new_commit theirs.git two "$one" >/dev/null
	git -C ours.git tag -a -m tag t "$one"
	git -C theirs.git tag -a -m tag t "$one"
}

both() { # NAME INPUT [OPTION...]
	local name=$1 input=${2//@1/$one} ours theirs
	input=${input//@2/$two}
	input=${input//@T/$(git -C ours.git rev-parse t)}
	shift 2
	printf '%b' "$input" | "$REFD" update -C ours.git --stdin "$@" \
		>"$T/ours.said" 2>&1
	ours=$?
	printf '%b' "$input" | git -C theirs.git update-ref --stdin "$@" \
		>"$T/theirs.said" 2>&1
	theirs=$?
	is "$name: status" "$theirs" "$ours"
	picture ours.git >"$T/ours.picture"
	picture theirs.git >"$T/theirs.picture"
	is "$name: as in git" '' "$(diff "$T/theirs.picture" \
		"$T/ours.picture" | head -n 6)"
}

dialogues() {
	pair
	both 'a creation' 'create refs/heads/main @1\n' -m made
	both 'a move' 'update refs/heads/main @2 @1\n' -m moved
	both 'a wrong old value' 'update refs/heads/main @1 @1\n'
	both 'the same value' 'update refs/heads/main @2 @2\n' -m same
	both 'an existing ref' 'create refs/heads/main @1\n'
	both 'an annotated tag' 'create refs/tags/a @T\n'
	both 'below a ref' 'create refs/heads/main/x @1\n'
	both 'a deep name' 'create refs/heads/a/b/c/d @1\n'
	both 'above a ref' 'create refs/heads/a/b @1\n'
	both 'a deletion' 'delete refs/heads/a/b/c/d @1\n' -m gone
	both 'now above' 'create refs/heads/a/b @1\n'
	both 'a deletion and a name below' \
		'delete refs/heads/a/b @1\ncreate refs/heads/n @2\n'
	both 'HEAD' 'update HEAD @1 @2\n' -m head
	both 'a symbolic ref' 'symref-create refs/heads/s refs/heads/main\n'
	both 'through a symbolic ref' 'update refs/heads/s @2 @1\n' -m through
	both 'not through it' \
		'option no-deref\nupdate refs/heads/s @1\n' -m direct
	both 'a root ref' 'create ORIG_HEAD @1\n'
	both 'a verification' 'verify refs/heads/main @2\n'
	both 'a wrong verification' \
		'verify refs/heads/main @1\ncreate refs/heads/v @1\n'
	both 'many' "$(for i in $(seq 300); do
		printf 'create refs/heads/many/%03d @1\\n' "$i"
	done)"
	both 'many move' "$(for i in $(seq 300); do
		printf 'update refs/heads/many/%03d @2 @1\\n' "$i"
	done)" -m again
	both 'many go' "$(for i in $(seq 1 2 300); do
		printf 'delete refs/heads/many/%03d\\n' "$i"
	done)"
	both 'a session' 'start\ncreate refs/heads/s1 @1\nprepare\ncommit\n'
	both 'a session aborts' 'start\ncreate refs/heads/s2 @1\nprepare\nabort\n'
	both 'two transactions' 'start\ncreate refs/heads/s3 @1\ncommit\n'`
		`'start\ndelete refs/heads/s3\ncommit\n'
	both 'a log is wanted' 'create refs/other/x @1\n' --create-reflog
	sound 'dialogues' ours.git
	git -C ours.git pack-refs --all
	picture ours.git >"$T/packed.picture"
	is 'after a merge by git' '' \
		"$(diff "$T/theirs.picture" "$T/packed.picture" | head -n 6)"
	both 'after the merge' 'update refs/heads/main @1 @2\n' -m later
	both 'a dangling symbolic ref' \
		'symref-create refs/heads/dangles refs/heads/absent\n'
	# git writes a log for the rejected update: only the words are compared.
	printf 'delete refs/heads/dangles %s\n' "$one" >"$T/batch"
	is 'a rejected batch: words' \
		"$(git -C theirs.git update-ref --stdin --batch-updates \
			<"$T/batch" 2>&1)" \
		"$("$REFD" update -C ours.git --stdin --batch-updates \
			<"$T/batch" 2>&1)"
}

# ---- a prepared session and other writers ----

sessions() {
	served session.git
	one=$(new_commit session.git one)
	two=$(new_commit session.git two)
	"$REFD" update -C session.git refs/heads/main "$one"
	mkfifo "$T/to"
	"$REFD" update -C session.git --stdin <"$T/to" >"$T/from" 2>&1 &
	own $!
	exec 8>"$T/to"
	printf 'start\nupdate refs/heads/main %s %s\nprepare\n' "$two" \
		"$one" >&8
	check 'a session is prepared' await 10 grep -q 'prepare: ok' "$T/from"
	"$REFD" update -C session.git --timeout 300 refs/heads/main "$two" \
		>"$T/said" 2>&1
	is 'a session holds its name' 128 $?
	check 'a session holds no other name' "$REFD" update -C session.git \
		refs/heads/other "$two"
	[ "$REF_FORMAT" = files ] ||
		check 'git writes beside a session' git -C session.git \
			update-ref refs/heads/beside "$two"
	echo commit >&8
	exec 8>&-
	check 'a session commits' await 10 grep -q 'commit: ok' "$T/from"
	is 'its value' "$two" "$(git -C session.git rev-parse refs/heads/main)"
	if [ "$REF_FORMAT" = reftable ]; then
		rm "$T/to"
		mkfifo "$T/to"
		"$REFD" update -C session.git --stdin <"$T/to" >"$T/from" \
			2>&1 &
		own $!
		exec 8>"$T/to"
		printf 'start\nupdate refs/heads/main %s %s\nprepare\n' \
			"$one" "$two" >&8
		await 10 grep -q 'prepare: ok' "$T/from"
		git -C session.git update-ref -d refs/heads/main
		echo commit >&8
		exec 8>&-
		await 10 grep -qE 'fatal|error|commit' "$T/from"
		check 'git moved the ref: no commit' \
			grep -q -v 'commit: ok' "$T/from"
		check 'git moved the ref: stays' [ -z "$(git -C session.git \
			rev-parse -q --verify refs/heads/main)" ]
	fi
	sound 'sessions' session.git
}

# ---- pushes ----

pushes() {
	local at
	served push.git
	git init -q work
	git -C work commit -q --allow-empty -m one
	at=$(stat_of transactions)
	check 'a push' git -C work push -q ../push.git HEAD:refs/heads/main \
		HEAD:refs/heads/x/y HEAD:refs/tags/t
	is 'a push goes through refd' $((at + 1)) "$(stat_of transactions)"
	git -C work commit -q --allow-empty -m two
	check 'a second push' git -C work push -q ../push.git \
		HEAD:refs/heads/main :refs/heads/x/y
	git -C work commit -q --amend --allow-empty -m other
	git -C work push -q ../push.git HEAD:refs/heads/main \
		>"$T/said" 2>&1
	is 'not a fast-forward' 1 $?
	check 'atomic' git -C work push -q --atomic -f ../push.git \
		HEAD:refs/heads/main HEAD:refs/heads/x
	is 'the refs' 'refs/heads/main refs/heads/x refs/tags/t ' \
		"$(git -C push.git for-each-ref --format='%(refname)' |
			tr '\n' ' ')"
	check 'a clone' git clone -q push.git clone
	is 'the log' 3 "$(git -C push.git reflog show refs/heads/main |
		grep -c push)"
	cat >push.git/hooks/reference-transaction <<-END
		#!/bin/sh
		echo "\$1 \$(wc -l)" >>'$T/phases'
	END
	chmod +x push.git/hooks/reference-transaction
	git -C work commit -q --allow-empty -m three
	check 'with a hook' git -C work push -q ../push.git \
		HEAD:refs/heads/main HEAD:refs/heads/y
	check 'the hook ran' grep -q '^committed 2' "$T/phases"
	git init -q tree
	git -C tree commit -q --allow-empty -m one
	"$REFD" enable "$T/tree/.git" >/dev/null 2>&1
	git -C tree/.git config receive.denyDeletes false
	git -C work push -q -f ../tree HEAD:refs/heads/main >"$T/said" 2>&1
	is 'a push to the current branch' 1 $?
	check 'a push to the current branch: reason' grep -q \
		'branch is currently checked out' "$T/said"
	sound 'pushes' push.git
}

# ---- history, restore ----

history() {
	local moment
	served history.git
	one=$(new_commit history.git one)
	two=$(new_commit history.git two)
	"$REFD" update -C history.git refs/heads/main "$one"
	"$REFD" update -C history.git refs/heads/gone "$one"
	moment=$("$REFD" log --repo history.git -n 1 | cut -f 2 | cut -d . -f 1)
	"$REFD" update -C history.git -m accident refs/heads/main "$two"
	"$REFD" update -C history.git -d refs/heads/gone
	is 'history' 4 "$("$REFD" log --repo history.git --json | wc -l)"
	check 'restore' quiet "$REFD" restore --repo history.git --at "$moment" \
		--force
	is 'restore: the values' "refs/heads/gone $one refs/heads/main $one " \
		"$(git -C history.git for-each-ref \
			--format='%(refname) %(objectname)' | tr '\n' ' ')"
	sound 'history' history.git
}

# ---- kill -9 ----

killed() {
	local i id
	served killed.git
	one=$(new_commit killed.git one)
	two=$(new_commit killed.git two)
	for i in $(seq 12); do
		"$storm" --socket "$SOCKET" --repo "$T/killed.git" \
			--oid "$one" --oid "$two" --clients 8 --txns 100000 \
			--refs 3 --prefix "refs/heads/k$i" \
			--log "$T/acked.$i" >/dev/null 2>&1 &
		id=$!
		own "$id"
		await 10 test -s "$T/acked.$i"
		sleep "0.$((RANDOM % 40 + 10))"
		kill_daemon
		kill -KILL "$id"
		reap "$id"
		[ $((i % 3)) -ne 0 ] || prints_nothing "killed $i: git reads" \
			git -C killed.git refs verify
		start_daemon || return
		# The last acknowledged value of every ref, or a later one that
		# nobody was told of.
		tac "$T/acked.$i" | awk -v one="$one" -v two="$two" '
			!seen[$1]++ { print $1 }' | sort >"$T/wanted"
		git -C killed.git for-each-ref --format='%(refname)' \
			"refs/heads/k$i" | sort >"$T/found"
		is "killed $i: refs" '' "$(comm -23 "$T/wanted" "$T/found" |
			head -n 3)"
	done
	sound 'killed' killed.git
	check 'killed: git goes on' git -C killed.git update-ref \
		refs/heads/after "$one"
	check 'killed: refd goes on' "$REFD" update -C killed.git \
		refs/heads/after2 "$one"
}

# ---- doctor ----

doctor() {
	served doctor.git
	"$REFD" doctor doctor.git >"$T/said" 2>&1
	check 'doctor: no error' [ $? -le 1 ]
	check 'doctor: no error of the format' \
		[ -z "$(grep -i 'reftable' "$T/said")" ]
	[ "$REF_FORMAT" = reftable ] || return
	touch -d '-2 minutes' doctor.git/reftable/tables.list.lock
	"$REFD" verify doctor.git >"$T/said" 2>&1
	check 'verify: names a lock' grep -q 'tables.list.lock' "$T/said"
	"$REFD" update -C doctor.git --timeout 500 refs/heads/x "$one" \
		>"$T/said" 2>&1
	is 'a lock of another program' 128 $?
	rm doctor.git/reftable/tables.list.lock
}

# ---- a shared repository ----

shared() {
	git init -q --bare --shared=group shared.git
	git -C shared.git config core.logAllRefUpdates always
	one=$(new_commit shared.git one)
	"$REFD" update -C shared.git refs/heads/a "$one"
	"$REFD" update -C shared.git refs/heads/b "$one"
	if [ "$REF_FORMAT" = reftable ]; then
		is 'shared: modes' '' "$(find shared.git/reftable -type f \
			! -perm -660 -printf '%f %m\n')"
		is 'shared: the group' '' "$(find shared.git/reftable \
			! -group "$(stat -c %g shared.git/refs)")"
	fi
	sound 'shared' shared.git
	later_shared
}

# A closed list of git stays closed only until the next writer.
later_shared() {
	local way
	git init -q --bare later.git
	one=$(new_commit later.git one)
	"$REFD" update -C later.git refs/heads/a "$one"
	for way in refd git; do
		(umask 077 && git -C later.git update-ref refs/heads/"$way" "$one")
		[ "$way" = git ] || git -C later.git config \
			core.sharedRepository group
		case $way in
		refd) "$REFD" update -C later.git refs/heads/b "$one" ;;
		git) git -C later.git update-ref refs/heads/c "$one" ;;
		esac
		[ "$REF_FORMAT" != reftable ] ||
			is "shared later, then $way: the list" 664 \
				"$(stat -c %a later.git/reftable/tables.list)"
	done
	sound 'shared later' later.git
}

# ---- linked worktrees ----

worktrees() {
	git init -q main
	git -C main config core.logAllRefUpdates true
	git -C main commit -q --allow-empty -m one
	one=$(git -C main rev-parse HEAD)
	two=$(git -C main commit-tree -m two -p "$one" "$one^{tree}")
	git -C main worktree add -q -b side ../linked
	check 'a branch of a worktree' "$REFD" update -C linked \
		-m moved refs/heads/side "$two" "$one"
	is 'its value' "$two" "$(git -C main rev-parse refs/heads/side)"
	is 'the log of its HEAD' moved "$(git -C linked reflog show \
		--format=%gs -n 1 HEAD)"
	check 'HEAD of a worktree' "$REFD" update -C linked -m head HEAD "$one"
	is 'its branch' "$one" "$(git -C main rev-parse refs/heads/side)"
	check 'a ref of the worktree' "$REFD" update -C linked \
		refs/worktree/x "$one"
	is 'is there' "$one" "$(git -C linked rev-parse refs/worktree/x)"
	check 'is not elsewhere' [ -z "$(git -C main rev-parse -q --verify \
		refs/worktree/x)" ]
	kill_daemon
	start_daemon || return
	check 'after kill -9' "$REFD" update -C linked refs/heads/side "$two"
	prints_nothing 'worktrees: git finds no fault' git -C linked refs verify
	prints_nothing 'worktrees: no locks' find main/.git -name '*.lock'
}

# ---- a storm ----

storm64() {
	local writer said
	served storm.git
	one=$(new_commit storm.git one)
	two=$(new_commit storm.git two)
	(
		i=0
		while [ ! -e "$T/stop" ]; do
			i=$((i + 1))
			git -C storm.git update-ref "refs/git/$i" "$one" \
				2>>"$T/git.err" && echo "refs/git/$i"
			[ $((i % 7)) -ne 0 ] ||
				git -C storm.git pack-refs --all 2>/dev/null
			sleep 0.05
		done
	) >"$T/git.acked" &
	own $!
	writer=$!
	said=$("$storm" --socket "$SOCKET" --repo "$T/storm.git" \
		--oid "$one" --oid "$two" --clients 64 --txns "${TXNS:-40}" \
		--timeout 60000 --log "$T/storm.log")
	touch "$T/stop"
	reap "$writer"
	echo "# $said"
	is 'a storm of 64: all succeed' "$((64 * ${TXNS:-40}))" \
		"$(sed -n 's/.*"ok": *\([0-9]*\).*/\1/p' <<<"$said")"
	is 'a storm of 64: refs' 64 "$(git -C storm.git for-each-ref \
		refs/heads/storm | wc -l)"
	git -C storm.git for-each-ref --format='%(refname)' refs/git |
		sort >"$T/found"
	is "git beside: $(wc -l <"$T/git.acked") updates" '' \
		"$(sort "$T/git.acked" | comm -23 - "$T/found" | head -n 3)"
	echo "# git beside: $(wc -l <"$T/git.acked") updates," \
		"$(wc -l <"$T/git.err") failures"
	check 'a storm of 64: git reads the stack fast' \
		[ "$(find storm.git/reftable -name '*.ref' 2>/dev/null |
			wc -l)" -lt 60 ]
	sound 'a storm of 64' storm.git
}

# A program that reads the list, and appends to a later list, gives its table an
# index of the tables between. JGit can do this. A copy of the repository plays
# the program.
late() { # REPOSITORY COPY REF VALUE
	local table
	GIT_TEST_REFTABLE_AUTOCOMPACTION=false git -C "$2" update-ref -m late \
		"$3" "$4"
	table=$(tail -n 1 "$2/reftable/tables.list")
	cp "$2/reftable/$table" "$1/reftable/"
	echo "$table" >>"$1/reftable/tables.list"
}

overlapping() {
	local one two ref
	[ "$REF_FORMAT" != files ] || return 0
	served over.git
	one=$(new_commit over.git one)
	two=$(new_commit over.git two)
	export GIT_TEST_REFTABLE_AUTOCOMPACTION=false
	for ref in a b; do
		git -C over.git update-ref -m git "refs/heads/$ref" "$one"
	done
	cp -r over.git copy.git
	for ref in c d; do
		git -C over.git update-ref -m git "refs/heads/$ref" "$one"
	done
	late over.git copy.git refs/heads/a "$two"
	picture over.git >"$T/want"
	check 'overlapping: a used index' [ \
		"$(tail -n 1 over.git/reftable/tables.list | cut -d- -f 1)" '<' \
		"$(tail -n 2 over.git/reftable/tables.list | head -n 1 |
			cut -d- -f 2)" ]
	check 'overlapping: the old value is what git reads' quiet "$REFD" \
		update -C over.git refs/heads/a "$one" "$two"
	check 'overlapping: a deletion' quiet "$REFD" update -C over.git \
		-d refs/heads/b "$one"
	check 'overlapping: a new ref' quiet "$REFD" update -C over.git \
		refs/heads/e "$two"
	sed -i "/refs.heads.b/d; s/^refs.heads.a .*/refs\/heads\/a $one /" \
		"$T/want"
	is 'overlapping: git reads the same, and the updates' \
		"$( (grep '^refs/heads' "$T/want" &&
			echo "refs/heads/e $two ") | sort)" \
		"$(picture over.git | grep '^refs/heads' | sort)"
	is 'overlapping: the log of git, then of refd' \
		"$one $two $one" "$(git -C over.git reflog show --format=%H \
			refs/heads/a -- | paste -sd ' ')"
	late over.git copy.git refs/heads/f "$one"
	git -C over.git update-ref -m git refs/heads/g "$one"
	sound overlapping over.git
	check 'overlapping: refd after git' quiet "$REFD" update -C over.git \
		refs/heads/g "$two" "$one"
	unset GIT_TEST_REFTABLE_AUTOCOMPACTION
	check 'overlapping: git merges' git -C over.git pack-refs
	check 'overlapping: after the merge' quiet "$REFD" update -C over.git \
		refs/heads/f "$two" "$one"
	is 'overlapping: all refs' "a $one c $one d $one e $two f $two g $two" \
		"$(git -C over.git for-each-ref refs/heads \
			--format='%(refname:lstrip=2) %(objectname)' |
			paste -sd ' ')"
	sound 'overlapping, merged' over.git
}

packed() {
	served packed.git
	if [ "$REF_FORMAT" = files ]; then
		is 'refd pack' 'packed 0 refs' "$("$REFD" pack packed.git)"
	else
		is 'refd pack' 'nothing to pack: the refs are in reftables, which refd merges by itself' \
			"$("$REFD" pack packed.git)"
	fi
}

for part in ${PARTS:-dialogues sessions pushes history killed doctor shared \
	worktrees overlapping packed storm64}; do
	$part
done
finish
