#!/bin/bash
# Proves that refd's hook keeps every rule that receive-pack has for a ref:
# names, the branch that is checked out in any work tree, deletions, fast
# forwards, the update hook, namespaces, symbolic refs, the
# reference-transaction hook; atomic and not. Every push goes to two equal
# servers, one with refd, one with git alone. Status, report, messages, refs and
# reflogs must be the same. GIT names a different git to compare with.
# Slow: it pushes hundreds of times, to two servers.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/push_pair.sh
. "$(dirname "$0")/../lib/push_pair.sh"

# With a setting; empty: unset.
server_with() { # bare_server|tree_server KEY VALUE
	eval "make_server() {
		$1 \"\$1\"
		[ -z '$3' ] || git -C \"\$1\" config '$2' '$3'
	}"
}

both_ways() { # REPORTED-AS ARGUMENT...
	push_pair "$@"
	shift
	push_pair "atomic: $*" --atomic "$@"
}

# ---- refs as they come and go ----

plain() {
	make_server() { bare_server "$1"; }
	pair plain
	served_pair 'create, update, force, delete' @ "$two:refs/heads/main" \
		"+$base:refs/heads/other" "$one:refs/heads/new/deep" \
		"$tree:refs/trees/x" ":refs/tags/v1"
	served_pair 'room for a directory' @ ":refs/heads/new/deep" \
		"$one:refs/heads/new"
	served_pair 'room for a file' @ ":refs/heads/new" \
		"$one:refs/heads/new/deep"
	served_pair 'and atomic there is none' --atomic @ \
		":refs/heads/new/deep" "$one:refs/heads/new"
	served_pair 'a directory in the way, and a file' @ \
		"$one:refs/heads/new" "$one:refs/heads/main/x" \
		"$one:refs/heads/fine"
	served_pair 'atomic: a file in the way' --atomic @ \
		"$one:refs/heads/main/x" "$one:refs/heads/finer"
	served_pair 'a tree for a branch' @ "$tree:refs/heads/tree" \
		"$one:refs/heads/tree2"
	# git before 2.51 found this error later, under a different name.
	is_old || served_pair 'atomic: a tree for a branch' --atomic @ \
		"$tree:refs/heads/tree3" "$one:refs/heads/tree4"
	push_pair 'a name that is funny' @ "$one:refs/x" "$one:refs/heads/y"
	push_pair 'atomic: a name that is funny' --atomic @ "$one:refs/x" \
		"$one:refs/heads/z"
	served_pair 'a name of one level may go' @ "$one:refs/heads/one"
	pair_by=git push_pair 'what is not there' @ :refs/heads/nope \
		"$one:refs/heads/beside"

	make_server() {
		bare_server "$1"
		touch "$1/refs/heads/held.lock"
		git -C "$1" config core.filesRefLockTimeout 10
	}
	pair 'a lock that stays'
	served_pair 'costs its ref' @ "$one:refs/heads/held" \
		"$one:refs/heads/free"
	served_pair 'atomic: costs all' --atomic @ "$one:refs/heads/held" \
		"$one:refs/heads/free2"

	make_server() {
		bare_server "$1"
		git -C "$1" pack-refs --all
		git -C "$1" config core.logAllRefUpdates always
	}
	pair 'packed'
	served_pair 'update and delete' @ "$two:refs/heads/main" \
		:refs/heads/other :refs/tags/v1
}

# ---- settings ----

current_branch() {
	local value
	for value in '' refuse warn ignore true false; do
		server_with tree_server receive.denyCurrentBranch "$value"
		pair "denyCurrentBranch=$value"
		both_ways 'the branch that is checked out' @ \
			"$two:refs/heads/main" "$one:refs/heads/n1"
		push_pair 'its deletion' @ :refs/heads/main
		served_pair 'another one' @ "$one:refs/heads/n2"
	done
	server_with tree_server receive.denyCurrentBranch updateInstead
	pair 'denyCurrentBranch=updateInstead' git
	push_pair 'the branch that is checked out' @ "$two:refs/heads/main" \
		"$one:refs/heads/n1"
	pair_by=daemon served_pair 'another one' @ "$one:refs/heads/n2"
	make_server() {
		tree_server "$1"
		git -C "$1" config --unset core.bare
	}
	pair 'core.bare unset'
	served_pair 'counts as bare' @ "$two:refs/heads/main" \
		"$one:refs/heads/n1"
	make_server() {
		tree_server "$1"
		git -C "$1" checkout -q --detach
	}
	pair 'detached'
	served_pair 'no branch is checked out' @ "$two:refs/heads/main" \
		:refs/heads/other
}

