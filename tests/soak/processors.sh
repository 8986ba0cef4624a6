#!/bin/bash
# Proves that refd builds without a warning, and that its unit tests pass, on
# other processors and with another C library:
#
#	i386	32 bits
#	musl	Alpine's C library, with libraries from Debian's sources
#	s390x	big-endian, by qemu's emulation of programs
#	arm64	the same
#
# In addition, the emulated daemon and the native daemon take turns with one
# journal, after a kill each; the client is native. arm64-machine and
# s390x-machine boot Debian's kernel in an emulated machine: the daemon serves
# there, confined by Landlock and seccomp, and recovers after a kill.
#
# PROCESSORS='s390x musl' runs these two only. STACKS_CACHE=DIR keeps the roots
# between runs.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/root.sh
. "$ROOT/tests/lib/root.sh"
# shellcheck source=tests/lib/units.sh
. "$ROOT/tests/lib/units.sh"

root_needs processors --processors
libraries=libc6-dev,libcurl4-openssl-dev,libevent-dev,libseccomp-dev
libraries+=,libsqlite3-dev,systemtap-sdt-dev,uthash-dev,zlib1g-dev,check
tools=gcc,git,make,pkg-config,procps

# Without updates: a mirror may have them for one architecture and not yet for
# another.
root_sources() { # SUITE
	echo "deb $(apt_private_mirror "$(apt_private_codename)") $1 main"
}

# Reports the lines of units_run, and a build that failed.
relay() { # TARGET
	local line programs=0
	while IFS= read -r line; do
		programs=$((programs + 1))
		case $line in
		'ok '*) ok "${line#ok }" ;;
		'skip '*) skip "$(cut -d ' ' -f 2-3 <<<"$line")" "$line" ;;
		*) not_ok "${line#not ok }" ;;
		esac
	done
	[ "$programs" -gt 0 ] ||
		not_ok "$1" "$(grep -m 3 -E \
			' error: |undefined ref|^[a-z]+/[^ ]*: warning: ' \
			"$T/$1.log")"
}

# ---- natively, in a root ----

# Runs the commands in ROOT_BASE, in namespaces that end with them.
in_root() { # COMMANDS
	set -e
	root_mount "$T/root"
	root_system "$T/root"
	mount -t sysfs sysfs "$T/root/sys"
	mkdir "$T/root/dev/pts"
	mount -t devpts -o ptmxmode=666 devpts "$T/root/dev/pts"
	ln -s pts/ptmx "$T/root/dev/ptmx"
	mkdir -p "$T/root$ROOT" "$T/root$T"
	mount --bind "$ROOT" "$T/root$ROOT"
	mount --bind "$T" "$T/root$T"
	# shellcheck disable=SC2016 # of the shell in the root
	exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
		ROOT="$ROOT" T="$T" chroot "$T/root" bash -c \
		'. "$ROOT/tests/lib/units.sh"; '"$1"
}
export -f in_root root_mount root_system

natively() { # TARGET COMMANDS
	export ROOT_BASE ROOT T
	# shellcheck disable=SC2016 # of the inner shell
	relay "$1" < <(unshare -m -p -f --kill-child --propagation private \
		bash -c 'in_root "$1"' bash "$2" 2>"$T/$1.log")
}

run_i386() {
	root_make i386 bookworm "$libraries,$tools" '' --arch=i386 || return
	# shellcheck disable=SC2016 # of the shell in the root
	natively i386 'units_build i386 >&2 && units_run i386 ""'
}

run_musl() {
	root_make musl trixie "musl-tools,libc6-dev,gperf,tcl,xz-utils,$tools
uthash-dev,systemtap-sdt-dev" '' || return
	mkdir "$T/src"
	(apt_private "$T/apt" deb-src trixie && cd "$T/src" && apt-get source \
		-qq --download-only --tar-only check curl libevent libseccomp \
		sqlite3 zlib) >"$T/mmdebstrap" 2>&1 || return
	# shellcheck disable=SC2016 # of the shell in the root
	natively musl 'bash "$ROOT/tests/lib/in_musl.sh" >&2 &&
		PKG_CONFIG_LIBDIR=/musl/lib/pkgconfig units_build musl \
			CC="musl-gcc -isystem /musl/include" \
			PKG_CONFIG="pkg-config --static" >&2 &&
		units_run musl ""'
}

# ---- built for another processor ----

# Makes a root with the libraries of the processor. cross gets the variables of
# make for a build with them.
cross_root() { # PROCESSOR TRIPLET
	root_make "$1" bookworm "$libraries" '' --arch="$1" \
		--variant=extract || return
	export PKG_CONFIG_SYSROOT_DIR=$ROOT_BASE
	export PKG_CONFIG_LIBDIR=$ROOT_BASE/usr/lib/$2/pkgconfig
	cross=(CC="$2-gcc --sysroot=$ROOT_BASE" AR="$2-ar")
}

# ---- emulated programs ----

# The emulator of Debian 12 has no openat2(2).
get_qemu() {
	[ ! -d "$T/qemu" ] || return 0
	(apt_private "$T/apt-qemu" deb trixie && cd "$T" &&
		apt-get download -qq qemu-user && dpkg -x qemu-user_*.deb qemu) \
		>"$T/mmdebstrap" 2>&1
}

