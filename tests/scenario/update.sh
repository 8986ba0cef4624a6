#!/bin/bash
# Proves that `refd update` can replace git update-ref. Every command is given
# to refd in one repository and to git in a copy. Afterwards exit status,
# messages, refs, packed-refs and reflogs must be the same. Then come options
# without a counterpart in git 2.39: --porcelain, --json, --batch-updates,
# --txid.
# Slow: each case runs with git and with refd.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

export GIT_COMMITTER_DATE='1700000000 +0100'
export GIT_AUTHOR_DATE=$GIT_COMMITTER_DATE

export REFD_COMPAT=2.39

# ---- the pair ----

# Prints all that git reports about the refs, and the files of the refs.
picture() { # GIT-DIR
	(
		cd "$1" || exit 1
		git for-each-ref
		git symbolic-ref -q HEAD
		[ ! -e packed-refs ] || sed 's/^/packed: /' packed-refs
		find refs -type f -exec grep -H . {} + | sort
		find logs -type f -exec grep -H . {} + 2>/dev/null | sort
	)
}

# Prints directories of refs and logs that only refd left.
litter() {
	local dir
	for dir in refd git; do
		(
			cd "$T/$pair-$dir/$gitdir" &&
				find refs logs -type d 2>/dev/null | sort
		) >"$T/dirs.$dir"
	done
	comm -23 "$T/dirs.refd" "$T/dirs.git"
}

# Compares standard error, if refd can print the messages of the installed git.
# The two repositories have different names, and so have the programs; refd has
# additional options.
same_words() {
	[[ $(git version) == *" 2.39."* ]] || return 0
	diff <(plain_words theirs) <(plain_words ours) >"$T/diff"
}

plain_words() { # WHOSE
	sed -e "s|$T/$pair-[a-z]*/||g" -e "s|refd update \[|git update-ref [|" \
		-e '/^usage:/,$ { /^$/,$d; }' "$T/$1.err"
}

# Runs WHAT on both sides, with the same standard input, and compares.
both() { # NAME STATUS ARGUMENT...
	local name=$1 wanted=$2 ours theirs
	shift 2
	[ -t 0 ] || cat >"$T/input"
	"$REFD" update --git-dir "$T/$pair-refd/$gitdir" "$@" \
		<"$T/input" >"$T/ours.out" 2>"$T/ours.err"
	ours=$?
	git --git-dir "$T/$pair-git/$gitdir" update-ref "$@" \
		<"$T/input" >"$T/theirs.out" 2>"$T/theirs.err"
	theirs=$?
	picture "$T/$pair-refd/$gitdir" >"$T/ours"
	picture "$T/$pair-git/$gitdir" >"$T/theirs"
	if [ "$theirs" != "$wanted" ]; then
		not_ok "$pair: $name" "git itself ended with $theirs"
	elif [ "$ours" != "$theirs" ]; then
		not_ok "$pair: $name" \
			"status $ours, git's $theirs: $(cat "$T/ours.err")"
	elif ! cmp -s "$T/ours.out" "$T/theirs.out"; then
		not_ok "$pair: $name" "said: $(cat "$T/ours.out")"
	elif ! same_words; then
		not_ok "$pair: $name" "git's errors (<) and refd's (>) differ"
		cat "$T/diff"
	elif ! diff "$T/theirs" "$T/ours" >"$T/diff"; then
		not_ok "$pair: $name" "git (<) and refd (>) differ"
		head -n 10 "$T/diff"
	elif [ -n "$(litter)" ]; then
		not_ok "$pair: $name" "empty directories left: $(litter)"
	else
		ok "$pair: $name"
	fi
}

# A plain git command in both.
twice() { # ARGUMENT...
	git --git-dir "$T/$pair-refd/$gitdir" "$@" &&
		git --git-dir "$T/$pair-git/$gitdir" "$@"
}

