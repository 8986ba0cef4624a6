#!/bin/bash
# Proves that refd-json(5) describes the output of every command with --json.
# The real commands answer about a real daemon. Each object must have exactly
# the keys and types of its table in the page, and each key of the page must
# have been seen. Also, bytes that are not UTF-8 and control characters leave
# the output valid.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

page=$ROOT/client/refd-json.5
mkdir "$T/json"

# Keeps the output of a command as $T/json/NAME. The exit status is 0 or 1.
says() { # NAME COMMAND...
	local name=$1 status=0
	shift
	"$REFD" "$@" >>"$T/json/$name" 2>"$T/err" || status=$?
	[ "$status" -le 1 ] || not_ok "$name" "$status: $(cat "$T/err")"
}

fails() { ! "$@"; }

# ---- the commands that need no daemon ----

says version version --json
printf '[daemon]\n\tslowLog = 1ms\n[root "%s"]\n\tdurability = fsync\n' \
	"$T/fsync" >"$T/config"
mkdir "$T/fsync"
says check-config check-config --json --root "$T" "$T/config"
says check-config check-config --json
"$REFD" check-config --json --root "$T" "$T/config" >/dev/full 2>"$T/err"
is 'output that is lost: the exit status' 128 $?
check 'output that is lost: the reason' \
	grep -q '^refd: cannot write to standard output: No space' "$T/err"
{
	sleep 1
	"$REFD" check-config --json --root "$T" "$T/config"
} | true
is 'a reader that went away: the exit status' 141 "${PIPESTATUS[0]}"
new_repo listed.git bare
"$REFD" enable "$T/listed.git" >"$T/enabled"
new_repo half.git bare
"$REFD" enable "$T/half.git" >"$T/enabled" 2>&1
rm "$T/half.git/hooks/proc-receive"
says enable enable --list --json

# ---- questions to a daemon ----

check 'the daemon starts' start_daemon --config "$T/config" --root "$T/fsync"
new_repo a.git bare
new_repo broken.git bare
broken=$(new_commit broken.git one)
one=$(new_commit a.git one)
two=$(new_commit a.git two "$one")
update() { says update update --json -C "$T/a.git" "$@"; }
stale() {
	"$REFD" update --json -C "$T/a.git" refs/heads/x "$one" "$one" \
		2>/dev/null >>"$T/json/update"
}
export GL_USER=$'a\xff\e[31m'
git -C "$T/a.git" config core.logAllRefUpdates true
update -m $'moved \xff' refs/heads/x "$one"
update refs/heads/x "$two" "$one"
check "a stale value" fails stale
printf 'symref-create refs/heads/sym refs/heads/x\n' |
	update --stdin
# Text of digits alone.
env -u GL_USER GIT_TRACE2_PARENT_SID=7 "$REFD" update -C "$T/a.git" \
	refs/heads/held "$two"
sleep 300 3>"$T/a.git/refs/heads/held.lock" &
own $!
holder=$!
"$REFD" update -C "$T/a.git" --timeout 60000 refs/heads/held "$one" \
	>/dev/null 2>&1 &
waiter=$!
own $waiter
# An update that is being tried again is not in the list.
somebody_waits() { says locks locks --json && [ -s "$T/json/locks" ]; }
check "a waiting update is listed" await 60 somebody_waits
if [ "$(readlink /proc/self/ns/pid)" = 'pid:[4026531836]' ]; then
	echo 'pid 1' >"$T/a.git/refs/heads/held~pid.lock"
	says locks locks --clear-dead --wait 0 --json "$T/a.git"
	rm "$T/a.git/refs/heads/held~pid.lock"
else
	# The command refuses.
	dead_locks=$(sed -n '/^.Ss refd locks --clear-dead/,/^.El/s/^.It Va \([^ ]*\).*/refd locks --clear-dead:\1/p' \
		"$page")
