#!/bin/bash
# Proves that refd-deliver sends every change to a web hook and to a command:
# the bytes of refd watch, signed, in the order of each repository. A failing
# delivery stops its repository alone, and becomes a dead letter that can be
# listed, tried again and dropped. Gaps are delivered. After a kill -9 nothing
# is missing, and repetitions have the same id. No message has a secret.

# shellcheck disable=SC2317 # the functions that await calls
# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/deliver.sh
. "$ROOT/tests/lib/deliver.sh"

start_daemon || finish
for repo in a b c d; do
	new_repo $repo.git bare
	declare "$repo=$(new_commit $repo.git 1)"
done
up() { # REPO REF
	"$REFD" update --git-dir "$T/$1.git" "refs/heads/$2" "${!1}"
}
start_hook "$T/hooked" || finish
cat >"$T/command" <<'RUN'
#!/bin/sh
# Commands of different repositories run at the same time.
read -r body
echo "$body" >>bodies
echo "$REFD_DELIVERY $REFD_EVENT $REFD_ATTEMPT" >>ran
if [ -e hang ]; then
	sleep 1000 &
	echo $! >sleeper
	wait
fi
case $body in
*refs/heads/loud*) seq -f 'line %.0f' 100000 ;;
*refs/heads/broken*) exit 3 ;;
esac
RUN
chmod +x "$T/command"
cat >"$T/deliver.conf" <<CONFIG
[deliver]
	socket = $SOCKET
[deliver "hook"]
	url = http://127.0.0.1:$HOOK_PORT/hook?token=Url-Secret
	secretFile = $T/secret
	timeout = 1s
	tries = 2
[deliver "run"]
	command = cd '$T' && exec ./command
	timeout = 2s
	tries = 1
CONFIG

# ---- the configuration ----

check '--check' deliver --check
wrong() { # CONFIGURATION MESSAGE
	printf '%b' "$1" >"$T/wrong.conf"
	check "refused: $2" grep -q "$2" \
		<("$REFD" deliver --config "$T/wrong.conf" --check 2>&1)
}
wrong '[deliver "x"]\nurl = ftp://x/\n' 'begins with https'
wrong '[deliver "x"]\nurl = http://u:Url-Secret@x/\n' 'no user and no password'
wrong '[deliver "x"]\ntimeout = 5\n' 'no time'
wrong '[deliver "x"]\nulr = http://x/\n' 'no key'
wrong '[deliver "x"]\ntries = 1\n' 'needs a url or a command'
wrong '[deliver "a b"]\ntries = 1\n' 'letters'
printf 'x\n' >"$T/open.secret"
wrong "[deliver \"x\"]\nurl = http://x/\nsecretFile = $T/open.secret\n" \
	'every user may read'

# ---- before the first start ----

deliver --list 2>"$T/early"
is '--list before a start' 128 $?
check 'says how to start' grep -q \
	"$T/deliver/deliver.db.*refd-deliver(8) describes" "$T/early"

# ---- the happy path ----

up a before
start_service
await 10 has_begun hook
await 10 has_begun run
hooked() { # NR
	[ "$(hook_count new)" -ge "$1" ]
}
ran() { # NR
	[ "$(wc -l <"$T/ran")" -ge "$1" ]
}
for n in 1 2 3 4 5 6 7 8; do
	up a "n$n"
	up b "n$n"
done
check 'a web hook is called' await 10 hooked 16
check 'a command is run' await 10 ran 16
is 'every change once' 16 "$(hook_count requests)"
is 'in order' 0 "$(hook_count disorder)"
is 'signed' 0 "$(hook_count unsigned)"
"$REFD" watch --since 1 -n 16 --json >"$T/watched"
sort "$T/watched" >"$T/wanted"
jq -r .body "$T/hooked" | sort >"$T/got"
check 'the body is the line of refd watch' cmp "$T/wanted" "$T/got"
sort "$T/bodies" >"$T/got"
check 'of a command, too' cmp "$T/wanted" "$T/got"
is 'the id is the position' "$(jq -r .position "$T/wanted" | sort)" \
	"$(jq -r .id "$T/hooked" | sort)"
is 'for a command, too' \
	"$(jq -r '.position + " change 1"' "$T/wanted" | sort)" "$(sort "$T/ran")"
is 'the headers' '["change",1,"application/json"]' \
	"$(jq -c '[.event, .attempt, .type]' "$T/hooked" | sort -u)"
check 'a second service is refused' \
	grep -q 'another refd-deliver' <(deliver 2>&1)

for byte in $'\376' $'\377'; do
	up a "x$byte"
done
check 'names that are not UTF-8' await 10 hooked 18
is 'are different names' 2 "$(jq -r '.body | fromjson | .ref_hex // empty' \
	"$T/hooked" | sort -u | wc -l)"

# ---- failures ----

echo "500 $T/a.git" >"$T/rules"
up a bad
up a next
up b other
check 'the other repository goes on' await 5 hooked 19
check 'a dead letter' await 10 grep -q 'now a dead letter' "$T/deliver.log"
dead() { # NR
	[ "$(deliver --list hook | wc -l)" -eq "$1" ]
}
check 'the next change follows' await 10 dead 2
deliver --list hook --json >"$T/list"
is 'the list' '["hook",2,"HTTP status 500","refs/heads/bad"]' \
	"$(jq -c '[.endpoint, .attempts, .error, .body.ref]' "$T/list" |
		head -n 1)"
