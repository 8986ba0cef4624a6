#!/bin/bash
# Proves that history is told only to users who may read the repository now. The
# uuid identifies the repository; path, device and inode do not, because a later
# repository of another user can have the same values. Proves also that the text
# of a refusal tells a user no more than the user could see without refd:
# neither whether a name exists in a closed directory, nor the content of a
# file. The daemon is alice's; bob may connect.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

with_people history_rights || finish
ALICE=64001 BOB=64002
PLACE=$T
with_fs ext4 64M && PLACE=$FS # where inode numbers are used again soon
SERVED=$PLACE/srv
install -d -m 755 "$SERVED" "$T/of$ALICE" "$T/of$BOB"
install -d -m 777 "$SERVED/all" "$SERVED/all/tries"
install -d -o $ALICE -g $ALICE -m 755 "$T/run$ALICE"
chown $ALICE "$T/of$ALICE"
chown $BOB "$T/of$BOB"
chmod 755 "$PLACE"
SOCKET=$T/run$ALICE/refd.sock
STATE=$T/run$ALICE/state
export REFD_SOCKET=$SOCKET REFD_STATE=$STATE
cat >"$T/config" <<CONFIG
[daemon]
	allowUser = $BOB
CONFIG

start_hers() {
	setpriv --reuid $ALICE --regid $ALICE --clear-groups \
		env HOME="$T/of$ALICE" "$REFD" daemon --socket "$SOCKET" \
		--state "$STATE" --root "$SERVED" --config "$T/config" \
		>>"$LOG" 2>&1 </dev/null &
	DAEMON=$!
	own "$DAEMON"
	"$REFD" ping --wait 120 >/dev/null
}

oid_in() { # UID REPO
	as "$1" git -C "$2" commit-tree -m one \
		"$(as "$1" git -C "$2" mktree </dev/null)"
}

# The history told to UID, and the exit status.
told() { # UID [OPTION...]
	local uid=$1
	shift
	as "$uid" "$REFD" log "$@" 2>&1
	echo "status $?"
}

# Makes a repository of bob at alice's path, with the same inode number if
# possible: directories with wrong numbers are kept until the number is free.
take_place() { # INODE
	local i
	for ((i = 0; i < 2000; i++)); do
		as $BOB mkdir "$SERVED/all/tries/$i"
		[ "$(stat -c %i "$SERVED/all/tries/$i")" != "$1" ] || break
	done
	[ -d "$SERVED/all/tries/$i" ] || i=0
	as $BOB mv "$SERVED/all/tries/$i" "$R"
	as $BOB git init -q --bare "$R"
	rm -r "$SERVED/all/tries"
}

start_hers || exit 1
R=$SERVED/all/x.git
as $ALICE git init -q --bare "$R"
as $ALICE chmod 700 "$R"
oid=$(oid_in $ALICE "$R")
check 'her private repository' as $ALICE "$REFD" update --git-dir "$R" \
	refs/heads/secret "$oid"
check 'she reads its history' grep -q refs/heads/secret \
	<(told $ALICE --repo "$R")
never=$(told $BOB --repo "$SERVED/all/never.git")
is 'he does not' 'status 0' "$(told $BOB --repo "$R")"

inode=$(stat -c %i "$R")
as $ALICE rm -r "$R"
is 'nor when it is gone' "${never/never/x}" "$(told $BOB --repo "$R")"
check 'she does' grep -q refs/heads/secret <(told $ALICE --repo "$R")
# While the daemon has the repository open, the number is not used again.
stop_daemon
take_place "$inode"
start_hers
if [ "$PLACE" != "$T" ]; then
	is 'his has its inode number' "$inode" "$(stat -c %i "$R")"
fi
is 'he is not told of hers at the path of his' 'status 0' \
	"$(told $BOB --repo "$R")"
is 'nor of it anywhere' 'status 0' "$(told $BOB)"
never=$(told $BOB --ref refs/heads/never)
is 'nor by its name' "${never/never/secret}" \
	"$(told $BOB --ref refs/heads/secret)"
is 'root is' 1 "$("$REFD" log | grep -c refs/heads/secret)"

# ---- texts of refusals ----

