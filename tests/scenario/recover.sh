#!/bin/bash
# Proves the work and the reports of refd recover and of the daemon's start. The
# file system was mounted again, as after a power loss. One ref is empty, one has
# a later foreign value, one has a foreign lock, and one has lost its name to
# another ref; one repository is gone. The test checks the report for people and
# in JSON, evidence, log and status, the way on with refd recover --forget, and
# a journal with a torn end.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

with_fs ext4 48M || finish

update() { # REPOSITORY REF VALUE
	"$REFD" update -C "$1" "$2" "$3"
}

recover() { # OPTION...
	timeout 240 "$REFD" recover --state "$STATE" --root "$FS" "$@" \
		2>"$T/err"
}

status_of() { # KEY
	"$REFD" status -v | sed -n "s/^$1: //p"
}

found() { # WORD REF: its line
	grep "^  $1  *$2: " "$T/found"
}

printf '[checkpoint]\n\tinterval = 10min\n' >"$T/config"
check 'the daemon starts' start_daemon --config "$T/config" --root "$FS"
new_repo repo bare
one=$(new_commit repo one)
two=$(new_commit repo two "$one")
cp -r "$T/repo" "$FS/repo.git"
cp -r "$T/repo" "$FS/other.git"
repo=$FS/repo.git
for ref in empty later locked taken; do
	update "$repo" "refs/heads/$ref" "$one"
done
update "$FS/other.git" refs/heads/x "$one"
other=$(grep -o '[0-9a-f]\{32\}' "$FS/other.git/refd/id" | head -n 1)
kill_daemon

# As a power loss could have left it.
mounted_anew() {
	umount "$FS" && mount -o loop "$FS.img" "$FS"
}

check 'mounted anew' mounted_anew
sleep 0.1
: >"$repo/refs/heads/empty"
echo "$two" >"$repo/refs/heads/later"
: >"$repo/refs/heads/locked.lock"
rm "$repo/refs/heads/locked"
rm "$repo/refs/heads/taken"
mkdir "$repo/refs/heads/taken"
echo "$two" >"$repo/refs/heads/taken/below"
mv "$FS/other.git" "$FS/away.git"

# ---- for people ----

recover >"$T/found"
is 'it says that not all is as the journal has it' 1 $?
sed 's/^/# /' "$T/found"
check 'one repository' grep -q "^$repo: 1 redone, .*1 left, 1 dropped, 1 deferred" \
	"$T/found"
check 'the other' grep -q "^$FS/other.git: 1 repository-missing" "$T/found"
check 'redone' found redone refs/heads/empty
check 'left' found left refs/heads/later
check 'dropped' found dropped refs/heads/taken
check 'deferred' found deferred refs/heads/locked
is 'in all' '1 ref repaired, 1 left as another wrote them, 1 dropped, 2 deferred' \
	"$(tail -n 1 "$T/found")"
is 'the empty ref is redone' "$one" "$(cat "$repo/refs/heads/empty")"
saved=$(found redone refs/heads/empty | grep -o 'refd/saved/.*')
check 'it is saved' test -f "$repo/$saved"
is 'with a name that says what it was' '-refs%2Fheads%2Fempty' \
	"$(echo "$saved" | grep -o -- '-refs.*')"
is 'and as it was' 0 "$(stat -c %s "$repo/$saved")"

# ---- for programs ----

json() { # EXPRESSION
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
r = {x["repo"]: x for x in d["repositories"]}
print('"$1"')' "$T/json" "$repo" "$FS/other.git"
}

recover --json >"$T/json"
is 'again: what is deferred is' 1 $?
is 'as JSON: it went well' True "$(json 'd["ok"]')"
is 'nothing is done twice' '0 0 0 2' \
	"$(json 'd["repaired"], d["left"], d["dropped"], d["deferred"]' |
		tr -d '(),')"
is 'as JSON: totals' '1 1' "$(json \
	'd["totals"]["deferred"], d["totals"]["repository-missing"]' |
	tr -d '(),')"
is 'as JSON: a finding' 'deferred refs/heads/locked' "$(json \
	'" ".join(r[sys.argv[2]]["findings"][0][k] for k in ("finding", "ref"))')"
is 'as JSON: none is only counted' 0 "$(json 'r[sys.argv[2]]["more"]')"

