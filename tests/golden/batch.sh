#!/bin/bash
# batch.sh GIT: every kind of rejection by --stdin --batch-updates.

# shellcheck source=tests/golden/env.sh
. "$(cd "$(dirname "$0")" && pwd)/env.sh"

batch() { # INPUT
	try "$1" --batch-updates
}

fixture rb

batch "update refs/heads/n1 $X\n"
batch "update refs/heads/n1 $T $Z\n"
batch "create refs/heads/main $C1\n"
batch "update refs/heads/main $C1 $C2\n"
batch "update refs/heads/nx $C1 $C2\n"
batch "delete refs/heads/nx\n"
batch "delete refs/heads/nx $C1\n"
batch "verify refs/heads/main $C1\n"
batch "update refs/heads/d $C1\nupdate refs/heads/ok1 $C1\n"
batch "update refs/heads/pk/x/y $C1\nupdate refs/heads/pk/x/z $C1\n"
batch "create refs/heads/q $C1\ncreate refs/heads/q/r $C1\n"
batch "create refs/heads/q/r $C1\ncreate refs/heads/q $C1\n"
batch "update refs/heads/bad..name $C1\n"
batch "update FETCH_HEAD $C1\n"
batch "update refs/heads/main $C1\nupdate refs/heads/main $C2\n"
batch "update HEAD $C1\nupdate refs/heads/main $C1\n"
batch "update refs/heads/sym $C1\nupdate refs/heads/main $C1\n"
batch "option no-deref\nsymref-update refs/heads/main refs/heads/x ref refs/heads/y\n"
batch "option no-deref\nsymref-update refs/heads/sym refs/heads/x ref refs/heads/y\n"
batch "option no-deref\nsymref-create refs/heads/dang refs/heads/y\n"
batch "option no-deref\nsymref-delete refs/heads/sym refs/heads/y\n"
batch "option no-deref\nsymref-verify refs/heads/sym refs/heads/zz\n"
: >.git/refs/heads/lk.lock
batch "create refs/heads/lk $C1\ncreate refs/heads/ok2 $C1\n"
rm .git/refs/heads/lk.lock
batch "start\nupdate refs/heads/main $C1 $C2\nupdate refs/heads/ok3 $C1\nprepare\ncommit\n"
