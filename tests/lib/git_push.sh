# shellcheck shell=bash disable=SC2034 # variables for the sourcing script
# git's tests of pushing, with receive-pack's hook; sourced by
# scripts/git-tests.
#
#	push_files
#	push_http
#
# are the tests, and the tests which only push by HTTP. --quick runs the tests
# in push_quick, --all the tests that
#
#	push_all DIR
#
# prints: all tests that push, in a directory of git's tests, except tests that
# need more of git's build than there is.
#
#	push_stage EXEC NAME=VALUE...
#
# completes EXEC (tests/lib/git_source.sh), into which tests/git-shim was
# copied. git-receive-pack there is the shim's. Its settings are in a file
# beside it, because a web server passes on little of its environment.
#
#	push_list FILE VERSION FORMAT
#	push_compare NAME PASSED SKIPPED LISTED LEFT
#
# read the rows of this git from tests/git-tests.push, and compare a row. The
# last row of a file counts. push_words describes a difference.
#
#	push_clean DIR
#
# ends the web servers of tests below DIR that were ended too early.

# t5411 tests the hook itself: here a second hook behind refd's.
push_files=(t1416 t5400 t5401 t5406 t5408 t5409 t5411 t5504 t5507 t5509 t5516
	t5517 t5523 t5528 t5531 t5533 t5534 t5535 t5538 t5543 t5545 t5546 t5547
	t5548 t5571)
push_http=(t5541)
push_quick=(t5400 t5401 t5543)

push_all() { # DIR
	(cd "$1" && grep -lE 'git (-C [^ ]+ )?push|receive-pack' t[0-9]*.sh) |
		grep -Ev '^t5700|svn|cvs' | sed 's/-.*//' | sort
}

push_stage() { # EXEC NAME=VALUE...
	local exec=$1 pair program
	shift
	# scripts/git-new leaves out programs that need more libraries. The
	# installed git's programs serve as well. The tests' build claims that
	# there are none.
	for program in git-http-backend git-remote-http; do
		[ -e "$exec/$program" ] ||
			ln -s "$(git --exec-path)/$program" "$exec"
	done
	sed -i "s/^NO_CURL=.*/NO_CURL=''/" "$exec/../git/GIT-BUILD-OPTIONS"
	for pair; do
		printf ": \"\${%s=%s}\"\n" "${pair%%=*}" "${pair#*=}"
		printf 'export %s\n' "${pair%%=*}"
	done >"$exec/shim-env"
	ln -sfn git-refd-receive-pack "$exec/git-receive-pack"
}

declare -A push_rows=()

push_list() { # FILE VERSION FORMAT
	local key name passed skipped listed left
	while read -r key name passed skipped listed left _; do
		! tap_about "$key" "$2" "$3" ||
			push_rows[$name]="$passed $skipped $listed $left"
	done <"$1"
}

push_compare() { # NAME PASSED SKIPPED LISTED LEFT
	local name=$1 expected=${push_rows[$1]:-}
	shift
	[ "$*" = "$expected" ] && return
	push_words="in tests/git-tests.push: ${expected:-nothing}, now: $*"
	return 1
}

push_clean() { # DIR
	local file pid
	for file in "$1"/trash*/httpd/httpd.pid; do
		[ -e "$file" ] && read -r pid <"$file" && kill "$pid"
	done 2>/dev/null
}