fi
kill $holder
reap $holder
rm "$T/a.git/refs/heads/held.lock"
check 'the waiting update' wait $waiter
reap $waiter
# The second look finds a change.
for ref in first second; do
	"$REFD" look "$T/a.git" >/dev/null
	git -C "$T/a.git" update-ref "refs/heads/$ref" "$one"
done
"$REFD" look "$T/a.git" >/dev/null
says log log --json
says watch watch --json --since 0 -n 1
says watch watch --json -n 1 --since \
	"00000000000000000000000000000000:1"
txn=$("$REFD" log --json -n 1 | python3 -c \
	'import json, sys; print(json.load(sys.stdin)["txn"])')
says query query --json "$txn"
says query query --json 00000000000000000000000000000001
says ping ping --json
# A setting that waits for a restart is a warning in the daemon's log.
printf '[journal]\n\tretention = 1h\n' >>"$T/config"
kill -HUP "$DAEMON"
warned() { grep -q 'event=setting-waits' "$LOG"; }
check 'the daemon warns' await 10 warned
echo malformed >"$T/broken.git/packed-refs"
check "a malformed packed-refs" fails "$REFD" update -C "$T/broken.git" \
	refs/heads/x "$broken" 2>"$T/err"
says status status --json
# A daemon of the machine may be off.
"$REFD" status --all --json >"$T/json/status --all" 2>"$T/err"
says role role --json
says pause pause --json
says resume resume --json
says checkpoint checkpoint --json
says pack pack --json "$T/a.git"
says stats stats --json
update refs/heads/busy "$one" # the clients of the last seconds
says top top --json
says slowlog slowlog --json
first=$("$REFD" log --reverse --json -n 1 | python3 -c \
	'import json, sys; print(json.load(sys.stdin)["lsn"])')
git -C "$T/a.git" update-ref refs/heads/x "$one"
says restore restore --json --repo "$T/a.git" --at "@$(date +%s)" -n
says restore restore --json --repo "$T/a.git" --at "$first" --force
printf 'x' >"$T/a.git/refs/heads/broken"
says verify verify --json "$T/a.git"
says doctor doctor --json "$T/a.git"

# A dead letter.
printf '[deliver "false"]\n\tcommand = false\n\ttries = 1\n' >"$T/deliver.conf"
deliver() { says deliver deliver --state "$T/deliver" "$@"; }
"$REFD" deliver --config "$T/deliver.conf" --state "$T/deliver" \
	2>"$T/deliver.log" &
own $!
service=$!
dies() {
	update refs/heads/dead"$((++dead))" "$one"
	sleep 0.2
	deliver --list --json && [ -s "$T/json/deliver" ]
}
dead=0
await 10 dies
kill $service
reap $service

says drain drain --json
says resume resume --json

# ---- recovery ----

new_repo away.git bare
"$REFD" update -C "$T/away.git" refs/heads/y "$(new_commit away.git there)"
kill_daemon
mv "$T/away.git" "$T/gone.git"
says recover recover --json --state "$STATE"
says recover recover --json --discard --state "$STATE"
mv "$T/gone.git" "$T/away.git"
says disown disown --json "$T/a.git" "$T/away.git"

# ---- the page ----

# Not seen here: reports of hanging stages, of recovery that fails or takes
# updates back, and of recovery in progress; and nodes of a group.
rare='refd ping:done
refd ping:total
refd status --all:unit
refd status:progress
refd status:group_epoch
refd status:group_lsn
refd status:group_lag_ms
refd status:group_leader
refd role:leader
refd role:lsn
refd role:lag_ms
refd status:paused_s
refd status:stall[]
refd status:stall[].stage
refd status:stall[].seconds
refd status:stall[].stuck
refd status:stall[].threads
refd status:stall[].text
refd log, refd watch:voids
refd deliver: a gap of a repository:position
refd deliver: a gap of a repository:gap
refd deliver: a gap of a repository:repo
refd recover:error
refd recover:repositories[].findings[].evidence
refd restore:updates[].git'
rare+=${dead_locks:+$'\n'$dead_locks}

