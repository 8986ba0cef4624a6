#!/bin/bash
# Proves that refd verify, locks and disown of root do their work with the rights
# of each owner, in a process that the owner cannot read, trace or hold up, and
# which has nothing of root: no terminal, descriptor or variable. A repair runs
# no hook and no git of the repository.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

with_people as_owner || finish
ALICE=64001 BOB=64002

# A closed repository with a broken ref, whose log has the value. A broken ref
# costs verify half a second.
broken_repo() { # UID NAME
	local dir=$T/of$1/$2
	mkdir -p "$T/of$1"
	chown "$1" "$T/of$1"
	as "$1" git init -q --bare "$dir"
	as "$1" git -C "$dir" config core.logAllRefUpdates true
	value=$(as "$1" git -C "$dir" commit-tree -m one \
		"$(as "$1" git -C "$dir" mktree </dev/null)")
	as "$1" git -C "$dir" update-ref refs/heads/a "$value"
	printf x | as "$1" tee "$dir/refs/heads/a" >/dev/null
	chmod 700 "$dir"
}

verify() {
	"$REFD" verify --state "$STATE" "$@" >"$T/said" 2>"$T/err"
}

# ---- a repair gives nothing of root away ----

broken_repo $ALICE a.git
a=$T/of$ALICE/a.git
cat >"$a/hooks/reference-transaction" <<-HOOK
	#!/bin/sh
	id -u >>"$T/of$ALICE/hook"
HOOK
chmod 755 "$a/hooks/reference-transaction"
chown $ALICE "$a/hooks/reference-transaction"
as $ALICE git -C "$a" config refd.fallback git
as $ALICE git -C "$a" config refd.socket "$T/nowhere"
verify --repair "$a"
is 'a repair: done' "0 $value" "$? $(as $ALICE git -C "$a" rev-parse refs/heads/a)"
check 'a repair: no hook runs' test ! -e "$T/of$ALICE/hook"
check 'a repair: history lacks it' grep -q \
	'refs/heads/a: history does not have that it was restored' "$T/err"
prints_nothing 'a repair: all files belong to the owner' \
	find "$a" ! -uid $ALICE

# ---- each owner alone ----

broken_repo $ALICE a.git
of_alice=$value
broken_repo $BOB b.git
b=$T/of$BOB/b.git
chmod 700 "$T/of$ALICE" "$T/of$BOB"
verify "$a" "$b"
is 'two owners: two findings' '1 2 repositories: 2 errors' \
	"$? $(grep -o '^2 repositories: 2 errors' "$T/said")"
if in_container; then
	skip 'two owners: no lock is left' \
		'this is a container: nobody sees who holds a lock'
else
	touch "$a/refs/heads/b.lock" "$b/refs/heads/b.lock"
	chown $ALICE "$a/refs/heads/b.lock"
	chown $BOB "$b/refs/heads/b.lock"
	"$REFD" locks --clear-dead --yes "$a" "$b" >"$T/said" 2>&1
	is 'two owners: no lock is left' 0 $?
	check 'two owners: both are named' \
		test "$(grep -c '^removed: ' "$T/said")" = 2
fi
"$REFD" disown "$a" "$b" >"$T/said" 2>&1
is 'two owners: disowned' '0 2' "$? $(grep -c '^disowned: ' "$T/said")"
"$REFD" disown "$T/missing" >"$T/said" 2>&1
is 'no directory, no work' "1 refd: can't open '$T/missing': No such file or \
directory; name the directory of a repository" "$? $(cat "$T/said")"

# ---- a link of one owner to the repository of another ----