# A raw client asks, because refd checks the path before asking.
raw() { # UID PATH
	as "$1" env PYTHONPATH="$T/python" python3 - "$SOCKET" "$2" <<'PYTHON'
import sys
from raw import Client, new_txid
_, path, git_dir = sys.argv
kind, rest = Client(path).ask("transaction",
    ["txid " + new_txid(), "git-dir " + git_dir, "common-dir 0 0",
     "object-format sha1", "umask 0022"],
    [["verify refs/heads/none", ""]])
lines = [line.decode().replace(git_dir, "PATH").replace("\0", " ")
         for line in rest]
print(kind, *(line for line in lines if not line.startswith("txid")), sep="\n")
PYTHON
}

mkdir "$T/python"
cp -r "$ROOT/tests/python/raw.py" "$ROOT/client/python/refd" "$T/python"
install -d -o $ALICE -g $ALICE -m 755 "$SERVED/hers"
install -d -o $ALICE -g $ALICE -m 700 "$SERVED/hers/closed"
C=$SERVED/hers/closed
as $ALICE git init -q --bare "$C/a.git"
as $ALICE sh -c "echo text >'$C/file' && ln -s a.git '$C/link'"
as $ALICE mkdir "$C/empty"
as $ALICE git init -q --bare "$SERVED/hers/p.git"
as $ALICE chmod 700 "$SERVED/hers/p.git"
wanted=$(raw $BOB "$C/missing")
check 'a name that is missing there: refused' test -n "$wanted"
for name in a.git file file/x link link/x empty empty/x a.git/refs a.git/HEAD \
	missing/x ../closed/a.git ../p.git ../p.git/refs ../p.git/no; do
	is "$name where he may not look" "$wanted" "$(raw $BOB "$C/$name")"
done
as $BOB ln -s "$C/a.git" "$SERVED/all/in"
as $BOB ln -s "$C/no.git" "$SERVED/all/out"
is 'nor does a link of his tell' "$wanted" "$(raw $BOB "$SERVED/all/in")"
is 'wherever it leads' "$wanted" "$(raw $BOB "$SERVED/all/out")"
is 'nor what is under no root' "$wanted" "$(raw $BOB /root/x)"
check 'she is told more' test -n \
	"$(raw $ALICE "$C/missing" | grep 'No such file')"
check 'as he is where he may look' test -n \
	"$(raw $BOB "$SERVED/all/missing" | grep 'No such file')"

# A commondir of bob's: a path, or a link to a secret file of alice's.
as $ALICE sh -c "echo secret-line >'$C/secret' && chmod 600 '$C/secret'"
as $BOB mkdir "$SERVED/all/w.git"
common() { # PATH
	as $BOB sh -c "rm -f '$SERVED/all/w.git/commondir' &&
		echo '$1' >'$SERVED/all/w.git/commondir'"
	raw $BOB "$SERVED/all/w.git"
}
said=$(common "$C/missing")
for name in file file/x empty empty/x; do
	is "a commondir that names $name" "$said" "$(common "$C/$name")"
done
as $BOB ln -sf "$C/secret" "$SERVED/all/w.git/commondir"
prints_no 'no file is quoted' secret raw $BOB "$SERVED/all/w.git"

# Nor through a link that a member of the group makes in alice's repository:
# alice's daemon may read her secret, the member may not.
S=$SERVED/hers/shared.git
as $ALICE git init -q --bare --shared=group "$S"
chown -R $ALICE:$BOB "$S"
check 'the member may not read it' as $BOB test ! -r "$C/secret"
as $BOB mkdir -p "$S/worktrees/w"
for name in worktrees/w .; do
	check "the member links $name/commondir to it" \
		as $BOB ln -s "$C/secret" "$S/$name/commondir"
	said=$(raw $BOB "$S/$name")
	check "$name/commondir: refused" test -n "$(grep ^ng <<<"$said")"
	is "$name/commondir: without its text" '' \
		"$(sed -n '/secret-line/p' <<<"$said")"
	rm "$S/$name/commondir"
done

# An absolute commondir must lie below a root as any other.
install -d -o $ALICE -g $ALICE -m 755 "$T/elsewhere"
as $ALICE git init -q --bare "$T/elsewhere/e.git"
as $ALICE mkdir "$SERVED/hers/w.git"
as $ALICE sh -c "echo '$T/elsewhere/e.git' >'$SERVED/hers/w.git/commondir'"
check 'a common dir elsewhere is refused' test -n \
	"$(raw $ALICE "$SERVED/hers/w.git" | grep 'does not lead to')"
check 'and not touched' test ! -e "$T/elsewhere/e.git/refd"

check 'stopped' stop_daemon
finish
