#!/bin/bash
# Proves the commands of an administrator. The exit status of refd status tells
# whether the daemon serves. refd stats counts events in text, JSON and for
# Prometheus, also over HTTP on a Unix socket. The slow log shows the parts of a
# transaction's time, under its git trace2 id. refd locks names the process that
# holds a lock. refd top shows the busiest. pause makes all clients wait, drain
# finishes the present work, resume goes on. Only users of the administration
# socket may do this, except reading the numbers.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

check_fails() { # NAME COMMAND...
	local name=$1
	shift
	check "$name" fails "$@"
}

fails() { ! "$@"; }

json() { # EXPRESSION: of the object D on standard input
	python3 -c "import json, sys; D = json.load(sys.stdin); print($1)"
}

printf '[daemon]\n\tslowLog = 100ms\n[metrics]\n\tsocket = %s\n' \
	"$T/metrics.sock" >"$T/config"
# At first no socket exists, and the only known path is the one for all users.
# The user's own socket appears while ping waits.
(
	unset REFD_SOCKET
	exec "$REFD" ping --wait 120 --json
) >"$T/ping" 2>&1 &
waiter=$!
own $waiter
sleep 0.5
SOCKET=$XDG_RUNTIME_DIR/refd.sock start_daemon
check 'ping finds a socket that appears while it waits' wait $waiter
reap $waiter
is 'which is that of this daemon' "$DAEMON serving" \
	"$(json 'D["pid"], D["state"]' <"$T/ping" | tr -d "(),'")"
check 'the daemon stops' stop_daemon

check 'the daemon starts' start_daemon --config "$T/config"
new_repo a.git bare
new_repo b.git bare
one=$(new_commit a.git one)
two=$(new_commit a.git two)
update() { "$REFD" update -C "$T/a.git" "$@"; }

# ---- numbers ----

check 'a ref is made' update refs/heads/x "$one"
check_fails 'one that is stale' update refs/heads/x "$two" "$two"
# The doctor asks about the repository, and so does enable.
"$REFD" enable "$T/a.git" >/dev/null 2>&1
"$REFD" doctor "$T/a.git" >/dev/null 2>&1
"$REFD" disable "$T/a.git" >/dev/null
is 'transactions, without questions' 2 "$(stat_of transactions)"
is 'stale ones' 1 "$(stat_of refs_stale)"
is 'batches that took all there was' "$(stat_of batches)" \
	"$(stat_of batch_closed_all)"
is 'each flush is timed' "$(stat_of flush_us_count)" \
	"$("$REFD" stats --json | json 'D["flush_us_count"]')"
"$REFD" status >"$T/status"
is 'status is that of one that serves' 0 $?
check 'which it says in a sentence' grep -Eqx "refd serves $T; up [0-9]+ s; \
[0-9.]+ transactions/s; all updates durable\." "$T/status"
check 'with the load' grep -Eqx 'Last [0-9]+ s: [0-9.]+ refs/s; a flush takes .*' \
	"$T/status"
prints_no 'a file has no colour' $'\e' "$REFD" status
check 'unless asked for' grep -q $'^\e\\[32mrefd serves' \
	<<<"$("$REFD" status --color=always)"
is 'state' serving "$("$REFD" status --json | json 'D["state"]')"
page() { # the exit status, and the first and the last line of the page
	"$REFD" status --html >"$T/page.html" 2>"$T/err"
	echo "$? $(head -n 1 "$T/page.html") $(tail -n 1 "$T/page.html")" \
		"$(cat "$T/err")"
}
is 'a whole page' '0 <!DOCTYPE html> </html> ' "$(page)"
check 'its state' grep -q '^<p class="ok">refd serves /' "$T/page.html"
check 'its user' grep -q "<td class=\"name\">$(id -un)[^<]*<meter" \
	"$T/page.html"
check 'its times' grep -q '<tr><td>flushes, since the start<svg.*<rect' \
	"$T/page.html"
check 'its slow work' grep -q \
	'^<p>Since the start: .* longer than the limit, now 100.0 ms\.' "$T/page.html"
mv "$SOCKET.admin" "$T/aside"
is 'a page without the socket for administration' \
	'0 <!DOCTYPE html> </html> ' "$(page)"
