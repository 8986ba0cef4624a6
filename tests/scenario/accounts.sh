#!/bin/bash
# Proves that refd enable --service sets up a daemon of one account, can be
# repeated, and is undone by refd disable --service. A repository that goes from
# the daemon of root to the daemon of its owner loses no acknowledged update.
# /etc and /run are copies here, and systemctl is a script that records its
# arguments.

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
mkdir -p "$T/etc/systemd/system" "$T/bin" "$T/srv"
echo "alice:x:$ALICE:$ALICE::/:/bin/sh" >>"$T/etc/passwd"
mount --bind "$T/etc" /etc && scenario_mounts+=(/etc)
mount -t tmpfs none /run && scenario_mounts+=(/run)
rm -rf /etc/refd /etc/systemd/system/refd@alice.service.d
install -d -o $ALICE -g $ALICE "$S" "$T/of$ALICE" /run/refd-alice "$T/state.alice"
printf '#!/bin/sh\necho "$@" >>%s/systemctl\n' "$T" >"$T/bin/systemctl"
chmod 755 "$T/bin/systemctl"
export PATH=$T/bin:$PATH

# ---- a service for an account ----

"$REFD" enable --service nobody-of-that-name --root "$S" >"$T/out" 2>&1
is 'an account that is not there' 128 $?
"$REFD" enable --service root --root "$S" >"$T/out" 2>&1
is 'root has no such service' 128 $?
"$REFD" enable --service alice >"$T/out" 2>&1
is 'without a root there is nothing to serve' 128 $?
is 'nothing is written by these' '' "$(ls /etc/refd 2>/dev/null)"
check 'enabled, without systemd' quietly \
	"$REFD" enable --service alice --root "$S"
check 'says what to run' grep -q \
	'systemctl enable --now refd@alice.socket refd@alice.service' "$T/out"
check 'and runs nothing' test ! -e "$T/systemctl"
check 'the configuration is good' "$REFD" check-config /etc/refd/alice/config
is 'the unit may write there' "ReadWritePaths=$S" \
	"$(grep ^Read /etc/systemd/system/refd@alice.service.d/roots.conf)"
mkdir -p /run/systemd/system
before=$(cd /etc && find refd systemd/system/refd@* -type f -exec cksum {} +)
check 'again, with systemd, by number' quietly "$REFD" enable \
	--service $ALICE --root "$T"
is 'what is there is kept' "$before" "$(cd /etc &&
	find refd systemd/system/refd@* -type f -exec cksum {} +)"
is 'systemd is told' "daemon-reload enable --now refd@alice.socket \
refd@alice.service" "$(paste -sd ' ' "$T/systemctl")"

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
"$REFD" disable --service alice >/dev/null 2>&1
"$REFD" enable --service alice --root "$S" >"$T/out" 2>&1
is 'a second daemon of a served root' 128 $?
check 'is refused, with who serves' grep -qF \
	"$S/ is served already by the daemon on $who; use this one" "$T/out"
check 'nothing is written' test ! -e /etc/refd/alice
export GIT_CONFIG_SYSTEM=/etc/refd-gitconfig
"$REFD" enable --system --root "$S" \
	--socket /run/refd-alice/refd.sock >"$T/out" 2>&1
is 'a root of another daemon' 1 $?
check 'is refused, with the command' grep -qF "the daemon on $who; run \
\"refd enable --system --socket /run/refd/refd.sock --root $S/\"" "$T/out"
mkdir "$T/beside"
env -u REFD_SOCKET "$REFD" enable --system \
	--root "$T/beside" >"$T/out" 2>&1
is 'a root that the daemon does not serve' 1 $?
check 'is refused, with the setting' grep -qF \
	"git config -f /etc/refd/config --add daemon.root $T/beside/" "$T/out"
check 'nothing is enabled' test ! -e "$GIT_CONFIG_SYSTEM"
check 'a root of this daemon' env -u REFD_SOCKET "$REFD" enable --system \
	--root "$S"
"$REFD" disable --system >/dev/null
unset GIT_CONFIG_SYSTEM
kill "$first"
wait "$first"
check 'enabled, when it has ended' quietly \
	"$REFD" enable --service alice --root "$S"
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

# ---- undone ----

: >"$T/systemctl"
check 'disabled' quietly \
	"$REFD" disable --service alice
is 'systemd is told that' "daemon-reload disable --now refd@alice.socket \
refd@alice.service" "$(paste -sd ' ' "$T/systemctl")"
is 'its files are gone' '' "$(find /etc/refd /etc/systemd/system/refd@* \
	2>/dev/null | grep alice)"
check 'its state is not' test -e "$T/state.alice/journal.db"
is 'disabled twice: there was none' 'alice: no service was enabled' \
	"$("$REFD" disable --service alice 2>&1)"
"$REFD" enable --service alice --root "$S" >"$T/out"
printf '\tallowUser = bob\n' >>/etc/refd/alice/config
check 'disabled after a change by hand' quietly \
	"$REFD" disable --service alice
check 'which is kept' grep -q bob /etc/refd/alice/config
finish
