#!/bin/bash
# Proves that programs of libgit2 write refs through refd after one call: from
# C, the same codes, refs and logs as without refd (differ.c), errors, renames,
# locks, threads and forks (own.c), without a finding of valgrind; from pygit2,
# with broken servers, too (pygit2_own.py). Whatever kills the daemon, a write
# that failed was not done, and a write that succeeded was.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/clients.sh
. "$ROOT/tests/lib/clients.sh"

start_daemon || finish
library=$BUILD/lib/librefd-git2.so
sanitized=$(nm -D "$library" | grep -cE ' __[atu][a-z]*san_')
memcheck=(valgrind -q --fair-sched=yes --error-exitcode=9 --leak-check=full
	--show-leak-kinds=definite --errors-for-leak-kinds=definite
	"--suppressions=$ROOT/tests/libgit2/valgrind.supp")
[ "$sanitized" -eq 0 ] ||
	memcheck=(env "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0")

# A program ends with status 0 if all of its checks were ok.
run() { # NAME PROGRAM ARGUMENT...
	local name=$1
	shift
	timeout 250 "${memcheck[@]}" "$BUILD/tests/libgit2/$1" "${@:2}" \
		>"$T/report" 2>"$T/errors"
	is "$name" 0 $?
	clients_report "$T/report"
	[ ! -s "$T/errors" ] || sed 's/^/# /' "$T/errors"
}

two_commits() { # NAME
	new_repo "$1" && echo x >"$T/$1/f" && git -C "$T/$1" add f &&
		git -C "$T/$1" commit -q -m one &&
		git -C "$T/$1" commit -q --allow-empty -m two
}

# ---- C ----

two_commits files
git clone -q --bare "$T/files" "$T/other.git"
cp -a "$T/files" "$T/served"
run 'libgit2 with and without refd' differ "$T/files" "$T/served" "$SOCKET" \
	"$T/other.git"
check 'the writes went through refd' \
	test "$("$REFD" log --repo "$T/served" | wc -l)" -gt 50

two_commits own
git -C "$T/own" config core.filesRefLockTimeout 100
run "refd's own" own all "$T/own" "$SOCKET"
run 'repositories that are refused' own refused "$T/own"
if [ "$(id -u)" -eq 0 ]; then
	chown 64002 "$SOCKET"
	REFD_SOCKET='' run "a stranger's socket" own stranger "$T/own" "$SOCKET"
	chown 0 "$SOCKET"
else
	skip "a stranger's socket" 'only root can give a file away'
fi
no_locks 'no lock is left' own

# ---- the daemon is killed ----

steps() { # TIMES
	local n
	"$BUILD/tests/libgit2/own" steps "$T/own" "$SOCKET" 2500 >"$T/steps" &
	local program=$!
	own "$program"
	for n in 200 600 1000 1400 1800; do
		await 10 test -e "$T/own/.git/refs/heads/steps/$n" || return 1
		kill_daemon 2>/dev/null
		start_daemon || return 1
	done
	reap "$program"
}
check 'no write lies while the daemon is killed' steps
is 'all refs are there' 2500 \
	"$(git -C "$T/own" for-each-ref refs/heads/steps | wc -l)"
echo "# $(cat "$T/steps")"

# ---- pygit2 ----

if [ "$sanitized" -gt 0 ]; then
	skip pygit2 'python cannot load a library with a sanitizer'
else
	GIT_DEFAULT_HASH=sha1 new_repo p.git bare
	git -C "$T/p.git" update-ref refs/heads/main \
		"$(new_commit p.git two "$(new_commit p.git one)")"
	GIT_DEFAULT_HASH=sha256 new_repo p256.git bare
	mkdir "$T/scratch"
	# Debian's python has pygit2.
	LD_LIBRARY_PATH=$BUILD/lib timeout 250 /usr/bin/python3 -B \
		"$ROOT/tests/libgit2/pygit2_own.py" "$library" "$SOCKET" \
		"$T/p.git" "$T/p256.git" "$T/scratch" >"$T/report" 2>&1
	is 'pygit2' 0 $?
	clients_report "$T/report"
	no_locks 'no lock is left by pygit2' p.git
fi

# ---- no daemon ----

stop_daemon
git -C "$T/own" checkout -q main
run 'without a daemon' own away "$T/own" "$SOCKET"
finish
