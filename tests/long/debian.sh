#!/bin/bash
# Proves that the Debian packages work. Two builds give the same bytes, and
# lintian reports nothing. In a machine that boots, the packages are installed,
# used over ssh, upgraded under load, and lose the power. They are not removed
# while repositories are enabled, and are purged without residue
# (tests/lib/in_package.sh runs there). The machine lacks the libraries that
# refd needs, as a fresh server does. STACKS_CACHE=DIR keeps the Debian between
# runs.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/root.sh
. "$ROOT/tests/lib/root.sh"

root_needs debian --package

# ---- built, twice ----

# As a clone of this tree, with uncommitted changes.
build() { # DIRECTORY
	mkdir -p "$T/$1/refd" "$T/$1/home" &&
		git -C "$ROOT" ls-files -z --cached --others --exclude-standard |
		(cd "$ROOT" && xargs -0 cp --parents -t "$T/$1/refd") &&
		(cd "$T/$1/refd" && env -u BUILD -u DESTDIR HOME="$T/$1/home" \
			dpkg-buildpackage -b -us -uc -j"$(nproc)") >"$T/$1.log" 2>&1
}
sums() { (cd "$T/$1" && sha256sum ./*.deb); }

export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
if ! build first; then
	not_ok dpkg-buildpackage "$(tail -n 3 "$T/first.log")"
	finish
fi
ok dpkg-buildpackage
umask 0002
check 'once more' build another-place
umask 0022
is 'to the same bytes' "$(sums first)" "$(sums another-place)"
# The project has no mail address: the maintainer's address belongs to the
# machine that builds the package. lintian leaves files in TMPDIR.
is 'lintian' '' "$(TMPDIR=$T lintian --allow-root --fail-on none \
	--suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
	"$T"/first/refd_*.changes 2>&1)"

# A later version with the same files.
mkdir "$T/second"
dpkg-deb -R "$T"/first/refd_*_*.deb "$T/second/x"
sed -i 's/^Version: .*/&+later/' "$T/second/x/DEBIAN/control"
dpkg-deb -b "$T/second/x" "$T/second/refd_later.deb" >/dev/null
rm -r "$T/second/x"

# ---- booted ----

# apt can reach a mirror here, but not in the machine: it fetches the libraries
# now, without an installation.
suite=$(apt_private_codename)
packages=dbus,git,openssh-client,openssh-server,procps,systemd,systemd-sysv
# shellcheck disable=SC2016 # mmdebstrap's shell knows the root
if ! root_make "boot-$suite" "$suite" "$packages" \
	"$(dpkg-deb -f "$T"/first/refd_*_*.deb Depends)" --skip=cleanup/apt \
	--customize-hook="copy-in $(echo "$T"/first/{refd,librefd0}_*.deb) /tmp" \
	--customize-hook='chroot "$1" sh -c "apt-get clean && apt-get -y \
		--download-only install /tmp/*.deb && rm /tmp/*.deb"'; then
	skip boot "$(root_why)"
	finish
fi

root=$T/root
mkdir "$T/out"
scenario_mounts+=("$T/over" "$root")
check 'a root' root_mount "$root"
install -m 755 "$ROOT/tests/lib/in_package.sh" "$root/usr/local/bin/in_package"
cat >"$root/etc/systemd/system/in-package.service" <<'UNIT'
[Unit]
Description=The test
After=ssh.service
[Service]
Type=oneshot
ExecStart=/usr/local/bin/in_package
ExecStopPost=/bin/systemctl --no-block poweroff
StandardOutput=append:/out/report
StandardError=append:/out/errors
TimeoutStartSec=200
[Install]
WantedBy=multi-user.target
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s ../in-package.service \
	"$root/etc/systemd/system/multi-user.target.wants/in-package.service"
ln -sf /dev/null "$root/etc/systemd/system/systemd-firstboot.service"

# The disk that loses the power: repositories, and files that packages write.
with_fs ext4 1G || finish
mkdir "$FS/srv"
cp -a "$ROOT_BASE/var/lib" "$FS/lib"

# By default, systemd-nspawn denies Landlock to its machine.
landlock='landlock_create_ruleset landlock_add_rule landlock_restrict_self'
boot() {
	timeout 240 systemd-nspawn -q -D "$root" --boot --register=no \
		--keep-unit --private-network --machine="refd-$$" \
		--system-call-filter="$landlock" --bind-ro="$T:/packages" --bind="$T/out:/out" \
		--bind="$FS/srv:/srv" --bind="$FS/lib:/var/lib" \
		</dev/null >>"$T/console" 2>&1 &
	NSPAWN=$!
	own "$NSPAWN"
}
# All processes are stopped first: a process that ran on could be told that its
# writes succeeded.
cut_power() {
	local init
	init=$(pgrep -P "$(pgrep -P "$NSPAWN")" | head -n 1)
	pkill -STOP --ns "$init" --nslist pid .
	"$BUILD/tests/helper/shutdown_fs" nologflush "$FS"
	kill -KILL "$init"
	reap "$NSPAWN"
	umount "$FS" && mount -o loop "$FS.img" "$FS"
}

boot
for ((i = 0; i < 2400; i++)); do
	[ ! -e "$T/out/cut-me" ] || break
	kill -0 "$NSPAWN" 2>/dev/null || break
	sleep 0.1
done
sleep 1.5
check 'the power is cut' cut_power
boot
reap "$NSPAWN"
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
	not_ok boot "status $status, before the end"
	tail -n 20 "$T/console"
fi
[ "$scenario_bad" -eq 0 ] || tail -n 30 "$T/out/errors"
finish
