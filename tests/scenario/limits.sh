#!/bin/bash
# Proves that no user starves. While one user sends as much as possible, updates
# of another user get their turn. The busy user is told to come later, does so,
# and loses nothing. The same holds for repositories and for connections. A
# repeated call of a user who may send nothing is unknown, and not refused. The
# test also covers reserved prefixes, and a reload that changes all limits.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

with_people limits || finish
GREEDY=64001 MODEST=64002
with_account 64000

storm() { # UID REPO OID PREFIX [OPTION...]
	local uid=$1 repo=$2 oid=$3 prefix=$4
	shift 4
	as "$uid" "$BUILD/tests/helper/storm" --socket "$SOCKET" \
		--repo "$repo" --oid "$oid" --create --prefix "$prefix" "$@"
}

config() { # LIMIT...
	printf '[daemon]\nallowUser = %s\nallowUser = %s\n[limits]\n' \
		$GREEDY $MODEST >"$T/config"
	printf '%s\n' "$@" >>"$T/config"
}

reload() {
	local before
	before=$(grep -c 'event=reloaded' "$LOG")
	kill -HUP "$DAEMON"
	await 10 has_reloaded "$before"
}

has_reloaded() { # TIMES-BEFORE
	[ "$(grep -c 'event=reloaded' "$LOG")" -gt "$1" ]
}

# Counts the other user's updates between two successive updates of PREFIX, in
# the order of the journal. Prints the median of these gaps.
between_two() { # PREFIX
	"$REFD" log --reverse --json --ref refs/heads/ | python3 -c '
import json, statistics, sys
gaps, others = [], None
for line in sys.stdin:
    if json.loads(line)["ref"].startswith(sys.argv[1]):
        if others is not None:
            gaps.append(others)
        others = 0
    elif others is not None:
        others += 1
print(int(statistics.median(gaps)) if len(gaps) == 19 else 99999)' "$1/"
}

# While 200 clients send 20 updates each for the greedy user.
beside_greedy() { # TRY
	storm $GREEDY "$G" "$hers" "refs/heads/g$1" --clients 200 --txns 20 \
		>"$T/greedy.$1" 2>&1 &
	own $!
	greedy=$!
	await 10 test -e "$G/refs/heads/g$1"
	storm $MODEST "$M" "$his" "refs/heads/m$1" --clients 1 --txns 20 \
		>"$T/modest.$1" 2>&1
	reap $greedy
	between=$(between_two "refs/heads/m$1")
}

config 'user-requests = 4'
his=$(repo_for $MODEST m.git)
hers=$(repo_for $GREEDY g.git)
M=$T/of$MODEST/m.git
G=$T/of$GREEDY/g.git
start_daemon --config "$T/config" || exit 1

# ---- two users ----

# The turn comes after the few admitted updates of the other user, not after
# those of all two hundred clients. An exception is a client that did not get a
# processor.
for try in 1 2 3; do
	beside_greedy $try
	[ "$between" -ge 12 ] || break
done
check "beside a greedy one: each after $between of the other's" \
	test "$between" -lt 12
check 'and none fails' grep -q '"ok":20' "$T/modest.$try"
check 'he was put off, and lost nothing' grep -q '"ok":4000' "$T/greedy.$try"
is 'all of his is there' $((4000 * try)) \
	"$(git --git-dir="$G" for-each-ref | wc -l)"

# ---- two repositories of the same user ----

config 'user-requests = 0' 'repository-requests = 8' \
	'reserved = refs/pull/' 'reserved = refs/keep'
check 'reloaded' reload
other=$(repo_for $GREEDY h.git)
storm $GREEDY "$G" "$hers" refs/heads/h --clients 200 --txns 10 \
	>"$T/greedy" 2>&1 &
own $!
greedy=$!
storm $GREEDY "$T/of$GREEDY/h.git" "$other" refs/heads/h --clients 1 \
	--txns 20 >"$T/other" 2>&1
check 'another repository is served meanwhile' grep -q '"ok":20' "$T/other"
reap $greedy
check 'and nothing is lost' grep -q '"ok":2000' "$T/greedy"

# ---- of a repository, and connections ----

