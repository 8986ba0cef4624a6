# shellcheck shell=bash
# Throw-away Debian roots, made by mmdebstrap. Sourced after scenario.sh.
#
#	root_needs NAME --stacks
#	root_make NAME trixie git,procps '' || skip NAME "$(root_why)"
#	root_mount "$T/root"
#	root_system "$T/root"
#	chroot "$T/root" ...
#
# STACKS_CACHE=DIR keeps the roots between runs. Otherwise each script makes its
# own roots below T. The machine itself needs only mmdebstrap.

# shellcheck source=tests/lib/apt.sh
. "$ROOT/tests/lib/apt.sh"

root_cache=${STACKS_CACHE:-$T/cache}

# Runs in the machine's network, also if the script has a network of its own:
# OWN_NET is the machine's then.
root_net() { # COMMAND...
	${OWN_NET:+nsenter --net="$OWN_NET"} "$@"
}

# Skips NAME and ends the script, unless root runs it on a machine with the
# packages of "scripts/deps OPTION".
root_needs() { # NAME OPTION
	if [ "$(id -u)" -ne 0 ]; then
		skip "$1" 'only root can make a root of its own'
		finish
	elif ! root_net "$ROOT/scripts/deps" "$2" >"$T/deps" 2>&1; then
		skip "$1" "$(tail -n 1 "$T/deps")"
		finish
	fi
}

# Prints "deb MIRROR SUITE main" lines for a root of SUITE: the machine's lines,
# or only the bare suite if the machine has another suite.
root_sources() { # SUITE
	local mirror suite machine
	machine=$(apt_private_codename)
	if [ "$1" = "$machine" ]; then
		apt_private_suites "$1"
	else
		echo "$(apt_private_mirror "$machine") $1"
	fi | while read -r mirror suite; do
		echo "deb $mirror $suite main"
	done
}

# Makes the root NAME of SUITE with PACKAGES (git,procps) in the cache, and sets
# ROOT_BASE to its directory. mmdebstrap gets the OPTIONs; KEY stands for the
# content of files in the OPTIONs. An existing root of the same suite, packages
# and key stays unchanged. If two scripts make one root, the second script
# waits. The root's apt has the machine's proxy, and its setting for the age of
# lists.
root_make() { # NAME SUITE PACKAGES KEY [OPTION...]
	local name=$1 suite=$2 packages=$3 key="$2 $3 $4" status=0 lines
	shift 4
	mapfile -t lines < <(root_sources "$suite")
	ROOT_BASE=$root_cache/$name
	mkdir -p "$root_cache"
	exec 9>"$ROOT_BASE.lock"
	flock 9
	if [ "$(cat "$ROOT_BASE/etc/root-key" 2>/dev/null)" != "$key" ]; then
		rm -rf --one-file-system "$ROOT_BASE" "$ROOT_BASE.new"
		apt-config dump Acquire | grep -E '::(Check-|https?::Proxy)' \
			>"$T/apt.conf"
		DEBIAN_FRONTEND=noninteractive root_net mmdebstrap --quiet \
			--variant=minbase --format=directory \
			--aptopt="$T/apt.conf" \
			${packages:+--include="$packages"} "$@" "$suite" \
			"$ROOT_BASE.new" "${lines[@]}" >"$T/mmdebstrap" 2>&1 &&
			echo "$key" >"$ROOT_BASE.new/etc/root-key" &&
			mv "$ROOT_BASE.new" "$ROOT_BASE" || status=1
	fi
	exec 9>&-
	return $status
}

# Why root_make failed.
root_why() {
	echo "no root could be made: $(grep -m1 '^E: ' "$T/mmdebstrap" ||
		tail -n 1 "$T/mmdebstrap")"
}

# Mounts the root of root_make at DIRECTORY. Writes go to a tmpfs at $T/over.
root_mount() { # DIRECTORY
	mkdir -p "$T/over" "$1"
	mount -t tmpfs -o mode=755 tmpfs "$T/over" &&
		mkdir "$T/over/up" "$T/over/work" && mount -t overlay -o \
		"lowerdir=$ROOT_BASE,upperdir=$T/over/up,workdir=$T/over/work" \
		overlay "$1"
}

