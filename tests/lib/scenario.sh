# shellcheck shell=bash
# Every scenario sources this file: a private directory, a private daemon, and
# functions for reports.
#
#	. "$(dirname "$0")/../lib/scenario.sh"
#	start_daemon
#	new_repo repo.git bare
#	...
#	finish
#
# A scenario prints `ok NAME`, `not ok NAME: why` or `skip NAME: why`, one line
# for each check, and ends with finish. finish exits 0 only if there was a
# report and no `not ok`. A scenario that ends without finish has failed. In any
# case, recorded processes are killed, recorded mounts are unmounted, and the
# directory is removed; nothing else is touched.
#
# With REFD_TEST_FORMAT=sha256 in the environment, git makes repositories of
# SHA-256. tests/scenario/sha256.sh runs scenarios in this way. With
# REFD_TEST_REFS=reftable, the git in build/git-experimental (scripts/git-new)
# makes repositories with refs in reftables.
#
# Variables: FORMAT the object format, REF_FORMAT the format of refs, ZERO the
# null id, ABSENT the id of no object, HEX the length of an id; ROOT the source
# tree, BUILD the build directory (from the environment, or build/), REFD the
# program, T the directory of this run, SOCKET and STATE the daemon's, SERVED
# the directory of the served repositories (T), LOG the daemon's output, DAEMON
# its pid, AS_ACCOUNT a command that runs the daemon as another account.

set -u

# The scenario has its own mount namespace. Otherwise another scenario could
# copy its mounts into a namespace. There a file system that was shut down would
# live on after the umount, and the next mount of its image would show the dead
# file system again.
if [ "$(id -u)" -eq 0 ] && [ -z "${OWN_MOUNTS:-}" ] &&
	unshare -m true 2>/dev/null; then
	OWN_MOUNTS=1 exec unshare -m bash "$0" "$@"
fi

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=${BUILD:-$ROOT/build}
REFD=$BUILD/bin/refd
T=$(mktemp -d "${TMPDIR:-/tmp}/refd.XXXXXX") || exit 1
SOCKET=$T/refd.sock
STATE=$T/state
SERVED=$T
LOG=$T/daemon.log
# A preloaded library comes before the runtime of the address sanitizer, which
# refuses to start then.
export ASAN_OPTIONS=verify_asan_link_order=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
DAEMON=
AS_ACCOUNT=()
scenario_pids=()
scenario_mounts=()
scenario_ok=0
scenario_bad=0
scenario_skipped=0
scenario_finished=no

# ---- nothing of the machine's configuration gets in ----

FORMAT=${REFD_TEST_FORMAT:-sha1}
REF_FORMAT=${REFD_TEST_REFS:-files}
unset "${!GIT_@}" "${!XDG_@}" "${!REFD_@}"
umask 022
export LC_ALL=C TZ=UTC
export HOME=$T/home
export XDG_RUNTIME_DIR=$T/run XDG_CONFIG_HOME=$T/home/.config
export XDG_STATE_HOME=$T/home/.state
export REFD_SOCKET=$SOCKET REFD_STATE=$STATE
export GIT_CONFIG_NOSYSTEM=1 GIT_DEFAULT_HASH=$FORMAT
if [ "$REF_FORMAT" != files ]; then
	PATH=$(cd "$BUILD" && pwd)/git-experimental:$PATH
	export PATH GIT_DEFAULT_REF_FORMAT=$REF_FORMAT
fi
export GIT_AUTHOR_NAME='A U Thor' GIT_AUTHOR_EMAIL=author@example.com
export GIT_COMMITTER_NAME='C O Mitter' GIT_COMMITTER_EMAIL=committer@example.com
mkdir -p "$HOME" "$XDG_RUNTIME_DIR"
chmod 700 "$XDG_RUNTIME_DIR"
# git does no housekeeping by itself; a test calls gc if needed.
cat >"$HOME/.gitconfig" <<'CONFIG'
[init]
	defaultBranch = main
[gc]
	auto = 0
	autoDetach = false
[advice]
	detachedHead = false
CONFIG

