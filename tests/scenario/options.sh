#!/bin/bash
# The command line of every command of refd: an unknown option, a value that is
# missing or too much, options that exclude each other, arguments that are
# missing or too many, and "--". Each error is named on standard error behind
# refd's prefix, or git's, and the exit status is 129 (64 for the daemon). The
# help has an example that the command can parse.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

cd "$T" || exit 1
export REFD_SOCKET="$T/no.sock" REFD_STATE="$T/no" GIT_DIR="$T/repo/.git"
new_repo repo

mapfile -t commands < <("$REFD" help | sed -n 's/^    \([a-z-]*\) .*/\1/p')

status_of() { # COMMAND
	[ "$1" = daemon ] && echo 64 || echo 129
}

prefix_of() { # COMMAND
	case $1 in
	update | hook) echo 'error: ' ;;
	daemon) echo '.* error: event=start-failed text="' ;;
	*) echo 'refd: ' ;;
	esac
}

refuses() { # NAME TEXT COMMAND ARGUMENT...
	local name=$1 text=$2 status
	shift 2
	"$REFD" "$@" >"$T/out" 2>"$T/err" </dev/null
	status=$?
	is "$name: status" "$(status_of "$1")" "$status"
	check "$name: reason" grep -qF -- "$text" "$T/err"
	check "$name: prefix" grep -q "^$(prefix_of "$1")" <(head -n 1 "$T/err")
	is "$name: output" '' "$(cat "$T/out")"
}

arguments() { # COMMAND
	case $1 in
	hook) echo proc-receive ;;
	query) echo 00000000000000000000000000000000 ;;
	wait) echo 00000000000000000000000000000000:1 ;;
	restore) echo --at 1 ;;
	enable | disable | disown | verify) echo repo ;;
	esac
}

for command in "${commands[@]}"; do
	mapfile -t -d ' ' with < <(arguments "$command" | tr '\n' ' ')
	refuses "$command --frob" "unknown option \`frob'" \
		"$command" --frob "${with[@]}"
	refuses "$command -q" "unknown switch \`q'" \
		"$command" -q "${with[@]}"
	refuses "$command --help=yes" "option \`help' takes no value" \
		"$command" --help=yes "${with[@]}"
	"$REFD" "$command" -h >"$T/help" 2>"$T/err"
	is "$command -h: status" 0 $?
	is "$command -h: errors" '' "$(cat "$T/err")"
	check "$command -h: usage" grep -q "^usage: refd $command" "$T/help"
	"$REFD" help "$command" >"$T/help2"
	is "help $command" "$(cat "$T/help")" "$(cat "$T/help2")"
	check "$command -h: purpose" grep -qE '^[A-Z][^:]*( |\.$)' "$T/help"
	check "$command -h: manual" grep -qE \
		'^Manual: refd(-[a-z]+|\.conf)?\([158]\)$' "$T/help"
	# In front of -h, all options of the example are parsed.
	example=$(sed -n "s/^    refd \($command\)/\1/p" "$T/help")
	eval "'$REFD' $example -h" >"$T/help2" 2>"$T/err"
	is "$command -h: example" "0 $(cat "$T/help")" "$? $(cat "$T/help2" "$T/err")"
	# Each option that the help lists with an argument needs one.
	while read -r option; do
		refuses "$command $option" "option \`${option#--}' requires" \
			"$command" "${with[@]}" "$option"
	done < <(sed -nE 's/^    (-., )?(--[a-z-]+) [^ ].*/\2/p' "$T/help")
	while read -r option; do
		refuses "$command $option=x" "option \`${option#--}' takes no" \
			"$command" "${with[@]}" "$option=x"
	done < <(sed -nE 's/^    (-., )?(--[a-z-]+)(  .*)?$/\2/p' "$T/help")
done

# ---- similar names ----

refuses 'a mistyped option' '; did you mean --json?' status --jsno
refuses 'of refd-admin' '; did you mean --repair?' verify --repiar repo
refuses 'of the daemon' '; did you mean --socket?' daemon --sokcet x
"$REFD" update --jsno 2>"$T/err"
is 'as in git: none' "error: unknown option \`jsno'" "$(head -n 1 "$T/err")"
"$REFD" lgo 2>"$T/err"
is 'a mistyped command: status' 129 $?
is 'a mistyped command' "refd: 'lgo' is not a command; did you mean refd log?" \
	"$(cat "$T/err")"

for command in ping log watch status stats top slowlog locks pause drain \
	resume checkpoint recover daemon; do
	refuses "$command x" "unexpected argument 'x'" "$command" x
	refuses "$command -- --json" "unexpected argument '--json'" \
		"$command" -- --json
done
refuses 'query a b' "unexpected argument 'b'" query a b
refuses 'check-config a b' "unexpected argument 'b'" check-config a b
refuses 'hook a' "'a' is no hook" hook a
refuses 'query' 'missing argument: <transaction id>' query
refuses 'hook' 'missing argument: proc-receive' hook
for command in disown verify enable disable; do
	refuses "$command" 'missing argument: <repository>...' "$command"
done
refuses 'restore' "option \`at' is required" restore

refuses 'stats' "\`json' and \`prometheus' exclude" stats --json --prometheus
refuses 'log' "\`verbose' and \`json' exclude" log --json -v
refuses 'restore' "\`dry-run' and \`force' exclude" restore --at 1 -n --force
refuses 'enable' "\`all' and \`list' exclude" enable --all --list
refuses 'disable' "\`all' and \`system' exclude" disable --system --all
refuses 'enable --all x' "unexpected argument 'x'" enable --all x
refuses 'enable --root' 'unexpected option --root' enable --root / x
refuses 'disable --root' 'unexpected option --root' disable --root / x
refuses 'disable --all x' "unexpected argument 'x'" disable --all x
refuses 'recover' "\`adopt' and \`discard' exclude" recover --adopt --discard
refuses 'doctor' 'takes no repository' doctor --all x

refuses 'ping --wait' "from 0 to 86400, not 'x'" ping --wait x
refuses 'drain --timeout' "from 1 to 86400, not '0'" drain --timeout 0
refuses 'top --interval' "from 1 to 86400, not '-1'" top --interval=-1
refuses 'log -n' "takes a number, not '1x'" log -n 1x
refuses 'restore --timeout' "not '0'" restore --at 1 --timeout 0
refuses 'update --timeout' "not '0'" update --timeout 0 --stdin
refuses 'update --txid' "takes 32 hexadecimal digits, not 'x'" \
	update --txid x --stdin
refuses 'daemon --ready-fd' "not '2'" daemon --ready-fd 2

finish