# Alice could also exchange the link while root works.
broken_repo $BOB c.git
as $BOB touch "$T/of$BOB/c.git/refs/heads/b.lock"
as $ALICE ln -s "$T/of$BOB/c.git" "$T/of$ALICE/link"
state_of() { # DIR
	find "$1" -printf '%p %T@ %s\n' | sort | md5sum
}
led() { # COMMAND...
	local before
	before=$(state_of "$T/of$BOB/c.git")
	"$REFD" "$@" "$T/of$ALICE/link" >"$T/said" 2>&1
	check "led by a link: $1 tells" grep -q \
		'another user may .*made a link to it.*root does nothing there' \
		"$T/said"
	is "led by a link: $1 changes nothing" "$before" \
		"$(state_of "$T/of$BOB/c.git")"
}
chmod 711 "$T/of$ALICE"
led verify --state "$STATE" --repair
led locks --clear-dead --yes
led disown
chmod 700 "$T/of$ALICE"

# ---- a repository of root that others could exchange ----

mkdir "$T/open"
git init -q --bare "$T/open/a.git"
chmod 777 "$T/open"
verify "$T/open/a.git"
is 'an open directory above: refused' 128 $?
check 'an open directory above: it is named' \
	grep -q "directory above it, $T/open, .*chmod +t" "$T/err"
chmod +t "$T/open"
verify "$T/open/a.git"
is 'an open directory above: the remedy' 0 $?

# ---- what the owner sees of it ----

# Does WHAT, as the owner, with the process of the owner that root's command
# REFD_ADMIN made. Prints what was possible. Standard input has the process id
# of REFD_ADMIN, once the command has started.
cat >"$T/owner" <<'PYTHON'
import ctypes, os, signal, sys
what, parent = sys.argv[1], sys.stdin.readline().strip()

def status(pid, key):
    try:
        for line in open("/proc/%s/status" % pid):
            if line.startswith(key + ":"):
                return line.split()[1:]
    except OSError:
        pass
    return [""]

def find():
    while status(parent, "State")[0] not in ("", "Z"):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if status(pid, "PPid") == [parent] and \
                    status(pid, "Uid")[-1] == str(os.getuid()):
                return int(pid)
    sys.exit("too late")

pid = find()
if what == "look":
    print("worker", *status(pid, "Uid"), *status(pid, "Gid"),
          *status(pid, "Groups"))
    print("root", *status(parent, "Uid"))
    for name in ("environ", "mem", "fd/1"):
        try:
            open("/proc/%d/%s" % (pid, name), "rb").read(1)
            print("reads", name)
        except OSError:
            pass
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, pid, None, None) == 0:
        print("traces")
    for sig in (signal.SIGSTOP, signal.SIGKILL):
        try:
            os.kill(int(parent), sig)
            print("signals root")
        except OSError:
            pass
else:
    os.kill(pid, getattr(signal, what))
PYTHON
# Runs refd verify A B, and meanwhile the owner of A does WHAT. On a busy machine
# the work can end before the owner finds the process: then once more.
beside() { # WHAT
	local try
	for try in {1..20}; do
		beside_once "$1"
		grep -q 'too late' "$T/seen" || return 0
	done
	not_ok "$1: the owner is in time" "too late $try times"
}

beside_once() { # WHAT
	local refd owner
	# The owner starts first: the work takes half a second, and python3 can
	# take longer to start.
	rm -f "$T/pid"
	mkfifo "$T/pid"
	as $ALICE python3 "$T/owner" "$1" <"$T/pid" >"$T/seen" 2>&1 &
	owner=$!
	own "$owner"
	exec 8>"$T/pid"
	sleep 1
	"$REFD" verify --state "$STATE" "$a" "${also[@]}" "$b" >"$T/said" \
		2>"$T/err" &
	refd=$!
	own "$refd"
	await 20 pgrep -P "$refd" >/dev/null
	pgrep -P "$refd" >&8
	exec 8>&-
	wait "$owner"
	wait "$refd"
	status=$?
}

