#!/bin/bash
# Proves that one daemon serves very many repositories: 10,000 bare repositories
# are enabled, each takes its first update, the daemon is started again, and
# `refd doctor --all` checks all of them. Each update is ok and is in git, and
# the daemon's descriptors and memory stay bounded. Prints the seconds of each
# step, the memory and the descriptors.
#
# Takes some minutes and 1 GB below TMPDIR. REPOS=N for fewer.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
REPOS=${REPOS:-10000}
CLIENTS=4
# The daemon opens as many repositories as this limit allows.
MAX_DESCRIPTORS=2048
ulimit -n 4096
MAX_KB=100000

# Runs a step, and prints its time.
step() { # NAME COMMAND...
	local name=$1 began=$EPOCHREALTIME
	shift
	check "$name" "$@"
	awk -v a="$began" -v b="$EPOCHREALTIME" -v name="$name" \
		'BEGIN { printf "# %-36s %8.1f s\n", name, b - a }'
}

make_repos() {
	local i
	git init -q --bare --template= "$T/r0" || return 1
	COMMIT=$(new_commit r0 one) || return 1
	for ((i = 1; i < REPOS; i++)); do
		echo "$T/r$i"
	done | xargs -n 1 cp -r "$T/r0"
}

enable() {
	find "$T" -maxdepth 1 -name 'r[0-9]*' -print0 |
		xargs -0 -n 1000 "$REFD" enable >"$T/enabled"
}

descriptors() {
	find "/proc/$DAEMON/fd" -mindepth 1 | wc -l
}

memory() { # FIELD
	awk -v field="$1:" '$1 == field { print $2 }' "/proc/$DAEMON/status"
}

# The peak of descriptors, as seen while the updates run.
watch_descriptors() {
	local now peak=0
	while [ -e "$T/watch" ]; do
		now=$(descriptors)
		[ "$now" -le "$peak" ] || peak=$now
		echo "$peak" >"$T/peak"
		sleep 0.1
	done
}

one_update() { # NUMBER
	"$REFD" update --git-dir "$T/r$1" refs/heads/first "$COMMIT"
}

# Each client updates every CLIENTS-th repository.
client() { # FIRST
	local i
	for ((i = $1; i < REPOS; i += CLIENTS)); do
		one_update "$i" || return 1
	done
}

update_all() {
	local i pids=() status=0
	for ((i = 0; i < CLIENTS; i++)); do
		client "$i" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || status=1
	done
	return "$status"
}

restart() {
	stop_daemon && start_daemon
}

each_has_it() {
	local i
	for ((i = 0; i < REPOS; i++)); do
		[ "$(cat "$T/r$i/refs/heads/first")" = "$COMMIT" ] || return 1
	done
}

# Checks all repositories. The only finding is that TMPDIR may be in memory.
doctor_all() {
	"$REFD" doctor --all >"$T/doctor"
	grep -q "^$REPOS repositories:" "$T/doctor" &&
		! grep -E '^(error|warning): ' "$T/doctor" |
		grep -v '^error: fs-memory:'
}

bounded() { # WHEN
	local open rss peak
	open=$(descriptors) rss=$(memory VmRSS) peak=$(memory VmHWM)
	echo "# $1: $open descriptors, VmRSS $rss kB, peak $peak kB"
	check "$1: descriptors are bounded" test "$open" -lt $MAX_DESCRIPTORS
	check "$1: memory is bounded" test "$peak" -lt $MAX_KB
}

echo "# $REPOS repositories, load $(cut -d' ' -f1 /proc/loadavg)"
step "make repositories" make_repos
step "start the daemon" start_daemon
bounded "at rest"
step "refd enable" enable
bounded "after refd enable"
touch "$T/watch"
watch_descriptors &
own $!
step "the first update of each" update_all
rm "$T/watch"
bounded "after the updates"
echo "# peak of descriptors: $(cat "$T/peak")"
check 'the peak is bounded' test "$(cat "$T/peak")" -lt $MAX_DESCRIPTORS
check 'each ref stands' each_has_it
step "start the daemon again" restart
step "refd doctor --all" doctor_all
bounded "at the end"
finish
