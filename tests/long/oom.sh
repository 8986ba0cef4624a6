#!/bin/bash
# Proves that the command line survives lack of memory. Every allocation of the
# program fails once: in updates, in questions to the daemon, and in the hook of
# a push. Each time the program ends with a message and its own exit code,
# without a signal, and never says a false `ok`.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
OOM=$BUILD/tests/helper/preload_oom.so

if [ ! -e "$OOM" ] || ldd "$REFD" | grep -q 'lib[at]san'; then
	skip oom 'the sanitizers have an allocator of their own'
	finish
fi

# Runs COMMAND... with the NTH allocation failing. Sets $code; 1: fewer
# allocations.
short_of() { # NTH COMMAND...
	local nth=$1
	shift
	rm -f "$T/hit"
	code=0
	LD_PRELOAD=$OOM REFD_OOM_AT=$nth REFD_OOM_HIT=$T/hit timeout 60 "$@" \
		>"$T/said" 2>"$T/err" <"${input:-/dev/null}" || code=$?
	[ -e "$T/hit" ]
}

at() { # REF
	git -C "$repo" rev-parse --verify -q "$1" || true
}

complain() { # NAME NTH WHY
	bad=$((bad + 1))
	[ $bad -gt 5 ] ||
		echo "# $1, allocation $2: $3, code $code: $(head -c 300 "$T/err")"
}

# Checks the rules for every command.
ends_well() { # NAME NTH
	case $code in
	0) ;;
	1 | 75 | 128 | 129) [ -s "$T/err" ] || complain "$1" "$2" 'no message' ;;
	*) complain "$1" "$2" 'how it ended' ;;
	esac
}

# NAME: COMMAND..., in which @ is the number of the allocation, and REF is made.
sweep() { # NAME REF COMMAND...
	local name=$1 ref=$2 nth this failed=0
	shift 2
	bad=0
	for ((nth = 1; nth < 5000; nth++)); do
		this=${ref//@/$nth}
		[ -z "${lines:-}" ] || echo "${lines//@/$nth}" >"$T/in"
		short_of "$nth" "${@//@/$nth}" || break
		ends_well "$name" "$nth"
		[ "$code" = 0 ] || failed=$((failed + 1))
		[ -z "$ref" ] || [ "$code" != 0 ] || [ "$(at "$this")" = "$one" ] ||
			complain "$name" "$nth" 'a false ok'
		# Scripts read the lines of single refs: these must be true,
		# too.
		! grep -q "^ok $this\$" "$T/said" || [ "$(at "$this")" = "$one" ] ||
			complain "$name" "$nth" 'a false line'
	done
	echo "# $name: $((nth - 1)) allocations, $failed times it failed"
	is "$name" 0 $bad
}

check 'the daemon starts' start_daemon
new_repo repo.git bare
repo=$T/repo.git
one=$(new_commit repo.git one)
"$REFD" enable --socket "$SOCKET" "$repo" >/dev/null
git clone -q "$repo" "$T/work" 2>/dev/null

sweep update refs/heads/u@ "$REFD" update -C "$repo" --porcelain \
	refs/heads/u@ "$one"
sweep 'update, for people' refs/heads/p@ "$REFD" update -C "$repo" -m why \
	--create-reflog refs/heads/p@ "$one"
input=$T/in
lines="create refs/heads/s@ $one
create refs/heads/s@b $one
delete refs/heads/u1"
sweep 'update --stdin' refs/heads/s@ "$REFD" update -C "$repo" --porcelain \
	--batch-updates --stdin
lines="start
create refs/heads/t@ $one
prepare
commit"
sweep 'a session' refs/heads/t@ "$REFD" update -C "$repo" --stdin
unset input lines
id=$("$REFD" update -C "$repo" --porcelain refs/heads/last "$one" |
	sed -n 's/^txn \([^ ]*\).*/\1/p')
for command in "query $id" ping status 'stats --json' checkpoint \
	"log --repo $repo"; do
	# shellcheck disable=SC2086
	sweep "$command" '' "$REFD" $command
done
sweep push refs/heads/h@ git -C "$T/work" push -q --porcelain "$repo" \
	"$one:refs/heads/h@"
prints_nothing 'no lock is left' find "$repo" -name '*.lock'
check 'the daemon lives' "$REFD" ping
check 'and stops' stop_daemon
finish
