#!/bin/bash
# Proves that `refd locks --clear-dead` removes a lock only if no process can
# hold it: with git as the holder, which works, waits or is killed; beside
# processes of the owner and of strangers, with an old "<file>~pid.lock", beside
# a daemon and its sessions, in containers, and in a hostile repository.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

with_people 'dead locks' || {
	finish
	exit
}
# Where other processes are hidden, only the refusal can be tested.
if in_container; then
	git init -q --bare "$T/a.git"
	"$REFD" locks --clear-dead --yes "$T/a.git" >"$T/out" 2>&1
	is 'in a container: the exit status' 128 $?
	check 'in a container: the reason' grep -q 'a pid namespace' "$T/out"
	finish
	exit
fi

# An account without processes, also beside other tests.
owner=$((1000000000 + $$))
with_account "$owner"
one=$(repo_for "$owner" a.git)
repo=$SERVED/of$owner/a.git
two=$(as "$owner" git -C "$repo" commit-tree -m two -p "$one" \
	"$one^{tree}")
as "$owner" git -C "$repo" update-ref refs/heads/held "$one"
as "$owner" git -C "$repo" update-ref refs/heads/free "$one"

clear_dead() { # OPTION...
	"$REFD" locks --clear-dead "$@" "$repo" >"$T/out" 2>"$T/err" </dev/null
}

lock() { # PATH
	as "$owner" touch "$repo/$1.lock"
}

# git holds the lock of refs/heads/held until its process is killed, or a line
# `commit` comes.
git_holds() {
	rm -f "$T/to_git" "$T/says"
	mkfifo -m 666 "$T/to_git"
	: >"$T/says"
	setpriv --reuid "$owner" --regid "$owner" --clear-groups \
		git -C "$repo" update-ref --stdin <"$T/to_git" >"$T/says" &
	holder=$!
	own "$holder"
	exec 7>"$T/to_git"
	printf 'start\nupdate refs/heads/held %s\nprepare\n' "$1" >&7
	check 'git holds the lock' await 10 grep -q 'prepare: ok' "$T/says"
}

# ---- a living holder ----

git_holds "$two"
clear_dead --yes --wait 0
is 'a lock of a living git: the exit status' 1 $?
check 'it is kept, and the process is named' grep -q \
	"^kept: refs/heads/held.lock, .*: process $holder (git) may hold it" \
	"$T/out"
echo 'pid 999999999' | as "$owner" tee "$repo/refs/heads/held~pid.lock" \
	>/dev/null
clear_dead --yes --wait 0
check 'an old pid file of an ended process proves nothing' grep -q \
	"^kept: .* git named process 999999999: process $holder" "$T/out"
rm "$repo/refs/heads/held~pid.lock"
echo commit >&7
exec 7>&-
wait "$holder"
is 'git goes on' "$two" "$(as "$owner" git -C "$repo" rev-parse \
	refs/heads/held)"

# ---- a killed holder ----

git_holds "$one"
kill -KILL "$holder"
wait "$holder" 2>/dev/null
exec 7>&-
echo 'pid 999999999' | as "$owner" tee "$repo/refs/heads/held~pid.lock" \
	>/dev/null
clear_dead
is 'without --yes: the exit status' 1 $?
check 'the lock is dead' grep -q '^dead: refs/heads/held.lock' "$T/out"
check 'without a terminal, --yes is necessary' grep -q 'nothing was removed' \
	"$T/err"
check 'it stays' test -e "$repo/refs/heads/held.lock"
clear_dead --yes
is 'with --yes: the exit status' 0 $?
check 'it is removed' grep -q '^removed: refs/heads/held.lock' "$T/out"
check 'also the pid file' test ! -e "$repo/refs/heads/held~pid.lock"
check 'git has the ref again' as "$owner" git -C "$repo" update-ref \
	refs/heads/held "$one"
clear_dead
is 'no lock: the exit status' 0 $?

# ---- processes of the owner ----

