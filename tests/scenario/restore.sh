#!/bin/bash
# Proves that refd restore undoes an accident: refs are as they were at a moment,
# whatever refd and git did since. The command names what that costs. Without
# --force the command deletes nothing, and does not go back before the first
# record. On a terminal the command asks. The rights of the caller decide.
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

printf '[daemon]\n\tallowUser = 65534\n' >"$T/config"
start_daemon --config "$T/config"
new_repo a.git bare
cd "$T" || exit 1
git -C a.git config core.logAllRefUpdates always
one=$(new_commit a.git 1)
two=$(new_commit a.git 2)
bad=$(new_commit a.git bad)
lost=$(new_commit a.git lost)

up() { "$REFD" update --git-dir a.git "$@"; }
refs() { git -C a.git for-each-ref; }
last() { # of the journal's records of a.git
	"$REFD" log --repo a.git -n 1 | cut -f 2 | cut -d . -f 1
}
restore() { "$REFD" restore --repo a.git "$@"; }

# ---- before ----

git -C a.git update-ref refs/heads/unknown "$one"
git -C a.git symbolic-ref refs/heads/alias refs/heads/main
{
	for n in main x y shared; do
		echo "create refs/heads/$n $one"
	done
	for n in $(seq 200); do
		echo "create refs/tags/v$n $one"
	done
} | up --stdin
up refs/heads/main "$two"
git -C a.git pack-refs --all
# git has moved this ref before the moment.
git -C a.git update-ref refs/heads/shared "$two"
refs >before
moment=$(last)
# Times have milliseconds. The accident begins in a later millisecond.
sleep 0.01
time=$(date +%Y-%m-%dT%H:%M:%S.%3N%z)
sleep 0.01

# ---- the accident ----

for n in main x y; do
	echo "update refs/heads/$n $bad"
done | up --stdin -m 'push -f'
git -C a.git update-ref refs/heads/x "$lost"
for n in $(seq 200); do
	echo "delete refs/tags/v$n"
done | up --stdin
up refs/heads/shared "$bad"
up refs/heads/new "$bad"
refs >accident

# ---- a dry run ----

restore --at "$time" --dry-run >commands 2>notes
is 'a dry run is for git to read' \
	"200 create 1 delete 4 update" \
	"$(cut -d' ' -f1 commands | sort | uniq -c | xargs)"
is 'and changes nothing' "$(cat accident)" "$(refs)"
git clone -q --mirror a.git copy.git
git -C copy.git update-ref --stdin <commands
is 'git would come to the same' "$(grep -v alias before)" \
	"$(git -C copy.git for-each-ref | grep -v alias)"
is 'by its record it is the same' "$(cat commands)" \
	"$(restore --at "$moment" -n 2>/dev/null)"
check 'what git moved is said' \
	grep -q 'refs/heads/x: git changed the ref after' notes
check 'before the moment, too' \
	grep -q 'refs/heads/shared: git changed the ref between' notes
check 'that reflogs are gone is said' \
	grep -q '^refd: warning: .* reflogs of 200 deleted refs' notes

# ---- done ----

is 'a deletion is refused without --force' "128 $(cat accident)" \
	"$(restore --at "$moment" >out 2>&1; echo $? "$(refs)")"
check 'which says how many' \
	grep -q '^refd: this would delete 1 ref: .*--force' out
is 'a plan as JSON is refused likewise' '128 1 line' \
	"$(restore --at "$moment" --json >out 2>/dev/null; echo $? \
		"$(wc -l <out) line")"
is 'a moment before the first record, too' "128 $(cat accident)" \
	"$(restore --at '1 year ago' --ref refs/heads/x >out 2>&1
		echo $? "$(refs)")"
check 'which says so' grep -q '^refd: history has no record .*--force' out
is 'it can be looked at' 0 \
	"$(restore --at '1 year ago' -n >/dev/null 2>&1; echo $?)"
is 'a look forces nothing' 129 \
	"$(restore --at '1 year ago' -n --force >/dev/null 2>&1; echo $?)"
