#!/bin/bash
# refd-group without PostgreSQL and without a daemon: wrong command lines and
# configurations are named, and what is away is a reason to try again.
# tests/long/group_log.sh has the rest.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

config() { # LINE...
	printf '[core]\n\tsocket = /none\n[group]\n' >"$T/config"
	printf '\t%s\n' "$@" >>"$T/config"
}

ends() { # NAME STATUS TEXT ARGUMENT...
	local name=$1 status=$2 text=$3
	shift 3
	"$REFD" group --config "$T/config" "$@" >"$T/out" 2>"$T/err"
	is "$name: status" "$status" $?
	check "$name: reason" grep -qF -- "$text" "$T/err"
	is "$name: output" '' "$(cat "$T/out")"
}

right=('name = main' 'node = a' "database = host=$T dbname=refd")
config "${right[@]}"
ends 'no command' 129 'usage: refd group'
ends 'another command' 129 "'unite' is no command of refd group" unite
ends 'two commands' 129 'usage: refd group' create status
ends 'promote: two nodes' 129 'usage: refd group' promote a b
ends 'promote: no name' 129 "'a/b' is no name of a node" promote a/b
ends 'promote: --repair' 129 'usage: refd group' --repair promote a
ends 'verify: no root' 128 'has no daemon.root that exists' verify
for command in create status promote leave; do
	ends "$command: PostgreSQL is away" 75 "group 'main': " $command
done
ends 'the daemon is away' 75 "cannot connect to the daemon at '$T/none'" \
	--socket "$T/none" serve
if with_fs ext4 8M; then
	python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
time.sleep(60)' "$FS/group.sock" &
	own $!
	check 'a full disk: the daemon listens' await 10 test -S "$FS/group.sock"
	dd if=/dev/zero of="$FS/full" bs=1k 2>/dev/null
	ends 'a full disk' 75 'No space left on device: make room there' \
		--socket "$FS/group.sock" serve
fi
ends 'a long path' 128 'the path of the socket is too long' \
	--socket "/$(printf '%0200d' 0)" serve

config 'node = a' 'database = x'
ends 'no name' 128 'has no group.name' status
config 'name = main' 'database = x'
ends 'no node' 128 'has no group.node' status
config 'name = main' 'node = a'
ends 'no database' 128 'has no group.database' status
while IFS='|' read -r line reason; do
	config "${right[@]}" "$line"
	ends "$line" 128 "$T/config:7: $reason" status
done <<'LINES'
name = a b|group.name: must have 1 to 64 letters
node =|group.node: must have 1 to 64 letters
nodes = a|group.nodes: is not a key of [group]
copies = 0|group.copies: must be a number from 1 to 100
copies = 101|group.copies: must be a number from 1 to 100
lease = 6|group.lease: must be a time
lease = 999ms|group.lease: must be a time
lease = 2h|group.lease: must be a time
held = 101|group.held: must be a number from 0 to 100
held = -1|group.held: must be a number from 0 to 100
source = b|group.source: must be a node and a URL
source = b relative|group.source: must be a node and a URL
source = b! /srv/git|group.source: must be a node and a URL
lease|group.lease: has no value
LINES
config 'name = main' 'node = a' 'database = host=/x password=my secret'
ends 'a wrong connection' 128 'group.database: is not a connection string' \
	status
prints_no 'a wrong connection: the password is not printed' secret \
	cat "$T/err"
config "${right[@]}" 'source = b /srv/git' 'source = b ssh://b/srv/git'
ends 'two sources of a node' 128 'already has a source' status
config "${right[@]}" 'patience = 10s' 'lease = 1h' 'copies = 100' 'held = 0' \
	'source = b /srv/git' 'source = c   https://c/git'
ends 'all keys' 75 "group 'main': " status
printf '[daemon]\n\troot = %s\n' "$T" >>"$T/config"
ends 'verify: a path elsewhere' 128 "'/' is no repository below daemon.root" \
	verify /
printf '\troot = /srv\n' >>"$T/config"
ends 'two roots' 128 'has more than one daemon.root' status
printf '[daemon]\n\troot = /\n\troot = /usr\n[group]\nname = g\nnode = a\n' \
	>"$T/config"
"$REFD" check-config "$T/config" 2>"$T/err"
is 'the daemon: two roots: status' 1 $?
check 'the daemon: two roots: reason' grep -qF 'more than one root' "$T/err"
rm "$T/config"
ends 'no configuration' 128 "cannot read '$T/config'" status
finish