config 'user-requests = 0' 'user-clients = 3' 'reserved = refs/pull/' \
	'reserved = refs/keep' 'repository-requests = 1'
check 'reloaded once more' reload
before=$(stat_of refs_busy)
storm $GREEDY "$G" "$hers" refs/heads/i --clients 3 --txns 20 \
	>"$T/greedy" 2>&1
check 'one request for a repository: nothing is lost' \
	grep -q '"ok":60' "$T/greedy"
check 'but was put off' test "$(stat_of refs_busy)" -gt "$before"
is 'of six connections three are let in' '3 busy' "$(as $GREEDY python3 - \
	"$SOCKET" <<-'END'
	import socket, sys
	socks, full = [], 0
	for i in range(6):
	    s = socket.socket(socket.AF_UNIX)
	    s.connect(sys.argv[1])
	    socks.append(s)
	    s.settimeout(60)
	    got = s.recv(4096)
	    try:
	        while b'limits.user-clients' not in got and i >= 3:
	            more = s.recv(4096)
	            got += more
	            if not more: break
	    except TimeoutError:
	        pass
	    full += b'limits.user-clients' in got
	print(full, 'busy')
	END
)"

# ---- reserved ----

one_of() { # UID REPO REF
	as "$1" "$REFD" update --git-dir "$2" --porcelain "$3" "$his" \
		2>"$T/err" | sed -n '1s/^ok .*/ok/p;1s/^ng [^ ]* \([a-z]*\).*/\1/p'
}

is 'reserved' denied "$(one_of $MODEST "$M" refs/pull/1/head)"
is 'the prefix itself' denied "$(one_of $MODEST "$M" refs/keep)"
is 'not what begins like it' ok "$(one_of $MODEST "$M" refs/keeper/a)"
is 'its own user may' ok "$(one_of 0 "$M" refs/pull/1/head)"
"$REFD" enable "$M" >"$T/out"
git init -q "$T/work"
git -C "$T/work" commit -q --allow-empty -m one
git config --global --add safe.directory '*'
git -C "$T/work" push -q "$M" HEAD:refs/heads/p HEAD:refs/pull/2/head \
	2>"$T/err"
check 'a push: refused, and why' grep -q 'is reserved' "$T/err"
check 'its other refs are not' test -n \
	"$(git --git-dir="$M" rev-parse -q --verify refs/heads/p)"
is 'by a symbolic ref' denied "$(as $MODEST "$REFD" update --git-dir "$M" \
	--porcelain --stdin 2>"$T/err" <<<'symref-create refs/x/y refs/pull/9' |
	sed -n '1s/^ng [^ ]* \([a-z]*\).*/\1/p')"

# ---- an id of an earlier call ----

config 'user-requests = 1'
check 'reloaded for one request' reload
once() { # ARGUMENT...
	as $GREEDY "$REFD" update --git-dir "$G" --porcelain --timeout 2000 \
		"$@" 2>"$T/err"
}
one_waits() { [ "$(stat_of waiting)" -ge 1 ]; }
id=$(printf '%012x%020d' "$(date +%s%3N)" 0)
said="ok refs/heads/once
txn $id committed"
is 'an update with an id' "$said" \
	"$(once --txid "$id" refs/heads/once "$hers")"
check 'no batch begins' "$REFD" pause
as $GREEDY "$REFD" update --git-dir "$G" --timeout 60000 refs/heads/waits \
	"$hers" &
own $!
check 'the share of the user is used up' await 10 one_waits
once refs/heads/other "$hers" >"$T/out"
is 'another update is refused as busy' 75 $?
once --txid "$id" refs/heads/once "$hers" >"$T/out"
is 'the same id again is not refused' 128 $?
check 'the outcome is unknown' grep -q "^txn $id unknown" "$T/out"
check 'and somebody shall ask' \
	grep -q "^fatal: outcome unknown (transaction $id): ask" "$T/err"
is 'who asks hears the outcome' "$said" "$(as $GREEDY "$REFD" query "$id")"
check 'batches begin' "$REFD" resume
check 'who waited is served' reap "${scenario_pids[-1]}"
is 'the same id again: its outcome' "$said" \
	"$(once --txid "$id" refs/heads/once "$hers")"
finish