is 'it says what it did' \
	"restore to record $moment: update 4 refs, create 200 refs, delete 1 ref; \
refs left unchanged, without history: 1" \
	"$(restore --at "$moment" --force 2>/dev/null)"
is 'refs are as they were' "$(cat before)" "$(refs)"
is 'a reflog says so' "restore: to $moment" \
	"$(git -C a.git log -g -1 --format=%gs refs/heads/x)"
is 'so does one that begins with it' "restore: to $moment" \
	"$(git -C a.git log -g -1 --format=%gs refs/tags/v7)"
is 'and history' "restore: to $moment" "$("$REFD" log --repo a.git -n 1 \
	--json | sed 's/.*"message":"//; s/".*//')"
is 'there is nothing to do then' "restore to record $moment: nothing to change; \
refs left unchanged, without history: 1" "$(restore --at "$moment" 2>&1)"
is 'nor to show' '' "$(restore --at "$time" -n 2>/dev/null)"

# ---- a part of the refs, and refs that can't be restored ----

at=$(last)
up refs/heads/main "$bad"
up refs/heads/y "$lost"
restore --at "$at" --ref refs/heads/m* >/dev/null
is 'the refs that were asked for' "$two $lost" \
	"$(ref_of a.git refs/heads/main) $(ref_of a.git refs/heads/y)"
up refs/heads/y "$one"
at=$(last)
git -C a.git update-ref refs/heads/y "$two"
git -C a.git update-ref -d refs/tags/v3
is 'what git alone did is left' '' "$(restore --at "$at" -n 2>notes)"
is 'which is said' 2 "$(grep -c 'only git .*--undo-git' notes)"
is 'unless it is meant' "update refs/heads/y $one $two
create refs/tags/v3 $one" "$(restore --at "$at" -n --undo-git 2>/dev/null)"
restore --at "$at" --undo-git >/dev/null 2>&1
is 'and done' "$one $one" \
	"$(ref_of a.git refs/heads/y) $(ref_of a.git refs/tags/v3)"

up refs/heads/gone "$lost"
up refs/heads/stays "$lost"
at=$(last)
up -d refs/heads/gone
up refs/heads/stays "$one"
path=$(printf '%s' "$lost" | sed 's:^..:&/:')
mv "a.git/objects/$path" object
restore --at "$at" >out 2>&1
is 'an object that was pruned is refused' 128 $?
check 'with the ref named' grep -q 'refs/heads/gone' out
is 'and nothing is done' "$one" "$(ref_of a.git refs/heads/stays)"
mv object "a.git/objects/$path"
is 'as JSON' 'updates 2 left 0 committed' "$(restore --at "$at" --json |
	python3 -c '
import json, sys
plan, done = [json.loads(line) for line in sys.stdin]
print("updates", len(plan["updates"]), "left", len(plan["left"]),
    done["outcome"])')"

# ---- on a terminal ----

# Standard output and standard error become the file terminal.
on_terminal() { # ANSWER ARGUMENTS...
	local answer=$1
	shift
	python3 - "$answer" "$REFD" restore --repo a.git "$@" <<-'PYTHON'
		import os, pty, sys
		answer, command = sys.argv[1], sys.argv[2:]
		pid, fd = pty.fork()
		if pid == 0:
		    os.execv(command[0], command)
		seen = b''
		answered = False
		while True:
		    try:
		        some = os.read(fd, 65536)
		    except OSError:  # The other end of a terminal is closed.
		        break
		    seen += some
		    if b'[y/N] ' in seen and not answered:
		        os.write(fd, answer.encode() + b'\n')
		        answered = True
		open('terminal', 'wb').write(seen.replace(b'\r', b''))
		sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	PYTHON
}
at=$(last)
up refs/heads/main "$bad"
up refs/heads/made "$bad"
is 'a deletion is refused there, too' "128 $bad" \
	"$(on_terminal y --at "$at"; echo $? "$(ref_of a.git refs/heads/main)")"
up -d refs/heads/made
is 'it asks, and no is no' "1 $bad" \
	"$(on_terminal n --at "$at"; echo $? "$(ref_of a.git refs/heads/main)")"
check 'with the plan above' grep -q \
	"^refd: update refs/heads/main $two $bad" terminal
