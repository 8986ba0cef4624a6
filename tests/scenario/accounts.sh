#!/bin/bash
# Proves that commands find the daemons of all accounts by their units and
# configurations, and that refd enable --system refuses a root of another
# daemon. A repository that goes from the daemon of root to the daemon of its
# owner loses no acknowledged update. /etc and /run are copies here.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

with_people accounts || finish
if ! can_mount; then
	skip accounts 'only root can mount'
	finish
fi

quietly() { "$@" >"$T/out" 2>&1; }

ALICE=64001
S=$T/srv/alice
cp -a /etc "$T/etc"
mkdir -p "$T/etc/systemd/system" "$T/srv"
echo "alice:x:$ALICE:$ALICE::/:/bin/sh" >>"$T/etc/passwd"
mount --bind "$T/etc" /etc && scenario_mounts+=(/etc)
mount -t tmpfs none /run && scenario_mounts+=(/run)
rm -rf /etc/refd /etc/systemd/system/refd@alice.service.d
install -d -o $ALICE -g $ALICE "$S" "$T/of$ALICE" /run/refd-alice "$T/state.alice"

# ---- a service for an account, as refd-daemon(8) says ----

install -d /etc/refd/alice
git config -f /etc/refd/alice/config daemon.root "$S"
check 'the configuration is good' "$REFD" check-config /etc/refd/alice/config

# ---- a second daemon of the same root ----

touch /etc/systemd/system/refd.service /etc/systemd/system/refd@.service
printf '[daemon]\n\troot = %s\n' "$T/srv" >/etc/refd/config
env -u REFD_SOCKET "$REFD" status >"$T/out" 2>&1
is 'a daemon that is off' 75 $?
check 'its command' grep -q \
	'No such file or directory; start the daemon: systemctl start refd$' \
	"$T/out"
"$REFD" ping --socket /run/refd-alice/refd.sock >"$T/out" 2>&1
check 'the command of hers' grep -q 'systemctl start refd@alice$' "$T/out"
mkdir /run/refd
"$REFD" daemon --config /etc/refd/config --socket /run/refd/refd.sock \
	--state "$T/state.refd" >"$T/refd.log" 2>&1 </dev/null &
first=$!
own "$first"
"$REFD" ping --socket /run/refd/refd.sock --wait 60 >/dev/null
who="/run/refd/refd.sock (unit refd, account root, roots $T/srv)"
export GIT_CONFIG_SYSTEM=/etc/refd-gitconfig
"$REFD" enable --system --socket /run/refd-alice/refd.sock >"$T/out" 2>&1
is 'a socket for all' 129 $?
for file in "$GIT_CONFIG_SYSTEM" /etc/refd/gitconfig; do
	git config -f "$file" refd.socket /run/refd-alice/refd.sock
	"$REFD" enable --system --root "$S" >"$T/out" 2>&1
	is "$file: a root of another daemon" 1 $?
	check 'is refused, with the command' grep -qF "the daemon on $who; \
run \"refd enable --socket /run/refd/refd.sock\" with the repositories there" \
		"$T/out"
	rm "$file"
done
mkdir "$T/beside"
env -u REFD_SOCKET "$REFD" enable --system \
	--root "$T/beside" >"$T/out" 2>&1
is 'a root that the daemon does not serve' 1 $?
check 'is refused, with the setting' grep -qF \
	"git config -f /etc/refd/config --add daemon.root $T/beside/" "$T/out"
check 'nothing is enabled' test ! -e "$GIT_CONFIG_SYSTEM"
check 'a root of this daemon' env -u REFD_SOCKET "$REFD" enable --system \
	--root "$S"
REFD_SOCKET=/run/refd-alice/refd.sock "$REFD" enable --system >"$T/out" 2>&1
is 'a socket in the environment is not meant for all' 0 $?
is 'no socket is recorded' '' \
	"$(git config -f /etc/refd/gitconfig refd.socket)"