# ---- the daemon's start ----

: >"$LOG"
check 'the daemon starts over it' start_daemon --root "$FS"
check 'its log has it by repository' grep -q "event=repository-recovered repo=\"$repo\" text=\"1 deferred" "$LOG"
check 'and one by one' grep -q "finding=\"deferred\" repo=\"$repo\" ref=\"refs/heads/locked\" " \
	"$LOG"
check 'and in all' grep -q 'event=recovered .*records_deferred=2 ' "$LOG"
is 'status says which repositories wait' 2 "$(status_of awaiting_repos)"
is 'and how many refs' 2 "$(status_of awaiting_refs)"
is 'in a sentence' \
	'refd serves, but 2 repositories have deferred records of 2 refs.' \
	"$("$REFD" status | head -1)"
update "$repo" refs/heads/locked "$two" 2>"$T/said"
check 'what is deferred is not written' \
	grep -q "awaits another writer's lock" "$T/said"
rm "$repo/refs/heads/locked.lock"
check 'until the lock is gone' update "$repo" refs/heads/locked "$two"
check 'the log tells of it' \
	grep -q "finding=\"redone\" repo=\"$repo\" ref=\"refs/heads/locked\" " "$LOG"
is 'one waits' 1 "$(status_of awaiting_repos)"
cp -r "$T/repo" "$FS/other.git"
check 'another one is served at the path of the missing one' \
	update "$FS/other.git" refs/heads/x "$one"
new=$(grep -o '[0-9a-f]\{32\}' "$FS/other.git/refd/id" | head -n 1)
check 'it stops' stop_daemon

# ---- repositories that will not come back ----

recover --forget "$FS/nothing.git" >/dev/null
is 'a repository that nobody knows' 1 $?
check 'is said to be none' grep -q 'knows no repository' "$T/err"
recover >"$T/found"
is 'what is missing is kept' 1 $?
check 'for its time' grep -q '0 dropped, 1 deferred' "$T/found"
recover --yes --forget "$FS/other.git" >/dev/null
is 'two were at one path: nothing is guessed' 1 $?
check 'and both are named' grep -q "$other" "$T/err"
check 'the newer one, too' grep -q "$new" "$T/err"
recover --yes --forget "$new" >"$T/found"
is 'the newer one has no record, and the other still waits' 1 $?
check 'none is dropped' grep -q "dropped 0 records of '$new'" "$T/err"
recover --forget "$other" >/dev/null </dev/null
is 'nobody is asked, so nothing is changed' 1 $?
check 'and the option is named' grep -q '\-\-yes' "$T/err"

# ---- a journal that is given up ----