"$REFD" help | sed -n 's/^    \([a-z-]*\) .*/\1/p' | while read -r command; do
	"$REFD" "$command" -h | grep -q -e ' --json ' && echo "$command"
done >"$T/commands"

drift() {
	python3 - "$page" "$T/json" "$T/commands" "$rare" <<'PYTHON'
import json, os, re, sys

page, said, commands, rare = sys.argv[1:]
TYPES = {"string": str, "integer": int, "boolean": bool, "object": dict,
         "number": (int, float), "any": object}
bad, seen, tables, names = [], set(), {}, {}


class Key:
    def __init__(self, path, kind):
        self.path, self.optional = path, kind.endswith("?")
        self.kind, self.children = kind.rstrip("?"), {}
        self.is_array = path.endswith("[]")


for line in open(page):
    if line.startswith(".Ss "):
        name = line[4:].strip()
        tables[name] = Key(name, "object")
    row = re.match(r'\.It Va (\S+) Ta (Qq )?(\S+) Ta', line)
    if row:
        path, is_table, kind = row.groups()
        *above, last = path.replace("[]", "").split(".")
        key = tables[name]
        for part in above:
            key = key.children[part]
        key.children[last] = Key(path, "=" + kind if is_table else kind)


def check(value, key, table):
    if key.kind.startswith("="):
        table = key.kind[1:]
        key = tables[table]
    if not isinstance(value, TYPES[key.kind]) or \
            isinstance(value, bool) != (key.kind == "boolean"):
        bad.append(f"{table}: {key.path} is {value!r}, not {key.kind}")
    if not isinstance(value, dict):
        return
    for name, below in value.items():
        child = key.children.get(name, key.children.get("*"))
        where = f"{table}: {key.path}: {name}"
        if child is None and name.endswith("_hex"):
            text = value.get(name[:-4], "")
            if "\ufffd" not in text or bytes.fromhex(below).decode(
                    "utf-8", "replace").count("\ufffd") == 0:
                bad.append(where + " stands beside UTF-8")
            continue
        if child is None:
            bad.append(where + " is not in the page")
            continue
        seen.add((table, child.path))
        if isinstance(below, list) != child.is_array:
            bad.append(where + " is an array, or should be")
        for one in below if isinstance(below, list) else [below]:
            check(one, child, table)
    for name, child in key.children.items():
        if name not in value and name != "*" and not child.optional:
            bad.append(f"{table}: {key.path}: {name} is missing")


# A file has objects of the table of its command, or of a further table, which
# is known by a key.
further = {"gap": "refd log, refd watch: a gap",
           "outcome": "refd update, refd query",
           "moved_aside": "refd recover --discard",
           "fate": "refd locks --clear-dead"}
for name in sorted(os.listdir(said)):
    own = "refd enable --list" if name == "enable" else next(
        (t for t in tables if f"refd {name}" in t.split(", ")), None)
    text = open(os.path.join(said, name), encoding="utf-8").read()
    if own is None or not text:
        bad.append(f"refd {name} is not in the page, or prints nothing")
        continue
    for line in text.splitlines():
        value = json.loads(line)
        table = next((t for k, t in further.items() if k in value), own)
        check(value, tables[table], table)

for table, top in tables.items():
    stack = list(top.children.values())
    while stack:
        key = stack.pop()
        stack += key.children.values()
        if (table, key.path) not in seen and \
                f"{table}:{key.path}" not in rare.split("\n"):
            bad.append(f"{table}: {key.path} is in the page, and not printed")
for command in open(commands).read().split():
    if not os.path.exists(os.path.join(said, command)):
        bad.append(f"refd {command} --json is not tested here")
print("\n".join(bad), end="")
PYTHON
}

is 'the output is as in the page' '' "$(drift 2>&1)"
sed -i 's/"key":/"kee":/' "$T/json/check-config"
check 'a renamed key is noticed' grep -q 'kee is not in the page' <(drift)
finish
