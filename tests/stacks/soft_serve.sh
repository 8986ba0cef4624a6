#!/bin/bash
# Proves that Soft Serve works with refd: pushes by its own SSH server, with its
# hooks. The daemon runs as its account. History names its user, and the gate
# records what the server itself changes by git.

# The sources of this version are in the Go module proxy, if it may serve them.
# shellcheck disable=SC2034 # for stack.sh
stack_go='soft github.com/charmbracelet/soft-serve v0.12.2 ./cmd/soft'

# shellcheck source=tests/lib/stack.sh
. "$(dirname "$0")/../lib/stack.sh"
# shellcheck source=tests/lib/stack_push.sh
. "$ROOT/tests/lib/stack_push.sh"

add_user git
add_pusher alice
make_work alice
pusher=alice
daemon_user=git
install -d -o git -g git /srv/soft
exec_as git SOFT_SERVE_DATA_PATH=/srv/soft SOFT_SERVE_INITIAL_ADMIN_KEYS="$(
	cat /home/alice/.ssh/id_ed25519.pub)" soft serve \
	>>"$T/soft.log" 2>&1 </dev/null &
own $!

soft() { # COMMAND...
	as alice ssh -p 23231 localhost "$@" </dev/null
}
repo_of() {
	if [ "$1" = refd ]; then
		echo /srv/soft/repos/served.git
	else
		echo /srv/soft/repos/native.git
	fi
}
url_of() {
	echo "ssh://localhost:23231/$(basename "$(repo_of "$1")" .git)"
}

# The server's own hooks run all programs of a directory.
add_hooks() { # REPOSITORY
	local name
	for name in pre-receive update post-receive post-update; do
		install -o git -g git -m 755 "$T/hooks/$name" \
			"$1/hooks/$name.d/$name"
	done
}

check 'Soft Serve answers' await 20 quietly soft info 2>/dev/null
stack_hooks "$T/hooks"
for name in served native; do
	check "$name is made" quietly soft repo create $name
	repo=/srv/soft/repos/$name.git
	as git git -C $repo config core.logAllRefUpdates true
	as git git -C $repo config receive.denyNonFastForwards true
	add_hooks $repo
done

stack='Soft Serve, a repository enabled'
start_refd /srv/soft/repos
check "$stack: enabled" quietly as git refd enable "$(repo_of refd)"
stack_pushes
is "$stack: history names the user" 'git (admin)' \
	"$(as git refd log -n 1 | cut -f 3)"
check "$stack: disabled" quietly as git refd disable "$(repo_of refd)"

stack='Soft Serve, with the gate'
check "$stack: enabled" quietly as git refd enable --gate "$(repo_of refd)"
both 'a push' 1 main:refs/heads/more
check "$stack: the server deletes a branch" \
	quietly soft repo branch delete served more
is "$stack: and history has it" 'refs/heads/more deleted' "$(as git refd log \
	--repo "$(repo_of refd)" -n 1 | cut -f 5,6 | tr '\t' ' ' |
	cut -d ' ' -f 1,2)"
check "$stack: disabled" quietly as git refd disable "$(repo_of refd)"
finish
