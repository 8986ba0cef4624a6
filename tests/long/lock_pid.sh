#!/bin/bash
# Proves that refd reads the files "<file>~pid.lock" of the newest git
# (core.lockfilePid) as git does: the messages about a held lock are equal, refd
# locks names the process, and refd takes the files for no refs, no foreign
# locks and no findings, also after git or refd was killed. A directory with
# such a file is full for refd and for git.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if ! why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" experimental \
	2>&1); then
	skip 'a git with core.lockfilePid' "not to be had: ${why//$'\n'/; }"
	finish
	exit
fi
git=$BUILD/git-experimental/git
repo=$T/repo.git

# Git holds the lock of REF, until its process is killed.
git_holds() { # REF
	rm -f "$T/to_git"
	mkfifo "$T/to_git"
	"$git" -C "$repo" update-ref --stdin <"$T/to_git" >"$T/holds" &
	holder=$!
	own "$holder"
	exec 7>"$T/to_git"
	printf 'start\nupdate %s %s\nprepare\n' "$1" "$two" >&7
	check "git holds $1" await 10 grep -q 'prepare: ok' "$T/holds"
}

git_is_killed() {
	kill -KILL "$holder"
	wait "$holder" 2>/dev/null
	exec 7>&-
}

# The message of PROGRAM about the lock, without its own first words.
message() { # PROGRAM...
	"$@" refs/heads/held "$one" 2>&1 |
		sed "s/^fatal: \(update_ref failed for ref '[^']*': \)\?//
			s|/\./|/|"
}

same_message() { # NAME
	is "$1: git and refd say the same" \
		"$(message "$git" -C "$repo" update-ref)" \
		"$(message "$REFD" update -C "$repo")"
}

same_refusal() { # NAME REF
	is "$1" "$("$git" -C "$T/copy.git" update-ref "$2" "$one" 2>&1 |
		sed "s/^.*: \(.*\)'[^']*' blocking/\1/")" \
		"$("$REFD" update -C "$repo" "$2" "$one" 2>&1 |
			sed "s/^.*: \(.*\)'[^']*' blocking/\1/")"
}

check 'the daemon starts' start_daemon
new_repo repo.git bare
one=$(new_commit repo.git one)
two=$(new_commit repo.git two "$one")
"$git" -C "$repo" config core.lockfilePid true
"$REFD" update -C "$repo" refs/heads/held "$one"

# ---- a running holder ----

git_holds refs/heads/held
check 'git names itself' test -s "$repo/refs/heads/held~pid.lock"
named=$(sed 's/pid //' "$repo/refs/heads/held~pid.lock")
same_message 'a running holder'
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.filesRefLockTimeout \
	GIT_CONFIG_VALUE_0=8000 "$REFD" update -C "$repo" \
	refs/heads/held "$two" >/dev/null 2>&1 &
waits=$!
own $waits
names_holder() {
	"$REFD" locks | grep -q "process $named "
}
check 'refd locks names the process' await 10 names_holder
check 'a neighbour is done meanwhile' \
	"$REFD" update -C "$repo" refs/heads/free "$one"
reap $waits
prints_no 'refd verify finds nothing' 'lock-|ref-|log-' "$REFD" verify "$repo"

# ---- a killed holder ----

git_is_killed
check 'both files are left' test -e "$repo/refs/heads/held~pid.lock" -a \
	-e "$repo/refs/heads/held.lock"
same_message 'a killed holder'
touch -d '1 hour ago' "$repo/refs/heads/held"*.lock
"$REFD" verify "$repo" >"$T/found"
is 'refd verify: one lock' 1 "$(grep -c 'lock-' "$T/found")"
check 'refd verify names the process' grep -q "process $named" "$T/found"

# In a copy of an account without processes, both files go.
owner=$((1000000000 + $$))
cp -r "$repo" "$T/dead.git"
chown -R "$owner:$owner" "$T/dead.git"
chmod 755 "$T"
"$REFD" locks --clear-dead --yes "$T/dead.git" >"$T/found"
check 'refd locks removes the dead lock, and names the process' grep -q \
	"^removed: refs/heads/held.lock, .* git named process $named" "$T/found"
is 'no lock is left in the copy' '' \
	"$(find "$T/dead.git/refs" -name '*.lock')"

# refd is killed, and recovers beside the files.
kill -KILL "$DAEMON"
wait "$DAEMON" 2>/dev/null
check 'the daemon starts again' start_daemon
check 'the files of git stay' test -e "$repo/refs/heads/held~pid.lock" -a \
	-e "$repo/refs/heads/held.lock"
rm "$repo/refs/heads/held.lock"
prints_no 'refd verify finds no lock' 'lock-' "$REFD" verify "$repo"
check 'without the lock, the ref is free' \
	"$REFD" update -C "$repo" refs/heads/held "$two"
check 'git sees no such ref' test -z \
	"$("$git" -C "$repo" for-each-ref | grep pid)"
rm "$repo/refs/heads/held~pid.lock"

# ---- directories ----

mkdir -p "$repo/refs/heads/dir"
echo 'pid 1' >"$repo/refs/heads/dir/x~pid.lock"
cp -r "$repo" "$T/copy.git"
same_refusal 'a directory with such a file is in the way' refs/heads/dir
check 'a ref in the directory' \
	"$REFD" update -C "$repo" refs/heads/dir/x "$one"
check 'the ref goes' "$REFD" update -C "$repo" -d refs/heads/dir/x
is 'the file stays' 'pid 1' "$(cat "$repo/refs/heads/dir/x~pid.lock")"
rm "$repo/refs/heads/dir/x~pid.lock"
check 'an empty directory is in nobody'"'"'s way' \
	"$REFD" update -C "$repo" refs/heads/dir "$one"

# ---- git beside refd ----

for i in 1 2 3 4 5 6 7 8; do
	"$REFD" update -C "$repo" refs/heads/r$i "$one" &
	"$git" -C "$repo" update-ref refs/heads/g$i "$one"
	"$git" -C "$repo" pack-refs --all
	wait $!
done
is 'git and refd in turns: all refs' 16 \
	"$("$git" -C "$repo" for-each-ref 'refs/heads/[rg]?' | wc -l)"
no_locks 'no lock is left' repo.git
finish
