#!/bin/bash
# Proves that history finds past changes by repository, ref, time, user and
# transaction. A feed of changes is complete and in order, whatever is killed
# meanwhile. A waiting watch costs nothing. A tenant sees only his own changes.
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"

start_daemon
new_repo a.git bare
new_repo b.git bare
cd "$T" || exit 1
a_1=$(new_commit a.git 1)
a_2=$(new_commit a.git 2)
a_3=$(new_commit a.git 3)
b_1=$(new_commit b.git 1)
b_2=$(new_commit b.git 2)

fields() { # JQ-LIKE KEYS... : those of each line of JSON, space-separated
	python3 -c '
import json, sys
for line in sys.stdin:
    d = json.loads(line)
    print(*[d.get(k, "-") for k in sys.argv[1:]])' "$@"
}

up() { # REPO REF NEW [OPTIONS...]
	local repo=$1 ref=$2 new=$3
	shift 3
	"$REFD" update --git-dir "$T/$repo.git" --create-reflog "$@" \
		"$ref" "$new"
}

GL_USER=alice up a refs/heads/main "$a_1" -m first
GL_USER=bob up a refs/heads/topic/x "$a_1"
up b refs/heads/main "$b_1"
up a refs/heads/main "$a_2" -m second
up a refs/tags/v1 "$a_2"
"$REFD" update --git-dir a.git refs/heads/main "$a_3" "$a_1" 2>/dev/null
"$REFD" update --git-dir a.git -d refs/heads/topic/x

is 'the newest comes first' 'refs/heads/topic/x refs/heads/main' \
	"$("$REFD" log --repo a.git -n 2 --json | fields ref | paste -sd' ')"
is 'a ref, oldest first' "$(printf 'first ok\nsecond ok\n- stale')" \
	"$("$REFD" log --repo a.git --ref refs/heads/main --reverse --json |
		fields message status)"
is 'a prefix of refs' 2 "$("$REFD" log --ref refs/heads/topic/ | wc -l)"
is 'a pattern, everywhere' 3 \
	"$("$REFD" log --ref 'refs/heads/m*' --json | fields status | grep -c ok)"
is 'who' refs/heads/topic/x \
	"$("$REFD" log --user bob --json | fields ref)"
all=$("$REFD" log | wc -l)
check 'there is history' test "$all" -gt 5
is 'who, by uid' "$all" "$("$REFD" log --user root | wc -l)"
is 'a transaction' refs/tags/v1 "$("$REFD" log --json --txid \
	"$("$REFD" log --ref refs/tags/v1 --json | fields txn)" | fields ref)"
is 'since an hour ago all of it' "$all" \
	"$("$REFD" log --since '1 hour ago' | wc -l)"
prints_nothing 'until an hour ago none of it' \
	"$REFD" log --until '1 hour ago'
is 'old and new' "$a_1 $a_2" "$("$REFD" log --repo a.git \
	--ref refs/heads/main --reverse --json -n 2 | fields old new | tail -1)"
# A name may contain control characters of a terminal, and bytes that are not
# UTF-8.
evil=$(printf 'refs/heads/evil\xc2\x9b31m\xff')
up a "$evil" "$a_1"
prints_no 'no terminal is told anything' $'\xc2\x9b|\xff' \
	"$REFD" log --repo a.git -n 1
is 'JSON is JSON' 'refs/heads/evil\x9b31m\ufffd' "$("$REFD" log --repo a.git -n 1 \
	--json | python3 -c 'import json, sys
print(ascii(json.load(sys.stdin)["ref"]).strip("\x27"))')"
is 'and has the bytes' "$(printf %s "$evil" | od -An -v -tx1 | tr -d ' \n')" \
	"$("$REFD" log --repo a.git -n 1 --json | fields ref_hex)"
said() { timeout 10 "$REFD" "$@" 2>&1; echo $?; }
for command in log watch; do
	is "an unknown repository, to refd $command" \
		"refd: there is no repository '$T/c.git', and history has none: \
'refd log' prints the repositories of all changes
128" "$(said $command --repo "$T/c.git")"
	is "no full name, to refd $command" \
		"refd: 'main' is not the full name of a ref: write 'refs/heads/main'