is 'metrics: dead letters' 2 "$(metric dead_letters hook)"
is 'metrics: failures' 4 "$(metric failed_total hook)"
: >"$T/rules"
check '--retry' deliver --retry hook "$(jq -r .id "$T/list" | head -n 1)"
check 'is delivered' await 10 hooked 20
check 'and leaves the list' dead 1
is 'as the third attempt' '["refs/heads/bad",3,"204"]' \
	"$(jq -c '[(.body | fromjson | .ref), .attempt, .answer]' "$T/hooked" |
		tail -n 1)"
is 'an unknown id' 1 "$(deliver --retry hook 1:1 2>/dev/null; echo $?)"
for option in --list --retry --drop --forget; do
	deliver $option hok --yes 2>"$T/typo"
	is "$option of an unknown endpoint" \
		"128 refd: the service has no endpoint 'hok'; its endpoints: hook, run" \
		"$? $(cat "$T/typo")"
done
is '--drop asks' 1 "$(deliver --drop hook 2>/dev/null; echo $?)"
check '--drop --yes' deliver --drop hook --yes
check 'nothing is left' dead 0
error_of() { # RULE REF: the error of a change with this answer
	echo "$1 refs/heads/$2" >"$T/rules"
	up c "$2"
	await 10 dead 1
	deliver --list hook --json | jq -r .error
	: >"$T/rules"
	deliver --drop --yes hook 2>/dev/null
}
is 'a redirect is not followed' \
	'HTTP status 302: redirects are not followed' "$(error_of 302 moved)"
check 'a server that hangs' grep -q '[Tt]imeout' <(error_of hang hangs)
echo "flood refs/heads/flood" >"$T/rules"
new=$(hook_count new)
up c flood
check 'the status decides, not a large answer' await 5 hooked $((new + 1))

delivered=$(metric delivered_total run)
up d loud
has_delivered() { [ "$(metric delivered_total run)" -gt "$delivered" ]; }
check 'a command may print much' await 10 has_delivered
check 'a word about the rest' await 10 grep -q \
	"endpoint 'run'.*prints more than 64 KiB; the rest is left out" \
	"$T/deliver.log"
check 'but the log gets 64 KiB' [ \
	"$(grep -c '^line ' "$T/deliver.log")" -eq \
	"$(seq -f 'line %.0f' 100000 | head -c 65536 | wc -l)" ]

up d broken
list_run() { deliver --list run --json | jq -r .error; }
run_fails() { [ "$(list_run)" = "$1" ]; }
check 'a command that fails' \
	await 10 run_fails 'the command ended with status 3'
deliver --drop --yes run 2>/dev/null
touch "$T/hang"
up d hang
check 'a command that hangs' \
	await 10 run_fails 'the command took longer than 2000 ms'
is_gone() { ! kill -0 "$1" 2>/dev/null; }
check 'and is killed with its children' await 5 is_gone "$(cat "$T/sleeper")"
rm "$T/hang"
deliver --drop --yes run 2>/dev/null

# ---- kills ----

before=$(hook_count new)
again=$(hook_count again)
disorder=$(hook_count disorder)
for n in 1 2 3 4 5; do
	for i in 1 2 3 4 5; do
		ups=()
		for repo in a b c d; do
			up $repo "k$n$i" &
			ups+=($!)
		done
		wait "${ups[@]}"
	done
	kill_service
	start_service
done
check 'after kills nothing is missing' await 20 hooked $((before + 100))
again=$(($(hook_count again) - again))
check "at most one repetition per kill and repository ($again)" \
	[ $again -le 20 ]
is 'with the same id' "$disorder" "$(hook_count disorder)"
is 'and none too many' $((before + 100)) "$(hook_count new)"
kill_daemon
start_daemon
up a after
check 'the daemon may go away' await 20 hooked $((before + 101))
check 'SIGTERM' stop_service
up a while-stopped
start_service
check 'nothing is missed meanwhile' await 10 hooked $((before + 102))

# ---- other writers ----

"$REFD" look "$T/d.git" >/dev/null
git -C "$T/d.git" update-ref refs/heads/foreign \
	"$(new_commit d.git foreign)"
"$REFD" look "$T/d.git" >/dev/null
check 'a change that a look found' await 10 hooked $((before + 103))
is 'has its origin' '["refs/heads/foreign","seen"]' \
	"$(jq -c '.body | fromjson | [.ref, .origin]' "$T/hooked" |
		tail -n 1)"

# ---- gaps ----

kill_service
kill_daemon
STATE=$T/other.state start_daemon
start_service
check 'another journal is a gap' \
	await 10 grep -q '"event": "gap"' "$T/hooked"
is 'metrics: gaps' 1 "$(metric gaps_total hook)"

# ---- removed endpoints, secrets ----

kill_service
sed -i '/^.deliver "run"/,$d' "$T/deliver.conf"
start_service
check 'an endpoint without a section is named' \
	await 10 grep -q "endpoint 'run' has no section" "$T/deliver.log"
is '--forget refuses an endpoint with a section' 128 \
	"$(deliver --forget hook --yes 2>/dev/null; echo $?)"
check '--forget' deliver --forget run --yes
is 'forgets' '' "$(metric delivered_total run)"
is 'no message has a secret' 0 \
	"$(cat "$T/deliver.log" "$T/list" | grep -c Secret)"
finish
