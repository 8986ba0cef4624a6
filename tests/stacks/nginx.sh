#!/bin/bash
# Proves that git-http-backend behind nginx and fcgiwrap works with refd. Server
# and daemon run as www-data, the owner of the repositories.

# shellcheck source=tests/lib/stack.sh
. "$(dirname "$0")/../lib/stack.sh"
# shellcheck source=tests/lib/stack_http.sh
. "$ROOT/tests/lib/stack_http.sh"

add_pusher alice
make_work alice
pusher=alice
install -d -o www-data -g www-data /var/www /srv/git
daemon_user=www-data
stack_web_repos www-data

cat >/etc/nginx/sites-enabled/default <<'CONF'
server {
	listen 127.0.0.1:80;
	client_max_body_size 0;
	location ~ ^/git(/.*)$ {
		auth_basic git;
		auth_basic_user_file /etc/nginx/people;
		include fastcgi_params;
		fastcgi_param SCRIPT_FILENAME /usr/lib/git-core/git-http-backend;
		fastcgi_param GIT_PROJECT_ROOT /srv/git;
		fastcgi_param GIT_HTTP_EXPORT_ALL "";
		fastcgi_param PATH_INFO $1;
		fastcgi_param REMOTE_USER $remote_user;
		fastcgi_pass unix:/run/fcgiwrap/socket;
	}
}
CONF
echo 'alice:{PLAIN}secret' >/etc/nginx/people
install -d -o www-data /run/fcgiwrap
exec_as www-data fcgiwrap -f -c 2 -s unix:/run/fcgiwrap/socket \
	>>"$T/fcgiwrap.log" 2>&1 </dev/null &
own $!
serve "$T/nginx.log" nginx -g 'daemon off;'
check 'nginx serves' await_web

stack='nginx, a repository enabled'
start_refd /srv/git
check "$stack: enabled" quietly \
	as www-data refd enable /srv/git/served/project.git
stack_pushes
pusher_is_noted
check "$stack: disabled" quietly \
	as www-data refd disable /srv/git/served/project.git

stack='nginx, all enabled by the system'
check "$stack: enabled" quietly refd enable --system --root /srv/git/served
both 'a push' 1 main:refs/heads/more
both 'one is declined' 0 main:refs/heads/closed/more
both 'deleted' 1 :refs/heads/more
finish