128" "$(said $command --ref main)"
done
new_repo quiet.git bare
is 'a repository without changes' 0 "$(said log --repo "$T/quiet.git")"
is 'an unknown ref' "refd: history has no change of a ref that matches \
'refs/heads/mian': 'refd log' without --ref prints the refs
1" "$(said log --ref 'refs/*' --ref refs/heads/mian --until 2000-01-01)"
is 'an unknown user' "refd: history has no change by 'nobodi', which is no \
account of this machine: 'refd log' without --user prints the users
1" "$(said log --user nobodi)"
is 'an account without changes' 0 "$(said log --user nobody)"
is 'an unknown transaction' "refd: history has no transaction \
0123456789abcdef0123456789abcdef
1" "$(said log --txid 0123456789abcdef0123456789abcdef)"
is 'only the times match nothing' 0 \
	"$(said log --ref refs/heads/main --until 2000-01-01)"

# The pusher's name comes from the program that authenticated the pusher.
"$REFD" enable --socket "$SOCKET" a.git >/dev/null
new_repo work
for who in 'REMOTE_USER=carol' 'GITEA_PUSHER_NAME=dave' 'GL_USER=erin' \
	'SSH_CONNECTION=192.0.2.1 50000 192.0.2.9 22'; do
	env "$who" git -C work push -q "$T/a.git" \
		"HEAD:refs/push/${who%%=*}" 2>/dev/null
	name=${who#*=}
	is "who pushed: ${who%%=*}" "refs/push/${who%%=*} push" \
		"$("$REFD" log --user "${name%% *}" --json | fields ref message)"
done
is 'each with the account that says so' \
	'root from 192.0.2.1,root (erin),root (dave),root (carol)' \
	"$("$REFD" log -n 4 | cut -f 3 | paste -sd,)"
ssh-keygen -q -t ed25519 -N '' -f key
echo "publickey $(cut -d ' ' -f 1-2 key.pub)" >auth
SSH_USER_AUTH=$T/auth up a refs/people/key "$a_1"
key=$(ssh-keygen -lf key.pub | cut -d ' ' -f 2)
is 'the key that sshd admitted' "root ($key)	refs/people/key" \
	"$("$REFD" log --user "$key" | cut -f 3,5)"
GL_USER='Ada Lovelace' up a refs/people/ada "$a_1"
is 'a name with a blank' refs/people/ada \
	"$("$REFD" log --user 'Ada Lovelace' | cut -f 5)"

# ---- who deleted a branch, and how it comes back ----

GL_USER=mallory up a refs/people/lost "$a_2"
GL_USER=mallory "$REFD" update --git-dir a.git -m cleaned -d refs/people/lost
up a refs/people/later "$a_1"
is 'a line for a pipe has tabs, full names and values' \
	"root (mallory)	$T/a.git	refs/people/lost	deleted $a_2	cleaned" \
	"$("$REFD" log --repo a.git --ref refs/people/lost -n 1 | cut -f 3-)"
check 'the time is in UTC' grep -qE '^[0-9-]{10}T[0-9:]{8}\.[0-9]{3}Z	' \
	<("$REFD" log -n 1)
undo=$("$REFD" log -v --repo a.git --ref refs/people/lost -n 1 |
	sed -n 's/^    undo: //p')
check 'the log prints a command' test -n "$undo"
check 'that works' env PATH="$BUILD/bin:$PATH" sh -c "$undo" >restored 2>&1
is 'the branch is back' "$a_2" "$(ref_of a.git refs/people/lost)"
is 'and nothing else changed' refs/people/lost \
	"$("$REFD" log -n 1 | cut -f 5)"

# ---- the feed ----

watching() { # OPERATOR NUMBER
	test "$("$REFD" status -v | sed -n 's/^watching: //p')" "$@"
}

"$REFD" watch --since 0 --json --ref refs/heads/ --ref refs/tags/ >feed & # to the end of this scenario
watcher=$!
own $watcher
"$REFD" watch --ref refs/heads/main >followed &
follower=$!
own $follower
await 5 test -s feed
await 5 watching -ge 2
for n in 1 2 3 4 5; do
	up b refs/heads/f$n "$b_2"
done
await 5 grep -q f5 feed
is 'changes alone, in order' \
	"main topic/x main main v1 topic/x $(printf 'evil\xc2\x9b31m\xef\xbf\xbd') f1 f2 f3 f4 f5" \
	"$(fields ref <feed | sed 's:refs/[a-z]*/::' | paste -sd' ')"

# A reader continues after a kill of the reader, and after a kill of the daemon.
kill $watcher
reap $watcher
last=$(tail -1 feed | fields position)
up b refs/heads/g1 "$b_2"
kill_daemon
start_daemon
"$REFD" watch --since "$last" --json >>feed &
own $!
# A watch that finds no daemon at its start does not wait.
await 5 watching -ge 2
up b refs/heads/g2 "$b_2"
# The follower has no position of its own, and comes back late.
kill -STOP $follower
kill_daemon
start_daemon
up b refs/heads/g3 "$b_2"
await 10 grep -q g3 feed
is 'nothing is missed when reader and daemon are killed' 'g1 g2 g3' \
	"$(fields ref <feed | sed -n 's:refs/heads/g:g:p' | uniq | paste -sd' ')"
up a refs/heads/main "$a_3"
kill -CONT $follower
check 'a follower misses nothing while it is away' await 5 grep -q \
	'a.git	refs/heads/main	.*\.\.'"$a_3" followed
is 'another journal is a gap' gap "$("$REFD" watch -n 1 --json \
	--since "00000000000000000000000000000000:3" 2>/dev/null |
	grep -o -m1 gap | head -1)"

