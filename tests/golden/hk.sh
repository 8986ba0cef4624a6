#!/bin/bash
# usage: hk.sh GIT -- which calls the reference-transaction hook gets from
# GIT's update-ref: phase, place, input, and the locks that stand meanwhile.
# The hook's own output goes to standard error and is shown with it.

# shellcheck source=tests/golden/env.sh
. "$(cd "$(dirname "$0")" && pwd)/env.sh"

rm -rf rh
"$git" init -q -b main rh && cd rh || exit 1
for i in 1 2 3; do
	"$git" commit -q --allow-empty -m c$i
	"$git" tag c$i
done
for ref in pk pk2 loose; do
	"$git" update-ref refs/heads/$ref c1
done
"$git" pack-refs --all
"$git" update-ref refs/heads/loose c2
"$git" symbolic-ref refs/heads/sym refs/heads/loose
"$git" symbolic-ref refs/heads/sym2 refs/heads/sym
"$git" symbolic-ref refs/heads/dang refs/heads/nowhere
"$git" update-ref refs/heads/onlyloose c1

# It says no where FAIL is its phase, at the WHICHth time, and reads nothing
# where DEAF is.
cat >.git/hooks/reference-transaction <<'HOOK'
#!/bin/sh
echo "[$1] $0 in $PWD, GIT_DIR=${GIT_DIR-unset}, GIT_PREFIX=${GIT_PREFIX-unset}"
[ "$1" = "$DEAF" ] || sed 's/^/    /'
(cd "$TOP" && find .git -name '*.lock' -o -name packed-refs.new) |
	sort | sed 's/^/    locked: /'
[ "$1" = "$FAIL" ] || exit 0
echo x >>"$COUNT"
[ "$(wc -l <"$COUNT")" != "${WHICH:-1}" ]
HOOK
chmod +x .git/hooks/reference-transaction
export TOP=$PWD COUNT=$WORKDIR/count

here() {
	sed "s|$WORKDIR|<work>|g; s|$(cd "$WORKDIR" && pwd -P)|<work>|g"
}

# COMMAND with what was put into the variable IN.
run() { # NAME COMMAND...
	echo "##### $1"
	shift
	rm -f "$COUNT"
	printf '%b' "$IN" | "$@" >"$WORKDIR/o" 2>"$WORKDIR/e"
	echo "rc=$?"
	here <"$WORKDIR/o" | sed 's/^/out: /'
	here <"$WORKDIR/e" | sed 's/^/err: /'
}

cli() { # NAME ARGUMENT...
	local name=$1
	shift
	IN='' run "$name" "$git" update-ref "$@"
}

by_stdin() { # NAME INPUT
	IN=$2 run "$1" "$git" update-ref --stdin
}

# ---- what it is told ----

cli 'create' refs/heads/new c1
cli 'the branch of HEAD' refs/heads/main c2
cli 'HEAD' HEAD c3
cli 'delete, packed' -d refs/heads/pk
cli 'delete, only loose' -d refs/heads/onlyloose
cli 'delete what is not there' -d refs/heads/none
cli 'through a symbolic ref' refs/heads/sym c3
cli 'a symbolic ref itself' --no-deref refs/heads/sym c3
"$git" -c core.hooksPath=/ symbolic-ref refs/heads/sym refs/heads/loose
cli 'no lock was had' refs/heads/sym c2 c1
cli 'nothing new' refs/heads/loose c3
by_stdin 'verify' 'verify refs/heads/loose c3\n'
by_stdin 'many' "update refs/heads/sym2 c1\nupdate refs/heads/dang c1\n\
update HEAD c2\nupdate refs/heads/z c1\ncreate refs/heads/y c2\n"
by_stdin 'nothing' ''
by_stdin 'the same twice' \
	'update refs/heads/a c1\nupdate refs/heads/a c2\n'
by_stdin 'one through the other' \
	'update refs/heads/sym c1\nupdate refs/heads/loose c2\n'

# ---- dialogues ----

by_stdin 'start, commit' 'start\ncommit\n'
by_stdin 'prepare, abort' \
	'start\nupdate refs/heads/n5 c1\nprepare\nabort\n'
by_stdin 'prepare, commit' \
	'start\nupdate refs/heads/n5 c1\nprepare\ncommit\n'
by_stdin 'prepare, the end' 'update refs/heads/n6 c1\nprepare\n'
by_stdin 'abort' 'start\nupdate refs/heads/n6 c1\nabort\n'
by_stdin 'start, the end' 'start\nupdate refs/heads/n6 c1\n'
by_stdin 'an error' 'start\nupdate refs/heads/n6 c1\nbogus\n'
by_stdin 'an error when prepared' 'update refs/heads/n6 c1\nprepare\nstart\n'
by_stdin 'abort, packed-refs too' "delete refs/heads/pk2\nupdate HEAD c1\n\
delete refs/heads/sym\nprepare\nabort\n"
by_stdin 'two transactions' "start\nupdate refs/heads/n7 c1\ncommit\nstart\n\
delete refs/heads/n7\ncommit\n"

# ---- when it says no ----

export FAIL
for FAIL in prepared committed aborted; do
	cli "no when $FAIL" refs/heads/a c2
	cli "no when $FAIL, delete" -d refs/heads/a
	by_stdin "no when $FAIL, abort" 'update refs/heads/a c1\nprepare\nabort\n'
done
FAIL=prepared
for WHICH in 1 2; do
	export WHICH
	cli "no to packed-refs, time $WHICH" -d refs/heads/pk2
done
unset FAIL WHICH
DEAF=prepared cli 'nothing read' refs/heads/a c1
GIT_QUARANTINE_PATH=/ cli 'quarantine' refs/heads/a c1
GIT_QUARANTINE_PATH=/ cli 'quarantine, delete' -d refs/heads/a

# ---- where it runs ----

mkdir -p sub/dir
cd sub/dir || exit 1
cli 'below the top' refs/heads/a c1
GIT_DIR=../../.git cli 'GIT_DIR' refs/heads/a c1
GIT_DIR=../../.git GIT_WORK_TREE=../.. cli 'a work tree, too' refs/heads/a c1
GIT_WORK_TREE=../.. cli 'a work tree' refs/heads/a c1
cd ../../.git || exit 1
cli 'in the git directory' refs/heads/a c1
cd refs || exit 1
cli 'below the git directory' refs/heads/a c1
cd ../..
"$git" -c core.hooksPath=/ worktree add -q ../linked c1
cd ../linked || exit 1
cli 'in a linked worktree' refs/heads/a c1
cli 'its HEAD' HEAD c2
cd "$WORKDIR" || exit 1
"$git" clone -q --bare rh bare.git
cp rh/.git/hooks/reference-transaction bare.git/hooks
cd bare.git || exit 1
cli 'bare' refs/heads/a c1
cd refs || exit 1
cli 'below a bare one' refs/heads/a c1
cd ../../rh || exit 1
mkdir hooks
mv .git/hooks/reference-transaction hooks
"$git" config core.hooksPath hooks
cli 'core.hooksPath' refs/heads/a c1
cd sub || exit 1
cli 'core.hooksPath from below' refs/heads/a c1
cd .. || exit 1
chmod -x hooks/reference-transaction
cli 'not executable' refs/heads/a c1
"$git" config advice.ignoredHook false
cli 'not executable, and that is known' refs/heads/a c1
# shellcheck disable=SC2016
printf 'echo "[$1] and no interpreter named"\n' >hooks/reference-transaction
chmod +x hooks/reference-transaction
cli 'a script for the shell' refs/heads/a c1