deletions() {
	local value by
	for value in '' refuse warn ignore updateInstead false; do
		server_with bare_server receive.denyDeleteCurrent "$value"
		pair "denyDeleteCurrent=$value"
		push_pair 'of the current branch' @ :refs/heads/main \
			"$one:refs/heads/n1"
		# Where the first push deleted the branch, git does the second.
		by=daemon
		case $value in warn | ignore | false) by=git ;; esac
		pair_by=$by push_pair 'atomic: the same' --atomic @ \
			:refs/heads/main "$one:refs/heads/n1"
		served_pair 'of another one' @ :refs/heads/other
	done
	server_with bare_server receive.denyDeletes true
	pair denyDeletes
	both_ways 'of a branch' @ :refs/heads/other "$one:refs/heads/n1"
	served_pair 'of a tag' @ :refs/tags/v1
	make_server() {
		bare_server "$1"
		git -C "$1" symbolic-ref refs/heads/alias refs/heads/main
		git -C "$1" symbolic-ref HEAD refs/heads/alias
	}
	pair 'HEAD by two links'
	push_pair 'its deletion' @ :refs/heads/main
	served_pair 'another one' @ :refs/heads/other
}

fast_forwards() {
	server_with bare_server receive.denyNonFastForwards true
	pair denyNonFastForwards
	both_ways 'forward and aside' @ "$two:refs/heads/main" \
		"+$one:refs/heads/other"
	both_ways 'back' @ "+$base:refs/heads/main" "$one:refs/heads/n1"
	served_pair 'a tag' @ "+$side:refs/tags/v1"
	served_pair 'deletion and creation' @ :refs/heads/other \
		"$side:refs/heads/again"
	server_with bare_server receive.denyNonFastForwards false
	pair denyNonFastForwards=false
	served_pair 'aside' @ "+$one:refs/heads/other"
}

# ---- work trees ----

worktrees() {
	make_server() {
		bare_server "$1"
		git -C "$1" worktree add -q "$1-wt" other
		git -C "$1" worktree add -q --detach "$1-detached" main
	}
	pair 'bare, with work trees'
	both_ways 'the branch of one' @ "+$one:refs/heads/other" \
		"$two:refs/heads/main"
	push_pair 'its deletion' @ :refs/heads/other
	make_server() {
		tree_server "$1"
		git -C "$1" worktree add -q "$1-wt" other
	}
	pair 'with a second work tree'
	push_pair 'the branch of either' @ "+$one:refs/heads/other" \
		"$two:refs/heads/main" "$one:refs/heads/n1"
	push_pair 'into the second' "@-wt" "+$one:refs/heads/other" \
		"$two:refs/heads/main" "$one:refs/heads/n2" \
		"$one:refs/worktree/own" "$one:refs/bisect/bad"
	make_server() {
		tree_server "$1"
		git -C "$1" config receive.denyCurrentBranch ignore
		git -C "$1" worktree add -q "$1-wt" other
	}
	pair 'with a second work tree, ignored'
	served_pair 'logs of HEAD: the first' @ "+$one:refs/heads/other" \
		"$two:refs/heads/main"
	served_pair 'logs of HEAD: the second' "@-wt" \
		"+$side:refs/heads/other" "+$one:refs/heads/main"
	make_server() {
		tree_server "$1"
		git -C "$1" checkout -q -b rebased other
		git -C "$1" checkout -q --detach
		mkdir "$1/.git/rebase-merge"
		echo refs/heads/rebased >"$1/.git/rebase-merge/head-name"
		echo "$one" >"$1/.git/rebase-merge/onto"
		echo bisected >"$1/.git/BISECT_START"
		: >"$1/.git/BISECT_LOG"
	}
	pair 'rebase and bisection'
	push_pair 'their branches' @ "+$two:refs/heads/rebased" \
		"$two:refs/heads/bisected" "$two:refs/heads/main"
}

# ---- names that lead to other refs ----