make_pair() { # NAME [bare]
	pair=$1
	gitdir=.git
	[ "${2:-}" != bare ] || gitdir=.
	new_repo "$pair-refd" "${2:-}"
	first=$(new_commit "$pair-refd" first)
	second=$(new_commit "$pair-refd" second "$first")
	third=$(new_commit "$pair-refd" third "$second")
	tree=$(git -C "$T/$pair-refd" rev-parse "$first^{tree}")
	cp -r "$T/$pair-refd" "$T/$pair-git"
}

# ---- equal behaviour of both ----

argument_forms() {
	both 'create' 0 refs/heads/a "$first" </dev/null
	both 'move' 0 refs/heads/a "$second" </dev/null
	both 'move from the right value' 0 \
		refs/heads/a "$third" "$second" </dev/null
	both 'move from a wrong value' 128 \
		refs/heads/a "$first" "$second" </dev/null
	both 'create what must not exist' 0 \
		refs/heads/b "$first" "$ZERO" </dev/null
	both 'an empty old value says the same' 128 \
		refs/heads/b "$second" '' </dev/null
	both 'create what exists' 128 refs/heads/b "$second" "$ZERO" </dev/null
	both 'move what does not exist' 128 \
		refs/heads/none "$second" "$first" </dev/null
	both 'confirm a value' 0 refs/heads/b "$first" "$first" </dev/null
	both 'a value in capitals' 0 \
		refs/heads/b "$(tr a-f A-F <<<"$first")" </dev/null
	both 'a revision for a value' 0 refs/heads/c refs/heads/a~1 </dev/null
	both 'an old revision' 0 \
		refs/heads/c refs/heads/a refs/heads/a^ </dev/null
	both 'no revision' 128 refs/heads/c nonsense </dev/null
	both 'a message' 0 -m '  two   words ' refs/heads/c "$first" </dev/null
	both 'an empty message' 128 -m '' refs/heads/c "$second" </dev/null
	both 'a reflog where there was none' 0 \
		--create-reflog refs/tags/logged "$first" </dev/null
	both 'which goes on' 0 -m more refs/tags/logged "$second" </dev/null
	both 'a name with a slash' 0 refs/heads/d/e/f "$first" </dev/null
	both 'delete' 0 -d refs/heads/d/e/f </dev/null
	both 'delete with the right value' 0 -d refs/heads/c "$first" </dev/null
	both 'delete with a wrong value' 1 -d refs/heads/b "$third" </dev/null
	both 'delete with a zero value' 0 -d refs/heads/b "$ZERO" </dev/null
	both 'delete what does not exist' 0 -d refs/heads/none </dev/null
	both 'delete it with a value' 1 -d refs/heads/none "$first" </dev/null
	both 'a zero new value deletes' 0 refs/tags/logged "$ZERO" </dev/null
	both 'what is no branch may be a tree' 0 \
		refs/tags/tree "$tree" </dev/null
	both 'a branch may not' 128 refs/heads/tree "$tree" </dev/null
	both 'an object that is not there' 128 \
		refs/heads/absent "$ABSENT" </dev/null
	both 'a bad name' 128 refs/heads/a..b "$first" </dev/null
	both 'a bad name to delete' 0 -d 'refs/heads/a b' </dev/null
	both 'a name that no ref has' 1 -d foo </dev/null
	both 'a name of one component' 0 foo "$first" </dev/null
	both 'an unknown option' 129 --what refs/heads/a "$first" </dev/null
	both 'an unknown letter' 129 -dx refs/heads/a </dev/null
	both 'a value left out' 129 -m </dev/null
	both 'a value too many' 129 --stdin=yes </dev/null
	both 'an empty message before all else' 128 -m '' </dev/null
	both 'no arguments' 129 </dev/null
	both 'too many arguments' 129 refs/heads/a b c d </dev/null
	both 'what a symbolic ref points to' 0 HEAD "$second" </dev/null
	both 'the symbolic ref itself' 0 --no-deref HEAD "$first" </dev/null
	twice symbolic-ref HEAD refs/heads/main
	both '-z without --stdin' 129 -z refs/heads/a "$first" </dev/null
}

