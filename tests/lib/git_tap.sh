# shellcheck shell=bash
# Reads the report of one of git's test files; sourced by scripts/git-tests.
#
#	tap_about KEY VERSION FORMAT
#
# tells whether KEY, the first word of a row, is about this version of git and
# this format of refs: "2.55" is about all formats, "2.55/reftable" about one.
#
#	tap_list FILE VERSION FORMAT
#	tap_listed NAME WHAT
#
# read the entries of this git from tests/git-tests.skip, and tell whether WHAT,
# a test's number or "left", is an entry of the tests NAME (t1400).
#
#	tap_read NAME FILE
#
# FILE is the output of the tests, in the Test Anything Protocol. Sets
# tap_passed, tap_skipped (the machine lacks something, or git knows the test as
# broken), tap_failed, tap_differ (failed, and listed), and tap_words: a line
# for each test that failed or is listed without need. A file that ended before
# its plan counts as one more failure.

declare -A tap_list=()

tap_about() { # KEY VERSION FORMAT
	[[ $2 = "${1%/*}".* ]] && [[ $1 != */* || ${1#*/} = "$3" ]]
}

tap_list() { # FILE VERSION FORMAT
	local key what
	while read -r key what _; do
		! tap_about "$key" "$2" "$3" || tap_list[$what]=yes
	done <"$1"
}

tap_listed() { # NAME WHAT
	[ -n "${tap_list[$1.$2]:-}" ]
}

tap_line() { # NAME LINE
	local words=${2#not }
	words=${words#ok }
	case $2 in
	'ok '*'# skip '* | 'not ok '*'# TODO known breakage')
		tap_skipped=$((tap_skipped + 1))
		;;
	'ok '*)
		tap_passed=$((tap_passed + 1))
		! tap_listed "$1" "${words%% *}" ||
			tap_words+="listed, but passes: $words"$'\n'
		;;
	*)
		if tap_listed "$1" "${words%% *}"; then
			tap_differ=$((tap_differ + 1))
		else
			tap_failed=$((tap_failed + 1))
			tap_words+="failed: $words"$'\n'
		fi
		;;
	esac
}

tap_read() { # NAME FILE
	local line plan
	tap_passed=0 tap_skipped=0 tap_differ=0 tap_failed=0 tap_words=
	while IFS= read -r line; do
		tap_line "$1" "$line"
	done < <(grep -E '^(not )?ok [0-9]+' "$2")
	plan=$(sed -nE 's/^1\.\.([0-9]+).*/\1/p' "$2")
	if [ "${plan:-none}" != \
		$((tap_passed + tap_skipped + tap_differ + tap_failed)) ]; then
		tap_failed=$((tap_failed + 1))
		tap_words+="ended before it was finished"$'\n'
	fi
	tap_words=${tap_words%$'\n'}
}
