#!/bin/bash
# Proves that the packed-refs of a repository stops no user of another
# repository (finding F6). One packed-refs is sparse and of 2 GiB, with and
# without a header; another is large and rewritten all the time. Meanwhile all
# updates of another repository succeed in time, and the daemon's memory does
# not grow.
# Slow: large packed-refs are rewritten all the time.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"

SORTED='# pack-refs with: peeled fully-peeled sorted '

peak_kb() {
	awk '/^VmHWM/ { print $2 }' "/proc/$DAEMON/status"
}

# Prints the size of FILE and its space on disk.
size_of() { # FILE
	stat -c '%s %b' "$1"
}

sparse() { # HEADER
	rm -f "$T/evil.git/packed-refs"
	printf '%s' "$1" >"$T/evil.git/packed-refs"
	truncate -s $((2 * 1024 * 1024 * 1024 - 1)) "$T/evil.git/packed-refs"
	echo >>"$T/evil.git/packed-refs"
}

storm() { # REPO OID OPTION...
	local repo=$1 oid=$2
	shift 2
	"$BUILD/tests/helper/storm" --socket "$SOCKET" --repo "$T/$repo" \
		--oid "$oid" "$@"
}

# The innocent user: the number of successes, and the number of other or late
# answers.
innocent() { # TRY
	storm good.git "$good" --create --prefix "refs/heads/$1" --clients 4 \
		--txns 50 --timeout 20000 >"$T/innocent" 2>&1
	python3 -c '
import json, sys
said = json.load(open(sys.argv[1]))
print(said["ok"], said["failed"])' "$T/innocent"
}

# The attacker sends as many requests as possible during the innocent user's
# updates.
beside() { # WHAT OPTION...
	local what=$1 evil_pid
	shift
	(
		# Without exec the killed process would be a shell.
		exec "$BUILD/tests/helper/storm" --socket "$SOCKET" \
			--repo "$T/evil.git" --oid "$evil" --clients 4 \
			--txns 1000000 --timeout 20000 "$@"
	) >"$T/attack" 2>&1 &
	evil_pid=$!
	own $evil_pid
	is "$what: all of another's succeed" '200 {}' "$(innocent "$what")"
	kill "$evil_pid" 2>/dev/null
	reap "$evil_pid"
}

new_repo good.git bare
new_repo evil.git bare
good=$(new_commit good.git one)
evil=$(new_commit evil.git one)
start_daemon || finish
is 'alone' '200 {}' "$(innocent alone)"
before=$(peak_kb)

sparse ''
was=$(size_of "$T/evil.git/packed-refs")
storm evil.git "$evil" --create --prefix refs/heads/one --txns 1 \
	>"$T/attack" 2>&1
check 'no header: unsupported' grep -qE '"ok":0,"failed":\{"unsupported":[0-9]+}' "$T/attack"
beside sparse --create --prefix refs/heads/a
sparse "$SORTED
$evil refs/heads/p
"
was=$(size_of "$T/evil.git/packed-refs")
beside sparse-sorted --create --prefix refs/heads/b
is 'it was not touched' "$was" "$(size_of "$T/evil.git/packed-refs")"
check 'no packed-refs.new' test ! -e "$T/evil.git/packed-refs.new"

# A sound packed-refs of 130 MB, from which the attacker deletes refs.
rm "$T/evil.git/packed-refs"
python3 - "$evil" >"$T/evil.git/packed-refs" <<'PYTHON'
import sys
print("# pack-refs with: peeled fully-peeled sorted ")
for i in range(2000000):
    print(f"{sys.argv[1]} refs/heads/many/{i:08d}")
PYTHON
deletes() {
	local i line
	for ((i = 1000; i < 1900000; i += 1000)); do
		[ ! -e "$T/enough" ] || return 0
		printf -v line 'delete refs/heads/many/%08d' $i
		echo "$line" | "$REFD" update -C "$T/evil.git" --stdin || return
		echo "$line" >>"$T/deleted"
	done
}
deletes >"$T/attack" 2>&1 &
attack=$!
own $attack
check 'he deletes' await 60 test -s "$T/deleted"
is 'large: all of another'"'"'s succeed' '200 {}' "$(innocent large)"
# A killed shell would leave its client behind.
: >"$T/enough"
reap "$attack"
prints_nothing 'his deletions are done' \
	git -C "$T/evil.git" for-each-ref refs/heads/many/00001000
is 'and nothing else is' "$evil" "$(ref_of evil.git refs/heads/many/00001001)"

if is_sanitized; then
	skip memory 'of a sanitizer'"'"'s build says nothing'
else
	between memory-kb 0 $(($(peak_kb) - before)) 65536
fi
finish