# Gitaly ends the options of every git command with --end-of-options.
ends_of_options() {
	both 'the options end' 0 --no-deref --end-of-options \
		refs/heads/a "$first" </dev/null
	both 'the options end behind an argument' 0 refs/heads/a \
		--end-of-options "$second" </dev/null
	both 'no option behind the end' 128 --end-of-options \
		refs/heads/a "$first" --no-deref </dev/null
	both 'a message of that name' 0 -m --end-of-options \
		refs/heads/a "$third" </dev/null
	both 'the options end before input' 0 --stdin --end-of-options <<-END
		update refs/heads/a $first
	END
	both 'and with more than input' 129 --stdin --end-of-options x \
		</dev/null
	both '--no-no-deref' 0 --no-deref --no-no-deref HEAD "$second" \
		</dev/null
	check '--help-all: status 0' "$REFD" update --help-all >"$T/said"
	check '--help-all: the usage' grep -q '^usage: refd update' "$T/said"
	(cd "$T" && "$REFD" update -C "$pair-refd" --what 2>"$T/err")
	is 'the usage, of a relative directory' 129 $?
}

# A file with the null id is a broken ref. Git compares it as an absent ref.
null_ids() {
	local form
	for form in "create refs/heads/null $first" \
		"update refs/heads/null $first $ZERO" \
		"update refs/heads/null $first $first" \
		"update refs/heads/null $first" \
		"verify refs/heads/null $ZERO" \
		"delete refs/heads/null $first" 'delete refs/heads/null'; do
		twice update-ref -d refs/heads/null
		echo "$ZERO" >"$T/$pair-refd/$gitdir/refs/heads/null"
		echo "$ZERO" >"$T/$pair-git/$gitdir/refs/heads/null"
		case $form in
		*"$first $first" | "delete refs/heads/null $first")
			both "null id: $form" 128 --stdin <<<"$form" ;;
		*) both "null id: $form" 0 --stdin <<<"$form" ;;
		esac
	done
}

conflicts() {
	both 'below a ref' 128 refs/heads/a/below "$first" </dev/null
	both 'a directory' 0 refs/heads/dir/x "$first" </dev/null
	both 'in a directory'"'"'s place' 128 refs/heads/dir "$first" </dev/null
	both 'delete below a ref' 1 -d refs/heads/a/below </dev/null
	both 'delete a directory' 1 -d refs/heads/dir </dev/null
	both 'the directory empty again' 0 -d refs/heads/dir/x </dev/null
	both 'in its place then' 0 refs/heads/dir "$first" </dev/null
	mkdir -p "$T/$pair-refd/$gitdir/refs/heads/empty/deep" \
		"$T/$pair-git/$gitdir/refs/heads/empty/deep"
	both 'over empty directories' 0 refs/heads/empty "$first" </dev/null
	both 'both in one transaction' 128 --stdin <<-END
		create refs/heads/new $first
		create refs/heads/new/below $first
	END
}

