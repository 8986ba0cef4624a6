#!/bin/bash
# Proves that the feed leads to the refs on disk, whoever writes: pushes, git
# update-ref and git fetch with the gate, gc and pack-refs, refd update, and the
# writers without hooks pygit2 and JGit. With REFD_TEST_REFS=reftable the
# repositories have reftables, and pygit2, which cannot read them, is left out.
# tests/everybody/everybody.py describes the load and the required results.
#
# CHANGES=N sets the number of changes (50000, about a minute). A million take
# 21 minutes of processor time.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

# `scripts/jgit build/jgit` downloads JGit.
if ! cmp -s "$ROOT/tests/everybody/pom.xml" "$BUILD/jgit/pom.xml" ||
	! command -v java >/dev/null; then
	skip everybody 'no JGit: run scripts/jgit build/jgit'
	finish
fi
if [ "$REF_FORMAT" != files ]; then
	if ! why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" \
		experimental 2>&1); then
		skip everybody "no git with reftables: ${why//$'\n'/; }"
		finish
	fi
	export WRITERS=${WRITERS:-push update-ref fetch refd jgit}
fi
start_daemon || exit 1
new_repo work
# The values: 20000 commits in a row.
for ((i = 0; i < 20000; i++)); do
	printf 'commit refs/heads/main\ncommitter C <c@example.com> %d +0000\n' $i
	printf 'data 0\n\n'
done | git -C "$T/work" fast-import --quiet --force
repos=()
for i in 1 2 3; do
	repo=$T/$i.git
	new_repo $i.git bare
	"$REFD" enable --gate "$repo" >"$T/said" 2>&1
	git -C "$repo" fetch -q --no-write-fetch-head "$T/work" \
		main:refs/keep/0 main:refs/keep/1
	git -C "$repo" commit-graph write --reachable
	repos+=("$repo")
done
SEED=${SEED:-$RANDOM}
echo "# SEED=$SEED"
PYTHONDONTWRITEBYTECODE=1 python3 "$ROOT/tests/everybody/everybody.py" \
	"$REFD" "$T/work" "${CHANGES:-50000}" "$SEED" \
	"java -Xmx256m -cp $BUILD/jgit/* $ROOT/tests/everybody/JgitWriter.java" \
	"${repos[@]}" \
	>"$T/points" 2>"$T/errors"
status=$?
while IFS= read -r line; do
	case $line in
	'ok '*) ok "${line#ok }" ;;
	'not ok '*) not_ok "${line#not ok }" ;;
	*) echo "$line" ;;
	esac
done <"$T/points"
cat "$T/errors"
check 'it comes to its end' test $status -eq 0
for i in 1 2 3; do
	no_locks "no lock is left in $i.git" $i.git
done
finish
