#!/bin/bash
# Proves that a running daemon is confined without help from systemd. Each
# thread has no new privileges and a filter of system calls. Code inside the
# daemon can open neither files outside the roots nor /etc/shadow, and can make
# no process, program or connection. No other process of the account traces the
# daemon. A new root in the configuration waits for a restart, and the reload
# says so. Log, status and refd doctor report a kernel without Landlock. A newly
# mounted file system at a root is served as before.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

mkdir "$T/srv" "$T/outside" "$T/conf" "$T/sock"
SERVED=$T/srv
SOCKET=$T/sock/refd.sock
export REFD_SOCKET=$SOCKET
config=$T/conf/config
echo secret >"$T/outside/secret"
new_repo srv/a.git bare
one=$(new_commit srv/a.git one)

status_of() { # KEY
	"$REFD" status -v --socket "$SOCKET" | sed -n "s/^$1: //p"
}

if grep -q REFD_UNCONFINED "$BUILD/stamp/flags"; then
	check 'built with a sanitizer' start_daemon
	is 'and says so' 'nothing: built with a sanitizer or for gcov' \
		"$(status_of confined_by)"
	finish
fi

threads() { # KEY
	sed -n "s/^$1:.//p" "/proc/$DAEMON/task/"*/status | sort | uniq
}

denied=$(without_landlock)

is_confined() {
	is "$1: no thread gets new privileges" 1 "$(threads NoNewPrivs)"
	is "$1: each has a filter of system calls" 2 "$(threads Seccomp)"
	if [ -n "$denied" ]; then
		skip "$1: nothing is missing" "$denied"
		return
	fi
	is "$1: nothing is missing" '' "$(status_of confined_without)"
	check "$1: Landlock, too" grep -q 'Landlock [0-9]' \
		<<<"$(status_of confined_by)"
}

# The output is in $T/out.
quietly() { # COMMAND...
	"$@" >"$T/out"
}

# ---- code inside the daemon ----

went() { # TRIAL
	sed -n "s|^$1 ||p" "$T/breach"
}

breach() {
	export REFD_BREACH_LOG=$T/breach
	export REFD_BREACH_PATHS=$T/outside/secret:/etc/shadow:/dev/null
	REFD_BREACH_PATHS+=:$SERVED/a.git/config:$STATE/journal.db
	export REFD_BREACH_SOCKET=$SOCKET
	LD_PRELOAD=$BUILD/tests/helper/preload_breach.so start_daemon
	unset REFD_BREACH_LOG REFD_BREACH_PATHS REFD_BREACH_SOCKET
	check 'it is asked' quietly "$REFD" stats
	if [ -n "$denied" ]; then
		skip 'inside: a file elsewhere is not read' "$denied"
	else
		is 'inside: a file elsewhere is not read' 13 \
			"$(went "read $T/outside/secret")"
		is 'inside: nor written' 13 "$(went "write $T/outside/secret")"
		is 'inside: nor are passwords' 13 "$(went 'read /etc/shadow')"
		is 'inside: nor devices' 13 "$(went 'write /dev/null')"
	fi
	is 'inside: a repository is' 0 "$(went "write $SERVED/a.git/config")"
	is 'inside: no process is made' 38 "$(went fork)"
	is 'inside: no program is run' 38 "$(went exec)"
	is 'inside: no socket is made' 38 "$(went socket)"
	is 'inside: not even of this machine' 38 "$(went unix)"
	is 'inside: no socket is connected to by its path' 38 "$(went connect)"
	is 'inside: nor sent to' 38 "$(went sendto)"
	is 'inside: nor by a message' 38 "$(went sendmsg)"
	check 'it serves all the same' "$REFD" update -C "$SERVED/a.git" \
		refs/heads/breached "$one"
	check 'and stops' stop_daemon
}

# ---- permitted work ----

reloads=0
reloaded() {
	[ "$(grep -cE 'event=reload(ed|-failed) ' "$LOG")" -ge "$reloads" ]
}

reload() {
	reloads=$((reloads + 1))
	kill -HUP "$DAEMON"
	await 10 reloaded
}

# As an editor replaces a file.
write_config() { # LINE...
	printf '%s\n' '[daemon]' "root = $SERVED" "$@" >"$config.new"
	mv "$config.new" "$config"
}