from_stdin() {
	both 'several at once' 0 -m 'as one' --stdin <<-END
		create refs/heads/s1 $first
		create refs/heads/s2 $second
		update refs/heads/s3 $third
		update refs/heads/a $second
		verify refs/heads/s4
		verify refs/heads/s5 $ZERO
	END
	both 'all of them or none' 128 --stdin <<-END
		create refs/heads/s6 $first
		update refs/heads/s1 $second $third
		delete refs/heads/s2
	END
	both 'values, verified' 0 --stdin <<-END
		verify refs/heads/s2 $second
		update refs/heads/s1 $second $first
	END
	both 'a value, found wrong' 128 --stdin <<-END
		verify refs/heads/s1 $third
		update refs/heads/s2 $third
	END
	both 'deletions and others' 0 --stdin <<-END
		delete refs/heads/s2 $second
		delete refs/heads/s3
		create refs/heads/s7 $third
	END
	both 'option no-deref' 0 --stdin <<-END
		option no-deref
		update refs/heads/s1 $third
	END
	both 'quoted names' 0 --stdin <<-END
		create "refs/heads/q\\303\\274" $first
	END
	both 'start and commit' 0 --stdin <<-END
		start
		create refs/heads/t1 $first
		commit
		start
		create refs/heads/t2 $first
		commit
	END
	both 'start and abort' 0 --stdin <<-END
		start
		create refs/heads/t3 $first
		abort
	END
	both 'start and nothing more' 0 --stdin <<-END
		start
		create refs/heads/t3 $first
	END
	both 'nothing' 0 --stdin </dev/null
	both 'twice the same' 128 --stdin <<-END
		create refs/heads/t4 $first
		create refs/heads/t4 $first
	END
	both 'an unknown command' 128 --stdin <<-END
		create refs/heads/t4 $first
		invent refs/heads/t5 $first
	END
	both 'a missing value' 128 --stdin <<-END
		create refs/heads/t4
	END
	both 'more than there should be' 128 --stdin <<-END
		create refs/heads/t4 $first $second
	END
	both 'a zero value to create' 128 --stdin <<-END
		create refs/heads/t4 $ZERO
	END
	both 'a zero value to delete from' 128 --stdin <<-END
		delete refs/heads/s1 $ZERO
	END
}

with_nul() {
	both '-z: several at once' 0 -z --stdin < <(
		printf 'create refs/heads/z1\0%s\0' "$first"
		printf 'update refs/heads/z2\0%s\0%s\0' "$first" "$ZERO"
		printf 'update refs/heads/a\0%s\0\0' "$third"
		printf 'verify refs/heads/s4\0\0'
	)
	both '-z: an empty old value is none' 0 -z --stdin < <(
		printf 'update refs/heads/z1\0%s\0\0' "$second"
		printf 'delete refs/heads/z2\0\0'
	)
	both '-z: a wrong value' 128 -z --stdin < <(
		printf 'update refs/heads/z1\0%s\0%s\0' "$first" "$third"
	)
	both '-z: cut short' 0 -z --stdin < <(
		printf 'create refs/heads/z3\0%s' "$first"
	)
}

when_packed() {
	twice tag -a -m annotated v1 "$second"
	twice pack-refs --all --prune
	both 'packed: move' 0 refs/heads/a "$first" "$third" </dev/null
	both 'packed: wrong value' 128 refs/heads/z1 "$first" "$third" </dev/null
	both 'packed: exists' 128 refs/heads/z1 "$first" "$ZERO" </dev/null
	both 'packed: delete' 0 -d refs/heads/z1 </dev/null
	both 'packed: delete what is loose too' 0 -d refs/heads/a </dev/null
	both 'packed: below' 128 refs/heads/s1/below "$first" </dev/null
	both 'packed: delete below' 1 -d refs/heads/s1/below </dev/null
	both 'packed: the tag stays peeled' 0 -d refs/heads/s7 </dev/null
	both 'packed: delete and create' 0 --stdin <<-END
		delete refs/heads/s1
		create refs/heads/p1 $first
		update refs/heads/t1 $second $first
	END
	is "$pair: packed: the tag's commit" "$second" \
		"$(git --git-dir "$T/$pair-refd/$gitdir" rev-parse 'v1^{}')"
	packed_is_a_link
}

# The deletion follows the link, and leaves the link in place.
packed_is_a_link() {
	local dir
	for dir in "$T/$pair-refd/$gitdir" "$T/$pair-git/$gitdir"; do
		mv "$dir/packed-refs" "$dir/packed-elsewhere"
		ln -s packed-elsewhere "$dir/packed-refs"
	done
	both 'packed: a link: delete' 0 -d refs/tags/v1 </dev/null
	is "$pair: packed: a link: it stays" packed-elsewhere \
		"$(readlink "$T/$pair-refd/$gitdir/packed-refs")"
}