# Makes the mounts that programs in the root at DIRECTORY expect. /tmp is a
# tmpfs. For namespaces of mounts and processes that end with the caller.
root_system() { # DIRECTORY
	local dir
	mount -t proc proc "$1/proc"
	mount -t tmpfs tmpfs "$1/run"
	mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
	mount -t tmpfs -o mode=755 tmpfs "$1/dev"
	for dir in null zero full random urandom tty; do
		touch "$1/dev/$dir"
		mount --bind "/dev/$dir" "$1/dev/$dir"
	done
	mkdir -m 1777 "$1/dev/shm"
	ln -s /proc/self/fd "$1/dev/fd"
	ln -s fd/0 "$1/dev/stdin"
	echo "127.0.0.1 localhost $(hostname)" >"$1/etc/hosts"
}

# shellcheck disable=SC2317 # the new namespaces call it
root_enter() { # COMMAND...
	local root=$T/entered dir
	root_mount "$root" && root_system "$root" || return
	for dir in "$T" "$ROOT" "$BUILD"; do
		mkdir -p "$root$dir" && mount --bind "$dir" "$root$dir" ||
			return
	done
	exec chroot "$root" "$@"
}

# Runs a command in the root of root_make, without a network. T, ROOT and BUILD
# have the same paths there.
root_run() { # COMMAND...
	export -f root_enter root_mount root_system
	BUILD=$(cd "$BUILD" && pwd)
	export T ROOT BUILD ROOT_BASE
	unshare -m -p -i -f -n --kill-child --propagation private \
		bash -c 'root_enter "$@"' root_enter "$@"
}

# ---- booted ----

# Makes the root at DIRECTORY run tests/lib/SCRIPT at boot, for at most SECONDS,
# and stop then. The script reports as a scenario, and prints "finished" last.
# It may write to /out, which is $T/out.
root_runs() { # DIRECTORY SCRIPT SECONDS
	local units=$1/etc/systemd/system
	mkdir -p "$T/out" "$units/multi-user.target.wants"
	install -m 755 "$ROOT/tests/lib/$2" "$1/usr/local/bin/at_boot"
	install -m 644 "$ROOT/tests/lib/report.sh" "$1/usr/local/lib/"
	cat >"$units/at-boot.service" <<-UNIT
		[Unit]
		Description=The test
		After=ssh.service
		[Service]
		Type=oneshot
		ExecStart=/usr/local/bin/at_boot
		ExecStopPost=/bin/systemctl --no-block poweroff
		StandardOutput=append:/out/report
		StandardError=append:/out/errors
		TimeoutStartSec=$3
	UNIT
	ln -s ../at-boot.service "$units/multi-user.target.wants/"
	# systemd-firstboot would ask questions.
	ln -sf /dev/null "$units/systemd-firstboot.service"
}

# Boots the root at DIRECTORY in the background, without a network, for at most
# SECONDS. MACHINE is the process. By default, systemd-nspawn denies Landlock.
root_boot() { # DIRECTORY SECONDS [OPTION...]
	local calls='landlock_create_ruleset landlock_add_rule'
	timeout "$2" systemd-nspawn -q -D "$1" --boot --register=no \
		--keep-unit --private-network --machine="refd-$$" \
		--system-call-filter="$calls landlock_restrict_self" \
		--bind="$T/out:/out" "${@:3}" </dev/null >>"$T/console" 2>&1 &
	MACHINE=$!
	own "$MACHINE"
}

# Waits for the machine, and repeats the report of the script.
root_report() { # NAME
	local line status
	reap "$MACHINE"
	status=$?
	while IFS= read -r line; do
		case $line in
		'ok '*) ok "${line#ok }" ;;
		'not ok '*)
			line=${line#not ok }
			not_ok "${line%%: *}" "${line#*: }"
			;;
		finished) status=finished ;;
		*) echo "$line" ;;
		esac
	done <"$T/out/report"
	if [ "$status" != finished ]; then
		not_ok "$1" "status $status, before the end"
		tail -n 20 "$T/console"
	fi
	# shellcheck disable=SC2154 # scenario.sh has the variable
	[ "$scenario_bad" -eq 0 ] || tail -n 60 "$T/out/errors"
}
