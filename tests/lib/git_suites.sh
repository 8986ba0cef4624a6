# shellcheck shell=bash
# Runs the tests of the newest git in Debian (scripts/git-tests --suite
# experimental). Needs scenario.sh.
#
#	git_suites HASH FORMAT REFS PUSHES
#
# runs git's tests of refs, with refd update in the place of git update-ref, and
# git's tests of pushing, with refd's hook under each receive-pack, with ids of
# HASH and refs in FORMAT. REFS and PUSHES are the expected sums: "passed
# skipped listed failed".

git_suite() { # NAME SUMS OPTION...
	local name=$1 sums=$2
	shift 2
	check "$name" git_suite_run "$@"
	is "$name: passed, skipped, listed, failed" "$sums" \
		"$(awk '$1 == "all" { print $2, $3, $4, $5 }' "$T/suite")"
}

git_suite_run() { # OPTION...
	GIT_TEST_DEFAULT_HASH=$hash GIT_TEST_DEFAULT_REF_FORMAT=$format \
		"$ROOT/scripts/git-tests" --suite experimental "$@" \
		>"$T/suite" 2>&1 && return
	cat "$T/suite"
	return 1
}

git_suites() { # HASH FORMAT REFS PUSHES
	local hash=$1 format=$2
	git_suite "git's tests of refs, $1, $2" "$3"
	git_suite "git's tests of pushing, $1, $2" "$4" --push
}
