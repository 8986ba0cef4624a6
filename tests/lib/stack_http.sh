# shellcheck shell=bash
# Common parts of the stacks of git-http-backend; sourced after stack.sh. A web
# server with the CGI account www-data has /git/served and /git/native behind a
# password. The web server's user names identify the users.

# shellcheck source=tests/lib/stack_push.sh
. "$ROOT/tests/lib/stack_push.sh"

stack_web_repos() { # OWNER [GIT-INIT-OPTION...]
	local owner=$1 name
	shift
	install -d -o "$owner" -g "$owner" /srv/git/served /srv/git/native
	for name in served native; do
		as "$owner" git init -q --bare "$@" "/srv/git/$name/project.git"
		prepare_repo "/srv/git/$name/project.git" "$owner"
	done
}
repo_of() {
	if [ "$1" = refd ]; then
		echo /srv/git/served/project.git
	else
		echo /srv/git/native/project.git
	fi
}
url_of() {
	echo "http://alice:secret@127.0.0.1$(repo_of "$1" | sed s,^/srv,,)"
}

await_web() {
	await 10 as alice git ls-remote "$(url_of git)" >/dev/null 2>&1
}

# The reflog names the user that the web server admitted.
pusher_is_noted() {
	is "$stack: who is noted" 'alice <alice@http.127.0.0.1>' \
		"$(sed -E 's/^[^ ]+ [^ ]+ (.*>) .*/\1/' \
			"$(repo_of refd)/logs/refs/heads/main")"
}
