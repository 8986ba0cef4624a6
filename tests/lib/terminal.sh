# shellcheck shell=bash
# Terminals for scenarios: a private tmux server, without the configuration and
# the sockets of the user. No terminal of the caller is needed. A scenario
# sources this file behind scenario.sh.
#
#	terminal_start || finish
#	terminal NAME COLUMNS COMMAND...
#	terminal_ended NAME && terminal_screen NAME
#	terminal_stop

# A socket in T, so that scripts/run-tests may run several scenarios.
terminal_tmux() {
	TMUX_TMPDIR=$T tmux -u -L refd -f /dev/null "$@"
}

# Prints `skip` and returns 1 without tmux. A server without a session would
# end.
terminal_start() {
	if ! command -v tmux >/dev/null; then
		skip terminal 'no tmux: scripts/deps --test'
		return 1
	fi
	terminal_tmux new-session -d -s first -x 80 -y 24 sleep 3600 || return
	own "$(terminal_tmux display-message -p -t first '#{pid}')"
}

terminal_stop() {
	terminal_tmux kill-server
}

# Runs the command in a new terminal of 24 lines. The title of the terminal
# shows the end of the command, behind all its output.
terminal() { # NAME COLUMNS COMMAND...
	local name=$1 columns=$2
	shift 2
	# shellcheck disable=SC2016 # The inner shell expands "$@".
	terminal_tmux new-session -d -s "$name" -x "$columns" -y 24 sh -c \
		'"$@"; printf "\033]2;ended %s\007" $?; exec sleep 3600' sh "$@"
}

terminal_title() { # NAME
	terminal_tmux display-message -p -t "$1" '#{pane_title}'
}

# True if the command has ended with STATUS.
terminal_has_ended() { # NAME STATUS
	[ "$(terminal_title "$1")" = "ended $2" ]
}

# Waits until the command ends with STATUS.
terminal_ended() { # NAME [STATUS]
	await 10 terminal_has_ended "$1" "${2:-0}"
}

# Prints the screen. With -e, colours are sequences; a line begins without
# colour.
terminal_screen() { # NAME [-e]
	terminal_tmux capture-pane -p ${2:+"$2"} -t "$1"
}

# True if a line of the screen matches the extended regular expression.
terminal_shows() { # NAME PATTERN
	terminal_screen "$1" | grep -qE -- "$2"
}

# Presses keys, by their names in tmux.
terminal_press() { # NAME KEY...
	terminal_tmux send-keys -t "$@"
}