lock refs/heads/held
setpriv --reuid "$owner" --clear-groups sleep 300 &
bystander=$!
own "$bystander"
runs_as_owner() {
	grep -q "^Uid:.$owner" "/proc/$bystander/status"
}
check 'a process of the owner' await 10 runs_as_owner
clear_dead --yes --wait 0
check 'each process of the owner may hold the lock' grep -q \
	"process $bystander (sleep) may hold it" "$T/out"
{ sleep 1; kill "$bystander"; } &
clear_dead --yes --wait 60
is 'its end is waited for' 0 $?
reap "$bystander"
check 'then the lock is removed' test ! -e "$repo/refs/heads/held.lock"
lock refs/heads/held
chown 0 "$repo/refs/heads/held.lock"
clear_dead --yes --wait 0
check 'a lock of root is kept' grep -q '^kept: .*belongs to root' "$T/out"
rm "$repo/refs/heads/held.lock"

# ---- processes of others ----

# No other user can keep a lock, by whatever process. Only a user namespace of
# root, and one that maps the owner, may hold a lock of the owner.
stranger=$((owner + 1000000))
mkdir "$T/of$stranger"
ln -s "$(command -v su)" "$T/of$stranger/smbd"
mkfifo -m 666 "$T/password"
exec 9<>"$T/password"

# COMMAND goes on until `ended`. Its first process is $other.
beside() { # COMMAND...
	lock refs/heads/held
	"$@" <"$T/password" >"$T/other" 2>&1 9<&- &
	other=$!
	own "$other"
}

runs() { # NAME [UIDS]
	grep -q "^Name:.$1\$" "/proc/$other/status" &&
		grep -Eq "^Uid:.*${2:-}" "/proc/$other/status"
}

ended() {
	kill "$other"
	reap "$other" 2>/dev/null
	rm -f "$repo/refs/heads/held.lock"
}

as_stranger=(setpriv --reuid "$stranger" --regid "$stranger")

kept_by_nobody() { # REPORTED-AS
	clear_dead --yes --wait 0
	is "$1: the lock is dead" 0 $?
	check "$1: it is removed" test ! -e "$repo/refs/heads/held.lock"
	ended
}

kept_by_other() { # REPORTED-AS
	clear_dead --yes --wait 0
	is "$1: the lock is kept" 1 $?
	check "$1: the process is named" grep -q \
		"^kept: .*: process $other (sleep) may hold it" "$T/out"
	ended
}

may_have() { # uid_map of $other
	# In a single write, unlike the shell's own printf.
	await 10 runs sleep && env printf "$1" >"/proc/$other/uid_map"
}

beside "${as_stranger[@]}" --clear-groups unshare -U sleep 300
check 'a user namespace' await 10 runs sleep "$stranger"
kept_by_nobody 'a user namespace'
beside "${as_stranger[@]}" --clear-groups unshare -Ur sleep 300
check 'root of a user namespace' await 10 runs sleep "$stranger"
kept_by_nobody 'root of a user namespace'
beside "${as_stranger[@]}" --clear-groups "$T/of$stranger/smbd" root
check 'a program of root with the name of a file server' \
	await 10 runs smbd '0.0.0$'
kept_by_nobody 'a program of root with the name of a file server'
groups=$(seq -s , 4200000000 4200011000)
beside "${as_stranger[@]}" --groups "$groups" sleep 300
check 'many groups' await 10 runs sleep "$stranger"
kept_by_nobody 'many groups'

beside "${as_stranger[@]}" --clear-groups unshare -U sleep 300
check 'a namespace that maps others: made' \
	may_have "0 $stranger 1\\n1 $((owner - 1)) 1\\n2 $((owner + 1)) 9\\n"
kept_by_nobody 'a namespace that maps others'
beside "${as_stranger[@]}" --clear-groups unshare -U sleep 300
check 'a namespace that maps the owner: made' \
	may_have "0 $stranger 1\\n1 $((owner - 1)) 2\\n"
kept_by_other 'a namespace that maps the owner'
# A mount in such a namespace may give the files other owners.
beside unshare -U sleep 300
check 'a namespace of root: made' may_have "0 $stranger 1\\n"
kept_by_other 'a namespace of root'
beside unshare -U sleep 300
outer=$other
check 'below a namespace of root: made' may_have "0 $stranger 1\\n"
echo 0 0 1 >"/proc/$outer/gid_map"
beside nsenter -t "$outer" -U -S 0 -G 0 unshare -U sleep 300
check 'below a namespace of root: runs' await 10 runs sleep "$stranger"
kill "$outer"
reap "$outer" 2>/dev/null
kept_by_other 'below a namespace of root'
exec 9>&-

