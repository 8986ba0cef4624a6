# shellcheck shell=bash
# Functions for scenarios of daemon/server; sourced after scenario.sh.

# A client that has left fails its own check, not the whole scenario.
trap '' PIPE

RAWSOCK=$BUILD/tests/helper/rawsock
# shellcheck disable=SC2034 # not every scenario uses all
MANY_CONNS=$BUILD/tests/helper/many_conns
# shellcheck disable=SC2034
SLOW_FLUSH=$BUILD/tests/helper/preload_flush.so

# Sends the output of printf FORMAT and prints the answer (rawsock.c).
raw() { # FORMAT [RAWSOCK-OPTION...]
	local format=$1
	shift
	# shellcheck disable=SC2059
	printf -- "$format" | "$RAWSOCK" "$SOCKET" "$@"
}

# All but the greeting.
answers() {
	sed '1,/^\.$/d'
}

# Checks that the daemon answers on a new connection.
serves() {
	"$REFD" ping --socket "$SOCKET" >/dev/null
}

# A process of this script that has ended by itself.
gone() { # PID
	! kill -0 "$1" 2>/dev/null
}

# Prints the processor time of the daemon, in hundredths of a second.
daemon_cpu() {
	awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$DAEMON/stat"
}

# True if the daemon has used at most TICKS, in hundredths of a second of
# processor time, in SECONDS. For await: the daemon may have work once, but not
# all the time.
is_quiet() { # TICKS SECONDS
	local before
	before=$(daemon_cpu)
	sleep "$2"
	[ $(($(daemon_cpu) - before)) -le "$1" ]
}

daemon_rss_kb() {
	awk '/^VmRSS/ { print $2 }' "/proc/$DAEMON/status"
}

daemon_fds() {
	find "/proc/$DAEMON/fd" -mindepth 1 2>/dev/null | wc -l
}

# Memory of a sanitizer's build says nothing.
is_sanitized() {
	grep -qE 'lib[at]san' "/proc/$DAEMON/maps"
}

# LEAST <= VALUE <= MOST
between() { # NAME LEAST VALUE MOST
	if [ "$2" -le "$3" ] && [ "$3" -le "$4" ]; then
		ok "$1"
	else
		not_ok "$1" "$3 is not between $2 and $4"
	fi
}

# Expects a log line.
logged() { # NAME TEXT
	check "$1" grep -qF -- "$2" "$LOG"
}

# Prints the packets of a transaction up to its updates: id 1, TXID of 32
# digits.
transaction_head() { # TXID REPO
	local git_dir="git-dir $2" dev_ino
	dev_ino=$(stat -c '%d %i' "$2")
	printf '0011transaction 10029txid %s%04x%s%04xcommon-dir %s' "$1" \
		$((${#git_dir} + 4)) "$git_dir" $((${#dev_ino} + 15)) "$dev_ino"
	printf '0016object-format sha1000eumask 00220001'
}

# 48 bits of now, the rest made up.
new_txid() {
	printf '%012x%04x%04x%04x%08x\n' "$(date +%s%3N)" $RANDOM $RANDOM \
		$RANDOM $BASHPID
}