chmod 755 "$T/owner"
also=()
export PASSWORD=secret
beside look
is 'the owner: sees ids' "worker $ALICE $ALICE $ALICE $ALICE 65534 65534 65534 \
65534
root 0 0 0 0" "$(cat "$T/seen")"
is 'the owner: changes nothing' 1 "$status"
for signal in SIGKILL SIGSTOP; do
	beside $signal
	is "$signal by an owner: the command goes on" \
		'128 1 repository: 1 error' \
		"$status $(grep -o '^1 repository: 1 error' "$T/said")"
	check "$signal by an owner: says so" grep -q \
		"$a.*the work with the rights of its owner.* by a signal" "$T/err"
done

# One process works for all repositories of an owner.
broken_repo $ALICE d.git
also=("$T/of$ALICE/d.git" "$a")
beside SIGKILL
is 'SIGKILL by an owner: another process does the rest' \
	'128 3 repositories: 3 errors 1' \
	"$status $(grep -o '^3 repositories: 3 errors' "$T/said") \
$(grep -c 'was killed by a signal' "$T/err")"

# ---- Control-C ----

# shellcheck disable=SC2016 # sh expands
python3 - "$T/said" "$REFD" verify --state "$STATE" "$a" "$b" "$a" "$b" \
	"$a" "$b" <<'PYTHON'
import os, pty, sys
said, *argv = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.execv(argv[0], argv)
text = b""
is_sent = False
while True:
    try:
        more = os.read(terminal, 4096)
    except OSError:
        break
    text += more
    if b"/6)" in text and not is_sent:
        os.write(terminal, b"\x03")
        is_sent = True
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
is 'Control-C' 130 $?
check 'Control-C: says so' grep -q '^interrupted: ' "$T/said"
check 'Control-C: with the findings so far' grep -q 'ref-broken' "$T/said"
prints_no 'Control-C: not all' '^6 repositories' cat "$T/said"

# ---- history has the repair ----

with_account $ALICE
check "the owner's daemon starts" start_daemon
as $ALICE git -C "$a" config refd.socket "$SOCKET"
rm "$a/refs/heads/a"
as $ALICE "$REFD" update --git-dir "$a" refs/heads/a "$of_alice"
printf x | as $ALICE tee "$a/refs/heads/a" >/dev/null
verify --repair "$a"
is 'a repair beside the daemon: done' 0 $?
is 'a repair beside the daemon: recorded by the owner' \
	"$ALICE verify: restored from the journal's record" \
	"$(as $ALICE "$REFD" log --repo "$a" --ref refs/heads/a -n 1 --json |
		python3 -c 'import json, sys
d = json.load(sys.stdin)
print(d["uid"], d["message"].rpartition(" ")[0])')"
check 'the daemon stops' stop_daemon

# ---- all repositories of a journal in which the owner writes anything ----

name() { # PATH
	as $ALICE python3 - "$STATE/journal.db" "$1" <<-'PYTHON'
		import os, sqlite3, sys
		db = sqlite3.connect(sys.argv[1])
		db.execute("INSERT INTO repo (uuid, path, dev, ino)"
		           " VALUES (?, ?, 1, 1)", (os.urandom(16), sys.argv[2]))
		db.commit()
	PYTHON
}
git init -q --bare "$T/root.git"
printf x >"$T/root.git/refs/heads/a"
before=$(state_of "$T/of$BOB/c.git")$(state_of "$T/root.git")
printf x | as $ALICE tee "$a/refs/heads/a" >/dev/null
name "$T/of$BOB/c.git"
name "$T/root.git"
verify --all --repair
is 'all: the status' 128 $?
is 'all: that of the owner is repaired' "$of_alice" \
	"$(as $ALICE git -C "$a" rev-parse refs/heads/a)"
check 'all: those of others are counted' grep -q \
	': 2 of the repositories in the journal were not checked' "$T/err"
is 'all: those of others are not touched' "$before" \
	"$(state_of "$T/of$BOB/c.git")$(state_of "$T/root.git")"
name relative
verify --all
is 'all: a path that refd never wrote' 128 $?

finish
