#!/bin/bash
# Proves what a Debian can prove of the files in scripts/distro. All of them
# have the version of the Makefile. rpmbuild accepts the spec; the RPM packages
# have the files of `make install`, divided as the Debian packages. A machine
# that boots installs the packages, pushes, and removes them
# (tests/lib/in_rpm.sh runs there). The APKBUILD installs and divides the same
# files. The files for Nix and AppArmor have no error of syntax. The output
# names everything that was not tried. STACKS_CACHE=DIR keeps the root of the
# machine between runs.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/root.sh
. "$ROOT/tests/lib/root.sh"

root_needs distro --distro
distro=$ROOT/scripts/distro
version=$(sed -n 's/^VERSION *:= *//p' "$ROOT/Makefile")
packages='refd refd-deliver librefd librefd-devel librefd-git2 librefd-git2-devel'

check 'the versions' "$ROOT/scripts/check-version"
rpm_version=$(rpmspec -q --srpm --qf '%{version}' "$distro/refd.spec")

# Prints a list of paths, as they are in the tree of make install below /usr.
usual() {
	sed -E 's|^/?|/|; s|^/lib/|/usr/lib/|; s|^/usr/lib64/|/usr/lib/|
		s|^/usr/lib/multiarch/|/usr/lib/|; s|(/man/.*)\.gz$|\1|
		s|/vendor-completions/|/site-functions/|' | sort
}
files_in() { (cd "$1" && find . ! -type d | sed 's|^\.||' | usual); }

# ---- installed by make ----

tree=$T/tree
install -D -m 644 "$ROOT/debian/etc/config" "$tree/etc/refd/config"
check 'make install' make_built DESTDIR="$tree" PREFIX=/usr \
	LIBDIR=/usr/lib/multiarch \
	UNITDIR=/lib/systemd/system \
	ZSH_COMPLETION=/usr/share/zsh/vendor-completions/_refd \
	install install-libgit2 install-deliver

# Prints the files that a Debian package has by debian/PACKAGE.install.
in_deb() { # PACKAGE
	sed 's|^debian\(/etc/config\) .*|etc/refd/config|' \
		"$ROOT/debian/$1.install" | (cd "$tree" && while read -r line; do
		# shellcheck disable=SC2086 # a pattern of names
		find $line ! -type d
	done) | usual
}
debian_name() { # PACKAGE
	sed -E 's/^librefd$/librefd0/; s/^librefd-git2$/&-0/
		s/-devel$/-dev/' <<<"$1"
}

# ---- RPM ----

# As a clone of this tree, with uncommitted changes.
mkdir "$T/refd-$version"
(cd "$ROOT" && git -c safe.directory='*' ls-files -z --cached --others \
	--exclude-standard | xargs -0 cp --parents -t "$T/refd-$version")
tar -C "$T" -czf "$T/refd-$version.tar.gz" "refd-$version"
# The machine's packages are no RPM packages. The spec's make takes BUILD from
# the environment, and would replace the programs under other tests.
if ! env -u BUILD rpmbuild -ta --nodeps --define "_topdir $T/rpm" \
	"$T/refd-$version.tar.gz" >"$T/rpmbuild" 2>&1; then
	not_ok rpmbuild "$(tail -n 3 "$T/rpmbuild")"
	finish
