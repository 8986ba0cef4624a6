#!/bin/bash
# Proves that docs/group.md leads an administrator from two fresh machines to a
# push that two nodes have, with 15 commands and within five minutes. Each
# command and each line of a file comes from the page. The machines boot a
# minimal Debian, and have the packages of dpkg-buildpackage; PostgreSQL with a
# standby is in a third one. Then the chapter about upgrades is followed, while
# a client goes on pushing: each acknowledged push is on both nodes at the end.
#
# FORMER=DIRECTORY has packages of an earlier commit, which the upgrade begins
# with. Otherwise the upgrade is one to a later version with the same files.
# STACKS_CACHE=DIR keeps the root between runs.

# The machines are on a bridge in a network of their own. Packages come from the
# machine's network.
if [ -z "${OWN_NET:-}" ] && [ "$(id -u)" -eq 0 ]; then
	exec 8</proc/self/ns/net
	OWN_NET=/proc/$$/fd/8 exec unshare --net bash "$0"
fi

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/root.sh
. "$ROOT/tests/lib/root.sh"
# shellcheck source=tests/lib/packages.sh
. "$ROOT/tests/lib/packages.sh"

root_needs 'the page about groups' --package
root_needs 'the page about groups' --stacks
root_needs 'the page about groups' --group
page=$ROOT/docs/group.md
suite=$(apt_private_codename)

# ---- packages ----

packages_build present || finish
mkdir "$T/debs" "$T/debs/now" "$T/debs/later"
cp "${FORMER:-$T/present}"/{refd,refd-group}_*.deb "$T/debs/now/"
for package in refd refd-group; do
	dpkg-deb -R "$T"/present/${package}_*.deb "$T/x"
	sed -Ei 's/^Version: .*/&+later/; s/( refd \(= [^)]*)/\1+later/' \
		"$T/x/DEBIAN/control"
	dpkg-deb -b "$T/x" "$T/debs/later/${package}_later.deb" >/dev/null
	rm -r "$T/x"
done
rm -r "$T/present"

# ---- three machines ----

if ! root_make "group-page-$suite" "$suite" "dbus,git,iproute2,libcurl4,\
libevent-2.1-7,libevent-pthreads-2.1-7,libpq5,libseccomp2,libsqlite3-0,\
openssh-client,openssh-server,postgresql,procps,sudo,systemd,systemd-sysv" ''
then
	skip 'the page about groups' "$(root_why)"
	finish
fi

ip link add bridge address 02:00:00:00:00:01 type bridge
ip address add 10.79.0.1/24 dev bridge
ip link set bridge up
ip link set lo up
mkdir "$T/out"
declare -A init
addresses='127.0.0.1 localhost a b pg
10.79.0.11 a.example.com
10.79.0.12 b.example.com
10.79.0.21 pg1
10.79.0.22 pg2'

# As await, but for so many seconds: each try starts several programs.
within() { # SECONDS COMMAND...
	local end=$(($(date +%s) + $1))
	until "${@:2}" 2>/dev/null; do
		[ "$(date +%s)" -lt "$end" ] || return 1
		sleep 0.1
	done
}

