#!/bin/bash
# Proves refd verify with the real programs. Its findings are compared with
# git's, beside a serving daemon and without a daemon. The test checks the
# output for programs and the exit status. After --repair git finds no error,
# and the daemon goes on.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

verify() { # [OPTION] REPOSITORY
	"$REFD" verify --state "$STATE" "$@" >"$T/said" 2>"$T/err"
	echo $? >"$T/status"
}

# Prints the exit status, and the ids of the findings, in order, with their
# refs.
said_json() {
	python3 - "$T/said" "$T/status" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1]))
words = [open(sys.argv[2]).read().strip()]
for f in sorted(report["findings"], key=lambda f: (f["id"], f["ref"])):
    assert f["severity"] in ("error", "warning", "note"), f
    assert f["text"] and f["remedy"] and f["repo"], f
    words.append(f["id"] + ":" + f["ref"] + "+" * f["repaired"])
assert report["repaired"] == sum(f["repaired"] for f in report["findings"])
print(*words)
PYTHON
}

finds() { # REPORTED-AS WANTED [OPTION...] REPOSITORY
	local name=$1 wanted=$2
	shift 2
	verify --json "$@"
	is "$name" "$wanted" "$(said_json 2>&1)"
}

# git takes no offence at any ref.
git_is_happy() { # REPORTED-AS REPOSITORY
	local words
	words=$(git -C "$T/$2" for-each-ref 2>&1 >/dev/null &&
		git -C "$T/$2" fsck --no-dangling 2>&1 | grep -v '^notice' &&
		git -C "$T/$2" pack-refs --all 2>&1)
	is "$1" '' "$words"
}

recover() {
	"$REFD" recover --state "$STATE" >/dev/null
}

# No checkpoint comes before the daemon is killed.
printf '[checkpoint]\n\tinterval = 1h\n' >"$T/config"
check 'the daemon starts' start_daemon --config "$T/config"
new_repo r.git bare
git -C "$T/r.git" config core.logAllRefUpdates true
one=$(new_commit r.git one)
two=$(new_commit r.git two "$one")
for ref in a b c; do
	printf 'update refs/heads/%s %s\n' $ref "$one"
done | "$REFD" update -C "$T/r.git" --stdin
"$REFD" update -C "$T/r.git" refs/heads/a "$two"

# ---- nothing ----

finds 'sound, beside the daemon' 0 "$T/r.git"
verify "$T/r.git"
is 'sound, for people' '1 repository: 0 errors, 0 warnings, 0 notes; 0 repaired' \
	"$(tail -n 1 "$T/said")"
# As git: a work tree whose .git is a file.
git -C "$T/r.git" worktree add -q --no-checkout "$T/w" a 2>/dev/null
mkdir "$T/near"
echo 'gitdir: ../r.git' >"$T/near/.git"
for tree in w near; do
	finds "the .git file of $tree" 0 "$T/$tree"
	in_container || check "is followed by locks --clear-dead: $tree" \
		"$REFD" locks --clear-dead "$T/$tree"
	check "and by disown: $tree" grep -q "'$T/r.git' is served by a refd" \
		<("$REFD" disown "$T/$tree" 2>&1)
done
if [ "$(id -u)" = 0 ]; then
	chown 65534 "$T/near/.git"
	in_container || clear='locks --clear-dead'
	for command in verify disown ${clear:+"$clear"}; do
		# shellcheck disable=SC2086 # two words
		check "not that of somebody else: refd $command" grep -q \
			"near/.git' belongs to uid 65534" \
			<("$REFD" $command "$T/near" 2>&1)
	done
fi
echo 'no gitdir' >"$T/near/.git"
verify "$T/near"
is 'nor any text' "128 can't follow '$T/near/.git': the file names no repository" \
	"$(cat "$T/status") $(grep -o "can't.*repository" "$T/err")"
rm -r "$T/near"
git -C "$T/r.git" worktree remove --force "$T/w"
verify "$T"
is 'no repository' 128 "$(cat "$T/status")"
verify
is 'none named' 129 "$(cat "$T/status")"

# ---- damage that stops git ----

cd "$T/r.git" || exit
: >refs/heads/a
printf 'x' >>logs/refs/heads/b
printf 'half a line' >packed-refs.new
: >refs/heads/c.lock
touch -d '2 hours ago' refs/heads/c.lock
rm -f logs/refs/heads/c
is 'git: a broken ref' 'warning: ignoring broken ref refs/heads/a' \
	"$(git for-each-ref 2>&1 >/dev/null)"
check 'git: fsck' grep -q 'refs/heads/a: invalid sha1 pointer' \
	<(git fsck 2>&1)
check 'git: pack-refs' grep -q 'packed-refs.new' <(git pack-refs --all 2>&1)
finds 'what it finds' \
	'1 lock-stale:refs/heads/c log-torn:refs/heads/b packed-refs-new: ref-broken:refs/heads/a' \
	"$T/r.git"
is 'nothing was written' '0 absent' \
	"$(stat -c %s refs/heads/a) $([ -e refd/saved ] || echo absent)"