check 'has what all may know' grep -q '<tr><td>flushes, since the start<svg' \
	"$T/page.html"
check 'and a reason for the rest' grep -qx \
	'<p>Not shown: this is asked on the socket for administration</p>' \
	"$T/page.html"
mv "$T/aside" "$SOCKET.admin"

"$REFD" stats --prometheus >"$T/text"
check 'for Prometheus' grep -qx 'refd_refs_total{status="stale"} 1' "$T/text"
check 'a histogram ends with all' \
	grep -qx 'refd_transaction_seconds_bucket{le="+Inf"} 2' "$T/text"
scrape() { curl -sf --unix-socket "$T/metrics.sock" "http://refd$1"; }
is 'scraped: the same' "$(grep refd_transactions_committed "$T/text")" \
	"$(scrape /metrics | grep refd_transactions_committed)"
check_fails 'nothing else is there' scrape /
is 'only looked at' 405 "$(curl -s -o "$T/out" -w '%{http_code}' -X POST \
	--unix-socket "$T/metrics.sock" http://refd/metrics)"
is 'its head' '200 0' "$(curl -sI -o "$T/head" \
	-w '%{http_code} %{size_download}' --unix-socket "$T/metrics.sock" \
	http://refd/metrics)"
# Silent connections take few descriptors from writers of refs, and silence
# nobody.
is 'many who say nothing: the others are answered, few are kept' \
	'60 of 60 answered, few kept' "$(python3 - <<-END
	import os, socket
	def count(): return len(os.listdir("/proc/$DAEMON/fd"))
	def join():
	    s = socket.socket(socket.AF_UNIX)
	    s.settimeout(60)
	    s.connect("$T/metrics.sock")
	    return s
	before, most, answered, silent = count(), 0, 0, []
	for check in range(60):
	    silent += [join() for i in range(10)]
	    with join() as s:
	        s.sendall(b"GET /leader HTTP/1.0\r\n\r\n")
	        answered += s.recv(100).startswith(b"HTTP/1.1 200 ")
	    most = max(most, count())
	print(f"{answered} of 60 answered,",
	      "few kept" if most < before + 160 else most)
	END
)"
# An alert with a misspelt name never fires.
unknown=$(grep -oh 'refd_[a-z_]*[a-z]' "$ROOT"/daemon/metrics/*.{yml,json} | sort -u |
	grep -vxFf <(sed -n 's/^\(refd_[a-z_]*\)[ {].*/\1/p' "$T/text"))
is 'rules and dashboard name what there is' '' "$unknown"

# ---- broken repositories ----

# Status names each with its cause, and blames no disk.
new_repo c.git bare
new_repo d.git bare
first=$(new_commit c.git one)
echo malformed >"$T/c.git/packed-refs"
broken=$(new_commit d.git one)
git -C "$T/d.git" pack-objects -q --revs objects/pack/pack <<<"$broken" >"$T/out"
git -C "$T/d.git" prune-packed -q
chmod +w "$T"/d.git/objects/pack/*.idx
truncate -s -1 "$T"/d.git/objects/pack/*.idx
check_fails 'a malformed packed-refs' "$REFD" update -C "$T/c.git" \
	refs/heads/x "$first"
check_fails 'a truncated index' "$REFD" update -C "$T/d.git" refs/heads/x "$broken"
"$REFD" status >"$T/status"
is 'status still is that of one that serves' 0 $?
check 'status counts the refs' grep -q \
	'^refd serves, but 2 refs failed .* a file is missing, damaged or' "$T/status"
check 'status names the first repository and its file' grep -qx \
	"    $T/c.git: refs/heads/x: packed-refs has a malformed line" "$T/status"
check 'status names the second repository and its file' grep -q \
	"^    $T/d.git: cannot .* pack/pack-[0-9a-f]*\.idx: damaged$" "$T/status"
is 'errors of disks' 0 "$("$REFD" status --json | json 'D["recent_disk_errors"]')"
check 'status -v names them, too' grep -q "^failed: $T/c.git: refs/heads/x: " \
	<<<"$("$REFD" status -v)"

# ---- the log ----

# refd-daemon(8) lists exactly the events.
cat "$ROOT"/daemon/*.c "$ROOT"/daemon/{server,service,metrics}/*.c | tr -d '\n\t' |
	grep -oE '(log_(event|limited|flush|admin)\([^"]*|LOG_LEVEL_[A-Z]+), *"[a-z-]+"' |
	sed 's/.*"\(.*\)"/\1/' | sort -u >"$T/events"
sed -n '/^\.Ss The log/,/^\.Ss/s/^\.It Cm //p' "$ROOT/daemon/refd-daemon.8" |
	tr -d ' ' | tr , '\n' | sort >"$T/events.manual"
is 'events that are logged, and those of the manual' '' \
	"$(diff "$T/events" "$T/events.manual")"
is 'each line of the log is one of pairs' '' "$(python3 - "$LOG" <<-'END'
	import re, sys
	line = re.compile(r'\S+Z (info|warning|error):( [a-z_]+=("([^"\\\\]|\\\\.)*"|[^" ]+))+')
	for one in open(sys.argv[1]):
	    if not line.fullmatch(one.rstrip("\n")):
	        print(one)
	END
)"

# ---- holders of locks, and slow work ----

: >"$T/a.git/refs/heads/x.lock"
sleep 300 3<"$T/a.git/refs/heads/x.lock" &
holder=$!
own $holder
git -C "$T/a.git" config core.filesRefLockTimeout 300000
GIT_TRACE2_PARENT_SID=$'sid\e[31m-7' "$REFD" update -C "$T/a.git" \
	refs/heads/x "$two" &
waiter=$!
own $waiter
somebody_waits() { "$REFD" locks >"$T/locks" && [ -s "$T/locks" ]; }
await 10 somebody_waits
is 'headings' 'AGE WAITING LONGEST LOCK' "$(sed -n 1p "$T/locks" | xargs)"
is 'the lock is named, below its heading' "$T/a.git/refs/heads/x.lock" \
	"$(sed -n 2p "$T/locks" | cut -c 30-)"
is 'with the number of waiting transactions' 1 \
	"$(sed -n 2p "$T/locks" | cut -c 11-17 | tr -d ' ')"
check 'and who has it open' grep -q "open in process $holder (sleep 300" \
	"$T/locks"
check 'and who waits' grep -q "process $waiter (" "$T/locks"
is 'as JSON' "$holder" "$("$REFD" locks --json | json 'D["pid"]')"
sleep 0.2
kill "$holder"
reap "$holder"
check 'the lock without an owner' sh -c \
	"'$REFD' locks | grep -q 'may be stale'"
rm "$T/a.git/refs/heads/x.lock"
check 'is waited for' wait "$waiter"
reap "$waiter"
"$REFD" slowlog --json >"$T/slow"
is 'it was slow' "$T/a.git" "$(json 'D["slow"][0]["repo"]' <"$T/slow")"
check 'most of it was waiting' json >/dev/null \
	'D["slow"][0]["queue_us"] > 100000 or sys.exit(1)' <"$T/slow"
check 'its parts are no more than all of it' json 'sum(D["slow"][0][k]
	for k in D["slow"][0] if k.endswith("_us") and k != "total_us")
	<= D["slow"][0]["total_us"] or sys.exit(1)' <"$T/slow"
is 'under its id' $'sid\e[31m-7' "$(json 'D["slow"][0]["sid"]' <"$T/slow")"
"$REFD" slowlog >"$T/slow.text"
is 'its columns' \
	'WHEN                  TIME      SLOWEST STAGE     RESULT       REFS  USER' \
	"$(head -1 "$T/slow.text")"
check 'its time, slowest stage and user' grep -Eqx \
	"20[0-9T:-]{17}Z  [0-9.]+ m?s +queue [0-9.]+ m?s +committed +1  $(id -un)" \
	"$T/slow.text"
check 'and ref' grep -qx "    $T/a.git refs/heads/x" "$T/slow.text"
check_fails 'no escape on the screen' sh -c \
	"'$REFD' slowlog | LC_ALL=C grep -q '$(printf '\033')'"
check 'the log has it, quoted' \
	grep -qF 'ref="refs/heads/x" sid="sid\x1b[31m-7"' "$LOG"
check 'history has it' sh -c \
	"'$REFD' log --repo '$T/a.git' --json | grep -qF 'GIT_TRACE2_PARENT_SID'"

# ---- top ----

# Only the last seconds count, and a busy machine may take longer.
see_top() {
	update refs/heads/x "$two"
	"$REFD" update -C "$T/b.git" refs/heads/none "$one" 2>/dev/null
	"$REFD" top --once >"$T/top"
	grep -q "^$T/a.git " "$T/top" && grep -q "^$T/b.git " "$T/top"
}
await 10 see_top
check 'top: the state' grep -q '^refd serving, up ' "$T/top"
check 'top: the busiest repository' grep -Eq "^$T/a.git +[0-9.]+ +[0-9.]+$" \
	"$T/top"
check 'top: the other' grep -q "^$T/b.git " "$T/top"
check 'top: the client' grep -q "^$(id -un) " "$T/top"

# ---- pause, drain, resume ----

one_waits() { [ "$(stat_of waiting)" -gt 0 ]; }
is 'paused' "{'paused': 'yes', 'waiting': 0, 'in_store': 0}" \
	"$("$REFD" pause --json | json D)"
"$REFD" status >"$T/status"
is 'status is not that of one that serves' 75 $?
check 'and says so' grep -Eqx \
	'refd has been paused for [0-9]+ s; 0 transactions wait\.' "$T/status"
check 'and the remedy' grep -q "'refd resume' continues" "$T/status"
check 'and all values' grep -qx 'paused: yes' <<<"$("$REFD" status -v)"
is 'a page of a paused daemon' '75 <!DOCTYPE html> </html> ' "$(page)"
check 'has the remedy' grep -q 'below">&#39;refd resume&#39; continues' \
	"$T/page.html"
is 'the metric of the pause' 1 "$(stat_of paused)"
update --timeout 3000 refs/heads/x "$one" 2>"$T/err"
is 'whose time passes' 75 $?
check 'is told' grep -q 'paused' "$T/err"
update refs/heads/x "$one" &
waiter=$!
own $waiter
await 10 one_waits
is 'one waits' 1 "$(stat_of waiting)"
"$REFD" enable "$T/b.git" >/dev/null
git -C "$T/a.git" push "$T/b.git" "$one:refs/heads/pushed" >"$T/push" 2>&1 &
pusher=$!
own $pusher
says_why() {
	grep -q 'remote: refd: no answer yet: the daemon is paused' "$T/push"
}
check 'a pusher is told why there is no answer' await 20 says_why
check_fails 'drain waits for that' "$REFD" drain --timeout 1
check 'resumed' "$REFD" resume
is 'the metric after it' 0 "$(stat_of paused)"
check 'who waited is served' wait "$waiter"
reap "$waiter"
check 'and so is the pusher' wait "$pusher"
reap "$pusher"
is 'the ref' "$one" "$(ref_of a.git refs/heads/x)"
is 'drained' drained "$("$REFD" drain)"
is 'drained, as JSON' "{'drained': 'yes'}" "$("$REFD" drain --json | json D)"
check 'status after it' grep -q '^refd is draining and accepts nothing new; ' \
	<<<"$("$REFD" status)"
update --timeout 3000 refs/heads/x "$two" 2>/dev/null
is 'nothing new is taken' 75 $?
causes() { # CAUSE: has it been counted?
	[ "$(stat_of "busy_$1")" -gt 0 ] && "$REFD" stats --prometheus |
		grep -q "^refd_busy_total{cause=\"$1\"} [1-9]"
}
check 'paused is counted as a cause of busy' causes paused
is 'resumed again' no "$("$REFD" resume --json | json 'D["paused"]')"
is 'checkpoint, as JSON' "{'lsn': $("$REFD" status --json |
	json 'D["last_lsn"]')}" "$("$REFD" checkpoint --json | json D)"
is 'query, as JSON' "{'txn': '$(printf %032d 1)', 'outcome': 'expired'}" \
	"$("$REFD" query --json "$(printf %032d 1)" | json D)"
check 'and serves' update refs/heads/x "$two"

# The drain ends with its daemon, and the next daemon serves.
is_draining() { grep -q '^refd is draining' <<<"$("$REFD" status)"; }
"$REFD" pause >/dev/null
update refs/heads/x "$one" &
waiter=$!
own $waiter
await 10 one_waits
"$REFD" drain >"$T/drained" 2>&1 &
drainer=$!
own $drainer
await 10 is_draining
kill_daemon
start_daemon
wait $drainer
is 'a drain whose daemon ended: the status' 128 $?
reap $drainer
check 'and the reason' grep -q 'ended before it was drained' "$T/drained"
check 'the next daemon serves' "$REFD" status
check 'and who waited is served' wait $waiter
reap $waiter

# ---- a daemon that hangs ----

# Ten seconds pass once, and not for each of the two sockets.
kill -STOP "$DAEMON"
begin=$SECONDS
is 'a page of a daemon that hangs' '75 <!DOCTYPE html> </html> ' "$(page)"
check 'after one attempt' test $((SECONDS - begin)) -lt 19
kill -CONT "$DAEMON"
check 'with the reason' grep -q ': no greeting: ' "$T/page.html"

# ---- a token ----

token=$(update --json refs/heads/x "$two" | json 'D["token"]')
check 'wait for a token' "$REFD" wait "$token"
is 'the log of tokens' "${token%:*}" "$("$REFD" status --json |
	json 'D["token_log"]')"
"$REFD" wait --timeout 1 "${token}0" 2>"$T/err"
is 'wait for a later LSN: the time is over' 1 $?
check 'and why' grep -q 'does not have LSN' "$T/err"
"$REFD" wait "$(printf %032d 1):1" 2>"$T/err"
is 'wait for a token of another log' 128 $?
check 'and why there' grep -q 'the token is of the log 0' "$T/err"
"$REFD" wait "${token#?}" 2>"$T/err"
is 'what is no token' 128 $?
check 'paused, to be stopped' "$REFD" pause
update refs/heads/x "$one" &
waiter=$!
own $waiter
await 10 one_waits

# ---- owners and rights ----

is 'the socket is its owner'"'"'s' 600 "$(stat -c %a "$SOCKET.admin")"
is 'asked on the other one' 'refused denied' "$(printf '%s' \
	'000bpause 10000' | "$BUILD/tests/helper/rawsock" "$SOCKET" --answers 1 2>/dev/null |
	sed -n 's/.*status denied.*/refused denied/p')"
check 'the daemon stops, and who waits is served' stop_daemon
wait "$waiter"
is 'the ref at last' "$one" "$(ref_of a.git refs/heads/x)"
check_fails 'the sockets are gone' ls "$SOCKET.admin" "$T/metrics.sock"
is 'a page without a daemon' '75 <!DOCTYPE html> </html> ' "$(page)"
check 'says so' grep -q '^<p class="error">refd gives no state\.' "$T/page.html"
check 'and what starts it' grep -qF "refd daemon --socket $SOCKET" "$T/page.html"
"$REFD" status --html --all 2>"$T/err"
is 'a page of all daemons' 129 $?

# ---- sockets of the service manager's ----

# Becomes a daemon with these sockets.
passing() { # NAME=PATH...
	exec python3 - "$REFD" daemon --socket "$SOCKET" --state "$STATE" \
		--root "$SERVED" -- "$@" <<'PY' >>"$LOG" 2>&1
import os, socket, sys
cut = sys.argv.index("--")
names, kept = [], []
for i, arg in enumerate(sys.argv[cut + 1:]):
    name, path = arg.split("=")
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen()
    os.chmod(path, 0o640)
    kept.append(s)
    os.dup2(s.fileno(), 20 + i)
    names.append(name)
for i in range(len(names)):
    os.dup2(20 + i, 3 + i)
os.closerange(3 + len(names), 64)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(names)),
                  LISTEN_FDNAMES=":".join(names))
os.execv(sys.argv[1], sys.argv[1:cut])
PY
}

passing admin="$SOCKET.admin" metrics="$T/other.sock" &
DAEMON=$!
own $DAEMON
check 'with passed sockets it serves' "$REFD" ping --wait 120
is 'whose rights are left' 640 "$(stat -c %a "$SOCKET.admin")"
check 'that of administration' "$REFD" pause
check 'and back' "$REFD" resume
check 'that of numbers' curl -sf --unix-socket "$T/other.sock" -o "$T/text" \
	http://refd/metrics
check 'which are there' grep -qx 'refd_paused 0' "$T/text"
check 'it stops' stop_daemon
check 'and leaves them' test -S "$SOCKET.admin"
finish