boot() { # NAME
	local to=$T/$1 root=$T/$1/root
	mkdir -p "$to/srv" "$to/state" "$to/over" "$root"
	mount -t tmpfs -o mode=755 tmpfs "$to/over"
	mkdir "$to/over/up" "$to/over/work"
	scenario_mounts+=("$to/over" "$root")
	mount -t overlay -o \
		"lowerdir=$ROOT_BASE,upperdir=$to/over/up,workdir=$to/over/work" \
		overlay "$root"
	# systemd-firstboot would ask questions.
	ln -s /dev/null "$root/etc/systemd/system/systemd-firstboot.service"
	[ "$1" = pg ] ||
		ln -sf /dev/null "$root/etc/systemd/system/postgresql.service"
	echo "$addresses" >"$root/etc/hosts"
	echo "$1" >"$root/etc/hostname"
	# apt and dpkg ask nobody here.
	echo 'APT::Get::Assume-Yes "true";' >"$root/etc/apt/apt.conf.d/yes"
	rm -f "$root"/etc/ssh/ssh_host_*
	ssh-keygen -q -A -f "$root"
	echo 'AcceptEnv GIT_PROTOCOL' >"$root/etc/ssh/sshd_config.d/git.conf"
	root_boot "$root" 1200 --network-bridge=bridge --machine="$1" \
		--bind="$to/srv:/srv" --bind="$to/state:/var/lib/refd" \
		--bind-ro="$T/debs:/packages"
	machines[$1]=$MACHINE
}
declare -A machines
first_process() { # NAME
	local nspawn
	nspawn=$(pgrep -P "${machines[$1]}") &&
		init[$1]=$(pgrep -P "$nspawn" -x systemd)
}
# Runs a command as root in a machine, as at a console.
on() { # NAME COMMAND...
	nsenter -a -t "${init[$1]}" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		"${@:2}"
}
is_up() { on "$1" systemctl is-active -q multi-user.target; }
is_role() { # NAME ROLE
	[ "$(on "$1" refd role)" = "$2" ]
}

for name in pg a b; do boot "$name"; done
address() { # NAME ADDRESS...
	local name=$1
	for address in "${@:2}"; do
		on "$name" ip address add "$address/24" dev host0
	done
	on "$name" ip link set host0 up
}
for name in pg a b; do
	check "$name boots" within 60 first_process "$name"
	own "${init[$name]}"
	within 120 is_up "$name" || not_ok "$name is up" "$(tail "$T/console")"
done
address a 10.79.0.11
address b 10.79.0.12
address pg 10.79.0.21 10.79.0.22

# ---- PostgreSQL with a standby, before the page ----

