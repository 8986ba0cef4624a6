#!/bin/bash
# Proves that `refd update` runs the reference-transaction hook as git does. For
# the transactions of tests/golden/hk.sh, the hook's phases, place, input and
# the locks at that time must be as in git. Messages and exit status must be
# those of git 2.55, or with --compat=2.39 those of 2.39. Further parts cover
# the hooks of git's configuration, of which each gets the whole input, and a
# client that is killed while its hook runs.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

golden=$ROOT/tests/golden

mkdir "$T/shim"
cat >"$T/shim/git" <<END
#!/bin/sh
[ "\$1" = update-ref ] || exec git "\$@"
shift
exec '$REFD' update \$SHIM_OPTION "\$@"
END
chmod +x "$T/shim/git"

# The calls for packed-refs come right before the calls for all refs. When git
# is about to write packed-refs.new, the file does not yet exist. After the end
# or the failure, git still has its locks. Nothing else may differ.
without() { # SECTION PHASE LOCK
	awk -v section="$1" -v phase="$2" -v lock="$3" '
		/^#####/ { here = section == "" || index($0, section) }
		$2 ~ /^\[/ { now = $2 }
		here && now == phase && index($0, "    locked: " lock) { next }
		{ print }'
}

compare() { # GOLDEN [OPTION]
	export SHIM_OPTION=${2:-}
	mkdir "$T/$1"
	without '' '[committed]' .git/ <"$golden/$1" |
		without packed-refs '[aborted]' .git/ >"$T/wanted"
	(unset REFD_COMPAT && WORKDIR=$T/$1 bash "$golden/hk.sh" "$T/shim/git") \
		2>&1 | without '' '[preparing]' .git/packed-refs.new >"$T/got"
	if diff -u "$T/wanted" "$T/got" >"$T/diff"; then
		ok "$1"
	else
		not_ok "$1" 'differs from what git did'
		cat "$T/diff"
	fi
}

# A git that supports hooks of its configuration. The machine's git may not.
configured() {
	mkdir "$T/newer"
	cat >"$T/newer/git" <<-END
		#!/bin/sh
		case " \$* " in
		*' hook list reference-transaction '*) exit 0 ;;
		*' hook run '*)
			echo "\$*" >>'$T/calls'
			exec cat /dev/stdin /dev/stdin >>'$T/calls'
			;;
		*) PATH=\${PATH#*:} exec git "\$@" ;;
		esac
	END
	chmod +x "$T/newer/git"
	new_repo configured bare
	local repo=$T/configured id
	id=$(new_commit configured first)
	git -C "$repo" config hook.mine.event reference-transaction
	git -C "$repo" config hook.mine.command false
	PATH=$T/newer:$PATH "$REFD" update -C "$repo" refs/heads/b "$id"
	is 'configured: git runs them' "$(
		for phase in preparing prepared committed; do
			echo "hook run --ignore-missing --to-stdin=/dev/stdin" \
				"reference-transaction -- $phase"
			# Each hook opens the input anew.
			echo "$ZERO $id refs/heads/b"
			echo "$ZERO $id refs/heads/b"
		done
	)" "$(cat "$T/calls")"
}

# The first hook reads its input to the end. The second reads the refs, and
# refuses refs/heads/no. It is a file in hooks/, or also in the configuration.
two_hooks() { # file|configured
	local repo=$T/two-$1.git id first=$T/first-$1 second=$T/second-$1
	new_repo "two-$1.git" bare
	id=$(new_commit "two-$1.git" first)
	printf '#!/bin/sh\nexec cat >/dev/null\n' >"$first"
	cat >"$second" <<-END
		#!/bin/sh
		while read -r old new ref; do
			echo "\$1 \$ref" >>'$T/seen'
			[ "\$1 \$ref" != 'prepared refs/heads/no' ] || exit 1
		done
	END
	chmod +x "$first" "$second"
	git -C "$repo" config hook.a.event reference-transaction
	git -C "$repo" config hook.a.command "$first"
	if [ "$1" = file ]; then
		cp "$second" "$repo/hooks/reference-transaction"
	else
		git -C "$repo" config hook.b.event reference-transaction
		git -C "$repo" config hook.b.command "$second"
	fi
	"$REFD" enable --socket "$SOCKET" "$repo" >/dev/null 2>&1
	git -C "$repo" config refd.fallback refuse
	veto "two hooks, $1: update" "$1" "$id" \
		"$REFD" update --git-dir "$repo" "refs/heads/%" "$id"
	git -C "$repo" update-ref -d refs/heads/yes
	veto "two hooks, $1: push" "$1" "$id" \
		git -C "$repo" push -q "$repo" "$id:refs/heads/%"
}

# COMMAND, with the name in the place of %, moves only the ref that the second
# hook accepts, and the second hook sees both.
veto() { # REPORTED-AS file|configured ID COMMAND...
	local said=$1 repo=two-$2.git id=$3
	shift 3
	: >"$T/seen"
	check "$said: accepted" "${@/\%/yes}"
	"${@/\%/no}" >"$T/said" 2>&1
	check "$said: refused" [ $? != 0 ]
	check "$said: by the hook" grep -q 'aborted by .*hook' "$T/said"
	is "$said: the refs" "$id " \
		"$(ref_of "$repo" refs/heads/yes) $(ref_of "$repo" refs/heads/no)"
	is "$said: the second hook reads" \
		"$(printf '%s\n' {preparing,prepared}' refs/heads/'{no,yes} \
			'aborted refs/heads/no' 'committed refs/heads/yes' |
			sort)" "$(sort "$T/seen")"
}

killed() {
	new_repo killed bare
	local repo=$T/killed id pid
	id=$(new_commit killed first)
	cat >"$repo/hooks/reference-transaction" <<-END
		#!/bin/sh
		[ "\$1" = prepared ] || exit 0
		echo \$\$ >'$T/hook.pid'
		exec sleep 60
	END
	chmod +x "$repo/hooks/reference-transaction"
	"$REFD" update -C "$repo" refs/heads/a "$id" &
	pid=$!
	own "$pid"
	check 'killed: the hook runs' await 10 test -s "$T/hook.pid"
	own "$(cat "$T/hook.pid")"
	check 'killed: and the locks stand' \
		test -e "$repo/refs/heads/a.lock"
	kill -KILL "$pid"
	reap "$pid" 2>/dev/null
	check 'killed: they go with the client' \
		await 10 test ! -e "$repo/refs/heads/a.lock"
	is 'killed: and nothing was done' '' "$(ref_of killed refs/heads/a)"
}

check 'the daemon starts' start_daemon
compare hk55.txt
compare hk39.txt --compat=2.39
configured
# For git 2.54 and later: tests/long/reftx.sh.
if is_long; then
	two_hooks file
	two_hooks configured
fi
killed
check 'the daemon stops' stop_daemon
finish
