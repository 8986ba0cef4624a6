#!/bin/bash
# Proves that the recipes of docs/operations.md drive a webhook, a mirror and a
# cache, through kills of all. In weak modes, too, the feed reports a change as
# soon as the change is durable. A tenant gets the changes of his own
# repositories only, as long as he may read them.

# shellcheck disable=SC2317 # the functions that await calls
# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

up() { # REPO REF NEW
	"$REFD" update --git-dir "$T/$1.git" --create-reflog "$2" "$3"
}

start_daemon
new_repo a.git bare
new_repo b.git bare
cd "$T" || exit 1
one=$(new_commit a.git 1)
two=$(new_commit a.git 2 "$one")
other=$(new_commit b.git 1)
up a refs/heads/main "$one"

# ---- the recipes of docs/operations.md ----

# Prints the line of the recipe that delivers WORD, with paths of this run.
deliver() { # WORD
	sed -n '/^## History/,/^## Backup/p' "$ROOT/docs/operations.md" |
		grep -m1 "^deliver() .*# .*$1" | sed "s,/srv/git/a.git,$T/a.git,g
		s,/srv/mirror.git,$T/mirror.git,g
		s,/var/cache/web,$T/cache,g
		s,https://ci.example.org/hook,http://127.0.0.1:$port/,g"
}

recipe() { # WORD
	mkdir -p "$T/$1"
	# Restarted, as a supervisor would do.
	{
		printf 'cd %q\nwhile sleep 0.1; do\n' "$T/$1"
		deliver "$1"
		sed -n '/^## History/,/^## Backup/p' "$ROOT/docs/operations.md" |
			sed -n '/^at=/,/^done/p' | sed "s,/srv/git/a.git,$T/a.git,"
		echo 'done'
	} >"$T/$1.sh"
	# All processes of the recipe can be ended at once.
	PATH=$BUILD/bin:$PATH setsid bash "$T/$1.sh" 2>>"$T/$1.err" &
	own $!
	feeds+=($!)
}

end_recipes() {
	local pid
	for pid in "${feeds[@]}"; do
		kill -KILL -- "-$pid" 2>/dev/null
		reap "$pid"
	done
	feeds=()
}

feeds=()
hooked() { grep -c "\"ref\":\"refs/heads/$1\"" "$T/hooked" 2>/dev/null; }
mirrored() {
	[ "$(git -C a.git for-each-ref)" = "$(git -C mirror.git for-each-ref)" ]
}
watched() { "$REFD" status -v | grep -qx "watching: $1"; }
both_hooked() { [ "$(hooked n1)" -ge 1 ] && [ "$(hooked n4)" -ge 1 ]; }
is_logged() { "$REFD" log --ref "refs/heads/$1" | grep -q .; }
if command -v jq >/dev/null && command -v curl >/dev/null; then
	cat >hook.py <<'PYTHON'
import http.server, sys
class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        text = self.rfile.read(int(self.headers['Content-Length']))
        with open('hooked', 'ab') as f:
            f.write(text + b'\n')
        self.send_response(204)
        self.end_headers()
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Hook)
open('port', 'w').write(str(server.server_port))
server.serve_forever()
PYTHON
	python3 hook.py &
	own $!
	await 10 test -s port
	port=$(cat port)
	git init -q --bare mirror.git
	mkdir -p cache/a.git
	touch cache/a.git/page
	for word in webhook mirror cache; do recipe $word; done
	await 10 watched 3
	up a refs/heads/main "$two"
	up a refs/heads/gone "$one"
	check 'a webhook is called' await 10 test -s hooked
	check 'a mirror follows' await 10 mirrored
	check 'a cache is emptied' await 10 test ! -e cache/a.git/page
	end_recipes
	"$REFD" update --git-dir a.git -d refs/heads/gone
	for n in 1 2 3; do up a refs/heads/n$n "$one"; done
	kill_daemon
	start_daemon
	for word in webhook mirror cache; do recipe $word; done
	kill_daemon
	start_daemon
	up a refs/heads/n4 "$two"
	check 'a webhook is told what was missed' \
		await 10 both_hooked
	is 'of that repository alone' 0 "$(grep -vc '/a.git"' hooked)"
	check 'a mirror, too, and what was deleted' await 10 mirrored
	end_recipes
