# shellcheck shell=bash
# For scenarios of two nodes of a group (tests/lib/group_pair.py).

run_cases() { # FILE
	unset REFD_SOCKET REFD_STATE
	while read -r line; do
		case $line in
		ok\ *) ok "${line#ok }" ;;
		not\ ok\ *) not_ok "${line#not ok }" ;;
		skip\ *) skip "${line#skip }" 'no strace' ;;
		*) echo "$line" ;;
		esac
	done < <(python3 -B "$ROOT/tests/lib/$1" "$REFD" "$T" 2>&1)
	check 'all cases have run' test -e "$T/ended"
}
