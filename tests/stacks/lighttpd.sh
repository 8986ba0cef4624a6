#!/bin/bash
# Proves that git-http-backend behind lighttpd's CGI works with refd. The CGI
# runs as www-data, while the repositories belong to the account git, and
# www-data is in its group. The daemon runs as git and permits www-data.

# shellcheck source=tests/lib/stack.sh
. "$(dirname "$0")/../lib/stack.sh"
# shellcheck source=tests/lib/stack_http.sh
. "$ROOT/tests/lib/stack_http.sh"

add_user git
add_pusher alice
make_work alice
pusher=alice
usermod -a -G git www-data
install -d -o git -g git /srv/git
daemon_user=git
stack_web_repos git --shared=group
# git refuses repositories of other users unless they are listed.
git config --system safe.directory '*'

cat >/etc/lighttpd/git.conf <<'CONF'
server.modules = ("mod_auth", "mod_authn_file", "mod_alias", "mod_setenv",
	"mod_cgi")
server.bind = "127.0.0.1"
server.port = 80
server.username = "www-data"
server.groupname = "www-data"
server.document-root = "/var/empty"
server.upload-dirs = ("/tmp")
auth.backend = "plain"
auth.backend.plain.userfile = "/etc/lighttpd/people"
alias.url = ("/git" => "/usr/lib/git-core/git-http-backend")
$HTTP["url"] =~ "^/git/" {
	cgi.assign = ("" => "")
	setenv.set-environment = ("GIT_PROJECT_ROOT" => "/srv/git",
		"GIT_HTTP_EXPORT_ALL" => "")
	auth.require = ("" => ("method" => "basic", "realm" => "git",
		"require" => "valid-user"))
}
CONF
echo 'alice:secret' >/etc/lighttpd/people
install -d /var/empty
serve "$T/lighttpd.log" lighttpd -D -f /etc/lighttpd/git.conf
check 'lighttpd serves' await_web

# Files that the daemon makes belong to git, with the same group and mode.
COMPARE_OWNERS=no
stack='lighttpd'
start_refd /srv/git allowUser=www-data
check "$stack: enabled" quietly \
	as git refd enable /srv/git/served/project.git
stack_pushes
pusher_is_noted

stop_daemon
start_refd /srv/git allowUser=nobody
push_to refd main:refs/heads/denied
check "$stack: who may not connect is told" grep -q \
	'^!.*refd: .*allowUser' "$T/refd.out"
is "$stack: and it is not left to git" '' "$(as git git -C \
	/srv/git/served/project.git for-each-ref refs/heads/denied)"
finish