namespaces() {
	make_server() {
		bare_server "$1"
		git -C "$1" update-ref refs/namespaces/t/refs/heads/a "$base"
		git -C "$1" update-ref \
			refs/namespaces/t/refs/namespaces/u/refs/heads/a "$base"
		git -C "$1" symbolic-ref refs/namespaces/t/HEAD \
			refs/namespaces/t/refs/heads/a
	}
	pair namespace
	GIT_NAMESPACE=t served_pair 'create, update' @ "$one:refs/heads/a" \
		"$one:refs/heads/main"
	GIT_NAMESPACE=t served_pair 'delete' @ :refs/heads/a
	GIT_NAMESPACE=t/u served_pair 'nested' @ "$one:refs/heads/a" \
		"$one:refs/heads/new" "$tree:refs/heads/tree"
	GIT_NAMESPACE=t push_pair 'funny' @ "$one:refs/x"
	make_server() {
		tree_server "$1"
		git -C "$1" symbolic-ref refs/namespaces/t/refs/heads/s \
			refs/namespaces/t/refs/heads/d
	}
	pair 'namespace and work tree'
	GIT_NAMESPACE=t push_pair 'the branch checked out beside it' @ \
		"$one:refs/heads/main" "$one:refs/heads/n1"
	GIT_NAMESPACE=t served_pair 'symbolic' @ "$one:refs/heads/s2"
	is 'namespace: the update hook sees what git shows it' '' \
		"$(GIT_NAMESPACE=t update_hook_log)"
}

# Compares the names that an update hook got on both servers.
update_hook_log() {
	make_server() {
		bare_server "$1"
		# shellcheck disable=SC2016 # for the hook
		printf '#!/bin/sh\necho "$@" >>"$HOOK_LOG"\n' >"$1/hooks/update"
		chmod +x "$1/hooks/update"
	}
	pair 'namespace and hook' >/dev/null
	push_one git @ "$one:refs/heads/a"
	push_one refd @ "$one:refs/heads/a"
	[ -s "$T/hook-log.git" ] || echo nothing
	diff "$T/hook-log.git" "$T/hook-log.refd"
}

symrefs() {
	make_server() {
		bare_server "$1"
		git -C "$1" config core.logAllRefUpdates always
		git -C "$1" symbolic-ref refs/heads/sym refs/heads/other
		git -C "$1" symbolic-ref refs/heads/sym2 refs/heads/sym
		git -C "$1" symbolic-ref refs/remotes/x/HEAD refs/heads/main
	}
	pair symrefs
	served_pair 'follows one' @ "+$one:refs/heads/sym"
	served_pair 'follows two, and one to HEAD' @ "+$two:refs/heads/sym2" \
		"$two:refs/remotes/x/HEAD"
	served_pair 'deletes what it leads to' @ :refs/heads/sym
}

# ---- hooks ----

update_hook() {
	make_server() {
		bare_server "$1"
		cat >"$1/hooks/update" <<-'END'
			#!/bin/sh
			echo "$0 $*, reading $(cat | wc -c)" >>"$HOOK_LOG"
			env | grep ^GIT_ | sort >>"$HOOK_LOG"
			pwd >>"$HOOK_LOG"
			echo "out of $1"
			echo "err of $1" >&2
			case $1 in
			refs/heads/no*) exit 3 ;;
			refs/heads/killed) kill -9 $$ ;;
			esac
		END
		chmod +x "$1/hooks/update"
	}
	pair 'update hook'
	served_pair 'takes, and declines' @ "$two:refs/heads/main" \
		"$one:refs/heads/no1" "$one:refs/heads/killed" \
		":refs/heads/other" "+$side:refs/tags/v1"
	push_pair 'atomic: declines' --atomic @ "$one:refs/heads/a1" \
		"$one:refs/heads/no1" "$one:refs/heads/z1"
	served_pair 'atomic: takes' --atomic @ "$one:refs/heads/a1" \
		"$one:refs/heads/z1"
	make_server() {
		tree_server "$1"
		git -C "$1" worktree add -q "$1-wt" other
		mkdir "$1/my hooks"
		# shellcheck disable=SC2016 # for the hook
		printf 'echo "$0 $*"; test "$1" != refs/heads/no\n' \
			>"$1/my hooks/update"
		chmod +x "$1/my hooks/update"
		printf '#!/bin/sh\nexec "%s" hook proc-receive\n' "$REFD" \
			>"$1/my hooks/proc-receive"
		chmod +x "$1/my hooks/proc-receive"
		git -C "$1" config core.hooksPath "$1/my hooks"
	}
	pair 'update hook in core.hooksPath, no #!'
	served_pair 'takes, and declines' @ "$one:refs/heads/n1" \
		"$one:refs/heads/no"
	served_pair 'into a second work tree' "@-wt" "$one:refs/heads/n2" \
		"$one:refs/heads/no"
	make_server() {
		bare_server "$1"
		printf '#!/bin/sh\nexit 1\n' >"$1/hooks/update"
	}
	pair 'update hook, not executable'
	served_pair 'is not run' @ "$one:refs/heads/n1"
}

