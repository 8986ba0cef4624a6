#!/bin/bash
# Proves that plain make builds hardened programs and a hardened library: random
# addresses, tables for library calls that are read-only from the start, no
# executable stack, and the compiler's checks.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

dynamic() { # FILE WORD
	readelf -dW "$1" | grep -E '\(FLAGS(_1)?\)' | grep -qw "$2"
}

segment() { # FILE TYPE RIGHTS
	readelf -lW "$1" | awk -v type="$2" -v rights="$3" '
		$1 == type && $7 == rights { is = 1 }
		END { exit !is }'
}

for file in "$BUILD"/bin/refd{,-daemon,-admin,-deliver,-group} \
	"$BUILD"/lib/librefd{,-git2}.so; do
	name=${file##*/}
	check "$name: calls are bound at the start" dynamic "$file" BIND_NOW
	check "$name: and read-only from then on" segment "$file" GNU_RELRO R
	check "$name: no stack is executable" segment "$file" GNU_STACK RW
	[[ $name = *.so ]] ||
		check "$name: it is placed at random" dynamic "$file" PIE
done

# Every object built with these flags is built again when the flags change.
flags=$(tr ' ' '\n' <"$BUILD/stamp/flags")
has_flag() { # REGULAR-EXPRESSION
	grep -qxE -e "$1" <<<"$flags"
}

check 'functions check their stack' has_flag -fstack-protector-strong
check 'and probe each page of it' has_flag -fstack-clash-protection
# Neither works together with a sanitizer, or without optimization.
if ! has_flag '-fsanitize=.*|--coverage|-O0'; then
	version=$(gcc -dumpversion)
	level=$((${version%%.*} >= 12 ? 3 : 2))
	is 'sizes of buffers are checked' "-D_FORTIFY_SOURCE=$level" \
		"$(grep FORTIFY_SOURCE= <<<"$flags" | tail -n 1)"
	case $(uname -m) in
	x86_64) what='IBT, SHSTK' ;;
	aarch64) what='BTI, PAC' ;;
	*) what= ;;
	esac
	for file in "$BUILD"/lib/lib{daemon,refd}.a; do
		[ -n "$what" ] || break
		is "${file##*/}: jumps are protected in every object" \
			"$(ar t "$file" | wc -l)" \
			"$(readelf -n "$file" | grep -c "Properties:.*$what")"
	done
fi

finish