mkdir "$T/pki"
PYTHONPATH=$ROOT/tests/lib python3 -B -c "
from group_tls import Authority
ca = Authority('$T/pki', 'ca')
ca.sign('pg1', 'pg1')
ca.sign('pg2', 'pg2')"
chmod 644 "$T/pki/ca.crt"
server=$(basename "$ROOT_BASE"/usr/lib/postgresql/*)
data=/var/lib/postgresql/$server
as_postgres() {
	on pg setpriv --reuid postgres --regid postgres --init-groups "$@"
}
settings() { # NAME ADDRESS
	for end in crt key; do
		on pg install -o postgres -m 600 /dev/stdin \
			"$data/$1.$end" <"$T/pki/$1.$end"
	done
	printf '%s\n' "listen_addresses = '$2'" 'ssl = on' \
		"ssl_cert_file = '$data/$1.crt'" "ssl_key_file = '$data/$1.key'"
}
hba=/etc/postgresql/$server/main/pg_hba.conf
settings pg1 10.79.0.21 |
	on pg tee -a "/etc/postgresql/$server/main/postgresql.conf" >/dev/null
on pg systemctl restart "postgresql@$server-main"
check 'a standby' as_postgres pg_basebackup -D "$data/s1" -R -c fast -d \
	'application_name=s1'
settings pg2 10.79.0.22 | on pg tee -a "$data/s1.conf" >/dev/null
printf '%s\n' "data_directory = '$data/s1'" "hba_file = '$hba'" \
	"ident_file = '/etc/postgresql/$server/main/pg_ident.conf'" \
	"unix_socket_directories = '/run/standby'" port=5432 hot_standby=on |
	on pg tee -a "$data/s1.conf" >/dev/null
on pg install -d -o postgres /run/standby
as_postgres "/usr/lib/postgresql/$server/bin/postgres" \
	-c "config_file=$data/s1.conf" >"$T/s1.log" 2>&1 &
own $!
sql() { as_postgres psql -v ON_ERROR_STOP=1 -qAt "$@"; }
streams() { [ "$(sql -c 'SELECT count(*) FROM pg_stat_replication')" = 1 ]; }
if ! within 60 streams; then
	not_ok 'the standby streams' "$(tail -n 5 "$T/s1.log")"
	finish
fi

# ---- the page ----

secret=correct-horse-7
directory=now
block() { # NTH
	readme_block "$page" 'From nothing to two nodes' "$1" |
		sed "s/'\\.\\.\\.'/'$secret'/; s/:\\.\\.\\./:$secret/"
}
# On b, the page has the names of a and b the other way round.
for_node() { # NAME
	if [ "$1" = a ]; then cat; else
		sed 's/\bb\b/OTHER/g; s/\ba\b/b/g; s/OTHER/a/g'
	fi
}
# Runs each line of the standard input as a command of its own. Not behind a
# pipe: there its failures would not count.
as_written() { # NAME
	local line status
	while IFS= read -r line <&7; do
		echo "$line" >>"$T/commands"
		status=0
		on "$1" bash -c "cd /packages/$directory && $line" \
			>"$T/said" 2>&1 </dev/null || status=$?
		if [ "$status" -eq 0 ]; then ok "$1: $line"; else
			not_ok "$1: $line" "$status: $(tail -n 5 "$T/said" |
				tr '\n' '|')"
		fi
	done 7<&0
}

# The account of the daemon, which also pushes.
as_git() { # NAME COMMAND...
	on "$1" setpriv --reuid git --regid git --init-groups \
		env HOME=/srv/git "${@:2}"
}
value() { # NAME BRANCH
	as_git "$1" git -C /srv/git/project.git rev-parse -q --verify \
		"refs/heads/$2" 2>/dev/null
}
has() { # NAME BRANCH VALUE
	[ "$(value "$1" "$2")" = "$3" ]
}

sql_line() { # SERVER LINE
	echo "$2" >>"$T/commands"
	check "$1: ${2//$secret/...}" sql -h "${hosts[$1]}" -o /dev/null -c "$2"
}
declare -A hosts=([pg1]=/run/postgresql [pg2]=/run/standby)
own_file() { # NAME PATH
	on "$1" install -m 600 -o git -g git /dev/stdin "$2"
}

SECONDS=0
block 1 | head -n 1 | on pg tee -a \
	"/etc/postgresql/$server/main/postgresql.conf" >/dev/null
block 1 | tail -n 1 | sed 's/192.0.2.0/10.79.0.0/' |
	on pg tee -a "$hba" >/dev/null
sql_line pg2 "$(block 2 | head -n 1)"
while IFS= read -r line; do sql_line pg1 "$line"; done < <(block 2)
for name in a b; do as_written "$name" < <(block 3); done
for name in a b; do
	peer=$([ "$name" = a ] && echo b || echo a)
	block 4 | for_node "$name" | on "$name" tee /etc/refd/config >/dev/null
	on "$name" tee /etc/refd/pg-ca.crt >/dev/null <"$T/pki/ca.crt"
	block 5 | own_file "$name" /srv/git/.pgpass
	on "$peer" cat /srv/git/.ssh/id_ed25519.pub |
		own_file "$name" /srv/git/.ssh/authorized_keys
	host_key=$(on "$peer" cat /etc/ssh/ssh_host_ed25519_key.pub)
	block 6 | for_node "$name" | sed "s|ssh-ed25519 .*|$host_key|" |
		own_file "$name" /srv/git/.ssh/known_hosts
done
as_git a git init -q --bare /srv/git/project.git
for name in a b; do on "$name" install -d -o git -g git /srv/work; done
as_written a < <(block 7)
as_written b < <(block 8)
as_written a < <(block 9)
commit() { # NAME MESSAGE
	as_git "$1" git -C /srv/work/clone -c user.name=A \
		-c user.email=a@example.com commit -q --allow-empty -m "$2"
}
push() { # NAME BRANCH
	as_git "$1" timeout 60 git -C /srv/work/clone push -q \
		/srv/git/project.git "HEAD:refs/heads/$2" >"$T/push" 2>&1
}
as_git a git init -q -b main /srv/work/clone
commit a first
check 'the first push' push a main || cat "$T/push"
first=$(value a main)
check 'b has it, too' within 20 has b main "$first"
took=$SECONDS
nr_commands=$(wc -l <"$T/commands")
echo "# $nr_commands commands, and $took s to the first push on two nodes"
check '15 commands at most' [ "$nr_commands" -le 15 ]
check 'five minutes at most' [ "$took" -le 300 ]
check 'a leads' is_role a leader
check 'b follows' is_role b follower
check 'status' on a sudo -u git refd group status
for name in a b; do
	is "$name: no unit has failed" '' "$(on "$name" systemctl list-units \
		--failed --plain --no-legend 'refd*')"
done

# ---- an upgrade, while a client pushes ----

as_git b git clone -q -b main /srv/git/project.git /srv/work/clone
# The client tries the other node when a push fails.
client() {
	local nr=0 at=a last gap=0 longest=0 now
	last=$(date +%s%N)
	while [ ! -e "$T/out/stop" ]; do
		if commit "$at" "$nr" && push "$at" "c$nr"; then
			now=$(date +%s%N)
			gap=$(((now - last) / 1000000))
			[ "$gap" -le "$longest" ] || longest=$gap
			last=$now
			echo "c$nr $(as_git "$at" git -C /srv/work/clone \
				rev-parse HEAD)"
			nr=$((nr + 1))
		else
			at=$([ "$at" = a ] && echo b || echo a)
		fi
	done >"$T/acknowledged"
	echo "$longest" >"$T/longest"
}
upgrade() { readme_block "$page" Upgrade "$1"; } # NTH
lacks_nothing() { # NAME
	on b sudo -u git refd group status |
		grep -q "^node $1: .*lacks [0-9] rows.* [0-2] seconds ago"
}
client &
own $!
pusher=$!
sleep 3
directory=later
for name in b a; do
	as_written "$name" < <(upgrade 1)
	is "$name has the later version" later "$(on "$name" \
		dpkg-query -W refd-group | sed 's/.*+//')"
	check "$name lacks nothing" within 30 lacks_nothing "$name"
	[ "$name" = a ] || as_written a < <(upgrade 2)
done
check 'b leads' is_role b leader
check 'a follows' within 20 is_role a follower
sleep 3
touch "$T/out/stop"
reap "$pusher"

# ---- an upgrade to another format of the journal ----

units='refd.socket refd.service refd-group.service'
# shellcheck disable=SC2086 # words
on a systemctl stop $units
python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA user_version = 2")
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")' "$T/a/state/journal.db"
on a systemctl start refd.service 2>/dev/null
on a journalctl -q -u refd -o cat | grep 'by an older refd' >"$T/said"
check 'a journal of an older format: the daemon names the remedy' \
	grep -q "refd group join" "$T/said"
on a systemctl stop refd.socket refd.service refd-group.service
sleep 15
as_written a < <(block 8)
check 'a follows again' within 30 is_role a follower
check 'a lacks nothing after the join' within 30 lacks_nothing a

read -r branch id < <(tail -n 1 "$T/acknowledged")
missing=0
for name in a b; do
	within 20 has "$name" "$branch" "$id"
	while read -r branch id; do
		has "$name" "$branch" "$id" || missing=$((missing + 1))
	done <"$T/acknowledged"
done
is 'each acknowledged push is on both nodes' 0 "$missing"
echo "# $(wc -l <"$T/acknowledged") pushes during the upgrade," \
	"at most $(cat "$T/longest") ms between two"
check 'pushes went on' [ "$(wc -l <"$T/acknowledged")" -gt 10 ]
# shellcheck disable=SC2154 # scenario.sh has the variable
if [ "$scenario_bad" -gt 0 ]; then
	for name in a b; do
		on "$name" journalctl -q -u refd -u refd-group -o cat |
			tail -n 40
	done
fi
for name in pg a b; do on "$name" systemctl --no-block poweroff; done
finish