all_of_it() {
	argument_forms
	ends_of_options
	null_ids
	conflicts
	from_stdin
	with_nul
	when_packed
	no_locks "$pair: no lock" "$pair-refd"
	check "$pair: git fsck" \
		git --git-dir "$T/$pair-refd/$gitdir" fsck --no-dangling 2>/dev/null
}

# ---- additions of refd ----

# An id begins with the milliseconds of its birth.
new_txid() {
	printf '%012x%08x%08x%04x\n' "$(date +%s%3N)" $SRANDOM $SRANDOM \
		$((RANDOM))
}

# A hook needs a session, and so does "prepare". The second call takes no lock,
# and gets the outcome of the first.
same_id_again() {
	local id hook=$repo/hooks/reference-transaction
	mkdir -p "$repo/hooks"
	printf '#!/bin/sh\ncat >/dev/null\n' >"$hook"
	chmod +x "$hook"
	id=$(new_txid)
	twice_with "$id" 'a hook' "ok refs/heads/hooked
txn $id committed" --porcelain refs/heads/hooked "$first" </dev/null
	rm "$hook"
	id=$(new_txid)
	twice_with "$id" 'a session' 'start: ok
prepare: ok
commit: ok' --stdin <<-END
		start
		create refs/heads/prepared $first
		prepare
		commit
	END
	id=$(new_txid)
	twice_with "$id" 'a batch' 'start: ok
prepare: ok
commit: ok' --stdin --batch-updates <<-END
		start
		create refs/heads/batched $first
		prepare
		commit
	END
	"$REFD" update -C "$repo" --txid "$id" --stdin --batch-updates \
		>"$T/out" 2>"$T/err" <<-END
		start
		create refs/heads/batched $first
		prepare
		abort
	END
	is 'an id that is done: the abort fails' 128 $?
	is 'and does not say ok' 'start: ok
prepare: ok' "$(cat "$T/out")"
}

twice_with() { # TXID NAME OUTPUT ARGUMENT...
	local id=$1 name=$2 wanted=$3 turn out
	shift 3
	cat >"$T/input"
	for turn in 'first' 'again'; do
		out=$("$REFD" update -C "$repo" --txid "$id" "$@" \
			<"$T/input" 2>&1)
		is "an id with $name, $turn: status" 0 $?
		is "an id with $name, $turn" "$wanted" "$out"
	done
}

# The id is that of the first updates, so an "ok" would be of the other ones.
of_other_updates() {
	local id
	id=$(new_txid)
	"$REFD" update -C "$repo" --txid "$id" refs/heads/other "$first"
	"$REFD" update -C "$repo" --txid "$id" refs/heads/other "$second" \
		2>"$T/err"
	is 'the same id with another value' 128 $?
	check 'and why' grep -q 'id was used' "$T/err"
	is 'nothing is done' "$first" "$(ref_of own.git refs/heads/other)"
	new_repo twin.git bare
	"$REFD" update -C "$T/twin.git" --txid "$id" refs/heads/other \
		"$(new_commit twin.git first)" 2>"$T/err"
	is 'the same id in another repository' 128 $?
	check 'and why there' grep -q 'id was used' "$T/err"
	is 'nothing is done there' '' "$(ref_of twin.git refs/heads/other)"
}