"$REFD" watch -n 1 --since 999999 >out 2>&1
is 'a number that no record has yet is refused' \
	'128 refd: there is no record 999999 yet: refd log -n 1 prints the newest one' \
	"$? $(cat out)"
is 'a wrong word is no time' "refd: 'last tuesdy' is no time: write 2026-08-01, \
2026-08-01T12:00:00+0200, @1785578400, '2 hours ago' or yesterday
128" "$(said log --until 'last tuesdy')"
is 'nothing is since the future' "refd: '2999-08-01' is in the future
128" "$(said log --since 2999-08-01)"
# Standard output is a pipe with a dead reader.
unread() { # COMMAND...
	exec 4> >(exit)
	wait $!
	"$REFD" "$@" 2>&1 >&4
	echo $?
	exec 4>&-
}
is 'refd log ends silently when nobody reads' 141 "$(unread log)"
is 'so does refd watch' 141 "$(unread watch --since 0)"
is 'so does refd restore' 141 "$(unread restore --repo a.git \
	--at "$("$REFD" log --repo a.git -n 1 --json | fields lsn)" --json)"

# ---- two committers ----

# Every reported ref is there, and the records come in order.
cat >reader.py <<'PYTHON'
import json, os, sys
lsn, seen = 0, 0
for line in sys.stdin:
    d = json.loads(line)
    if d['lsn'] < lsn:
        sys.exit(f"{d['lsn']} after {lsn}")
    if not os.path.exists(d['repo'] + '/' + d['ref']):
        sys.exit(f"{d['ref']} is told and not there")
    lsn, seen = d['lsn'], seen + 1
    print(seen, flush=True)
PYTHON
"$REFD" watch --json --since "$(tail -1 feed | fields position)" -n 160 |
	python3 reader.py >told 2>&1 &
reader=$!
own $reader
for repo in a b; do
	commit=$(ref_of $repo.git refs/heads/main)
	for k in 1 2; do
		for n in $(seq 40); do
			printf 'create refs/heads/two/%s/%s %s\n' $k "$n" \
				"$commit"
		done >in.$repo.$k
		while read -r line; do
			printf 'start\n%s\ncommit\n' "$line"
		done <in.$repo.$k | "$REFD" update --git-dir $repo.git \
			--stdin >/dev/null &
		own $!
	done
done
wait $reader
is 'two committers: in order, and there when told' 160 "$(tail -1 told)"

# ---- a thousand waiting watches cost almost nothing ----

python3 - "$SOCKET" "$T/b.git" <<'PYTHON' &
import socket, sys, time
path, repo = sys.argv[1:]
def pkt(s): return b'%04x' % (len(s) + 4) + s.encode()
open_ones = []
for n in range(8):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    for i in range(125):
        s.sendall(pkt(f'watch {i + 1}') + pkt(f'git-dir {repo}') +
            pkt('deadline 600000') + pkt('ref refs/none') + b'0000')
    open_ones.append(s)
time.sleep(600)
PYTHON
thousand=$!
own $thousand
check 'a thousand wait' await 10 watching -ge 1000
check 'they cost no time' await 1 is_quiet 3 1
for n in 1 2 3 4 5 6 7 8 9; do
	printf 'update refs/heads/w%s %s\n' $n "$b_2"
done | "$REFD" update --git-dir b.git --stdin
check 'who waits for something else is told meanwhile' \
	await 10 grep -q w9 feed
kill $thousand
reap $thousand
check 'and forgotten when they go' await 5 watching -lt 100

# ---- damage ----

stop_daemon
printf 'no database' >"$STATE/history.db"
rm -f "$STATE"/history.db-*
start_daemon
is 'a damaged index is no loss' 2 \
	"$("$REFD" log --ref refs/heads/topic/ | wc -l)"
await 5 sh -c "'$REFD' status -v | grep -qE '^indexed_lsn: [1-9]'"
is 'and is made anew' 2 "$("$REFD" log --ref refs/heads/topic/ | wc -l)"
finish
