#!/bin/bash
# nb.sh GIT: every kind of answer that update-ref gives, but for batches.

# shellcheck source=tests/golden/env.sh
. "$(cd "$(dirname "$0")" && pwd)/env.sh"

cli() { # ARGUMENT...
	local rc=0
	echo "--- cli: $*"
	"$git" update-ref "$@" >o 2>e || rc=$?
	echo "   rc=$rc"
	# Of a usage the first lines will do.
	sed -i 4q e
	said
}

fixture rn
"$git" tag -a -m x annot
"$git" update-ref refs/heads/ld/f c1

# ---- objects, old values ----

try "update refs/heads/n1 $X\n"
try "update refs/heads/n1 $T\n"
try "create refs/heads/main $C1\n"
try "update refs/heads/main $C1 $C2\n"
try "update refs/heads/nx $C1 $C2\n"
try "delete refs/heads/nx\n"
try "delete refs/heads/nx $C1\n"
try "verify refs/heads/main\n"
try "verify refs/heads/nx $C1\n"
try "verify refs/heads/sym $C1\n"

# ---- directories in the way, the same ref twice ----

try "update refs/heads/d $C1\n"
try "update refs/heads/d/f/g $C1\n"
try "update refs/heads/ld $C1\n"
try "update refs/heads/ld/f/g $C1\n"
try "update refs/heads/ld/f/g $C1 $C2\n"
try "create refs/heads/q $C1\ncreate refs/heads/q/r $C1\n"
try "create refs/heads/q/r $C1\ncreate refs/heads/q $C1\n"
try "delete refs/heads/d/f\ncreate refs/heads/d $C1\n"
try "delete refs/heads/ld/f\ncreate refs/heads/ld $C1\n"
try "update HEAD $C1\nupdate refs/heads/main $C1\n"
try "update refs/heads/main $C1\nupdate HEAD $C1\n"
try "update refs/heads/sym $C1\nupdate refs/heads/main $C1\n"

# ---- names ----

try "update refs/heads/bad..name $C1\n"
try "delete refs/heads/bad..name\n"
try "update FETCH_HEAD $C1\n"
try "update MERGE_HEAD $C1\n"
try "update ORIG_HEAD $C1\n"
try "update foo $C1\n"
try "update FOO $C1\n"
try "update CONFIG $C1\n"
try "update refs/heads/x@{y $C1\n"
try "update heads/../x $C1\n"

# ---- the language ----

try "delete refs/heads/main $Z\n"
try "create refs/heads/y $Z\n"
try "update refs/heads/main\n"
try "update refs/heads/main $C1 $C2 extra\n"
try "update  refs/heads/main $C1\n"
try "update refs/heads/main  $C1\n"
try "\n"
try " update x y\n"
try "update \"refs/heads/q1 $C1\n"
try "update \"refs/heads/q1\"x $C1\n"
try "update \"refs/heads/q\\\\303\\\\251\" $C1\n"
try "option foo\n"
try "option no-deref\nupdate refs/heads/sym $C1\n"
try "prepare\nupdate refs/heads/main $C1\n"
try "start\nstart\n"
try "commit\ncommit\n"
try "abort\nupdate refs/heads/main $C1\n"
try "start extra\n"
try "update refs/heads/noeol $C1"
try "start\nupdate refs/heads/neverr $C1\n"
"$git" rev-parse -q --verify refs/heads/neverr
try "update refs/heads/main c1 $Z\n"

# ---- the command line ----

cli refs/heads/main c1 c2
cli -d refs/heads/nx
cli -d refs/heads/nx c1
cli -d refs/heads/main c1
cli -d refs/heads/main "$Z"
cli refs/heads/zz c1 ""
cli refs/heads/zz c1 "$Z"
cli refs/heads/zz
cli -d a b c
cli -m "" refs/heads/zz c2
cli refs/heads/zz nosuch
cli refs/heads/zz c1 nosuch
cli bad..name c1
cli foo c1
cli -z refs/heads/zz c1
cli --stdin x y
cli refs/heads/zz/ c1
cli /refs/heads/zz c1
cli -h