own_words() {
	local repo=$T/own.git id out
	new_repo own.git bare
	first=$(new_commit own.git first)
	second=$(new_commit own.git second "$first")
	"$REFD" update -C "$repo" refs/heads/old "$first"

	id=$(new_txid)
	out=$("$REFD" update -C "$repo" --porcelain --txid "$id" --stdin 2>&1 <<-END
		create refs/heads/one $first
		update refs/heads/two $second
	END
	)
	is 'porcelain: all well' "ok refs/heads/one
ok refs/heads/two
txn $id committed" "$out"

	out=$("$REFD" update -C "$repo" --porcelain --txid "$id" --stdin 2>&1 <<-END
		create refs/heads/one $first
		update refs/heads/two $second
	END
	)
	is 'the same id again: the same answer' "ok refs/heads/one
ok refs/heads/two
txn $id committed" "$out"
	is 'and nothing was done twice' "$second" "$(ref_of own.git refs/heads/two)"

	same_id_again

	out=$("$REFD" query "$id")
	is 'query by id' "ok refs/heads/one
ok refs/heads/two
txn $id committed" "$out"

	id=$(new_txid)
	"$REFD" update -C "$repo" --txid "$id" refs/heads/moved "$first"
	"$REFD" update -C "$repo" refs/heads/moved "$second"
	check 'the same id again, the ref has moved on' \
		"$REFD" update -C "$repo" --txid "$id" refs/heads/moved "$first"
	is 'the ref is not moved back' "$second" \
		"$(ref_of own.git refs/heads/moved)"
	of_other_updates

	id=$(new_txid)
	out=$("$REFD" update -C "$repo" --porcelain --txid "$id" --stdin \
		2>/dev/null <<-END
		create refs/heads/three $first
		update refs/heads/old $second $second
		create refs/heads/one $first
	END
	)
	is 'porcelain: none of it' "ng refs/heads/three aborted
ng refs/heads/old stale
ng refs/heads/one exists
txn $id rejected" "$(cut -d' ' -f1-3 <<<"$out")"
	check 'the actual value is in the answer' \
		grep -q "is at $first but expected $second" <<<"$out"

	out=$("$REFD" update -C "$repo" --json --stdin --batch-updates \
		2>/dev/null <<-END
		create refs/heads/three $first
		update refs/heads/old $second $second
	END
	)
	is 'batch: one fails alone' "$first" "$(ref_of own.git refs/heads/three)"
	check 'json: as a program reads it' python3 - "$out" "$first" <<-'END'
		import json, re, sys
		got = json.loads(sys.argv[1])
		assert got["outcome"] == "partial", got
		assert len(got["txn"]) == 32, got
		assert re.fullmatch("[0-9a-f]{32}:[1-9][0-9]*", got["token"]), got
		one, two = got["refs"]
		assert one == {"ref": "refs/heads/three", "status": "ok"}, one
		assert two["status"] == "stale", two
		assert two["found"] == sys.argv[2], two
	END

	out=$("$REFD" update -C "$repo" --stdin --batch-updates 2>/dev/null <<-END
		start
		create refs/heads/four $first
		create refs/heads/one $first
		update refs/heads/old $second $second
		delete refs/heads/none $first
		update refs/heads/gone $ABSENT
		create refs/heads/one/below $first
		commit
	END
	)
	is 'batch: rejections in git'"'"'s words' "start: ok
rejected refs/heads/gone $ABSENT (null) invalid new value provided
rejected refs/heads/one $first $ZERO reference already exists
rejected refs/heads/old $second $second incorrect old value provided
rejected refs/heads/none $ZERO $first reference does not exist
rejected refs/heads/one/below $first $ZERO refname conflict
commit: ok" "$out"
	is 'batch: what could be done was' "$first" \
		"$(ref_of own.git refs/heads/four)"

	git -C "$repo" symbolic-ref refs/heads/to-one refs/heads/one
	git -C "$repo" symbolic-ref refs/heads/to-none refs/heads/none
	git -C "$repo" symbolic-ref refs/heads/to-it refs/heads/to-none
	: >"$repo/refs/heads/to-none.lock"
	out=$("$REFD" update -C "$repo" --stdin --batch-updates 2>/dev/null <<-END
		create refs/heads/to-one $first
		create refs/heads/to-it $first
	END
	)
	rm "$repo/refs/heads/to-none.lock"
	is 'batch: the ref that could not be had is named' \
		"rejected refs/heads/one $first $ZERO reference already exists
rejected refs/heads/to-none $first $ZERO reference already exists" \
		"$out"
	echo 'ref: refs/heads/a b' >"$repo/refs/heads/to-blank"
	out=$("$REFD" update -C "$repo" --stdin --batch-updates 2>/dev/null \
		<<<"create refs/heads/to-blank $first")
	rm "$repo/refs/heads/to-blank"
	is 'batch: a name with a blank is named whole' \
		"rejected refs/heads/a b $first $ZERO reference broken" "$out"

	"$REFD" update -C "$repo" --compat=2.47 refs/heads/x "$first" \
		2>"$T/err"
	is 'the words of a version that is not known' 129 $?
	check 'and those that are' \
		grep -q "^error: option .compat. takes 2.39 or 2.55, not '2.47'" "$T/err"
	# The command reads REFD_COMPAT before -C, so it must start in a
	# repository.
	(cd "$repo" && REFD_COMPAT=git "$REFD" update refs/heads/x "$first") \
		2>"$T/err"
	is 'said by the environment' 129 $?
	check 'which is named' grep -q '^error: REFD_COMPAT takes' "$T/err"
	"$REFD" update -C "$repo" --batch-updates refs/heads/x "$first" \
		2>"$T/err"
	is 'a batch on the command line' 128 $?
	"$REFD" update -C "$repo" --atomic --batch-updates --stdin \
		</dev/null 2>/dev/null
	is 'all or none, and each alone, exclude each other' 129 $?
	"$REFD" update -C "$repo" --socket "$T/nobody" refs/heads/x "$first" \
		2>"$T/err"
	is 'nobody there: status' 75 $?
	check 'nobody there: the key that would help is named' \
		grep -q refd.fallback=git "$T/err"
	git -C "$repo" config refd.fallback git
	new_repo fresh.git bare
	git -C "$T/fresh.git" config refd.fallback git
	"$REFD" update -C "$T/fresh.git" --socket "$T/nobody" refs/heads/x \
		"$(new_commit fresh.git first)"
	is 'fallback to git where refd never was' 0 $?
	"$REFD" update -C "$repo" --socket "$T/nobody" --timeout 500 \
		refs/heads/x "$first" 2>"$T/err"
	is 'no fallback where refs may await recovery' 75 $?
	check 'and it says why' grep -q 'await recovery' "$T/err"
}