# ---- all locks of refs, and no others ----

as "$owner" git -C "$repo" worktree add -q --no-checkout "$T/of$owner/w" \
	held 2>/dev/null
as "$owner" mkdir "$repo/reftable"
dead='HEAD packed-refs refs/heads/a refs/tags/v1.0 reftable/tables.list
	reftable/0x1-0x2-abc.ref worktrees/w/HEAD worktrees/w/refs/bisect/bad'
other='config index shallow worktrees/w/index objects/maintenance'
as "$owner" mkdir -p "$repo/worktrees/w/refs/bisect"
for name in $dead $other; do
	lock "$name"
done
clear_dead --yes
is 'all locks of refs are removed' "$(wc -w <<<"$dead")" \
	"$(grep -c '^removed: ' "$T/out")"
for name in $other; do
	check "$name.lock stays" test -e "$repo/$name.lock"
	rm "$repo/$name.lock"
done

# ---- hostile names ----

as "$owner" sh -c "cd '$repo/refs/heads' && mkdir dir.lock &&
	mkfifo fifo.lock && ln -s /etc/passwd link.lock &&
	ln -s '$T/outside' way && echo x >\$(printf 'es\033c.lock')"
mkdir -m 777 "$T/outside"
as "$owner" touch "$T/outside/x.lock"
clear_dead --yes
is 'hostile names: the exit status' 1 $?
check 'a directory, a FIFO and a link stay' test -d "$repo/refs/heads/dir.lock" \
	-a -p "$repo/refs/heads/fifo.lock" -a -L "$repo/refs/heads/link.lock"
check 'nothing outside is touched' test -e "$T/outside/x.lock"
check 'control characters are not printed' grep -q 'removed: .*es?c.lock' \
	"$T/out"
rm -r "$repo"/refs/heads/{dir,fifo,link}.lock "$repo/refs/heads/way"

# ---- beside a daemon ----

check 'the daemon starts' start_daemon
as "$owner" "$REFD" update --git-dir "$repo" refs/heads/free "$two"
mkfifo "$T/to_refd"
"$REFD" update --git-dir "$repo" --stdin <"$T/to_refd" >"$T/session" &
session=$!
own "$session"
exec 8>"$T/to_refd"
printf 'start\nupdate refs/heads/free %s\nprepare\n' "$one" >&8
check 'a session of refd holds a lock' await 10 grep -q 'prepare: ok' \
	"$T/session"
lock refs/heads/held
clear_dead --yes
is 'beside a daemon: the exit status' 0 $?
is 'only the dead lock is removed' "$(printf 'no\nyes')" \
	"$(for ref in held free; do
		[ -e "$repo/refs/heads/$ref.lock" ] && echo yes || echo no
	done)"
echo commit >&8
exec 8>&-
wait "$session"
is 'the session goes on' "$one" "$(as "$owner" git -C "$repo" rev-parse \
	refs/heads/free)"

# ---- where nothing can be proved ----

lock refs/heads/held
unshare --pid --fork --mount-proc "$REFD" locks --clear-dead --yes "$repo" \
	>"$T/out" 2>&1
is 'in a container: the exit status' 128 $?
check 'in a container: the reason' grep -q 'a pid namespace' "$T/out"
unshare --mount sh -c "mount -t proc -o hidepid=invisible proc /proc &&
	'$REFD' locks --clear-dead --yes '$repo'" >"$T/out" 2>&1
is 'with hidden processes: the exit status' 128 $?
check 'with hidden processes: the reason' grep -q 'hidepid' "$T/out"
flock "$repo" "$REFD" locks --clear-dead --yes "$repo" >"$T/out" 2>&1
is 'beside another removal: the exit status' 1 $?
check 'beside another removal: the reason' grep -q 'keeps a flock' "$T/out"
check 'the lock stays' test -e "$repo/refs/heads/held.lock"
clear_dead --yes
is 'elsewhere it is removed' 0 $?
is 'a repository is necessary' 129 \
	"$("$REFD" locks --clear-dead >/dev/null 2>&1; echo $?)"
is '--yes alone is an error' 129 \
	"$("$REFD" locks --yes >/dev/null 2>&1; echo $?)"
finish