check 'and says so' grep -q '^refd: nothing was changed' terminal
is 'an empty answer is no' "1 $bad" \
	"$(on_terminal '' --at "$at"; echo $? "$(ref_of a.git refs/heads/main)")"
is 'yes is yes' "0 $two" \
	"$(on_terminal yes --at "$at"; echo $? "$(ref_of a.git refs/heads/main)")"
is 'nobody is asked about nothing' 0 \
	"$(on_terminal n --at "$at"; echo $?)"
up refs/heads/main "$bad"
is 'nor by force' "0 $two 0" "$(on_terminal n --at "$at" --force; echo $? \
	"$(ref_of a.git refs/heads/main)" "$(grep -c 'y/N' terminal)")"
up refs/heads/main "$bad"
is 'nor if standard input is not the terminal' "0 $two" \
	"$(restore --at "$at" </dev/null >/dev/null 2>&1; echo $? \
		"$(ref_of a.git refs/heads/main)")"

refused() { # NAME WORDS ARGUMENTS...
	local name=$1 words=$2
	shift 2
	restore "$@" >out 2>&1
	if [ $? -eq 128 ] && grep -q "$words" out; then
		ok "$name"
	else
		not_ok "$name" "$(cat out)"
	fi
}
refused 'a record that is not there yet' 'no record 999999 yet' --at 999999
refused 'another journal' 'a different daemon' \
	--at 00000000000000000000000000000000:3
refused 'the future' 'in the future' --at 2100-01-01T00:00:00Z
refused 'what is no time' 'is no time: write' --at 'last tuesdy'
refused 'no full name' "write 'refs/heads/a'" --at 0 --ref a
refused 'no such ref' "no ref of the repository matches 'refs/heads/mian'" \
	--at 0 --ref 'refs/*' --ref refs/heads/mian --force
TZ=Europe/Berlin refused 'a time that was there twice' 'time zone' \
	--at 2025-10-26T02:30:00

# Another writer took the place of the ref meanwhile.
up refs/heads/topic "$one"
at=$(last)
up -d refs/heads/topic
up refs/heads/topic/x "$bad"
refused 'a name that is in the way' "'refs/heads/topic/x' exists" --at "$at" \
	--force
restore --at "$at" --batch-updates --force >/dev/null 2>&1
is 'is away, where each is for itself' "$one refs/heads/topic" \
	"$(git -C a.git for-each-ref refs/heads/topic \
		--format='%(objectname) %(refname)')"

# ---- rights ----

up refs/heads/main "$bad"
if with_people 'who may only read may not restore'; then
	mkdir "$T/bin"
	cp "$REFD" "$T/bin/refd"
	mkdir -p "$T/of65534"
	printf '[safe]\n\tdirectory = *\n' >"$T/of65534/.gitconfig"
	as 65534 "$T/bin/refd" restore --repo a.git --at "$at" >out 2>&1
	is 'who may only read may not restore' "128 $bad" \
		"$? $(ref_of a.git refs/heads/main)"
	check 'which says so' grep -q 'main.*may not write' out
fi
# ---- forgotten records ----

stop_daemon
printf '[journal]\n\tretention = 1s\n' >>"$T/config"
start_daemon --config "$T/config"
for ((i = 0; i < 4000; i++)); do
	restore --at "$moment" -n >/dev/null 2>&1 || break
	sleep 0.05
done
refused 'a record that is forgotten' 'earliest possible .* is --at [0-9]' \
	--at "$moment"
refused 'a time before what is left' 'earliest possible .* is --at [0-9]' \
	--at "$time"
# Which moves on while there is more to forget.
for ((i = 0; i < 400; i++)); do
	first=$(restore --at "$time" -n 2>&1 | sed 's/.*--at //')
	restore --at "$first" -n >out 2>&1 && break
	sleep 0.05
done
check 'that first moment can be had' grep -q "^restore to record $first: " out

stop_daemon
restore --at "$at" >out 2>&1
is 'without a daemon nothing is done' "75 $bad" \
	"$? $(ref_of a.git refs/heads/main)"
finish