else
	skip 'as docs/operations.md has it' 'no jq or no curl'
fi

# ---- weak modes ----

for mode in none periodic; do
	kill_daemon
	start_daemon --durability $mode
	"$REFD" watch --json >"told.$mode" &
	watch=$!
	own $watch
	check "mode $mode: it is watched" await 5 watched 1
	up b "refs/heads/$mode" "$other"
	check "mode $mode: it is told soon" \
		await 4 grep -q "refs/heads/$mode" "told.$mode"
	up b "refs/heads/$mode-2" "$other"
	check "mode $mode: and logged" await 4 is_logged $mode-2
	# The watcher would reconnect to the next daemon and change the count.
	kill $watch
	reap $watch
done
stop_daemon

# ---- tenants ----

with_people tenants || finish
ALICE=64001 BOB=64002
with_account 64000
mkdir "$T/bin"
cp "$REFD" "$T/bin/refd"
printf '[daemon]\n\tallowUser = %s\n\tallowUser = %s\n' $ALICE $BOB >config
start_daemon --config "$T/config" --state "$T/state.account"
for uid in $ALICE $BOB; do
	repo_for "$uid" r.git >"$T/commit.$uid"
done
chmod 770 "$T/of$ALICE" "$T/of$BOB"
tell() { # UID REF
	as "$1" "$T/bin/refd" update --git-dir "$T/of$1/r.git" \
		"refs/heads/$2" "$(cat "$T/commit.$1")"
}
tell $BOB before
tell $ALICE before
hear() { # UID NAME COMMAND...
	local uid=$1 out=$T/$2
	shift 2
	setpriv --reuid "$uid" --regid "$uid" --clear-groups env \
		HOME="$T/of$uid" "$T/bin/refd" "$@" >"$out" &
	own $!
}
hear $ALICE hers.watch watch --since 0 --json
hear $ALICE hers.named watch --repo "$T/of$BOB/r.git" --since 0 --json
hear $ALICE hers.refs watch --since 0 --ref 'refs/heads/*'
hear $BOB his.watch watch --since 0 --json
tell $BOB secret
tell $ALICE open
check 'she hears of hers' await 5 grep -q refs/heads/open hers.watch
check 'by a pattern, too' await 5 grep -q refs/heads/open hers.refs
check 'he of his' await 5 grep -q refs/heads/secret his.watch
is 'she of nothing of his' 0 \
	"$(cat hers.* | grep -cE "of$BOB|secret")"
is 'he of nothing of hers' 0 "$(grep -c "of$ALICE" his.watch)"
prints_no 'nor by log' "of$BOB" as $ALICE "$T/bin/refd" log
prints_nothing 'nor where she names it' \
	as $ALICE "$T/bin/refd" log --repo "$T/of$BOB/r.git"
is 'nor by the id of his transaction' '' "$(as $ALICE "$T/bin/refd" log \
	--txid "$("$REFD" log --ref refs/heads/secret --json |
		sed 's/.*"txn":"\([0-9a-f]*\)".*/\1/')")"
# For a while she may.
chmod 775 "$T/of$BOB"
tell $BOB shared
check 'what she may read she hears of' \
	await 5 grep -q refs/heads/shared hers.watch
chmod 770 "$T/of$BOB"
tell $BOB hidden
tell $ALICE after
check 'hers goes on' await 5 grep -q refs/heads/after hers.watch
is 'what was taken from her is told no more' 0 \
	"$(cat hers.* | grep -c hidden)"
finish
