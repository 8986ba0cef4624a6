#!/bin/bash
# Proves that the steps of docs/group.md, "From nothing to two nodes", give a
# group of two machines that boot, with the units of refd: a has a repository
# with refs before the group, PostgreSQL wants TLS and a password, objects come
# by ssh, and the machine that leads loses its power. in_node.sh runs inside each
# machine.

# The machines are on a bridge in a network of their own.
if [ -z "${OWN_NET:-}" ] && [ "$(id -u)" -eq 0 ]; then
	OWN_NET=1 exec unshare --net bash "$0"
fi

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/root.sh
. "$ROOT/tests/lib/root.sh"
# shellcheck source=tests/lib/group_run.sh
. "$ROOT/tests/lib/group_run.sh"

if [ "$(id -u)" -ne 0 ] || ! command -v systemd-nspawn >/dev/null ||
	[ ! -d "$binaries" ] || [ ! -x /usr/sbin/sshd ]; then
	skip 'two machines of a group' 'needs root and scripts/deps --group'
	finish
	exit
fi

# ---- PostgreSQL, in this network ----

# Otherwise the bridge has the address of one of its ports, which can vanish.
ip link add bridge address 02:00:00:00:00:01 type bridge
ip address add 10.78.0.1/24 dev bridge
ip link set bridge up
ip link set lo up
chmod 711 "$T"
mkdir "$T/pg" "$T/pki" "$T/out"
mkfifo "$T/end"
python3 -B "$ROOT/tests/lib/group_machines.py" "$T/pg" "$T/pki" "$binaries" \
	65534 10.78.0.1 <"$T/end" >"$T/pg.out" 2>&1 &
own $!
exec 8>"$T/end"
check 'PostgreSQL starts' await 60 grep -q ready "$T/pg.out"
cp "$T/pki/pgpass" "$T/pki/ca.crt" "$T/out/"

# ---- the machines ----

first_process() { # TIMEOUT
	nspawn=$(pgrep -P "$1") && init=$(pgrep -P "$nspawn" -x systemd)
}

for node in a b; do
	to=$T/$node
	mkdir -p "$to/srv" "$to/state" "$to/over" "$to/root"
	mount -t tmpfs -o mode=755 tmpfs "$to/over"
	mkdir "$to/over/up" "$to/over/work"
	scenario_mounts+=("$to/over" "$to/root")
	mount -t overlay -o \
		"lowerdir=/,upperdir=$to/over/up,workdir=$to/over/work" \
		overlay "$to/root"
	make_built DESTDIR="$to" install install-group
	cp "$ROOT/tests/lib/report.sh" "$to/usr/local/lib/"
	cp "$ROOT/tests/lib/in_node.sh" "$to/usr/local/bin/in_node"
	cat >"$to/usr/local/lib/systemd/system/in-node.service" <<-UNIT
		[Unit]
		Description=The test
		[Service]
		Type=oneshot
		Environment=NODE=$node
		ExecStart=/usr/local/bin/in_node
		ExecStopPost=/bin/systemctl --no-block poweroff
		StandardOutput=append:/out/report-$node
		StandardError=append:/out/errors-$node
		TimeoutStartSec=250
	UNIT
	# systemd-firstboot would ask questions.
	ln -s /dev/null "$to/usr/local/lib/systemd/system/systemd-firstboot.service"
	cat >"$to/usr/local/lib/systemd/system/in-node.target" <<-'UNIT'
		[Unit]
		Requires=basic.target
		Wants=in-node.service
	UNIT
	root_boot "$to/root" 280 --network-bridge=bridge \
		--machine="$node" --bind-ro="$to/usr/local:/usr/local" \
		--bind="$to/srv:/srv/git" --bind="$to/state:/var/lib/refd" \
		systemd.unit=in-node.target
	# The first process of the machine ends all others.
	await 20 first_process "$MACHINE"
	own "$init"
	[ "$node" = b ] || a=$MACHINE
done

check 'b asks for a loss of power of the leader' await 270 \
	test -e "$T/out/kill-b"
kill -KILL "$init"
touch "$T/out/killed-b"
reap "$a"
for node in a b; do
	while IFS= read -r line; do
		case $line in
		'ok '*) ok "$node: ${line#ok }" ;;
		'not ok '*)
			line=${line#not ok }
			not_ok "$node: ${line%%: *}" "${line#*: }"
			;;
		esac
	done <"$T/out/report-$node"
done
check 'a has finished' grep -q '^finished' "$T/out/report-a"
# shellcheck disable=SC2154 # scenario.sh has the variable
[ "$scenario_bad" -eq 0 ] || tail -n 30 "$T"/out/errors-* "$T/console" \
	"$T/pg.out"
exec 8>&-
finish
