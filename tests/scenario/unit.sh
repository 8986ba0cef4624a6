#!/bin/bash
# Proves that journal and repositories are one unit. Repositories are copied,
# restored, renamed or swapped, with or without the state directory, older or
# newer, on this machine or on another. If the two do not belong together, refd
# reports this and writes nothing, and one command of the administrator decides:
# `refd recover --adopt`, `refd recover --discard`, `refd disown`. These are the
# recipes of docs/operations.md.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if [ "$(id -u)" -ne 0 ]; then
	skip unit 'only root can mount'
	finish
fi
with_fs ext4 96M || finish
# This machine may have no id, like a container.
echo fedcba9876543210fedcba9876543210 >"$T/this-machine"
if [ -e /etc/machine-id ]; then
	mount --bind "$T/this-machine" /etc/machine-id
	scenario_mounts+=(/etc/machine-id)
fi
SERVED=$FS/srv
STATE=$FS/state
mkdir "$SERVED"
# Checkpoints come only on request.
printf '[checkpoint]\n\tinterval = 1h\n' >"$T/config"

# The same commits in every repository.
export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'

start() {
	start_daemon --config "$T/config"
}

new_at() { # NAME bare
	new_repo "${SERVED#"$T/"}/$1" bare
}

commit_at() { # NAME MESSAGE
	new_commit "${SERVED#"$T/"}/$1" "$2"
}

update() { # REPOSITORY BRANCH VALUE
	"$REFD" update -C "$SERVED/$1" "refs/heads/$2" "$3" 2>"$T/err"
}

at() { # REPOSITORY BRANCH
	git -C "$SERVED/$1" rev-parse -q --verify "refs/heads/$2"
}

# The daemon doesn't start, or doesn't serve, and says why.
refused() { # REPORTED-AS WORDS COMMAND...
	local name=$1 words=$2 status=0
	shift 2
	timeout 120 "$@" >"$T/said" 2>&1 </dev/null || status=$?
	if [ $status -eq 0 ] || [ $status -ge 124 ] && [ $status -lt 128 ]; then
		not_ok "$name" "status $status: $(cat "$T/said")"
	else
		check "$name: says so" grep -q "$words" "$T/said"
	fi
}

daemon_refused() { # REPORTED-AS WORDS
	refused "$1" "$2" "$REFD" daemon --socket "$T/refused.sock" \
		--state "$STATE" --root "$SERVED"
}

kept_uuid() { # REPOSITORY
	head -n 1 "$SERVED/$1/refd/id"
}

# ---- the unit, and copies of it at two moments ----

check 'the daemon starts' start
new_at a.git bare
new_at b.git bare
one=$(commit_at a.git one)
two=$(commit_at a.git two)
three=$(commit_at a.git three)
for name in one two three; do commit_at b.git $name >/dev/null; done
update a.git main "$one"
update b.git main "$one"
check 'old: stopped' stop_daemon
mkdir "$T/old" "$T/new" "$T/live"
cp -a "$SERVED" "$STATE" "$T/old"
check 'it starts again' start
update a.git main "$two"
update b.git main "$two"
check 'new: refd checkpoint' "$REFD" checkpoint
# From here on, a power loss would leave the updates only in the journal.
update a.git late "$one"
check 'new: all of it is copied at a moment' cp -a "$SERVED" "$STATE" "$T/new"
update a.git later "$one"
kill_daemon

restore() { # FROM srv|state...
	local from=$1 what
	shift
	for what; do
		rm -rf "${FS:?}/$what"
		cp -a "$T/$from/$what" "$FS/"
	done
}

# As after a power loss: the value did not reach the disk.
lose() { # REPOSITORY BRANCH
	rm -f "$SERVED/$1/refs/heads/$2"
}

# For earlier writes this counts as a power loss.
remount() {
	umount "$FS" && mount -o loop "$FS.img" "$FS"
}

# ---- both from the same moment ----

restore new srv state
lose a.git late
remount
check 'both restored: it starts' start
is 'both restored: what was not checkpointed is redone' "$one" \
	"$(at a.git late)"
check 'both restored: served' update a.git x "$one"
check 'both restored: it stops' stop_daemon

# ---- the repositories alone, older than the state ----

uuid=$(kept_uuid a.git)
restore old srv
check 'older repositories: it starts' start
is 'older repositories: as they were restored' "$one" "$(at a.git main)"
is 'older repositories: nothing of later is in them' '' "$(at a.git late)"
check 'older repositories: served' update a.git y "$one"
is 'older repositories: under their id' "$uuid" "$(kept_uuid a.git)"

# ---- a repository restored over itself while it is served ----

update a.git main "$three"
rm -rf "$SERVED/a.git"
cp -a "$T/old/srv/a.git" "$SERVED/a.git"
check 'restored under the daemon: served' update a.git z "$one"
is 'restored under the daemon: as it was restored' "$one" "$(at a.git main)"
kill_daemon
check 'restored under the daemon, and killed: it starts' start
is 'restored under the daemon, and killed: still so' "$one" "$(at a.git main)"
check 'restored under the daemon: it stops' stop_daemon

# ---- the same, then a power loss ----

