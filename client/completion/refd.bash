# bash completion for refd: the commands of `refd help`, the options of `refd
# COMMAND -h`, refs, users, and the repositories of `refd enable --list`. Where
# nothing is offered, bash completes files.
# shellcheck shell=bash

# The functions use the local variables of _refd.

# Offers the lines of standard input that begin with the word. compgen -W would
# run commands that are hidden in the name of a ref or a directory.
_refd_offer() {
	local line quoted
	while IFS= read -r line; do
		printf -v quoted %q "$line"
		if [[ $line == "$word"* || $quoted == "$word"* ]]; then
			COMPREPLY+=("$quoted")
		fi
	done
}

_refd_commands() {
	refd help 2>/dev/null | sed -n 's/^    \([a-z-]*\) .*/\1/p'
}

# --[no-]x is --no-x, and --x.
_refd_options() {
	sed -n 's/^    \(-[^ ]*\( --[^ ]*\)*\).*/\1/p' <<<"$help" |
		sed 's/--\[no-\]\([a-z-]*\)/--\1 --no-\1/g' |
		grep -oE -- '--[a-z][a-z-]*' | sort -u
}

_refd_repositories() { # STATE-TO-LEAVE-OUT
	refd enable --list 2>/dev/null |
		grep -vE "^$1 |  system\$" | cut -c 13-
}

_refd_refs() {
	local dir=. at before=
	for at in "${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
		case $before in --repo | --git-dir | -C) dir=${at//\\/} ;; esac
		[ "$at" = = ] || before=$at
	done
	git -C "${dir/#\~/$HOME}" for-each-ref --count=1000 \
		--format='%(refname)' "$word*" "$word*/**" 2>/dev/null
}

_refd() {
	local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]-}
	local before=${COMP_WORDS[COMP_CWORD - 1]} help
	COMPREPLY=()
	# --repo=x is three words.
	[ "$before" = = ] && before=${COMP_WORDS[COMP_CWORD - 2]}
	[ "$word" = = ] && word=
	if [ "$COMP_CWORD" -eq 1 ]; then
		_refd_offer < <(_refd_commands)
		return
	fi
	help=$(refd "$command" -h 2>/dev/null)
	# Does the word before need a value?
	if ! [[ $before =~ ^--?[a-zA-Z-]+$ ]] ||
		! grep -qE -- "^    (-., )?$before(, --[a-z-]+)? [A-Z<]" \
			<<<"$help"; then
		before=
	fi
	if [[ -z $before && $word == -* ]]; then
		_refd_offer < <(_refd_options)
		return
	fi
	case $before:$command in
	--durability:*)
		_refd_offer < <(grep -oE '^ *--durability MODE .*' <<<"$help" |
			cut -d E -f 2- | sed 's/ or /,/' | tr -d ' ' | tr , '\n')
		;;
	--color:*) _refd_offer < <(printf '%s\n' always auto never) ;;
	--compat:*) _refd_offer < <(printf '%s\n' 2.39 2.55) ;;
	--ref:* | :update) _refd_offer < <(_refd_refs) ;;
	--user:*) _refd_offer < <(compgen -u) ;;
	--repo:* | :doctor | :verify | :disown | :pack | :look)
		_refd_offer < <(_refd_repositories gone)
		;;
	--forget:*) _refd_offer < <(_refd_repositories enabled) ;;
	:disable) _refd_offer < <(_refd_repositories none) ;;
	:help) _refd_offer < <(_refd_commands) ;;
	:hook) _refd_offer < <(echo proc-receive) ;;
	esac
}
complete -o bashdefault -o default -F _refd refd