# The files of a linked worktree's refs are below worktrees/ of the repository.
of_linked_worktree() {
	local dir=$T/linked.git/worktrees/w one
	new_repo linked.git bare
	one=$(new_commit linked.git one)
	git -C "$T/linked.git" worktree add -q --detach "$T/w" "$one"
	mkdir -p "$dir/refs/bisect" "$dir/logs/refs/bisect/d"
	echo junk >"$dir/refs/bisect/f"
	echo junk >"$dir/logs/refs/bisect/f"
	echo junk >"$dir/logs/refs/bisect/d/x"
	"$REFD" update -C "$T/w" refs/bisect/f/x "$one" 2>"$T/err"
	check 'linked: the path of a lock' grep -qF \
		"create lock file $dir/refs/bisect/f/x.lock;" "$T/err"
	rm "$dir/refs/bisect/f"
	"$REFD" update -C "$T/w" --create-reflog refs/bisect/f/x "$one" \
		2>"$T/err"
	check 'linked: the path of a log' grep -qF \
		"append to '$dir/logs/refs/bisect/f/x': Not a dir" "$T/err"
	"$REFD" update -C "$T/w" --create-reflog refs/bisect/d "$one" \
		2>"$T/err"
	check 'linked: the path of logs' grep -qF \
		"still logs under '$dir/logs/refs/bisect/d'" "$T/err"
	: >"$dir/logs/refs/bisect/l"
	ln "$dir/logs/refs/bisect/l" "$T/second-name"
	"$REFD" update -C "$T/w" --create-reflog --porcelain refs/bisect/l \
		"$one" >"$T/out" 2>"$T/err"
	check 'linked: the path of a log with two names' grep -qF \
		"the log '$dir/logs/refs/bisect/l' has" "$T/out" "$T/err"
}

check 'the daemon starts' start_daemon
make_pair bare bare
all_of_it
make_pair worktree
all_of_it
own_words
of_linked_worktree
check 'the daemon stops' stop_daemon
finish