fi
ok rpmbuild
mkdir "$T/rpms"
for package in $packages; do
	mv "$T"/rpm/RPMS/*/"$package-$rpm_version"-*.rpm \
		"$T/rpms/$package.rpm"
	is "$package.rpm has the files of $(debian_name "$package")" \
		"$(in_deb "$(debian_name "$package")")" \
		"$(rpm -qp --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' \
			"$T/rpms/$package.rpm" | grep -v '^d' | cut -d' ' -f2- |
			grep -v -e ^/usr/share/doc/ -e ^/usr/share/licenses/ \
				-e ^/usr/lib/.build-id | usual)"
done
is 'together, the files of make install' "$(files_in "$tree")" \
	"$(for package in $packages; do
		in_deb "$(debian_name "$package")"
	done | sort)"
is 'the configuration stays through an upgrade' /etc/refd/config \
	"$(rpm -qpc "$T/rpms/refd.rpm")"
mkdir "$T/empty-root"
check 'rpm --root' rpm --root "$T/empty-root" -i --nodeps --noscripts \
	"$T"/rpms/*.rpm
is 'all files are as in the packages' '' \
	"$(rpm --root "$T/empty-root" -Va --nodeps --noscripts)"

suite=$(apt_private_codename)
if root_make "rpm-$suite" "$suite" "dbus,git,libcurl4,libevent-2.1-7,\
libevent-pthreads-2.1-7,libseccomp2,libsqlite3-0,procps,rpm,systemd,\
systemd-sysv,zlib1g" ''; then
	root=$T/root
	scenario_mounts+=("$T/over" "$root")
	check 'a root' root_mount "$root"
	root_runs "$root" in_rpm.sh 200
	with_fs ext4 1G || finish
	root_boot "$root" 240 --bind-ro="$T/rpms:/packages" --bind="$FS:/srv"
	root_report boot
else
	skip boot "$(root_why)"
fi
echo '# untried: the spec in Fedora and openSUSE'

# ---- APKBUILD ----

# Runs package() and the functions of the subpackages as abuild does, with the
# built files. A pattern without a file is an error.
cat >"$T/abuild" <<'SH'
set -eu
make() { command $MAKE_BUILT -C "$ROOT" BUILD="$BUILD" "$@"; }
amove() {
	for pattern; do
		(cd "$pkgdir" && find $pattern ! -type d >/dev/null)
	done
}
cd "$ROOT"
pkgdir=$1 srcdir=$ROOT/scripts/distro
. "$srcdir/APKBUILD"
package
deliver
librefd
git2
for file in $install; do
	test -x "$srcdir/$file"
done
SH
export ROOT BUILD MAKE_BUILT
check 'APKBUILD: package()' sh "$T/abuild" "$T/apk"
is 'APKBUILD: the files of make install, but for systemd' \
	"$( (files_in "$tree" | grep -v '^/usr/lib/\(systemd\|.*\.d\)/'
		echo /etc/init.d/refd) | sort)" "$(files_in "$T/apk")"
echo '# untried: APKBUILD, refd.initd and the accounts in Alpine'

# ---- Nix ----

# Without nixpkgs, the expression is only read.
nix() { # OPTION...
	env NIX_STORE_DIR="$T/nix" NIX_STATE_DIR="$T/nix-state" \
		NIX_LOCALSTATE_DIR="$T/nix-state" NIX_LOG_DIR="$T/nix-log" \
		NIX_CONF_DIR="$T" nix-instantiate --option build-users-group '' \
		"$@"
}
is 'default.nix' '' "$(nix --parse "$distro/default.nix" 2>&1 >"$T/parsed")"
nix_version() { # TREE
	nix --eval --expr "(import $1/scripts/distro/default.nix {
		pkgs.stdenv.mkDerivation = x: x; }).version"
}
is 'default.nix: the version' "\"$version\"" "$(nix_version "$ROOT")"
mkdir -p "$T/candidate/scripts/distro"
cp "$distro/default.nix" "$T/candidate/scripts/distro"
sed 's/^VERSION .*/VERSION := 7.8.9-rc2/' "$ROOT/Makefile" \
	>"$T/candidate/Makefile"
is 'default.nix: the version of a candidate' '"7.8.9-rc2"' \
	"$(nix_version "$T/candidate")"
echo '# untried: a build by Nix'

# ---- AppArmor ----

is 'AppArmor' '' "$(apparmor_parser -Q -K "$distro/apparmor" 2>&1 |
	grep -v 'interface file missing')"
echo '# untried: the profile in a kernel with AppArmor'
finish
