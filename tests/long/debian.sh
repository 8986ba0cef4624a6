#!/bin/bash
# Proves that the Debian packages work, with the commands of
# docs/installation.md as written. Two builds in a minimal root, which has only
# the packages of "scripts/deps --package", give the same bytes (on this
# machine's Debian), and lintian reports nothing. The apt repositories of both
# builds have the same bytes, too.
# apt installs refd from such a directory, and refuses a changed package and the
# signature of another key. In a machine that boots, the packages are installed,
# used over ssh, upgraded under load, and lose the power. They are not removed
# while repositories are enabled, are purged without residue, and can be
# installed again (tests/lib/in_package.sh runs there). The machine lacks the
# libraries that refd needs, as a fresh server does.
#
# SUITE=trixie builds and boots this Debian, and not the machine's.
# FORMER=DIRECTORY has packages of an earlier commit, which the upgrade begins
# with: formats and units may differ between two commits.
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
# One Debian shows that the build gives the same bytes.
if [ "$SUITE" = "$(apt_private_codename)" ]; then
	umask 0002
	check 'once more' packages_build another-place root_run
	umask 0022
	is 'to the same bytes' "$(sums first)" "$(sums another-place)"
else
	cp -a "$T/first" "$T/another-place"
fi
# The project has no mail address: the maintainer's address belongs to the
# machine that builds the package. lintian leaves files in TMPDIR.
is 'lintian' '' "$(TMPDIR=$T lintian --allow-root --fail-on none \
	--suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
	"$T"/first/refd_*.changes 2>&1)"

# ---- an apt repository ----

fails() { ! "$@"; }
export GNUPGHOME=$T/keys
mkdir -m 700 "$GNUPGHOME"
new_key() { # NAME
	root_run gpg --batch --passphrase '' --quick-generate-key "$1" \
		ed25519 sign never >"$T/apt.log" 2>&1
}
# Made as a user makes it: in the clone, with the packages above.
repository() { # DIRECTORY UMASK [KEY]
	root_run bash --norc -c "umask $2 && exec env -u BUILD -u TMPDIR \
		make -s -C '$T/$1/refd' apt-repository KEY='${3:-}'" \
		>"$T/apt.log" 2>&1
}
# Without the key, and what was signed with it.
repository_sums() { # DIRECTORY
	(cd "$T/$1/refd/build/apt" && find . -type f ! -name refd.asc \
		! -name InRelease -exec sha256sum {} + | sort)
}
check 'a throw-away key' new_key right@example.com
check 'another key' new_key wrong@example.com
check 'no key makes no repository' fails repository first 077
check 'and the command for a key is named' \
	grep -q '^    gpg --quick-generate-key ' "$T/apt.log"
check 'a name of two keys makes none, either' \
	fails repository first 077 example.com
is 'and leaves no file' '' "$(compgen -G "$T/first/refd/build/apt*")"
check 'an apt repository' repository first 077 right@example.com
check 'one of the other build' repository another-place 022 right@example.com
check 'is replaced, with another key' \
	repository another-place 022 wrong@example.com
is 'and nothing stays beside it' "$T/another-place/refd/build/apt" \
	"$(compgen -G "$T/another-place/refd/build/apt*")"
chmod o+w "$T/first/refd/build"
check 'none where everybody may write' \
	fails repository first 022 right@example.com
check 'and the reason is said' grep -q 'everybody may write there' "$T/apt.log"
chmod o-w "$T/first/refd/build"
is 'packages, lists and Release are the same' "$(repository_sums first)" \
	"$(repository_sums another-place)"
# shellcheck disable=SC2154 # scenario.sh has the variable
[ "$scenario_bad" -eq 0 ] || tail -n 5 "$T/apt.log"

# What the machine is upgraded from.
mkdir "$T/former"
check 'packages to upgrade from' cp "${FORMER:-$T/first}"/refd_*.deb \
	"${FORMER:-$T/first}"/{refd-deliver,refd-group,librefd0}_*.deb \
	"$T/former"

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
debs=("$T"/former/{refd,refd-deliver,refd-group,librefd0}_*.deb)
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

# ---- installed by apt, from the repository ----

# The commands of the page, in a root that has the lists of Debian, but no
# network. What counts is what is installed in the end.
{
	cat <<-'SH'
		export PATH=/usr/sbin:/usr/bin:/sbin:/bin
		cp -r "$1" /srv/apt
		printf '%s;\n' 'APT::Get::Assume-Yes "true"' \
			'Acquire::Retries "0"' 'Dpkg::Use-Pty "0"' \
			>/etc/apt/apt.conf.d/test
	SH
	readme_block "$ROOT/docs/installation.md" \
		'An apt repository of your own' 3
	# shellcheck disable=SC2016 # the field is dpkg's
	echo '[ "$(dpkg-query -W -f "\${db:Status-Status}" refd)" = installed ]'
} >"$T/commands"
apt_installs() { # REPOSITORY
	DEBIAN_FRONTEND=noninteractive root_run bash --norc "$T/commands" \
		"$T/$1" >"$T/apt.log" 2>&1
}
cp -r "$T/first/refd/build/apt" "$T/good"
if apt_installs good; then ok 'apt installs refd from the repository'; else
	not_ok 'apt installs refd from the repository' \
		"$(tail -n 5 "$T/apt.log" | tr '\n' '|')"
fi
cp -r "$T/good" "$T/changed"
changed=("$T"/changed/pool/refd_*.deb)
# A digit of a time in the archive: only the check sum tells.
printf 9 | dd of="${changed[0]}" bs=1 seek=24 conv=notrunc status=none
check 'apt refuses a changed package' fails apt_installs changed
check 'for its check sum' grep -q 'Hash Sum mismatch' "$T/apt.log"
cp -r "$T/good" "$T/forged"
cp "$T/another-place/refd/build/apt/dists/stable/InRelease" \
	"$T/forged/dists/stable/"
check 'apt refuses the signature of another key' fails apt_installs forged
check 'as none' grep -q '/srv/apt .* is not signed' "$T/apt.log"

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
