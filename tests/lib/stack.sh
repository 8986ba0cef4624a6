# shellcheck shell=bash
# Every script of tests/stacks sources this file. The script then goes on inside
# a temporary Debian (tests/lib/root.sh) of the machine's own release, because
# the programs were built for this release. The root has the real packages. The
# script runs as root, with separate mounts, processes and network (loopback
# only), so that all files have their usual place: /srv/git, /etc/gitconfig,
# /run/refd, /usr/local/bin. There is no systemd; the script starts daemons by
# hand, and they end with the script.
#
#	. "$(dirname "$0")/../lib/stack.sh"
#	add_user alice; ...
#	daemon_user=git
#	start_refd /srv
#	...
#	finish
#
# Outside of the root, the file does not return.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "${BASH_SOURCE[0]}")/scenario.sh"
# shellcheck source=tests/lib/root.sh
. "$ROOT/tests/lib/root.sh"
# shellcheck source=tests/lib/stack_go.sh
. "$ROOT/tests/lib/stack_go.sh"

stack_packages=git,openssh-client,openssh-server,nginx-light,fcgiwrap
stack_packages+=,apache2,openssl,lighttpd,gitolite3,strace,procps
stack_packages+=,libevent-core-2.1-7,libevent-pthreads-2.1-7,libsqlite3-0,curl
stack_go=${stack_go:-}

# ---- outside ----

# Runs in the new namespaces until the script is in the root.
stack_mounts() {
	local root=$T/root dir
	set -e
	mkdir "$T/disk"
	root_mount "$root"
	root_system "$root"
	# Repositories and journal are on the machine's own disk.
	for dir in srv var/lib/refd var/lib/gitolite3; do
		mkdir -p "$T/disk/$dir" "$root/$dir"
		mount --bind "$T/disk/$dir" "$root/$dir"
	done
	mkdir -p "$root/stack/tests"
	mount --bind -o ro "$ROOT/tests" "$root/stack/tests"
	make_built DESTDIR="$root" install
	[ -z "$stack_go" ] || go_mount "$root"
	ip link set lo up
	exec env -i STACK_INSIDE=yes TERM=dumb TMPDIR=/tmp \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		chroot "$root" /bin/bash "/stack/tests/stacks/$(basename "$0")"
}

stack_enter() {
	local name pid
	name=$(basename "$0" .sh)
	root_needs "$name" --stacks
	if ! root_make "stacks-$(apt_private_codename)" \
		"$(apt_private_codename)" "$stack_packages" ''; then
		skip "$name" "$(root_why)"
		finish
	fi
	[ -z "$stack_go" ] || go_program
	export -f stack_mounts root_mount root_system go_mount make_built
	export T ROOT BUILD ROOT_BASE MAKE_BUILT stack_go
	# If unshare is killed, all processes that it started end as well.
	unshare -m -p -f -n --kill-child --propagation private \
		bash -c stack_mounts "$0" &
	pid=$!
	own $pid
	reap $pid
	local status=$?
	scenario_finished=yes
	exit $status
}

[ -n "${STACK_INSIDE:-}" ] || stack_enter

# ---- inside ----

unset GIT_CONFIG_NOSYSTEM REFD_SOCKET REFD_STATE "${!XDG_@}" "${!GIT_@}"
export HOME=/root
SOCKET=/run/refd/refd.sock
STATE=/var/lib/refd
REFD=refd
chmod 755 "$T"
git config --system init.defaultBranch main

# Adds an account that permits logins by key, and pushes under its own name.
add_user() { # NAME [USERADD-OPTION...]
	local name=$1
	shift
	useradd -m -p '*' -s /bin/bash -c "$name's real name" "$@" "$name"
}

# Runs a command as another account, with the environment of a login, in place
# of this shell or beside it.
exec_as() { # USER COMMAND...
	local user=$1 home
	home=$(getent passwd "$user" | cut -d: -f6)
	shift
	cd "$home" || exit
	umask "${AS_UMASK:-022}"
	exec setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups \
		env -i HOME="$home" USER="$user" LOGNAME="$user" PATH="$PATH" \
		LC_ALL=C TZ=UTC GIT_TERMINAL_PROMPT=0 "$@"
}

as() { # USER COMMAND...
	(exec_as "$@")
}

# Sets the user's name and address in git, so that the expected notes are known.
add_pusher() { # NAME
	add_user "$1"
	as "$1" git config --global user.name "$1 at home"
	as "$1" git config --global user.email "$1@home.example"
	as "$1" mkdir -m 700 .ssh
	as "$1" ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519
	as "$1" sh -c 'echo "StrictHostKeyChecking accept-new" >.ssh/config
		echo "LogLevel ERROR" >>.ssh/config'
}

# sshd, for all accounts.
start_sshd() {
	ssh-keygen -A >/dev/null
	install -d /run/sshd
	serve "$T/sshd.log" /usr/sbin/sshd -D -e
	await 10 quietly ssh-keyscan localhost 2>/dev/null
}

quietly() { # COMMAND...
	"$@" >/dev/null
}

# A server program in the background, killed with everything else.
serve() { # LOG COMMAND...
	local log=$1
	shift
	"$@" >>"$log" 2>&1 </dev/null &
	own $!
}

await() { # SECONDS COMMAND...
	local tries=$(($1 * 20)) i
	shift
	for ((i = 0; i < tries; i++)); do
		"$@" && return 0
		sleep 0.05
	done
	return 1
}

# ---- the daemon, as $daemon_user ----

daemon_user=root

# With a new configuration, or with the last configuration.
start_refd() { # [ROOT [KEY=VALUE...]]
	local setting
	if [ $# -gt 0 ]; then
		install -d /etc/refd
		rm -f /etc/refd/config
		git config -f /etc/refd/config daemon.root "$1"
		shift
		for setting; do
			git config -f /etc/refd/config --add \
				"daemon.${setting%%=*}" "${setting#*=}"
		done
	fi
	install -d -o "$daemon_user" -g "$(id -g "$daemon_user")" \
		/run/refd /var/lib/refd
	exec_as "$daemon_user" refd daemon >>"$LOG" 2>&1 </dev/null &
	DAEMON=$!
	own "$DAEMON"
	refd ping --wait 10 >/dev/null && return 0
	not_ok 'the daemon starts' "$(tail -n 5 "$LOG")"
	return 1
}

# Prepares for a daemon of a different user on the same repositories: a new
# journal.
forget_refd() { # REPOSITORY...
	local repo
	stop_daemon
	rm -rf /var/lib/refd/* /run/refd
	for repo; do rm -rf "$repo/refd/"{id,lock,stage}; done
}
