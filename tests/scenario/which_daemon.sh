#!/bin/bash
# Proves that a command with the name of a repository asks the daemon of this
# repository, and not the one of the current directory: refd log, watch, pack
# and disable, also for root in the repository of a user, whose files root
# does not read. The wrong daemon has no such repository, and its answer would
# look as if nothing had happened there.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

daemon_on() { # NAME
	SOCKET=$T/$1.sock STATE=$T/$1.state SERVED=$T/$1
	start_daemon
}

# enable writes refd.socket there. Nothing else names a socket.
enabled() { # NAME
	new_repo "$1/$1.git" bare &&
		"$REFD" enable --socket "$T/$1.sock" "$T/$1/$1.git" >/dev/null
}

unset REFD_SOCKET
chmod 755 "$T"
mkdir "$T/here" "$T/there"
daemon_on here || finish
first=$DAEMON
daemon_on there || finish
check 'a repository of one daemon' enabled here
check 'a repository of another daemon' enabled there
there=$T/there/there.git
one=$(new_commit there/there.git one)
cd "$T/here/here.git" || finish
check 'an update' "$REFD" update -C "$there" refs/heads/one "$one"

# ---- questions ----

lines() { "$@" 2>"$T/said" | wc -l; }
is 'log' 1 "$(lines "$REFD" log --repo "$there" --json)"
is 'log: by a relative path' 1 \
	"$(lines "$REFD" log --repo ../../there/there.git --json)"
is 'log: an option goes first' 0 \
	"$(lines "$REFD" log --socket "$T/here.sock" --repo "$there" --json)"
is 'log: so does the environment' 0 "$(REFD_SOCKET=$T/here.sock \
	lines "$REFD" log --repo "$there" --json)"
is 'watch' 1 "$(lines timeout 20 "$REFD" watch --repo "$there" --since 0 -n 1 \
	--json)"
is 'pack' 'packed 1 refs' "$("$REFD" pack "$there" 2>&1)"

# ---- root and a user ----

if with_people 'root and a user'; then
	chown -R 64001:64001 "$there"
	is 'root: log' 1 "$(lines "$REFD" log --repo "$there" --json)"
	# A user who is not believed does not lead root to a daemon.
	printf '[broken' >>"$there/config"
	"$REFD" log --repo "$there" >"$T/said" 2>&1
	is 'root: a broken configuration' 128 $?
	check 'root: which is named' grep -q "$there: .*configuration" "$T/said"
	sed -i '$d' "$there/config"
	chown -R 0:0 "$there"
fi

# ---- disable ----

# The include with the name of the socket goes first.
check 'disable' "$REFD" disable "$there" >"$T/said" 2>&1
check 'disable: the daemon gave the repository free' \
	grep -q 'journal 0\{32\}$' "$there/refd/id"

stop_daemon
DAEMON=$first
stop_daemon
finish
