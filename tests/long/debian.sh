#!/bin/bash
# Proves that the Debian packages work, with the commands of
# docs/installation.md as written. Two builds in a minimal root, which has only
# the packages of "scripts/deps --package", give the same bytes, and lintian
# reports nothing. In a machine that boots, the packages are installed, used
# over ssh, upgraded under load, and lose the power. They are not removed while
# repositories are enabled, are purged without residue, and can be installed
# again (tests/lib/in_package.sh runs there). The machine lacks the libraries
# that refd needs, as a fresh server does.
#
# SUITE=trixie builds and boots this Debian, and not the machine's.
# STACKS_CACHE=DIR keeps the roots between runs.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/root.sh
. "$ROOT/tests/lib/root.sh"
# shellcheck source=tests/lib/packages.sh
. "$ROOT/tests/lib/packages.sh"

root_needs debian --distro
SUITE=${SUITE:-$(apt_private_codename)}

# ---- built, twice ----

# shellcheck disable=SC2016 # mmdebstrap's shell knows the root
if ! root_make "package-$SUITE" "$SUITE" '' \
	"$(sha256sum <"$ROOT/scripts/deps")" \
	--customize-hook="copy-in $ROOT/scripts/deps /tmp" \
	--customize-hook='chroot "$1" /tmp/deps --package && rm "$1/tmp/deps"'
then
	skip debian "$(root_why)"
	finish
fi

sums() { (cd "$T/$1" && sha256sum ./*.deb); }

packages_build first root_run || finish
ok dpkg-buildpackage
umask 0002
check 'once more' packages_build another-place root_run
umask 0022
is 'to the same bytes' "$(sums first)" "$(sums another-place)"
# The project has no mail address: the maintainer's address belongs to the
# machine that builds the package. lintian leaves files in TMPDIR.
is 'lintian' '' "$(TMPDIR=$T lintian --allow-root --fail-on none \
	--suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
	"$T"/first/refd_*.changes 2>&1)"

# Later versions with the same files.
mkdir "$T/second"
for package in refd refd-deliver refd-group; do
	dpkg-deb -R "$T"/first/${package}_*_*.deb "$T/second/x"
	sed -Ei 's/^Version: .*/&+later/; s/( refd \(= [^)]*)/\1+later/' \
		"$T/second/x/DEBIAN/control"
	dpkg-deb -b "$T/second/x" "$T/second/${package}_later.deb" >/dev/null
	rm -r "$T/second/x"
done

# ---- booted ----

# apt can reach a mirror here, but not in the machine: it fetches the libraries
# now, without an installation.
debs=("$T"/first/{refd,refd-deliver,refd-group,librefd0}_*.deb)
packages=dbus,git,openssh-client,openssh-server,procps,systemd,systemd-sysv
# shellcheck disable=SC2016 # mmdebstrap's shell knows the root
if ! root_make "boot-$SUITE" "$SUITE" "$packages" \
	"$(for deb in "${debs[@]}"; do dpkg-deb -f "$deb" Depends; done)" \
	--skip=cleanup/apt --customize-hook="copy-in ${debs[*]} /tmp" \
	--customize-hook='chroot "$1" sh -c "apt-get clean && apt-get -y \
		-o APT::Install-Recommends=true \
		--download-only install /tmp/*.deb && rm /tmp/*.deb"'; then
	skip boot "$(root_why)"
	finish
fi

root=$T/root
scenario_mounts+=("$T/over" "$root")
check 'a root' root_mount "$root"
root_runs "$root" in_package.sh 300
mkdir "$root/usr/local/doc"
cp "$ROOT/docs/installation.md" "$root/usr/local/doc"
cp "$ROOT/tests/lib/readme.sh" "$root/usr/local/lib"
# apt asks nobody here.
echo 'APT::Get::Assume-Yes "true";' >"$root/etc/apt/apt.conf.d/yes"

# The disk that loses the power: repositories, and files that packages write.
with_fs ext4 1G || finish
mkdir "$FS/srv"
cp -a "$ROOT_BASE/var/lib" "$FS/lib"

boot() {
	root_boot "$root" 340 --bind-ro="$T:/packages" \
		--bind="$FS/srv:/srv" --bind="$FS/lib:/var/lib"
}
# All processes are stopped first: a process that ran on could be told that its
# writes succeeded.
cut_power() {
	local init
	init=$(pgrep -P "$(pgrep -P "$MACHINE")" | head -n 1)
	pkill -STOP --ns "$init" --nslist pid .
	"$BUILD/tests/helper/shutdown_fs" nologflush "$FS"
	kill -KILL "$init"
	reap "$MACHINE"
	umount "$FS" && mount -o loop "$FS.img" "$FS"
}

boot
for ((i = 0; i < 2400; i++)); do
	[ ! -e "$T/out/cut-me" ] || break
	kill -0 "$MACHINE" 2>/dev/null || break
	sleep 0.1
done
sleep 1.5
check 'the power is cut' cut_power
boot
root_report boot
finish