reftx_hook() {
	local phase=$1
	eval "make_server() {
		bare_server \"\$1\"
		cat >\"\$1/hooks/reference-transaction\" <<-'END'
			#!/bin/sh
			input=\$(cat)
			test -n \"\$input\" || exit 0
			echo \"\$0 \$1 \$(pwd)\" >>\"\$HOOK_LOG\"
			echo \"\$input\" >>\"\$HOOK_LOG\"
			case \"\$1 \$input\" in
			'$phase '*refs/heads/no*) exit 1 ;;
			esac
		END
		chmod +x \"\$1/hooks/reference-transaction\"
	}"
}

reference_transaction() {
	reftx_hook none
	pair reference-transaction
	served_pair 'creates one' @ "$one:refs/heads/n1"
	served_pair 'updates the current branch' @ "$two:refs/heads/main"
	served_pair 'deletes one' @ :refs/heads/other
	served_pair 'atomic: three' --atomic @ "$one:refs/heads/n2" \
		"$one:refs/heads/main2" :refs/heads/n1
	served_pair 'three' @ "$one:refs/heads/n4" "$one:refs/heads/n5" \
		"$one:refs/heads/n6"
	served_pair 'one of each kind' @ "$one:refs/heads/n7" \
		:refs/heads/n4 "$one:refs/heads/n8" :refs/heads/n5
	served_pair 'three, one in the way of another' @ \
		"$two:refs/heads/n6" "$one:refs/heads/n7/x" \
		"$one:refs/heads/n9"
	served_pair 'one that can not be' @ "$one:refs/heads/n7/x"
	reftx_hook prepared
	pair 'reference-transaction declines prepared'
	push_pair_state 'some' @ "$one:refs/heads/n1" "$one:refs/heads/no" \
		:refs/heads/other
	push_pair_state 'one' @ "$one:refs/heads/no"
	reftx_hook none
	eval "reftx_$(declare -f make_server)"
	make_server() {
		reftx_make_server "$1"
		git -C "$1" config receive.denyDeletes true
	}
	pair 'reference-transaction, no deletions'
	served_pair 'the rest, after a refused deletion' @ :refs/heads/other \
		"$one:refs/heads/n1" "$one:refs/heads/n2"
	! is_old || return
	push_pair_state 'atomic' --atomic @ "$one:refs/heads/n1" \
		"$one:refs/heads/no"
	reftx_hook preparing
	pair 'reference-transaction declines preparing'
	push_pair_state 'atomic' --atomic @ "$one:refs/heads/n1" \
		"$one:refs/heads/no"
}

# Each hook is called at the same point as in git.
both_hooks() {
	reftx_hook prepared
	eval "reftx_$(declare -f make_server)"
	make_server() {
		reftx_make_server "$1"
		cat >"$1/hooks/update" <<-'END'
			#!/bin/sh
			echo "$0 $*" >>"$HOOK_LOG"
			test "$1" != refs/heads/never
		END
		chmod +x "$1/hooks/update"
	}
	pair 'update and reference-transaction'
	served_pair 'one of each kind' @ "$one:refs/heads/n1" \
		:refs/heads/other "$one:refs/heads/never" "$one:refs/heads/n2"
	is_old || push_pair_state 'declined by either' @ "$one:refs/heads/n3" \
		:refs/tags/v1 "$one:refs/heads/no" "$one:refs/heads/never"
}

# ---- cost ----

# Counts the git processes of a push, including the push itself.
gits_of() { # refd|git ARGUMENT...
	rm -f "$T/trace"
	GIT_TRACE2_EVENT=$T/trace push_one "$@"
	grep -c '"event":"start"' "$T/trace"
}

cost() {
	local alone
	make_server() { bare_server "$1"; }
	pair cost
	alone=$(gits_of git @ "$two:refs/heads/main" :refs/heads/other \
		"$one:refs/heads/n1")
	is 'cost: no git more' "$alone" \
		"$(gits_of refd @ "$two:refs/heads/main" :refs/heads/other \
			"$one:refs/heads/n1")"
	server_with bare_server receive.denyNonFastForwards true
	pair cost
	alone=$(gits_of git @ "$two:refs/heads/main" :refs/heads/other \
		"$one:refs/heads/n1" "$one:refs/heads/n2")
	is 'cost: one for each branch that must go forward' $((alone + 1)) \
		"$(gits_of refd @ "$two:refs/heads/main" :refs/heads/other \
			"$one:refs/heads/n1" "$one:refs/heads/n2")"
}

check 'the daemon starts' start_daemon
make_work
plain
current_branch
deletions
fast_forwards
worktrees
namespaces
symrefs
update_hook
reference_transaction
both_hooks
cost
finish
