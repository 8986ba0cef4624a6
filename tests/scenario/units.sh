#!/bin/bash
# Proves systemd's units without booting (tests/long/boot.sh boots). systemd
# finds nothing wrong, the exposure is 0.7 at most, and every trap is still
# named. The test also plays a service manager: passed sockets, readiness, the
# watchdog, disks and repositories that hang, reload and stop, --ready-fd.
# Clients of a daemon that cannot start are told its error.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

# ---- the units ----

if command -v systemd-analyze >/dev/null; then
	to=$T/root
	make_built DESTDIR="$to" PREFIX=/usr \
		install-units install-deliver install-group || cat "$T/make.log"
	units=$to/usr/lib/systemd/system
	mkdir -p "$to/etc/systemd" "$to/usr/bin" "$to/bin"
	for program in usr/bin/refd bin/kill; do
		printf '#!/bin/sh\n' >"$to/$program"
		chmod 755 "$to/$program"
	done
	cp -r /usr/lib/systemd/system/*.target "$units"
	for unit in refd.socket refd.service refd@.socket refd@.service \
		refd-metrics.socket refd-look.service refd-look.timer \
		refd-deliver.service refd-group.service \
		refd-group-verify.service refd-group-verify.timer; do
		prints_no "$unit is in order" '[Rr]efd' systemd-analyze \
			verify --man=no --root="$to" "$unit"
	done
	for unit in refd.service refd@.service; do
		got=$(systemd-analyze security --offline=true --no-pager \
			--root="$to" --threshold=7 "$unit" 2>&1)
		is "$unit exposes no more than 0.7" 0 $?
		tail -n 1 <<<"$got"
	done
	for unit in refd.service refd@.service refd-deliver.service \
		refd-group.service; do
		is "$unit hides other services" '/run/dbus /run/docker.sock /run/user' \
			"$(sed -n 's/^InaccessiblePaths=//p' "$units/$unit" |
				tr ' ' '\n' | grep -oE '/run/(user|dbus|docker.sock)$' |
				sort | paste -sd ' ')"
	done
	# They have the network.
	for unit in refd-deliver.service refd-group.service \
		refd-group-verify.service; do
		systemd-analyze security --offline=true --no-pager \
			--root="$to" --threshold=20 "$unit" >"$T/out" 2>&1
		is "$unit exposes no more than 2.0" 0 $?
		tail -n 1 "$T/out"
	done
	check 'refd-metrics.socket is enabled' systemctl -q --root="$to" \
		enable refd-metrics.socket
	check 'and started by the service' [ -L \
		"$to/etc/systemd/system/refd.service.wants/refd-metrics.socket" ]
	systemctl -q --root="$to" disable refd-metrics.socket
	# Every trap has a comment with its reason, in the paragraph before.
	for trap in StartLimitIntervalSec=0 RuntimeDirectoryPreserve=yes \
		ProtectHome=read-only PrivateUsers=no RestrictSUIDSGID=no \
		ProcSubset=all; do
		check "trap: $trap" [ -n "$(awk -v RS= -v set="\n$trap" \
			'/# Trap: / && $0 ~ set' "$units/refd.service")" ]
	done
	make_built DESTDIR="$to" PREFIX=/usr uninstall
	prints_nothing 'nothing is left' find "$to" -name '*refd*' \
		-not -path "$to/usr/bin/refd"
else
	skip units 'no systemd-analyze'
fi

# ---- messages to the manager ----

python3 - "$T/notify" >>"$T/told" <<'PYTHON' &
import socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    print(s.recv(4096).decode().replace('\n', ' '), flush=True)
PYTHON
listener=$!
own $listener
await 5 [ -S "$T/notify" ]

told() { grep -qE -- "$1" "$T/told"; }
printf '[daemon]\n\troot = %s\n' "$T" >"$T/config"
unset REFD_SOCKET
export BUILD
mkfifo "$T/ready"
read -r _ <"$T/ready" &
reader=$!
# The test makes the socket and passes it to the daemon, as systemd does.
python3 - "$SOCKET" "$REFD" "$T" "$STATE" >>"$LOG" 2>&1 <<'PYTHON' &
import os, socket, sys
path, refd, tmp, state = sys.argv[1:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
s.bind(path)
s.listen(64)
other = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
ready = os.open(tmp + '/ready', os.O_WRONLY)
os.dup2(ready, 9, True)
a, b = os.dup(other.fileno()), os.dup(s.fileno())
os.dup2(a, 3, True)
os.dup2(b, 4, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='2',
    LISTEN_FDNAMES='metrics:refd', NOTIFY_SOCKET=tmp + '/notify',
    WATCHDOG_USEC='800000', WATCHDOG_PID=str(os.getpid()),
    LD_PRELOAD=':'.join(os.environ['BUILD'] + '/tests/helper/preload_%s.so' % x
        for x in ('flush', 'hang')), REFD_OPEN_HANGS=tmp + '/hang.open',
    REFD_FLUSH_HANGS=tmp + '/hang', REFD_FLUSH_DELAY_US='0')
os.execv(refd, [refd, 'daemon', '--config', tmp + '/config', '--state', state,
    '--ready-fd', '9'])
PYTHON
DAEMON=$!
own "$DAEMON"
await 10 told READY=1
check ready told '^READY=1 STATUS=serving: 0 transactions, 0 in work'
wait $reader
is 'ready-fd' 0 $?
check 'time is asked for before' told '^EXTEND_TIMEOUT_USEC=[0-9]+ STATUS=recov'
check 'the passed socket serves' serves
new_repo srv/a.git bare
one=$(new_commit srv/a.git one)
"$REFD" update -C "$T/srv/a.git" --socket "$SOCKET" refs/heads/a "$one"
check 'the watchdog is fed' await 5 told '^WATCHDOG=1'
check 'and the status goes on' await 10 told 'STATUS=serving: 1 transactions'

# ---- hanging disks ----

status_of() { "$REFD" status -v --socket "$SOCKET" | sed -n "s/^$1: //p"; }
logs() { grep -q "event=$1 " "$LOG"; }
update() { "$REFD" update -C "$T/$1" --socket "$SOCKET" "${@:2}"; }
new_repo srv/b.git bare
update srv/b.git refs/heads/a "$(new_commit srv/b.git two)"
"$REFD" checkpoint --socket "$SOCKET" >"$T/out"
two=$(new_commit srv/b.git three)
printf %s "$T/srv" >"$T/hang"
update srv/b.git refs/heads/b "$two" &
waits=$!
own $waits
check 'a syncfs that hangs is logged' await 5 logs flush-hangs
check 'status says where' grep -q "^$T/srv" <<<"$(status_of flush_hangs_on)"
check 'and the status line' await 5 told 'STATUS=A FLUSH HANGS on '
check 'and doctor' grep -q flush-hangs <<<"$("$REFD" doctor \
	--socket "$SOCKET" "$T/srv/b.git" 2>&1)"
check 'who needs no flush of it is served' update srv/a.git \
	refs/heads/other "$one"
: >"$T/told"
check 'the watchdog is fed all the same' await 5 told '^WATCHDOG=1'
check 'and numbers are told' grep -q '^refd_flush_hanging_seconds' \
	<<<"$("$REFD" stats --socket "$SOCKET" --prometheus)"
rm "$T/hang"
check 'who waited is served' wait $waits
reap $waits
check 'its end is logged' await 5 logs flush-back
is 'and all is well' 0 "$(status_of flush_hangs_s)"
"$REFD" checkpoint --socket "$SOCKET" >"$T/out"
touch "$T/hang"
update srv/b.git -d refs/heads/b "$two" &
waits=$!
own $waits
check 'a commit that hangs is logged' await 5 logs journal-hangs
# Earlier messages may be read only now.
is_starved() {
	: >"$T/told"
	sleep 1
	! grep -q WATCHDOG "$T/told"
}
check 'and starves the watchdog' await 1 is_starved
rm "$T/hang"
check 'until it is back' await 5 told '^WATCHDOG=1'
check 'who waited is served, too' wait $waits
reap $waits

# ---- a repository that hangs while refd takes its locks ----

new_repo srv/c.git bare
three=$(new_commit srv/c.git one)
update srv/c.git refs/heads/a "$three"
hung=()
update_hung() { # REF
	update srv/c.git "refs/heads/$1" "$three" &
	hung+=($!)
	own $!
}
stuck() { [ "$(stat_of stage_stuck_prepare)" = "$1" ]; }
printf %s "$T/srv/c.git/refd/stage" >"$T/hang.open"
update_hung b
check 'who hangs with his locks is counted' await 7 stuck 1
check 'and named' grep -q "^prepare has worked on '$T/srv/c.git' for " \
	<<<"$(status_of stall)"
check 'others are served' update srv/a.git refs/heads/c "$one"
: >"$T/told"
check 'and the watchdog is fed' await 5 told '^WATCHDOG=1'
update_hung c
check 'with a second one nobody is served' await 5 logs nobody-served
check 'which starves the watchdog' await 1 is_starved
rm "$T/hang.open"
check 'until they are back' await 5 told '^WATCHDOG=1'
check 'the first is served' wait "${hung[0]}"
check 'and the second' wait "${hung[1]}"
reap "${hung[0]}"
reap "${hung[1]}"
check 'its end is logged' await 5 logs served-again

kill -HUP "$DAEMON"
check 'reloading' await 5 told '^RELOADING=1 MONOTONIC_USEC=[0-9]+'
check 'reloaded' await 5 told '^READY=1 STATUS=.*serving: [4-9]'
stop_daemon
is 'exit status' 0 $?
check 'stopping' await 5 told '^STOPPING=1 STATUS=finishing 0'
check 'a passed socket is left' [ -S "$SOCKET" ]

# ---- a daemon that cannot start ----

# Like systemd: the socket outlives the daemon, and a failed start is repeated.
printf '[daemon]\n\trot = %s\n' "$T" >"$T/config"
rm "$SOCKET"
python3 - "$SOCKET" "$REFD" "$T" "$STATE" >>"$LOG" 2>&1 <<'PYTHON' &
import os, select, socket, sys, time
path, refd, tmp, state = sys.argv[1:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
s.bind(path)
os.chmod(path, 0o666)
s.listen(64)
select.select([s], [], [])
while True:
    pid = os.fork()
    if pid == 0:
        os.dup2(os.dup(s.fileno()), 3, True)
        os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1',
            LISTEN_FDNAMES='refd')
        os.execv(refd, [refd, 'daemon', '--config', tmp + '/config',
            '--state', state])
    open(tmp + '/pid', 'w').write(str(pid))
    if os.waitpid(pid, 0)[1] == 0:
        break
    time.sleep(0.1)
PYTHON
manager=$!
own $manager
await 5 [ -S "$SOCKET" ]
why="cannot start: $T/config:2: unknown key 'daemon.rot'"
for command in ping status; do
	"$REFD" $command --socket "$SOCKET" >"$T/out" 2>&1
	is "$command ends with" 75 $?
	check "$command repeats the daemon's error" grep -qF "$why" "$T/out"
done
"$REFD" doctor --json --socket "$SOCKET" "$T/srv/a.git" >"$T/out"
check 'and so does doctor' grep -qF "$why" <<<"$(grep \
	'"id":"daemon-cannot-start","severity":"error"' "$T/out")"
update srv/a.git refs/heads/refused "$one" >"$T/out" 2>&1
is 'update is refused' 75 $?
check 'with the same error' grep -qF "$why" "$T/out"
fallback() { # REF
	GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=refd.fallback \
		GIT_CONFIG_VALUE_0=git update srv/a.git "$1" "$one" \
		>"$T/out" 2>&1
}
check 'after recovery git may do it' fallback refs/heads/by-git
mv "$SOCKET.replayed" "$T/replayed"
fallback refs/heads/too-early
is 'but not before' 75 $?
check 'with that error, too' grep -qF "$why" "$T/out"
is 'one ref is new' refs/heads/by-git "$(git -C "$T/srv/a.git" for-each-ref \
	--format='%(refname)' refs/heads/refused refs/heads/by-git \
	refs/heads/too-early)"
if with_people 'other users'; then
	as 10001 "$REFD" ping --socket "$SOCKET" >"$T/out" 2>&1
	check 'others read no configuration' grep -q \
		"cannot start: the daemon's log has the reason$" "$T/out"
fi
# A daemon that starts at this moment may still have the old configuration.
printf '[durability]\n\tmode = "\033[31m%0100000d"\n' 0 >"$T/config.new"
mv "$T/config.new" "$T/config"
tells_long_value() {
	"$REFD" ping --socket "$SOCKET" >"$T/out" 2>&1
	grep -q "cannot start: $T/config:2: '?\[31m00*$" "$T/out"
}
check 'a long value of the configuration is cut' await 10 tells_long_value
check 'and steers no terminal, nor the log' \
	test -z "$(grep -la $'\e' "$T/out" "$LOG")"
printf '[daemon]\n\troot = %s\n' "$T" >"$T/config.new"
mv "$T/config.new" "$T/config"
check 'with the typo corrected it serves' "$REFD" ping --socket "$SOCKET" \
	--wait 60
kill -TERM "$(cat "$T/pid")"
check 'and stops' wait $manager
reap $manager

# ---- a descriptor that is no socket ----

LISTEN_PID=$$ LISTEN_FDS=1 bash -c 'export LISTEN_PID=$$
	exec "$@" 3</dev/null' - "$REFD" daemon --config "$T/config" \
	--state "$STATE" >"$T/out" 2>&1
is 'no socket: status' 69 $?
check 'no socket: is said' grep -q 'has to be a Unix socket' "$T/out"
finish