at_work() {
	write_config
	"$REFD" daemon --socket "$SOCKET" --state "$STATE" --config "$config" \
		>>"$LOG" 2>&1 </dev/null &
	DAEMON=$!
	own "$DAEMON"
	check 'it starts' quietly "$REFD" ping --wait 120
	is_confined 'serving'
	check 'a ref is made' "$REFD" update -C "$SERVED/a.git" refs/heads/b "$one"
	check 'and moved' "$REFD" update -C "$SERVED/a.git" refs/heads/b \
		"$(new_commit srv/a.git two "$one")"
	check 'and deleted' "$REFD" update -C "$SERVED/a.git" -d refs/heads/b
	write_config 'slowLog = 5s'
	check 'another file in the place of the configuration' reload
	check 'is read' grep -q 'setting-changed key=daemon.slowLog' "$LOG"
	mkdir "$T/outside/root"
	write_config "root = $T/outside/root"
	check 'a root that is new' reload
	check 'waits for a restart' grep -qE \
		'setting-waits key=daemon.root .*when the daemon is restarted' \
		"$LOG"
	is 'nothing is complained of' '' "$(complaints | grep -v setting-waits)"
}

# ---- neighbours ----

# In /proc, root owns the files of a process that may not be dumped.
untraceable() {
	if [ "$(id -u)" -ne 0 ]; then
		is 'nobody traces it' '' \
			"$(cat "/proc/$DAEMON/environ" 2>/dev/null)"
		return
	fi
	check 'it stops' stop_daemon
	with_people 'nobody traces it' || return
	chmod 711 "$T" "$T/outside"
	mkdir -p "$T/outside/of/srv"
	git init -q --bare "$T/outside/of/srv/a.git"
	chown -R 64001 "$T/outside/of"
	as 64001 "$REFD" daemon --socket "$T/outside/of/sock" \
		--state "$T/outside/of/state" --root "$T/outside/of/srv" \
		>>"$LOG" 2>&1 </dev/null &
	own $!
	check 'one of another account' quietly "$REFD" ping --wait 120 \
		--socket "$T/outside/of/sock"
	DAEMON=$(sed -n 's/.* pid \([0-9]*\) .*/\1/p' "$T/out")
	is 'is confined' 2 "$(threads Seccomp)"
	is 'and no neighbour reads its memory' denied \
		"$(as 64001 cat "/proc/$DAEMON/environ" >"$T/environ" \
			2>/dev/null && echo read || echo denied)"
	kill -TERM "$DAEMON"
	DAEMON=
}

# ---- a kernel without Landlock ----

lacking() {
	strace -D -f -o "$T/trace" -e trace=landlock_create_ruleset \
		-e inject=landlock_create_ruleset:error=EOPNOTSUPP \
		"$REFD" daemon --socket "$SOCKET" --state "$STATE" \
		--root "$SERVED" >>"$LOG" 2>&1 </dev/null &
	DAEMON=$!
	own "$DAEMON"
	check 'without Landlock it serves' quietly "$REFD" ping --wait 120
	is 'status says why' 'Landlock (Operation not supported)' \
		"$(status_of confined_without)"
	is 'the rest is in force' 2 "$(threads Seccomp)"
	check 'the log says it' grep -q \
		'warning: event=unconfined without="Landlock (' "$LOG"
	"$REFD" doctor --json "$SERVED/a.git" >"$T/doctor"
	is 'and refd doctor' daemon-unconfined "$(jq -r '.findings[].id' \
		"$T/doctor" | grep unconfined)"
	check 'it stops' stop_daemon
}

# ---- a root with a new mount ----

mounted_anew() {
	with_fs ext4 64M || return
	SERVED=$FS
	git init -q --bare "$FS/r.git"
	one=$(new_commit "${FS#"$T/"}/r.git" one)
	sync -f "$FS"
	check 'a root that is a mount point' start_daemon
	check 'is served' "$REFD" update -C "$FS/r.git" refs/heads/a "$one"
	"$BUILD/tests/helper/shutdown_fs" nologflush "$FS"
	"$REFD" update -C "$FS/r.git" refs/heads/b "$one" >"$T/out" 2>&1
	check 'its disk fails, the daemon lets go of it' await 15 umount "$FS"
	check 'mounted anew' mount -o loop "$FS.img" "$FS"
	check 'it is served as before' await 15 "$REFD" update -C "$FS/r.git" \
		refs/heads/c "$one"
	is 'nothing is lost' "$one" \
		"$(git -C "$FS/r.git" rev-parse -q --verify refs/heads/a)"
	check 'and the daemon stops' stop_daemon
}

breach
at_work
untraceable
lacking
mounted_anew

finish