# ---- mended beside the daemon ----

finds 'what it mends' \
	'1 lock-stale:refs/heads/c log-torn:refs/heads/b+ packed-refs-new:+ ref-broken:refs/heads/a+' \
	--rep "$T/r.git"
is 'the last value' "$two" "$(ref_of r.git refs/heads/a)"
is 'history has it' "$two $two verify: restored from the journal's record" \
	"$("$REFD" log --repo "$T/r.git" --ref refs/heads/a -n 1 --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
print(d["old"], d["new"], d["message"].rpartition(" ")[0])')"
is 'three files are saved' 3 "$(find refd/saved -type f | wc -l)"
check 'the lock of another stands' test -e refs/heads/c.lock
verify "$T/r.git"
is 'one warning, not one warnings' \
	'1 repository: 0 errors, 1 warning, 0 notes; 0 repaired' \
	"$(tail -n 1 "$T/said")"
rm refs/heads/c.lock
git_is_happy 'git is happy' r.git
finds 'so is verify' 0 "$T/r.git"
check 'the daemon goes on' "$REFD" update -C "$T/r.git" refs/heads/a "$one" \
	"$two"

# ---- the journal, without a daemon ----

kill_daemon
finds 'killed' '1 awaits-recovery:' "$T/r.git"
check 'recovered' recover
: >refs/heads/a
finds 'mended without one' '0 ref-broken:refs/heads/a+' --repair "$T/r.git"
check 'which history does not have' \
	grep -q "refs/heads/a: history does not have" "$T/err"
finds 'and all is as recorded' 0 "$T/r.git"
git update-ref -d refs/heads/b
git update-ref refs/heads/c "$two"
finds 'what git did since is no fault' '0 ref-gone:refs/heads/b' "$T/r.git"
rm -f packed-refs refs/heads/a
touch -d '1 hour ago' refs/heads/c
finds 'lost, and older' \
	'1 journal-disagrees:refs/heads/c log-orphan:refs/heads/a ref-gone:refs/heads/b ref-lost:refs/heads/a' \
	"$T/r.git"

# ---- beside writers ----

check 'the daemon starts again' start_daemon
"$REFD" update -C "$T/r.git" refs/heads/a "$one"
# No note about b, however long the journal keeps the record of b.
"$REFD" update -C "$T/r.git" refs/heads/b "$one"
git update-ref -d refs/heads/c
git update-ref refs/heads/c "$two"
for ((i = 0; i < 8; i++)); do
	for ((k = 0; k < 20; k++)); do
		printf 'update refs/heads/h%s %s\n' $k "$one"
		printf 'delete refs/heads/i%s\n' $k
	done | "$REFD" update -C "$T/r.git" --batch-updates --stdin
	for ((k = 0; k < 20; k++)); do
		printf 'delete refs/heads/h%s\n' $k
		printf 'update refs/heads/i%s %s\n' $k "$two"
	done | "$REFD" update -C "$T/r.git" --batch-updates --stdin
	git pack-refs --all
done >/dev/null 2>&1 &
writer=$!
own "$writer"
looks=0
while kill -0 "$writer" 2>/dev/null; do
	verify "$T/r.git"
	looks=$((looks + 1))
	[ "$(cat "$T/status")" = 0 ] || break
done
is 'nobody at work is accused' 0 "$(cat "$T/status")"
[ "$(cat "$T/status")" = 0 ] || cat "$T/said"
check "they met ($looks)" test "$looks" -ge 1
kill -KILL "$writer" 2>/dev/null
reap "$writer"

# ---- all of them ----

for name in one two gone cloned again; do
	new_repo $name.git bare
	"$REFD" update -C "$T/$name.git" refs/heads/a \
		"$(new_commit $name.git $name)"
done
# It has its own row in the journal.
rm -r "$T/again.git"
new_repo again.git bare
"$REFD" update -C "$T/again.git" refs/heads/a "$(new_commit again.git again)"
verify --all
is 'all: the status' 0 "$(cat "$T/status")"
is 'all: each of them once' \
	'6 repositories: 0 errors, 0 warnings' \
	"$(tail -n 1 "$T/said" | grep -o '.*warnings')"
rm -r "$T/gone.git"
git clone -q --bare "$T/cloned.git" "$T/clone.git"
rm -r "$T/cloned.git"
mv "$T/clone.git" "$T/cloned.git"
verify --all
is 'all: the status without two of them' 0 "$(cat "$T/status")"
is 'all: all but two, with a note for each' \
	'4 repositories: 0 errors, 0 warnings, 2 notes; 0 repaired' \
	"$(tail -n 1 "$T/said")"
