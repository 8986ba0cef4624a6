#!/bin/bash
# Proves that history is told to those alone who may read the repository now,
# which its uuid tells: not its path, device or inode, which a later repository
# of somebody else can have. The daemon is alice's; bob may connect.

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

# What UID is told; the exit status with it.
told() { # UID [OPTION...]
	local uid=$1
	shift
	as "$uid" "$REFD" log "$@" 2>&1
	echo "status $?"
}

# Another repository of bob's at her path, with her inode number if that can be
# had: those that got another one are kept until then, so that it comes free.
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
nothing=$(told $BOB --repo "$SERVED/all/never.git")
is 'he does not' "$nothing" "$(told $BOB --repo "$R")"

inode=$(stat -c %i "$R")
as $ALICE rm -r "$R"
is 'nor when it is gone' "$nothing" "$(told $BOB --repo "$R")"
check 'she does' grep -q refs/heads/secret <(told $ALICE --repo "$R")
# A daemon that has it open keeps the number from being used again.
stop_daemon
take_place "$inode"
start_hers
if [ "$PLACE" != "$T" ]; then
	is 'his has its inode number' "$inode" "$(stat -c %i "$R")"
fi
is 'he is not told of hers at the path of his' "$nothing" \
	"$(told $BOB --repo "$R")"
is 'nor of it anywhere' "$nothing" "$(told $BOB)"
check 'nor by its name' test -z \
	"$(told $BOB --ref 'refs/*' | grep secret)"
is 'root is' 1 "$("$REFD" log | grep -c refs/heads/secret)"

check 'stopped' stop_daemon
finish