# The emulated daemon, then the native one, then the emulated one again. Each
# dies by a signal, and the next daemon reads its journal.
take_turns() { # TARGET QEMU
	local i ref
	new_repo "$1.git" bare
	new_commit "$1.git" one >"$T/id"
	for i in 1 2 3; do
		if [ "$i" -eq 2 ]; then
			start_daemon
		else
			"$T/qemu/usr/bin/qemu-$2" "$T/$1/bin/refd-daemon" \
				--socket "$SOCKET" --state "$STATE" \
				--root "$SERVED" >>"$LOG" 2>&1 </dev/null &
			DAEMON=$!
			own "$DAEMON"
			"$REFD" ping --socket "$SOCKET" --wait 120 >/dev/null
		fi
		for ((ref = 0; ref < 100; ref++)); do
			echo "create refs/heads/$i-$ref $(cat "$T/id")"
		done >"$T/refs"
		check "$1: daemon $i" env -C "$T/$1.git" "$REFD" update \
			--stdin <"$T/refs"
		is "$1: daemon $i has the history of all" $((i * 100)) \
			"$(env -C "$T/$1.git" "$REFD" log --json | wc -l)"
		kill_daemon
	done
	start_daemon
	check "$1: refs and journal agree" "$REFD" verify "$T/$1.git"
	stop_daemon
	rm -r "$STATE"
}

# The emulator has no ptrace(2), no seccomp and no Landlock. For stat(2),
# /proc/self/exe is the emulator. Sweeps and large files take it many minutes.
# With its option for a root, it would also take /, /dev and /etc from there, so
# the programs know their loader.
emulated() { # TARGET TRIPLET QEMU LOADER
	local except='sweep|_oom|_large|apply_stack$|client_enable|confine'
	local loader
	get_qemu && cross_root "$1" "$2" || return
	loader=-Wl,--disable-new-dtags,--dynamic-linker=$ROOT_BASE/lib/$4
	loader+=,-rpath,$ROOT_BASE/lib/$2:$ROOT_BASE/usr/lib/$2
	relay "$1" < <(units_build "$1" "${cross[@]}" \
		CPPFLAGS=-DREFD_UNCONFINED LDFLAGS="$loader" \
		>"$T/$1.log" 2>&1 && units_run "$1" "$except" \
		"$T/qemu/usr/bin/qemu-$3" 2>>"$T/$1.log")
	[ ! -x "$T/$1/bin/refd-daemon" ] || take_turns "$1" "$3"
}

run_s390x() { emulated s390x s390x-linux-gnu s390x ld64.so.1; }
run_arm64() {
	emulated arm64 aarch64-linux-gnu aarch64 ld-linux-aarch64.so.1
}

# ---- emulated machines ----

# Boots Debian's kernel in an emulated machine, with a root in memory.
# tests/lib/in_machine.sh runs there.
machine() { # PROCESSOR TRIPLET QEMU CONSOLE QEMU-OPTION...
	local name=$1-machine dir=$T/$1-machine line packages
	packages=busybox-static,git,libevent-core-2.1-7,libseccomp2,zlib1g
	packages+=,libevent-pthreads-2.1-7,libsqlite3-0,linux-image-$1
	cross_root "$1" "$2" || return
	mkdir "$dir"
	if ! make -C "$ROOT" -j"$(nproc)" BUILD="$dir" CFLAGS=-O1 "${cross[@]}" \
		"$dir"/bin/refd{,-daemon,-admin} >"$T/$name.log" 2>&1; then
		relay "$name" </dev/null
		return
	fi
	root_make "$name" bookworm "$packages" '' --arch="$1" \
		--variant=extract --dpkgopt='path-exclude=/lib/modules/*' \
		--dpkgopt='path-exclude=/usr/share/*' || return
	cp -a "$ROOT_BASE" "$dir/root"
	mv "$dir"/root/boot/vmlinu?-* "$dir/kernel"
	cp -a "$dir/bin" "$dir/root/refd"
	install -m 755 "$ROOT/tests/lib/in_machine.sh" "$dir/root/init"
	(cd "$dir/root" && find . | cpio --quiet -o -H newc) >"$dir/initrd"
	timeout 600 "qemu-system-$3" "${@:5}" -m 2048 -smp 2 -nic none \
		-nographic -no-reboot -kernel "$dir/kernel" -initrd "$dir/initrd" \
		-append "console=$4 panic=-1 quiet" </dev/null 2>&1 |
		tr -d '\r' >"$dir/console"
	while IFS= read -r line; do
		case $line in
		'ok '*) ok "$name: ${line#ok }" ;;
		'not ok '*) not_ok "$name" "${line#not ok }" ;;
		esac
	done <"$dir/console"
	grep -qx finished "$dir/console" ||
		not_ok "$name" "no end: $(tail -n 3 "$dir/console")"
}

run_s390x-machine() { machine s390x s390x-linux-gnu s390x ttysclp0; }
run_arm64-machine() {
	machine arm64 aarch64-linux-gnu aarch64 ttyAMA0 -M virt -cpu neoverse-n1
}

for target in ${PROCESSORS:-i386 musl s390x arm64 s390x-machine arm64-machine}
do
	"run_$target" || skip "$target" "$(root_why)"
	rm -rf "${T:?}/$target"
done
finish
