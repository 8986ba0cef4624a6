# bash completion for refd: what `refd help` and `refd COMMAND -h` say.
# shellcheck shell=bash

_refd() {
	local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]-} words
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		words=$(refd help 2>/dev/null |
			sed -n 's/^    \([a-z-]*\) .*/\1/p')
	elif [[ $word == -* ]]; then
		# --[no-]x is --no-x, and --x.
		words=$(refd "$command" -h 2>/dev/null |
			sed 's/--\[no-\]\([a-z-]*\)/--\1 --no-\1/g' |
			grep -oE -- '--[a-z][a-z-]*')
	elif [ "$command" = disable ]; then
		words=$(refd enable --list 2>/dev/null | cut -c 13-)
	else
		return # files, by -o default
	fi
	local IFS=$'\n'
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word" | sort -u)
}
complete -o bashdefault -o default -F _refd refd
