#!/bin/bash
# Proves that the owner's daemon touches no file outside of the repository,
# whatever a member of the repository's group does to the directories.
# Directories below refs/ and logs/ are repeatedly exchanged for symbolic links
# to the owner's closed directory, while refs are made, moved and deleted; a log
# is a hard link of the owner's closed file. Proves also that a link in the
# place of packed-refs is followed only within the repository.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

seconds=${BENEATH_SECONDS:-5}
with_people beneath || finish
OWNER=64001 MEMBER=64002 GROUP=64009
export GROUPS_OF=$GROUP
refs=8

# ---- the repository ----

install -d -o $OWNER -g $GROUP -m 2775 "$SERVED/of$OWNER"
install -d -o $MEMBER -g $MEMBER "$SERVED/of$MEMBER"
repo=$SERVED/of$OWNER/shared.git
as $OWNER git init -q --bare --shared=group "$repo"
chgrp -R $GROUP "$repo"
as $OWNER git -C "$repo" config core.logAllRefUpdates always
as $OWNER git -C "$repo" config core.filesRefLockTimeout 0
tree=$(as $OWNER git -C "$repo" mktree </dev/null)
one=$(as $OWNER git -C "$repo" commit-tree -m one "$tree")
two=$(as $OWNER git -C "$repo" commit-tree -m two "$tree")

# A tree of the owner that contains every name that the daemon might use.
vault=$SERVED/of$OWNER/vault
as $OWNER mkdir -m 700 "$vault"
for ((i = 0; i < refs; i++)); do
	echo "secret $i" | as $OWNER tee "$vault/r$i" >/dev/null
	as $OWNER mkdir "$vault/n$i"
	echo "$one" | as $OWNER tee "$vault/n$i/x" >/dev/null
done
chmod 600 "$vault"/r?
outside() {
	find "$vault" -printf '%P %y %m %s %i %l\n' | sort
	find "$vault" -type f -exec sha1sum {} + | sort
}
outside >"$T/before"

# ---- the daemon is the owner's ----

mkdir -p "$T/daemon"
chown $OWNER:$GROUP "$T/daemon"
SOCKET=$T/daemon/sock STATE=$T/daemon/state
start() {
	setpriv --reuid "$OWNER" --regid "$OWNER" --groups "$GROUP" \
		env HOME="$T/of$OWNER" "$REFD" daemon --socket "$SOCKET" --state "$STATE" \
		--root "$SERVED" >>"$LOG" 2>&1 </dev/null &
	DAEMON=$!
	own "$DAEMON"
	"$REFD" ping --socket "$SOCKET" --wait 120 >/dev/null
}
check 'the daemon of the owner starts' start

# Git is not asked: --porcelain does not fall back to git.
edit() { # LINE...
	printf '%s\n' "$@" | as $OWNER "$REFD" update --socket "$SOCKET" \
		--git-dir "$repo" --porcelain --stdin 2>&1
}
all() { # WORD VALUE
	for ((i = 0; i < refs; i++)); do
		printf '%s refs/heads/d/r%d%s\n' "$1" $i "${2:+ $2}"
		printf '%s refs/heads/d/n%d/x%s\n' "$1" $i "${2:+ $2}"
	done
}

mapfile -t make_one < <(all update "$one")
edit "${make_one[@]}" >"$T/first"
is 'refs are made before' $((2 * refs)) "$(grep -c '^ok' "$T/first")"

# ---- the attack ----

ln -s "$vault" "$repo/away"
ln -s "$vault" "$repo/log-away"
chown -h $MEMBER:$GROUP "$repo/away" "$repo/log-away"
as $MEMBER "$BUILD/tests/helper/exchange" "$seconds" \
	"$repo/refs/heads/d" "$repo/away" \
	"$repo/logs/refs/heads/d" "$repo/log-away" >"$T/exchanged" &
attack=$!
own $attack
: >"$T/answers"
mapfile -t make_two < <(all update "$two")
# shellcheck disable=SC2034
mapfile -t delete < <(all delete)
while kill -0 $attack 2>/dev/null; do
	# If the directory was away when a lock was to be removed, the lock
	# stands until the next start.
	find -P "$repo/refs" "$repo/away" -name '*.lock' -delete 2>/dev/null
	for lines in make_one make_two delete; do
		declare -n edits=$lines
		edit "${edits[@]}" >>"$T/answers"
	done
done
wait $attack
is 'the attacker could go on' 0 $?
echo "# $(cat "$T/exchanged") exchanges;" \
	"$(cut -c1-6 "$T/answers" | sort | uniq -c | tr -s '\n ' ' ')"
check 'some updates got through' grep -q '^ok' "$T/answers"
outside >"$T/after"
check 'nothing outside of the repository was touched' \
	diff "$T/before" "$T/after"
rm "$repo/away" "$repo/log-away"
find -P "$repo/refs" -name '*.lock' -delete
stop_daemon
check 'the next start finishes what is left' start
edit "${make_two[@]}" >"$T/last"
is 'all is well then' $((2 * refs)) \
	"$(grep -c '^ok' "$T/last")"

# ---- a log that is a hard link ----

# As the member could do with fs.protected_hardlinks=0.
rm -f "$repo/logs/refs/heads/d/r2"
ln "$vault/r2" "$repo/logs/refs/heads/d/r2"
edit "update refs/heads/d/r2 $one $two" >"$T/hard"
check 'a log that is a hard link is not written: git has to' \
	grep -q 'has a second name (a hard link)' "$T/hard"
rm "$repo/logs/refs/heads/d/r2"
outside >"$T/after"
check 'neither its contents nor its mode' diff "$T/before" "$T/after"
edit "update refs/heads/d/r2 $one $two" >"$T/soft"
check 'without the link the ref is updated' grep -q '^ok' "$T/soft"

# ---- a link in the place of packed-refs ----

as $OWNER git -C "$repo" pack-refs --all
as $MEMBER mv "$repo/packed-refs" "$repo/packed-inside"
as $MEMBER ln -s packed-inside "$repo/packed-refs"
edit "update refs/heads/d/r0 $one $two" >"$T/inside"
check 'packed-refs may be a link to a file of the repository' \
	grep -q '^ok' "$T/inside"
install -o $OWNER -m 600 "$repo/packed-inside" "$vault/packed"
as $MEMBER ln -sfn "$vault/packed" "$repo/packed-refs"
edit "update refs/heads/d/r1 $one $two" >"$T/out"
check 'one that leads out is not read: git has to' \
	grep -q "can't read packed-refs" "$T/out"
as $MEMBER ln -sfn packed-inside "$repo/packed-refs"

stop_daemon
finish
