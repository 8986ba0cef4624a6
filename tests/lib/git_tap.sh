# shellcheck shell=bash
# Reads what one of git's test files reported; sourced by scripts/git-tests.
#
#	tap_read NAME FILE LIST VERSION
#
# FILE is the output of the tests NAME (t1400), in the Test Anything Protocol;
# LIST is tests/git-tests.skip; VERSION is git's. Sets tap_passed, tap_skipped (for what the
# machine lacks, or known to git to be broken), tap_listed (failed, and in the
# list), tap_failed, and tap_words: a line for each test that failed or is
# listed in vain. A file that ended before its plan has one failure more.

# The numbers of NAME's tests that are in the list, for this version of git.
tap_listed_numbers() { # NAME LIST VERSION
	local only number
	while read -r only number _; do
		[[ $3 != "$only".* || $number != "$1".* ]] ||
			echo "${number#*.}"
	done <"$2"
}

tap_one() { # LINE
	local line=$1 number
	number=${line#not }
	number=${number#ok }
	number=${number%% *}
	case $line in
	'ok '*'# skip '*) tap_skipped=$((tap_skipped + 1)) ;;
	'not ok '*'# TODO known breakage') tap_skipped=$((tap_skipped + 1)) ;;
	'ok '*)
		tap_passed=$((tap_passed + 1))
		[ -z "${listed[number]:-}" ] ||
			tap_words+="listed, but passes: ${line#ok }"$'\n'
		;;
	'not ok '*)
		if [ -n "${listed[number]:-}" ]; then
			tap_listed=$((tap_listed + 1))
		else
			tap_failed=$((tap_failed + 1))
			tap_words+="failed: ${line#not ok }"$'\n'
		fi
		;;
	esac
}

tap_read() { # NAME FILE LIST
	local line plan listed=() number
	tap_passed=0 tap_skipped=0 tap_listed=0 tap_failed=0 tap_words=
	for number in $(tap_listed_numbers "$1" "$3" "$4"); do
		listed[number]=yes
	done
	while IFS= read -r line; do
		tap_one "$line"
	done < <(grep -E '^(not )?ok [0-9]+' "$2")
	plan=$(sed -nE 's/^1\.\.([0-9]+).*/\1/p' "$2")
	if [ "${plan:-none}" != \
		$((tap_passed + tap_skipped + tap_listed + tap_failed)) ]; then
		tap_failed=$((tap_failed + 1))
		tap_words+="ended before it was finished"$'\n'
	fi
	tap_words=${tap_words%$'\n'}
}