"$REFD" disable --system >/dev/null
unset GIT_CONFIG_SYSTEM
mv /etc/refd/alice "$T/aside"
quietly "$REFD" status --all
is 'the only daemon serves' 0 $?
"$REFD" pause --socket /run/refd/refd.sock >"$T/out"
"$REFD" status --all >"$T/out"
is 'a daemon that is paused' 75 $?
check 'it is named' grep -qF "$who: serving, paused" "$T/out"
is 'it is named, as JSON' true "$("$REFD" status --all --json |
	jq 'select(.socket == "/run/refd/refd.sock").paused')"
"$REFD" resume --socket /run/refd/refd.sock >"$T/out"
mv "$T/aside" /etc/refd/alice
kill "$first"
wait "$first"
"$REFD" status --all >"$T/out"
is 'one is away' 75 $?
is 'all daemons' "/run/refd/refd.sock (unit refd, account not known, roots \
$T/srv): off
/run/refd-alice/refd.sock (unit refd@alice, account alice, roots $S): off" \
	"$(grep ^/run/refd "$T/out")"
is 'as JSON' "off $S" "$("$REFD" status --all --json | jq -r \
	'select(.unit == "refd@alice") | .state + " " + .roots[]')"
rm -r /etc/refd/config /run/refd

# ---- from the daemon of root ----

# The id names root's journal, and root owns the lock and the note of the
# checkpoint.
repo=$S/project.git
SERVED=$T/srv
git init -q --bare "$repo"
one=$(new_commit srv/alice/project.git one)
two=$(new_commit srv/alice/project.git two)
check "root's daemon starts" start_daemon
for i in {1..20}; do
	echo "create refs/heads/$i $one"
done | "$REFD" update --git-dir "$repo" --stdin
"$REFD" update --git-dir "$repo" -d refs/heads/7
check 'written out' "$REFD" checkpoint
acknowledged=$(git --git-dir="$repo" for-each-ref)
old=$(sed -n 's/^journal //p' "$repo/refd/id")
check "root's daemon stops" stop_daemon
chown -R $ALICE:$ALICE "$repo"
chown root:root "$repo/refd/lock" "$repo/refd/checkpoint"

start_hers() {
	SOCKET=/run/refd-alice/refd.sock STATE=$T/state.alice
	export REFD_SOCKET=$SOCKET REFD_STATE=$STATE
	setpriv --reuid "$ALICE" --regid "$ALICE" --clear-groups \
		"$REFD" daemon --config /etc/refd/alice/config \
		--socket "$SOCKET" --state "$STATE" >>"$LOG" 2>&1 </dev/null &
	DAEMON=$!
	own "$DAEMON"
	"$REFD" ping --wait 120 >/dev/null
}

push() { # REF COMMIT
	as "$ALICE" git --git-dir="$repo" push -q "$repo" "$2:$1"
}

# Before the steps for the repository, no file of the repository is touched.
check 'her daemon starts' start_hers
as $ALICE "$REFD" update --git-dir "$repo" refs/heads/early "$two" \
	>"$T/out" 2>&1
is 'it does not take what root has locked' 128 $?
is 'and changes nothing' "$acknowledged" \
	"$(as $ALICE git --git-dir="$repo" for-each-ref)"

as $ALICE rm -f "$repo/refd/lock" "$repo/refd/checkpoint"
check 'the repository is released' quietly "$REFD" disown "$repo"
check 'and enabled for her daemon' quietly \
	"$REFD" enable --socket /run/refd-alice/refd.sock "$repo"
is 'no acknowledged update is lost' "$acknowledged" \
	"$(as $ALICE git --git-dir="$repo" for-each-ref)"
prints_nothing 'nothing is left of root' find "$repo" ! -user $ALICE
check 'a push works' push refs/heads/pushed "$two"
is 'through her daemon' 1 "$("$REFD" log --repo "$repo" | wc -l)"
check 'it is a new journal' test "$old" != \
	"$(sed -n 's/^journal //p' "$repo/refd/id")"
kill_daemon
check 'her daemon starts again' start_hers
is 'and nothing is lost by that' "$(printf '%s\n%s commit\t%s' \
	"$acknowledged" "$two" refs/heads/pushed | sort -k3)" \
	"$(as $ALICE git --git-dir="$repo" for-each-ref | sort -k3)"
check 'her daemon stops' stop_daemon
finish
