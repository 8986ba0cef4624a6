#!/bin/bash
# Proves that every command of the README works as written, in a minimal Debian
# which has only the packages of `scripts/deps --build` and a service manager.
# The machine boots, and in_readme.sh runs the quick start as a user without
# rights, and the installation and the everyday tasks as root. Each task needs
# at most three commands. SUITE=trixie boots this Debian, and not the machine's.
# STACKS_CACHE=DIR keeps the Debian between runs.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/root.sh
. "$ROOT/tests/lib/root.sh"

root_needs readme --distro

# A clone with a commit of this tree, uncommitted changes included.
clone=$T/refd
mkdir "$clone"
git -c safe.directory='*' -C "$ROOT" ls-files -z --cached --others \
	--exclude-standard | (cd "$ROOT" && xargs -0 cp --parents -t "$clone")
git init -q "$clone"
git -C "$clone" add -A
git -C "$clone" commit -q -m tree

suite=${SUITE:-$(apt_private_codename)}
# shellcheck disable=SC2016 # mmdebstrap's shell knows the root
if ! root_make "readme-$suite" "$suite" dbus,procps,systemd,systemd-sysv \
	"$(sha256sum <"$ROOT/scripts/deps")" \
	--customize-hook="copy-in $ROOT/scripts/deps /tmp" \
	--customize-hook='chroot "$1" /tmp/deps --build && rm "$1/tmp/deps"'; then
	skip readme "$(root_why)"
	finish
fi

root=$T/root
scenario_mounts+=("$T/over" "$root")
check 'a root' root_mount "$root"
root_runs "$root" in_readme.sh 900

# Repositories need a disk with hard links that the units may write. The state
# is there, too: doctor warns of an overlay, and ends with 1.
with_fs ext4 1G || finish
mkdir "$FS/srv"
cp -a "$ROOT_BASE/var/lib" "$FS/lib"

root_boot "$root" 960 --bind-ro="$clone:/clone" --bind="$FS/srv:/srv" \
	--bind="$FS/lib:/var/lib"
root_report readme
[ "$scenario_bad" -eq 0 ] || tail -n 60 "$T/out/output"
finish
