#!/bin/bash
# Proves that git-http-backend behind Apache's mod_cgid works with refd. Server
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

modules=/usr/lib/apache2/modules
cat >/etc/apache2/git.conf <<CONF
ServerName localhost
ServerRoot /etc/apache2
Listen 127.0.0.1:80
PidFile /run/apache2.pid
ErrorLog $T/apache.log
User www-data
Group www-data
DocumentRoot /var/www
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authn_core_module $modules/mod_authn_core.so
LoadModule authn_file_module $modules/mod_authn_file.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule authz_user_module $modules/mod_authz_user.so
LoadModule auth_basic_module $modules/mod_auth_basic.so
LoadModule alias_module $modules/mod_alias.so
LoadModule env_module $modules/mod_env.so
LoadModule cgid_module $modules/mod_cgid.so
ScriptSock /run/apache2-cgid
SetEnv GIT_PROJECT_ROOT /srv/git
SetEnv GIT_HTTP_EXPORT_ALL
ScriptAlias /git/ /usr/lib/git-core/git-http-backend/
<Location /git/>
	AuthType Basic
	AuthName git
	AuthUserFile /etc/apache2/people
	Require valid-user
</Location>
CONF
echo "alice:$(openssl passwd -apr1 secret)" >/etc/apache2/people
serve "$T/apache.out" apache2 -D FOREGROUND -f /etc/apache2/git.conf
check 'Apache serves' await_web

stack='Apache, a repository enabled'
start_refd /srv/git
check "$stack: enabled" quietly \
	as www-data refd enable /srv/git/served/project.git
stack_pushes
pusher_is_noted
check "$stack: disabled" quietly \
	as www-data refd disable /srv/git/served/project.git

stack='Apache, all enabled by the system'
check "$stack: enabled" quietly refd enable --system --root /srv/git/served
both 'a push' 1 main:refs/heads/more
both 'one is declined' 0 main:refs/heads/closed/more
both 'deleted' 1 :refs/heads/more
finish