finds 'all: for programs' '0 repository-gone: repository-gone:' --all
# A link that an administrator left behind leads to the repository.
mkdir "$T/moved"
mv "$T/one.git" "$T/moved"
ln -s "$T/moved/one.git" "$T/one.git"
finds 'all: one behind a link' '0 repository-gone: repository-gone:' --all
rm "$T/one.git"
mv "$T/moved/one.git" "$T/one.git"
# A file system that is not mounted is no repository that was deleted. Its
# device, and that of the mount point, differ.
elsewhere() { # REPOSITORY...
	python3 - "$STATE/journal.db" "$@" <<-'PYTHON'
		import sqlite3, sys
		db = sqlite3.connect(sys.argv[1])
		for path in sys.argv[2:]:
		    assert db.execute("UPDATE repo SET dev = 1 WHERE path = ?",
		                      (path,)).rowcount
		db.commit()
	PYTHON
}
mkdir -p "$T/mount/deep" "$T/user"
for path in mount/deep/in user/only; do
	new_repo $path.git bare
	"$REFD" update -C "$T/$path.git" refs/heads/a \
		"$(new_commit $path.git some)"
	rm -r "$T/$path.git"
done
rm -r "$T/user"
verify --all
is 'all: a directory of repositories is gone, too' 0 "$(cat "$T/status")"
check 'the daemon stops' stop_daemon
elsewhere "$T/mount/deep/in.git" "$T/gone.git"
verify --all
is 'all: not mounted' 128 "$(cat "$T/status")"
is 'all: one that is not mounted is named' \
	"'$T/mount/deep/in.git' is not checked" \
	"$(grep -o "'.* is not checked" "$T/err")"
check 'all: and counted, but not one beside others' \
	grep -qx 'refd: 1 of the repositories in the journal were not checked' \
	"$T/err"
rm -r "$T/mount"
verify --all
is 'all: another device, but others are beside it' 0 "$(cat "$T/status")"
check 'the daemon starts once more' start_daemon
# A repository on a dying disk must not keep the daemon from its checkpoints.
looks_without_the_lock() {
	if ! command -v strace >/dev/null ||
		! strace -o /dev/null true 2>/dev/null; then
		skip '--all: no look at a disk under the lock' 'no strace'
		return
	fi
	strace -f -y -qq -o "$T/trace" -e trace=%file,flock,close \
		"$REFD" verify --state "$STATE" --all >"$T/said" 2>"$T/err"
	check '--all: the journal is locked' grep -q 'flock.*-wal' "$T/trace"
	prints_nothing '--all: no look at a disk under the lock' awk '
		/flock\(.*journal.db-wal/ { locked = 1 }
		/close\(.*journal.db-wal>/ { locked = 0 }
		locked && /open.*"[^"]*\.git/' "$T/trace"
}

looks_without_the_lock
verify --all "$T/r.git"
is 'all, and one of them' 129 "$(cat "$T/status")"

# ---- a noted line ----

head_of() { # FIELD
	"$REFD" log --head | cut -d' ' -f"$1"
}

is_noted() { # LSN
	[ "$(head_of 3)" -ge "$1" ]
}

verify_head() { # REPORTED-AS STATUS WORDS LINE
	verify --head "$4"
	is "$1: the status" "$2" "$(cat "$T/status")"
	check "$1: the words" grep -q "$3" "$T/said" "$T/err"
}

edit_journal() { # SQL
	python3 -c '
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute(sys.argv[2])
db.commit()' "$STATE/journal.db" "$1"
}

last=$("$REFD" status -v | sed -n 's/^last_lsn: //p')
check 'the last record is soon in the line' await 10 is_noted "$last"
line=$("$REFD" log --head)
"$REFD" log --head --since yesterday >/dev/null 2>&1
is 'the line has no other option' 129 $?
lsn=$(head_of 3)
is 'the line' refd-head "$(head_of 1)"
verify_head 'beside the daemon' 0 "1 to $lsn are as they were" "$line"
"$REFD" update -C "$T/one.git" refs/heads/later \
	"$(new_commit one.git later)"
check 'the line goes on' await 10 is_noted $((lsn + 1))
verify_head 'an earlier line' 0 "1 to $lsn are as they were" "$line"
verify_head 'a later line' 0 "1 to $(head_of 3) are" "$("$REFD" log --head)"
verify_head 'half a line' 129 'no line of' "${line%?}"
is 'a line of one repository: the status' 129 \
	"$("$REFD" log --head --repo "$T/one.git" 2>/dev/null; echo $?)"
check 'the daemon stops' stop_daemon
rm "$STATE"/history.db*
check 'the daemon starts' start_daemon
check 'a new index comes as far' await 10 is_noted $((lsn + 1))
verify_head 'after a restart' 0 "1 to $lsn are as they were" "$line"
check 'the daemon stops' stop_daemon
cp "$STATE/journal.db" "$T/journal.db"
edit_journal 'UPDATE record SET uid = 7 WHERE lsn = 3'
verify_head 'a changed record' 1 'record 3 is not what' "$line"
cp "$T/journal.db" "$STATE/journal.db"
edit_journal 'DELETE FROM record WHERE lsn = 4'
verify_head 'a missing record' 1 'there is no record 4' "$line"
cp "$T/journal.db" "$STATE/journal.db"
edit_journal "DELETE FROM record WHERE lsn > $((lsn - 2))"
verify_head 'a shorter journal' 1 "ends at record $((lsn - 2))" "$line"
finish