# Prints what is done in a wrong order with the state directory $1.
without_the_lock() {
	awk -v dir="$1" '
		/flock\(/ && index($0, "<" dir "/lock>") { locked = 1 }
		/close\(/ && index($0, "<" dir "/lock>") { locked = 0 }
		/rename.*\.discarded-/ {
			renamed = 1
			synced = 0
			if (!locked)
				print
		}
		/fsync\(/ && index($0, "<" dir ">)") { synced = 1 }
		END { if (!renamed || !synced) print "not renamed, or not synced" }
	' "$T/trace"
}

cp -r "$STATE" "$T/given-up"
cp -r "$STATE" "$T/damaged"
truncate -s 0 "$T/damaged/journal.db"
"$REFD" recover --state "$T/given-up" --root "$FS" --discard >"$T/found" 2>&1
is 'given up: a record was deferred' 1 $?
check 'given up: the journal is aside' \
	test -e "$T/given-up"/journal.db.discarded-*
rm -r "$T/given-up"
cp -r "$STATE" "$T/given-up"
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	for dir in given-up damaged; do
		strace -f -y -qq -o "$T/trace" -e \
			trace=flock,close,rename,renameat,renameat2,fsync \
			"$REFD" recover --state "$T/$dir" --root "$FS" \
			--discard >"$T/found" 2>&1
		prints_nothing "$dir: moved under the lock, and synced" \
			without_the_lock "$T/$dir"
	done
else
	skip 'given up: moved under the lock, and synced' 'no strace'
fi
rm -r "$T/given-up" "$T/damaged" "$FS/other.git"

# ---- the end of the waiting ----

recover --yes --forget "$other" >/dev/null
is 'by its id it is given up' 0 $?
check 'and told of' grep -q "dropped 1 record of '$other'" "$T/err"
recover >"$T/found"
is 'then nothing is left to do' 0 $?
is 'nothing' \
	'0 refs repaired, 0 left as another wrote them, 0 dropped, 0 deferred' \
	"$(cat "$T/found")"
check 'and the daemon starts' start_daemon --root "$FS"
is 'and nobody waits' 0 "$(status_of awaiting_repos)"
mv "$FS/away.git" "$FS/other.git"
check 'one that comes back after all is served' \
	update "$FS/other.git" refs/heads/y "$two"
check 'it stops again' stop_daemon

# ---- evidence, for programs ----

check 'the daemon starts once more' start_daemon --config "$T/config" \
	--root "$FS"
update "$repo" refs/heads/again "$one"
kill_daemon
check 'mounted anew again' mounted_anew
: >"$repo/refs/heads/again"
recover --json >"$T/json"
is 'all is as the journal has it' 0 $?
is 'as JSON: repaired' 1 "$(json 'd["repaired"]')"
check 'as JSON: what is kept' test -f "$(json \
	'r[sys.argv[2]]["findings"][0]["evidence"]')"

# ---- a configuration that the power loss emptied ----

# The records tell the format of the ids, and so the form of refs and logs.
check 'the daemon starts before the configuration is lost' start_daemon \
	--config "$T/config" --root "$FS"
git -C "$repo" config core.logAllRefUpdates always
update "$repo" refs/heads/lost "$one"
update "$repo" refs/heads/lost "$two"
update "$repo" refs/heads/stale "$one"
update "$repo" refs/heads/stale "$two"
kill_daemon
cp "$repo/config" "$T/kept-config"
check 'mounted anew, without a configuration' mounted_anew
: >"$repo/config"
: >"$repo/refs/heads/lost"
echo "$one" >"$repo/refs/heads/stale"
touch -d '1 hour ago' "$repo/refs/heads/stale"
sed -i '$d' "$repo/logs/refs/heads/lost"
"$REFD" verify "$repo" >"$T/verified" 2>&1
recover >"$T/found"
is 'without a configuration: all is as the journal has it' 0 $?
is 'without a configuration: an empty ref' "$two" \
	"$(cat "$repo/refs/heads/lost")"
is 'without a configuration: a stale ref' "$two" \
	"$(cat "$repo/refs/heads/stale")"
is 'without a configuration: the log' "$ZERO $one
$one $two" "$(cut -d' ' -f1,2 "$repo/logs/refs/heads/lost")"
is 'without a configuration: verify knows the format' \
	"$([ "$FORMAT" = sha1 ] || echo config-lost)" \
	"$(grep -o 'config-lost' "$T/verified" | head -n 1)"
"$REFD" verify "$repo" >"$T/verified" 2>&1
is 'without a configuration: verify finds nothing else' '' \
	"$(grep -E '^(error|warning)' "$T/verified" | grep -v config-lost)"
cp "$T/kept-config" "$repo/config"
check 'the configuration is back: verify finds nothing' \
	"$REFD" verify "$repo"
is 'the configuration is back: git agrees' "$two $two" "$(git -C "$repo" \
	rev-parse refs/heads/lost refs/heads/stale | paste -sd ' ')"

# ---- a torn end of the journal ----

check 'the daemon starts for the last time' start_daemon \
	--config "$T/config" --root "$FS"
update "$repo" refs/heads/whole "$one"
update "$repo" refs/heads/torn "$one"
kill_daemon
check 'mounted anew, as after a cut' mounted_anew
: >"$repo/refs/heads/whole"
# Within the last frame. Behind it is only free room.
python3 - "$STATE/journal.db-wal" <<'EOF'
import sys
with open(sys.argv[1], "r+b") as f:
    wal = f.read()
    end = 32
    while wal[end + 8:end + 16] == wal[16:24]:
        end += 24 + 4096
    f.seek(end - 100)
    f.write(bytes(100))
EOF
recover >"$T/found"
is 'a torn end stops nobody' 0 $?
is 'what came before it is redone' "$one" "$(cat "$repo/refs/heads/whole")"
check 'and that alone' grep -q '^1 ref repaired, 0 left' "$T/found"
finish
