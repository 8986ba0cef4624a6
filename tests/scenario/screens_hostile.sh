#!/bin/bash
# Proves that no command shows people a byte that a terminal obeys: control
# characters, also those of eight bits, directions of writing, and bytes that
# are not UTF-8. They are planted in every text of a hostile daemon, in paths,
# refs, messages, settings and arguments. Forms for programs stay as they are.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
command -v python3 >/dev/null || {
	skip 'hostile texts' 'no python3'
	finish
}

# A terminal that obeys this name gets the title "pwned".
evil=$'e\e]2;pwned\a\e[2J\r\x9b31m\xc2\x9b31m\xe2\x80\xae\xe2\x80\x8f'
evil+=$'\xe2\x81\xa6\xd8\x9c\xff.git'
hidden='[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xd8\x9c'
hidden+='|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]'

# The command shows the text, or what else WANTED is, and hides the bytes.
hides_all() { # NAME WANTED COMMAND...
	local name=$1 wanted=$2
	shift 2
	timeout 60 "$@" >"$T/said" 2>&1
	if ! grep -qaE "$wanted" "$T/said"; then
		not_ok "$name" "no $wanted: $(head -c 300 "$T/said" | cat -v)"
	elif grep -qaP "$hidden" "$T/said" ||
		! iconv -f utf-8 -t utf-8 "$T/said" >/dev/null 2>&1; then
		not_ok "$name" "$(grep -am 3 pwned "$T/said" | cat -v)"
	else
		ok "$name"
	fi
}
hides() { # NAME COMMAND...
	hides_all "$1" 'e\?\]2;pwned\?\?\[2J' "${@:2}"
}

# The filter sees what it shall see.
for bytes in '\e' '\x9b' '\xc2\x9b' '\xe2\x80\xae' '\xe2\x81\xa6' '\xd8\x9c' \
	'\r' '\xff'; do
	# shellcheck disable=SC2059 # the bytes of the format
	said=$(scenario_bad=0; hides_all x a printf "a$bytes")
	is "the test sees $bytes" 'not ok' "${said:0:6}"
done

# ---- a hostile daemon ----

new_repo r.git bare
R=$T/r.git
one=$(new_commit r.git one)
git -C "$R" update-ref refs/heads/x "$one"
PYTHONPATH=$ROOT/client/python:$ROOT/tests/python python3 -B \
	"$ROOT/tests/python/hostile_server.py" "$SOCKET" 2>"$T/server.err" &
own $!
check 'the hostile daemon starts' await 10 test -S "$SOCKET"
id=01010101010101010101010101010101

hides_all 'ping' 'serving' "$REFD" ping
hides query "$REFD" query $id
hides role "$REFD" role
hides 'role -v' "$REFD" role -v
hides status "$REFD" status
hides 'status -v' "$REFD" status -v
hides 'status --html' "$REFD" status --html
hides stats "$REFD" stats
hides 'stats --prometheus' "$REFD" stats --prometheus
hides top "$REFD" top --once
hides slowlog "$REFD" slowlog
hides locks "$REFD" locks
hides pack "$REFD" pack "$R"
hides log "$REFD" log
hides 'log -v' "$REFD" log -v
hides 'log in colour' "$REFD" log --color=never -v -n 1
hides watch "$REFD" watch --since 0 -n 1
hides update "$REFD" update -C "$R" refs/heads/x "$one"
hides 'update --stdin' "$REFD" update -C "$R" --stdin <<<"create refs/a $one"
hides_all 'update, an argument' pwned "$REFD" update -C "$R" "$evil" "$one"
for form in status 'status -v' stats 'top --once' slowlog locks role ping \
	"query $id" log "watch --since 0 -n 1"; do
	# shellcheck disable=SC2086 # words
	hides_all "$form --json" '^[{]' "$REFD" $form --json
done
touch "$T/refuses"
for form in status stats role top\ --once slowlog locks pause resume drain \
	checkpoint log "query $id" "pack $R"; do
	# shellcheck disable=SC2086 # words
	hides "$form, refused" "$REFD" $form
done
hides 'status --html, refused' "$REFD" status --html
"$REFD" status --html >"$T/said" 2>&1
is 'status --html, refused: the exit status' 75 $?
hides 'update, refused' "$REFD" update -C "$R" refs/heads/x "$one"
hides 'enable, refused' "$REFD" enable "$R"
rm "$T/refuses"
check 'enabled' "$REFD" enable "$R"
# A repository that was never served would be left to git.
mkdir "$R/refd"
touch "$T/refuses"
git clone -q "$R" "$T/work" 2>/dev/null
new_commit work/.git two "$one" >"$T/two"
hides 'a push, refused' git -C "$T/work" push origin "$(cat "$T/two"):refs/heads/y"
rm "$T/refuses"
hides 'a push, rejected' git -C "$T/work" push origin "$(cat "$T/two"):refs/heads/y"
kill "${scenario_pids[-1]}"
reap "${scenario_pids[-1]}"
rm "$SOCKET" "$SOCKET.admin"

