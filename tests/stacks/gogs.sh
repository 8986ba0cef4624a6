#!/bin/bash
# Proves that Gogs works with refd: pushes by HTTP, with its hooks. The daemon
# runs as its account, and history names its user.

# shellcheck disable=SC2034 # for stack.sh
stack_go='gogs gogs.io/gogs eb1054e54 ./cmd/gogs'

# shellcheck source=tests/lib/stack.sh
. "$(dirname "$0")/../lib/stack.sh"
# shellcheck source=tests/lib/stack_push.sh
. "$ROOT/tests/lib/stack_push.sh"

add_user git
add_pusher alice
make_work alice
pusher=alice
daemon_user=git
install -d -o git -g git /srv/gogs
cat >/srv/gogs/app.ini <<'CONF'
RUN_USER = git
RUN_MODE = prod
[server]
HTTP_ADDR = 127.0.0.1
APP_DATA_PATH = /srv/gogs/data
DISABLE_SSH = true
[repository]
ROOT = /srv/gogs/repos
[database]
TYPE = sqlite3
PATH = /srv/gogs/gogs.db
[security]
INSTALL_LOCK = true
SECRET_KEY = of-the-test
[log]
ROOT_PATH = /srv/gogs/log
CONF
exec_as git GOGS_WORK_DIR=/srv/gogs gogs web --config /srv/gogs/app.ini \
	>>"$T/gogs.log" 2>&1 </dev/null &
own $!

api=http://127.0.0.1:3000/api/v1
repo_of() {
	if [ "$1" = refd ]; then
		echo /srv/gogs/repos/ada/served.git
	else
		echo /srv/gogs/repos/ada/native.git
	fi
}
url_of() {
	echo "http://ada:secret@127.0.0.1:3000/ada/$(basename "$(repo_of "$1")")"
}

check 'Gogs answers' await 20 curl -s -o "$T/page" http://127.0.0.1:3000/
check 'Gogs has a user' quietly as git GOGS_WORK_DIR=/srv/gogs gogs admin \
	create-user --name ada --password secret --email ada@example.com \
	--admin --config /srv/gogs/app.ini
token=$(curl -sf -u ada:secret -H 'Content-Type: application/json' \
	-d '{"name":"test"}' $api/users/ada/tokens |
	sed 's/.*"sha1":"\([0-9a-f]*\)".*/\1/')
stack_hooks "$T/hooks"
for name in served native; do
	check "$name is made" curl -sf -o "$T/made" \
		-H "Authorization: token $token" \
		-H 'Content-Type: application/json' \
		-d "{\"name\":\"$name\"}" $api/user/repos
	repo=/srv/gogs/repos/ada/$name.git
	as git git -C $repo config core.logAllRefUpdates true
	as git git -C $repo config receive.denyNonFastForwards true
	install -D -o git -g git -m 755 -t "$repo/custom_hooks" \
		"$T"/hooks/{pre-receive,update,post-receive}
done

stack='Gogs, a repository enabled'
start_refd /srv/gogs/repos
check "$stack: enabled" quietly as git refd enable --gate "$(repo_of refd)"
stack_pushes
is "$stack: history names the user" 'git (ada)' \
	"$(as git refd log -n 1 | cut -f 3)"
check "$stack: disabled" quietly as git refd disable "$(repo_of refd)"
finish