HEX=40
[ "$FORMAT" = sha1 ] || HEX=64
# shellcheck disable=SC2034 # scenarios use it
ZERO=$(printf '%0*d' "$HEX" 0)
ABSENT=$(printf '1234567890%.0s' 1 2 3 4 5 6 7)
# shellcheck disable=SC2034 # scenarios use it
ABSENT=${ABSENT:0:HEX}

# ---- reporting ----

ok() { # NAME
	scenario_ok=$((scenario_ok + 1))
	printf 'ok %s\n' "$1"
}

not_ok() { # NAME WHY
	scenario_bad=$((scenario_bad + 1))
	printf 'not ok %s: %s\n' "$1" "${2:-}"
}

skip() { # NAME WHY
	scenario_skipped=$((scenario_skipped + 1))
	printf 'skip %s: %s\n' "$1" "$2"
}

# ok if the command succeeds. The command runs in this shell. A redirection of
# the output would hide the report.
check() { # NAME COMMAND...
	local name=$1 status=0
	shift
	"$@" || status=$?
	if [ "$status" -eq 0 ]; then
		ok "$name"
	else
		not_ok "$name" "status $status from: $*"
	fi
}

# ok when two strings are the same.
is() { # NAME WANTED GOT
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "wanted '$2', got '$3'"
	fi
}

# ok if the command succeeds and no line of its output, messages included,
# matches the extended regular expression.
prints_no() { # NAME PATTERN COMMAND...
	local name=$1 pattern=$2 said status=0 found
	shift 2
	said=$("$@" 2>&1) || status=$?
	if [ "$status" -ne 0 ]; then
		not_ok "$name" "status $status from: $*: ${said:0:300}"
	elif [ -n "$said" ] &&
		found=$(grep -aE -m 3 -- "$pattern" <<<"$said"); then
		not_ok "$name" "there is '$found'"
	else
		ok "$name"
	fi
}

# ok when the command succeeds and prints nothing.
prints_nothing() { # NAME COMMAND...
	prints_no "$1" '' "${@:2}"
}

# Waits until the command succeeds. SECONDS is the longest expected time on an
# idle machine. After ten times as long, await returns 1. The limit only ends a
# hanging test and proves nothing. It is counted in tries, so that a change of
# the clock has no effect.
await() { # SECONDS COMMAND...
	local tries=$(($1 * 200)) i
	shift
	for ((i = 0; i < tries; i++)); do
		"$@" 2>/dev/null && return 0
		sleep 0.05
	done
	return 1
}

# A sanitizer's report in the daemon's output fails the scenario, whatever the
# other checks found.
finish() {
	local report='(Address|Thread|Leak)Sanitizer|runtime error:'
	# gcov writes its counts only at a clean end.
	[ -z "${STOP_IN_THE_END:-}" ] || stop_daemon
	if grep -qE "$report" "$LOG" 2>/dev/null; then
		not_ok sanitizer "$(grep -m1 -E "$report" "$LOG")"
	fi
	if [ "$scenario_bad" -gt 0 ] && [ -s "$LOG" ]; then
		echo "--- the daemon's last words"
		tail -n 40 "$LOG"
	fi
	scenario_finished=yes
	[ "$scenario_bad" -eq 0 ] &&
		[ $((scenario_ok + scenario_skipped)) -gt 0 ]
	exit
}

# True if tests/long runs the scenario. Then the parts that wait for a minute
# run, too.
is_long() {
	[ "${LONG_PARTS:-no}" = yes ]
}

# Prints why this machine denies Landlock, and nothing if it does not:
# systemd-nspawn and some other containers do. The program asks the kernel, and
# not refd, which the caller tests.
without_landlock() {
	python3 -c 'import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(444, None, ctypes.c_size_t(0), 1) < 0:
    print("Landlock:", os.strerror(ctypes.get_errno()))'
}

# In a container with an own pid namespace, nobody sees all processes.
in_container() {
	[ "$(readlink /proc/self/ns/pid)" != 'pid:[4026531836]' ]
}

# ---- processes and mounts of the scenario ----