# ---- hostile names ----

SERVED=$T/$evil
mkdir "$SERVED"
name=refs/heads/$'\x9b31m\xc2\x9b\xe2\x80\xae\xe2\x81\xa6pwned\xff'
new_repo "$evil/$evil" bare
R=$SERVED/$evil
one=$(new_commit "$evil/$evil" one)
two=$(new_commit "$evil/$evil" two "$one")
check 'the daemon starts' start_daemon
check 'a ref is made' env GL_USER="$evil" \
	"$REFD" update -C "$R" -m "$evil" "$name" "$one"

record=$("$REFD" log --json -n 1 | jq .lsn)
# For a program, a valid name is as it is.
is 'update --porcelain' "ok $name" \
	"$("$REFD" update -C "$R" --porcelain "$name" "$two" | head -n 1)"
is 'update --porcelain, refused' "ng $name" "$("$REFD" update -C "$R" \
	--porcelain "$name" "$two" "$one" | sed -n '1s/ stale .*//p')"
id=$("$REFD" log --json -n 1 | jq -r .txn)
is 'restore --dry-run' "update $name $one $two" \
	"$("$REFD" restore --repo "$R" --at "$record" --dry-run 2>/dev/null)"
hides_all 'query' pwned "$REFD" query "$id"
for form in log 'log -v' 'status -v' 'top --once' 'watch --since 0 -n 1'; do
	# shellcheck disable=SC2086 # words
	hides_all "$form, hostile names" '' "$REFD" $form
	# shellcheck disable=SC2086 # words
	hides_all "$form, as JSON" '' "$REFD" $form --json
done
# A terminal adds carriage returns, git has lines of its own, and a rejected
# name is for a program.
# shellcheck disable=SC2016 # the inner shell expands
hides_all restore pwned sh -c 'script -qec "$*" /dev/null | tr -d "\r"' sh \
	"'$REFD' restore --repo '$R' --at $record"
hides_all 'update, an old value' pwned \
	"$REFD" update -C "$R" "$name" "$one" "$one"
# shellcheck disable=SC2016
hides_all 'update --batch-updates' pwned sh -c '"$@" >/dev/null' sh "$REFD" \
	update -C "$R" --stdin --batch-updates <<<"update $name $one $one"
hides_all 'update --stdin' pwned "$REFD" update -C "$R" --stdin <<<"$evil"
hides_all 'status --html, hostile names' pwned "$REFD" status --html
hides enable "$REFD" enable "$R"
hides 'enable --list' "$REFD" enable --list
hides doctor "$REFD" doctor "$R"
hides 'verify' "$REFD" verify "$R"
hides 'migrate' "$REFD" migrate --to="$evil" "$R"
hides disable "$REFD" disable "$R"
git clone -q "$R" "$T/clone" 2>/dev/null
git -C "$T/clone" reset -q --hard "$(new_commit clone/.git three)"
check 'enabled again' "$REFD" enable "$R" >/dev/null
# shellcheck disable=SC2016
hides_all 'a push' pwned sh -c '"$@" 2>&1 | grep -a remote:' sh \
	git -C "$T/clone" push origin "main:$name/below"
: >"$R/$name.lock"
if in_container; then
	skip 'locks --clear-dead' 'this is a container'
else
	hides_all 'locks --clear-dead' pwned \
		"$REFD" locks --clear-dead --yes --wait 0 "$R"
fi
git -C "$R" config refd.socket "$T/$evil.sock"
hides 'a setting' "$REFD" update -C "$R" "$name" "$one"
git -C "$R" config --unset refd.socket
check 'one more update' "$REFD" update -C "$R" refs/heads/y "$one"

# ---- messages of refd-admin ----

kill_daemon
hides_all 'the log of the daemon' pwned grep -a event= "$LOG"
cp -r "$R" "$T/$evil.copy"
hides disown "$REFD" disown "$T/$evil.copy"
mv "$R" "$T/away.git"
hides 'recover: the report' "$REFD" recover --state "$STATE"
hides 'recover: no journal' "$REFD" recover --state "$T/$evil"
hides 'recover: an argument' "$REFD" recover "$evil"
hides 'recover --forget' "$REFD" recover --state "$STATE" --forget "$evil"
hides 'disown: no repository' "$REFD" disown "$T/$evil/none"
hides verify "$REFD" verify "$T/$evil/none"
hides check-config "$REFD" check-config --config "$T/$evil/none"
printf '[daemon]\n\tsocket = "%s"\n\troot = /srv\n' "$T/${evil//$'\r'/}" \
	>"$T/$evil/config"
for form in '' --show-origin --json; do
	# shellcheck disable=SC2086 # a word
	hides_all "check-config $form" pwned \
		"$REFD" check-config $form --config "$T/$evil/config"
done
cp -r "$STATE" "$T/$evil/state"
hides 'recover --discard' "$REFD" recover --discard --state "$T/$evil/state"

finish