restore new srv state
remount
check 'replaced: it starts' start
update a.git main "$three"
rm -rf "$SERVED/a.git"
cp -a "$T/old/srv/a.git" "$SERVED/a.git"
check 'replaced: served' update a.git z "$one"
check 'replaced: the log names the command' \
	grep -q "repository-replaced .*refd checkpoint" "$LOG"
check 'replaced: refd checkpoint' "$REFD" checkpoint
update a.git later "$two"
kill_daemon
remount
check 'replaced, and a power loss: it starts' start
is 'replaced, and a power loss: as it was restored' "$one" "$(at a.git main)"
is 'replaced, and a power loss: later updates stay' "$two" "$(at a.git later)"
check 'replaced: it stops' stop_daemon

# ---- repositories renamed and swapped while no daemon runs ----

restore new srv state
lose a.git late
remount
mv "$SERVED/a.git" "$SERVED/c.git"
mv "$SERVED/b.git" "$SERVED/a.git"
mv "$SERVED/c.git" "$SERVED/b.git"
check 'swapped: it starts' start
is 'swapped: the other one gets nothing' '' "$(at a.git late)"
check 'swapped: served' update b.git x "$one"
is 'swapped: it gets its own, where it is now' "$one" "$(at b.git late)"
check 'swapped: it stops' stop_daemon

restore new srv state
lose a.git late
remount
rm -rf "$SERVED/a.git"
new_at a.git bare
again=$(commit_at a.git again)
check 'deleted and made again: it starts' start
check 'deleted and made again: served' update a.git x "$again"
is 'deleted and made again: it gets nothing' '' "$(at a.git late)"
check 'deleted and made again: it stops' stop_daemon

# ---- the state alone: older than the repositories ----

restore new srv
restore old state
daemon_refused 'an older state' 'ends at record .* is an older copy'
refused 'an older state, by hand' 'is an older copy' \
	"$REFD" recover --state "$STATE" --root "$SERVED"
is 'an older state: nothing was written' "$two" "$(at a.git main)"
mkdir "$T/hidden"
mv "$SERVED"/*.git "$T/hidden"
check 'an older state, and nothing there yet: it starts' start
mv "$T/hidden"/*.git "$SERVED"
refused 'then each repository is' 'has seen more of the journal' \
	"$REFD" update -C "$SERVED/a.git" refs/heads/x "$one"
check 'and it stops' stop_daemon

# The administrator's command: give the journal up, and free the repositories.
restore old state
"$REFD" recover --state "$STATE" --discard >"$T/said"
is 'an older state: given up' 0 $?
check 'an older state: it is moved aside' test -e "$STATE"/journal.db.discarded-*
check 'a new state: it starts' start
refused 'a new state' "belongs to the journal [0-9a-f]* of another refd" \
	"$REFD" update -C "$SERVED/a.git" refs/heads/x "$one"
check 'refd disown' "$REFD" disown "$SERVED/a.git" "$SERVED/b.git"
check 'a new state: then it is served' update a.git x "$one"
check 'a new state: the other too' update b.git x "$one"
check 'a new state: under another id' test "$uuid" != "$(kept_uuid a.git)"
is 'a new state: nothing was lost' "$two" "$(at a.git main)"
refused 'refd disown beside the daemon' 'is served by a refd that runs' \
	"$REFD" disown "$SERVED/a.git"
kill_daemon

# ---- copied while in use: locks ----

# Locks of a batch, as in a copy of repositories that are in use.
restore new srv
: >"$SERVED/a.git/refd/stage/0000010000000001.0"
ln "$SERVED/a.git/refd/stage/0000010000000001.0" "$SERVED/a.git/refs/heads/main.lock"
rm -rf "$STATE"
check 'restored with locks in it: refd disown' "$REFD" disown "$SERVED/a.git"
no_locks 'restored with locks in it: they are gone' "${SERVED#"$T/"}/a.git"
check 'restored with locks in it: what enable wrote stays' \
	test -d "$SERVED/a.git/refd"

# ---- another machine ----

echo 0123456789abcdef0123456789abcdef >"$T/machine-id"
cat >"$T/elsewhere" <<ELSEWHERE
#!/bin/sh
mount --bind "$T/machine-id" /etc/machine-id && exec "\$@"
ELSEWHERE
chmod +x "$T/elsewhere"
elsewhere() { # COMMAND...
	unshare -m "$T/elsewhere" "$@"
}
if elsewhere true 2>/dev/null; then
	restore new srv state
	lose a.git late
	remount
	refused 'another machine' 'belongs to another machine' \
		unshare -m "$T/elsewhere" \
		"$REFD" daemon --socket "$T/refused.sock" --state "$STATE" \
		--root "$SERVED"
	is 'another machine: nothing was written' '' "$(at a.git late)"
	elsewhere "$REFD" recover --adopt --state "$STATE" --root "$SERVED" \
		>"$T/said"
	is 'another machine: refd recover --adopt' 0 $?
	is 'another machine: what was not checkpointed is redone' "$one" \
		"$(at a.git late)"
	elsewhere "$REFD" recover --state "$STATE" --root "$SERVED" >"$T/said"
	is 'another machine: it is this one now' 0 $?
	daemon_refused 'and no more the other' 'belongs to another machine'
else
	skip 'another machine' 'no /etc/machine-id, or no mount namespace'
fi

finish
