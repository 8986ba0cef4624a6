#!/bin/bash
# Proves that refd reads the reftables that the newest git of Debian writes, and
# that git reads the tables that refd writes: refs, symbolic refs, peeled tags,
# deletions and reflogs, in both object formats, with and without merged tables,
# and when refd and git write in turn.
# The oracle is git: its for-each-ref, its reflogs, and its migration of a copy
# to files.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

rounds=${REFTABLE_ROUNDS:-6}
tool=$BUILD/tests/helper/reftable_tool
if ! why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" experimental \
	2>&1); then
	skip 'a git with reftables' "not to be had: ${why//$'\n'/; }"
	finish
	exit
fi
git=$BUILD/git-experimental/git
export GIT_AUTHOR_DATE='1700000000 -0830' GIT_COMMITTER_DATE='1700000000 -0830'
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org
export GIT_COMMITTER_NAME='C O Mitter' GIT_COMMITTER_EMAIL=c@example.org

refs_of_git() { # REPOSITORY
	echo "HEAD -> $("$git" -C "$1" symbolic-ref HEAD)"
	"$git" -C "$1" for-each-ref --format='%(refname) '`
		`'%(if)%(symref)%(then)-> %(symref)%(else)%(objectname)'`
		`'%(if)%(*objectname)%(then) %(*objectname)%(end)%(end)'
}

# The reflogs of a copy in files, in the form of the tool.
logs_of_git() { # REPOSITORY
	rm -rf "$T/copy"
	cp -r "$1" "$T/copy"
	"$git" -C "$T/copy" refs migrate --ref-format=files || return
	(cd "$T/copy/logs" && find . -type f -printf '%P\n' |
		xargs grep -H '' | sed 's/:/ /')
}

same() { # WHAT REPOSITORY
	is "$1: every table is sound" '' "$("$tool" check "$2/reftable" 2>&1)"
	refs_of_git "$2" >"$T/git.refs"
	"$tool" refs "$2/reftable" >"$T/refd.refs"
	is "$1: $(wc -l <"$T/git.refs") refs" '' \
		"$(diff "$T/git.refs" "$T/refd.refs" 2>&1 | head -n 5)"
	logs_of_git "$2" | LC_ALL=C sort >"$T/git.logs"
	"$tool" logs "$2/reftable" | LC_ALL=C sort >"$T/refd.logs"
	is "$1: $(wc -l <"$T/git.logs") lines of reflogs" '' \
		"$(diff "$T/git.logs" "$T/refd.logs" 2>&1 | head -n 5)"
	is "$1: git finds no error" '' "$("$git" -C "$2" refs verify 2>&1)"
}

# A round of changes. Git merges tables by itself after each transaction.
change() { # REPOSITORY ROUND
	awk -v round="$2" -v objects="$(tr '\n' ' ' <"$T/objects")" 'BEGIN {
		srand(round)
		nr = split(objects, object, " ")
		for (i = 0; i < 250; i++) {
			name = int(rand() * 2000)
			if (!seen[name]++)
				print "update refs/heads/t" name % 17 "/b" \
				    name, object[1 + int(rand() * nr)]
		}
	}' | "$git" -C "$1" update-ref --create-reflog -m "round $2" --stdin
	"$git" -C "$1" for-each-ref --format='delete %(refname)' refs/heads |
		awk -v round="$2" 'BEGIN { srand(round) } rand() < 0.05' |
		"$git" -C "$1" update-ref --stdin
	"$git" -C "$1" tag -a -m x "v$2" "$(head -n 1 "$T/objects")"
	"$git" -C "$1" symbolic-ref -m link "refs/links/l$2" \
		"refs/many/r$2"
}

all_of() { # FORMAT
	local repo=$T/$1.git i name
	export REFTABLE_FORMAT=$1
	"$git" init -q --bare --ref-format=reftable --object-format="$1" "$repo"
	tree=$("$git" -C "$repo" mktree </dev/null)
	for i in 1 2 3 4 5; do
		echo "$i" | "$git" -C "$repo" commit-tree "$tree"
	done >"$T/objects"
	seq 1 12000 | sed "s|.*|create refs/many/r& $tree|" |
		"$git" -C "$repo" update-ref --stdin
	"$git" -C "$repo" config core.logAllRefUpdates always
	for ((i = 1; i <= rounds; i++)); do
		[ $((i % 3)) -ne 0 ] || "$git" -C "$repo" pack-refs --all
		change "$repo" "$i"
	done
	same "$1, written by git" "$repo"
	awk '{ print $1; print $1 "x" }' "$T/git.refs" >"$T/names"
	"$tool" find "$repo/reftable" <"$T/names" | grep -v ' is absent$' |
		sort >"$T/found"
	is "$1: each ref is found by its name" '' \
		"$(sort "$T/git.refs" | diff - "$T/found" | head -n 5)"
	"$REFD" verify --state "$T/none" "$repo" >"$T/verify" 2>&1
	is "$1: refd verify has no finding" 0 $?

	# ---- written by refd ----

	"$tool" merge "$repo/reftable"
	same "$1, merged as planned" "$repo"
	"$tool" merge "$repo/reftable" all
	same "$1, all merged" "$repo"
	{
		seq 100000 100500 | sed "s|.*|refs/new/r& $tree|"
		echo "refs/new/s -> refs/new/r100000"
		name=$(sed -n 's/^\(refs\/tags\/v1\) /\1 /p' "$T/git.refs")
		echo "refs/tags/copy ${name#* }"
		echo 'refs/tags/v1 deleted'
		seq 100000 100500 |
			sed "s|.*|log refs/new/r& ${tree//?/0} $tree made|"
	} | "$tool" append "$repo/reftable"
	same "$1, appended" "$repo"
	is "$1: git sees the new refs" 502 "$("$git" -C "$repo" for-each-ref \
		refs/new | wc -l)"
	is "$1: git sees the deletion" '' "$("$git" -C "$repo" for-each-ref \
		refs/tags/v1)"
	change "$repo" 99
	same "$1, git goes on" "$repo"
}

# Small batches of refd, folded, in turn with updates by git.
small_batches() { # FORMAT
	local repo=$T/small-$1.git i zero
	export REFTABLE_FORMAT=$1
	"$git" init -q --bare --ref-format=reftable --object-format="$1" "$repo"
	"$git" -C "$repo" config core.logAllRefUpdates always
	tree=$("$git" -C "$repo" mktree </dev/null)
	zero=${tree//?/0}
	for ((i = 1; i <= 60; i++)); do
		"$git" -C "$repo" update-ref "refs/git/$i" "$tree" || return
		[ $((i % 4)) -ne 0 ] ||
			"$git" -C "$repo" update-ref -d "refs/refd/$((i - 2))"
		{
			echo "refs/refd/$i $tree"
			[ $((i % 3)) -ne 0 ] || echo "refs/git/$((i - 1)) deleted"
			echo "log refs/refd/$i $zero $tree made"
		} | "$tool" append "$repo/reftable" || return
	done
	same "$1, small batches in turn with git" "$repo"
	is "$1: the stack is short" yes "$([ "$(wc -l \
		<"$repo/reftable/tables.list")" -le 8 ] && echo yes)"
	is "$1: no other table is left" "$(LC_ALL=C sort \
		"$repo/reftable/tables.list")" \
		"$(cd "$repo/reftable" && printf '%s\n' *.ref | LC_ALL=C sort)"
}

all_of sha1
all_of sha256
small_batches sha1
small_batches sha256
check 'the client answers as git does' env REFD_TEST_REFS=reftable \
	"$BUILD/tests/unit/test_client_reftable"
finish
