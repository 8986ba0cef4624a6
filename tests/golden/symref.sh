#!/bin/bash
# symref.sh GIT: the commands for symbolic refs, and what they do to the files.

# shellcheck source=tests/golden/env.sh
. "$(cd "$(dirname "$0")" && pwd)/env.sh"

files() {
	(cd .git && find HEAD refs/heads -type f -exec grep -H . {} +) | sort
}

# Which files are gone, and which are new.
symref() { # INPUT [OPTION...]
	files >../before
	try "$@"
	files | diff ../before - | sed -n 's/^[<>] /  file: &/p'
}

nd='option no-deref\n'
fixture rs

# ---- the language ----

try "symref-update \n"
try "symref-update refs/heads/a\n"
try "symref-update refs/heads/a  foo bar\n"
try "symref-update refs/heads/a a..b\n"
try "symref-update refs/heads/a\trefs/heads/main\n"
try "symref-update refs/heads/a refs/heads/main\tx\n"
try "symref-update refs/heads/a refs/heads/main  ref refs/heads/x\n"
try "symref-update refs/heads/a refs/heads/main ref\n"
try "symref-update refs/heads/a refs/heads/main ref a..b\n"
try "symref-update refs/heads/a refs/heads/main ref refs/heads/x y\n"
try "symref-update refs/heads/a refs/heads/main oid\n"
try "symref-update refs/heads/a refs/heads/main oid nosuch\n"
try "symref-update refs/heads/a refs/heads/main foo bar\n"
try "symref-update FETCH_HEAD refs/heads/main foo bar\n"
try "symref-update FETCH_HEAD refs/heads/main\n"
try "symref-create \n"
try "symref-create refs/heads/a\n"
try "symref-create refs/heads/a refs/heads/main x\n"
try "symref-create refs/heads/a a..b\n"
try "symref-create foo refs/heads/main\n"
try "symref-delete refs/heads/sym\n"
try "symref-verify refs/heads/sym\n"
try "${nd}symref-delete \n"
try "${nd}symref-delete refs/heads/sym a..b\n"
try "${nd}symref-delete refs/heads/sym refs/heads/main x\n"
try "${nd}symref-verify \n"
try "${nd}symref-verify refs/heads/sym a..b\n"
try "${nd}symref-verify refs/heads/sym refs/heads/main x\n"
try "symref-update refs/heads/a\0" -z
try "symref-update refs/heads/a\0\0\0\0" -z
try "symref-update refs/heads/a\0refs/heads/main\0start\0commit\0" -z
try "symref-update refs/heads/a\0refs/heads/main\0ref\0" -z
try "symref-update refs/heads/a\0a..b\0\0\0" -z
try "symref-delete refs/heads/sym\0\0" -z

# ---- what they do ----

symref "${nd}symref-create refs/heads/a refs/heads/main\n"
symref "${nd}symref-create refs/heads/a refs/heads/main\n"
symref "${nd}symref-create refs/heads/main refs/heads/a\n"
symref "${nd}symref-update refs/heads/a refs/heads/d/f\n"
symref "${nd}symref-update refs/heads/a refs/heads/main ref refs/heads/x\n"
symref "${nd}symref-update refs/heads/a refs/heads/main ref refs/heads/d/f\n"
symref "${nd}symref-update refs/heads/a refs/heads/main oid $C1\n"
symref "${nd}symref-update refs/heads/b refs/heads/main ref refs/heads/x\n"
symref "${nd}symref-update refs/heads/b refs/heads/main oid $C1\n"
symref "${nd}symref-update refs/heads/b refs/heads/main oid $Z\n"
symref "${nd}symref-update refs/heads/d/f refs/heads/main ref refs/heads/x\n"
symref "${nd}symref-update refs/heads/d/f refs/heads/main oid $C2\n"
symref "${nd}symref-update refs/heads/d/f refs/heads/main oid $C1\n"
symref "${nd}symref-update refs/heads/main/x refs/heads/main\n"
symref "${nd}symref-update refs/heads/new/x refs/heads/none\n"
symref "${nd}symref-update HEAD refs/heads/other ref refs/heads/main\n"
symref "${nd}symref-update HEAD refs/heads/main\n"
symref "${nd}symref-verify refs/heads/a refs/heads/main\n"
symref "${nd}symref-verify refs/heads/a refs/heads/x\n"
symref "${nd}symref-verify refs/heads/a\n"
symref "${nd}symref-verify refs/heads/main refs/heads/a\n"
symref "${nd}symref-verify refs/heads/none refs/heads/a\n"
symref "${nd}symref-verify refs/heads/none\n"
symref "${nd}symref-delete refs/heads/a refs/heads/x\n"
symref "${nd}symref-delete refs/heads/a refs/heads/main\n"
symref "${nd}symref-delete refs/heads/b\n"
symref "${nd}symref-delete refs/heads/none\n"
symref "${nd}symref-delete refs/heads/none refs/heads/main\n"
symref "${nd}symref-delete refs/heads/main refs/heads/x\n"
symref "symref-create refs/heads/c refs/heads/main\n"
symref "symref-update refs/heads/c refs/heads/x ref refs/heads/main\n"
symref "start\nsymref-create refs/heads/e refs/heads/main\nprepare\ncommit\n"
symref "start\nsymref-create refs/heads/e refs/heads/main\ncommit\n"
symref "${nd}symref-create refs/heads/f refs/heads/main\nupdate refs/heads/g $C1\n"
symref "symref-create refs/heads/h\0refs/heads/main\0" -z
symref "option no-deref\0symref-update refs/heads/h\0refs/heads/x\0ref\0refs/heads/main\0" -z
symref "option no-deref\0symref-delete refs/heads/h\0\0" -z