# Installs, or uninstalls, the built files. Other tests run these programs at
# the same time, and make would link them anew for the flags and paths given
# here: a program that the linker has not finished cannot be executed.
MAKE_BUILT="make -s -o all -o group -o deliver -o libgit2"
make_built() { # [VARIABLE=VALUE...] TARGET...
	$MAKE_BUILT -C "$ROOT" BUILD="$BUILD" "$@" >"$T/make.log" 2>&1
}

# Records a background process, to be killed at the end.
own() { # PID
	scenario_pids+=("$1")
}

scenario_cleanup() {
	local status=$? pid i
	trap - EXIT INT TERM HUP
	for pid in ${scenario_pids[@]+"${scenario_pids[@]}"}; do
		kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	for ((i = ${#scenario_mounts[@]} - 1; i >= 0; i--)); do
		umount "${scenario_mounts[i]}" 2>/dev/null ||
			umount -l "${scenario_mounts[i]}"
	done
	rm -rf --one-file-system "$T"
	if [ "$scenario_finished" = no ]; then
		echo "not ok $(basename "$0"): ended before it was finished"
		[ "$status" -ne 0 ] || status=1
	fi
	exit "$status"
}
trap scenario_cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# ---- the daemon ----

# Starts the daemon with the arguments, and returns once it answers. Returns 1,
# with the end of its log on standard error, if it does not.
start_daemon() { # [OPTION...]
	${AS_ACCOUNT[@]+"${AS_ACCOUNT[@]}"} "$REFD" daemon --socket "$SOCKET" --state "$STATE" --root "$SERVED" "$@" \
		>>"$LOG" 2>&1 </dev/null &
	DAEMON=$!
	own "$DAEMON"
	"$REFD" ping --socket "$SOCKET" --wait 120 >/dev/null && return 0
	echo "the daemon does not answer:" >&2
	tail -n 20 "$LOG" >&2
	return 1
}

# Prints errors and warnings in the daemon's log. Leaves out permitted warnings:
# about a slow disk, a disk in memory, or a kernel without Landlock.
complaints() {
	[ -r "$LOG" ] || echo "there is no log '$LOG'"
	grep -E ' (error|warning): ' "$LOG" |
		grep -vE ' event=((flush|journal)-(hangs|back)|stall|nobody-served|state-suspect|unconfined) '
}

# The same, of a daemon that was killed beside git at work. Git can hold a lock
# while the daemon recovers. Then records are deferred, and a later write in the
# repository redoes them.
complaints_beside_git() {
	complaints | grep -v ' finding="deferred" .* lock stands'
}

# Forgets the recorded pid once the process is gone, so that cleanup cannot hit
# a later process of the same number. Returns the process's status.
reap() { # PID
	local pid status=0 rest=()
	wait "$1" 2>/dev/null || status=$?
	for pid in ${scenario_pids[@]+"${scenario_pids[@]}"}; do
		[ "$pid" = "$1" ] || rest+=("$pid")
	done
	scenario_pids=(${rest[@]+"${rest[@]}"})
	return "$status"
}

# Sends SIGTERM and waits for the end, up to 120 s. Returns the daemon's exit
# status.
stop_daemon() {
	local pid=$DAEMON i
	[ -n "$pid" ] || return 0
	DAEMON=
	kill -TERM "$pid" 2>/dev/null
	for ((i = 0; i < 2400; i++)); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	if kill -KILL "$pid" 2>/dev/null; then
		echo "the daemon did not stop within 120 s" >&2
	fi
	reap "$pid"
}

# As the kernel's out-of-memory killer would: no warning, nothing drained.
kill_daemon() {
	local pid=$DAEMON
	[ -n "$pid" ] || return 0
	DAEMON=
	kill -KILL "$pid" 2>/dev/null
	reap "$pid"
	return 0
}

# Waits until strace traces the daemon. strace attaches to one thread after the
# other, and misses calls of threads that are not yet attached. When strace
# sleeps, all threads are attached.
await_tracer() { # STRACE'S-PID
	await 10 is_traced "$1"
}

is_traced() { # STRACE'S-PID
	kill -0 "$DAEMON" && grep -q '^State:.S' "/proc/$1/status" &&
		! grep -L "^TracerPid:.$1\$" "/proc/$DAEMON/task/"*/status |
			grep -q .
}

# A program that is no daemon listens at the socket of the killed daemon. A
# client that may not leave its work to git fails at once, and does not wait.
start_stranger() {
	python3 - "$SOCKET" <<-'PYTHON' &
		import os, socket, sys
		if os.path.exists(sys.argv[1]):
		    os.unlink(sys.argv[1])
		s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
		s.bind(sys.argv[1])
		os.chmod(sys.argv[1], 0o666)
		s.listen(64)
		while True:
		    conn = s.accept()[0]
		    conn.sendall(b'220 smtp\r\n')
		    conn.close()
	PYTHON
	STRANGER=$!
	own $STRANGER
	await 10 says_220
}

says_220() {
	"$REFD" ping --socket "$SOCKET" 2>&1 | grep -q 'not a refd'
}

stop_stranger() {
	kill "$STRANGER"
	reap "$STRANGER"
	rm -f "$SOCKET"
}

# Prints one of the daemon's counts, by its name in refd stats.
stat_of() { # KEY
	"$REFD" stats --socket "$SOCKET" | sed -n "s/^$1: //p"
}

# ---- repositories ----

# Makes $T/NAME: an empty bare repository, or one with a work tree and a commit.
new_repo() { # NAME [bare]
	if [ "${2:-}" = bare ]; then
		git init -q --bare "$T/$1"
	else
		git init -q "$T/$1" &&
			git -C "$T/$1" commit -q --allow-empty -m initial
	fi
}

# Makes a commit without a ref and prints its id; also in bare repositories.
new_commit() { # NAME MESSAGE [PARENT...]
	local repo=$T/$1 message=$2 tree parent parents=()
	shift 2
	for parent; do parents+=(-p "$parent"); done
	tree=$(git -C "$repo" mktree </dev/null) &&
		git -C "$repo" commit-tree ${parents[@]+"${parents[@]}"} \
			-m "$message" "$tree"
}

# Prints the value of a ref. Without the ref: prints nothing and returns 1. If
# git fails, prints the failure, so that nobody takes the ref for absent.
ref_of() { # NAME REF
	local status=0
	git -C "$T/$1" rev-parse --verify -q "$2" || status=$?
	[ $status -le 1 ] || echo "git rev-parse failed with status $status"
	return $status
}

has_no_locks() { # NAME
	[ -z "$(find "$T/$1" -name '*.lock')" ]
}

# ok when no lock of a ref or of packed-refs stays there. The daemon itself may
# hold locks for a moment: it packs the refs of a repository with many of them.
no_locks() { # REPORTED-AS NAME
	if await 10 has_no_locks "$2"; then
		ok "$1"
	else
		prints_nothing "$1" find "$T/$2" -name '*.lock'
	fi
}

# ---- file systems ----

# In a container root may be unable to.
can_mount() {
	[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null
}

# Mounts a new file system at $FS. Prints `skip` and returns 1 if this is not
# possible. mkfs.xfs needs 300M, mkfs.btrfs 128M; the image is sparse.
with_fs() { # ext4|xfs|btrfs SIZE
	local image why options=(-q)
	FS=$T/fs${#scenario_mounts[@]}-$1
	image=$FS.img
	[ "$1" != ext4 ] || options+=(-F -m 0)
	if [ "$(id -u)" -ne 0 ]; then
		why="only root can mount"
	elif ! command -v "mkfs.$1" >/dev/null; then
		why="no mkfs.$1"
	elif ! mkdir "$FS" || ! truncate -s "$2" "$image" ||
		! why=$("mkfs.$1" "${options[@]}" "$image" 2>&1); then
		why="no file system made: ${why:-}"
	elif why=$(mount -o loop "$image" "$FS" 2>&1); then
		scenario_mounts+=("$FS")
		return 0
	fi
	skip "with_fs-$1" "${why//$'\n'/; }"
	rm -f "$image"
	rmdir "$FS" 2>/dev/null
	return 1
}
