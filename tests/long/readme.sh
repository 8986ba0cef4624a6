#!/bin/bash
# Proves that every command of the README works as written, in a minimal Debian
# which has only the packages of `scripts/deps --build` and a service manager.
# The machine boots, and in_readme.sh runs the quick start as a user without
# rights, and the installation and the everyday tasks as root. Each task needs
# at most three commands. STACKS_CACHE=DIR keeps the Debian between runs.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/root.sh
. "$ROOT/tests/lib/root.sh"

root_needs readme --package

# A clone with a commit of this tree, uncommitted changes included.
clone=$T/refd
mkdir "$clone"
git -c safe.directory='*' -C "$ROOT" ls-files -z --cached --others \
	--exclude-standard | (cd "$ROOT" && xargs -0 cp --parents -t "$clone")
git init -q "$clone"
git -C "$clone" add -A
git -C "$clone" commit -q -m tree

suite=$(apt_private_codename)
# shellcheck disable=SC2016 # mmdebstrap's shell knows the root
if ! root_make "readme-$suite" "$suite" dbus,procps,systemd,systemd-sysv \
	"$(sha256sum <"$ROOT/scripts/deps")" \
	--customize-hook="copy-in $ROOT/scripts/deps /tmp" \
	--customize-hook='chroot "$1" /tmp/deps --build && rm "$1/tmp/deps"'; then
	skip readme "$(root_why)"
	finish
fi

root=$T/root
mkdir "$T/out"
scenario_mounts+=("$T/over" "$root")
check 'a root' root_mount "$root"
install -m 755 "$ROOT/tests/lib/in_readme.sh" "$root/usr/local/bin/in_readme"
cat >"$root/etc/systemd/system/in-readme.service" <<'UNIT'
[Unit]
Description=The test
[Service]
Type=oneshot
ExecStart=/usr/local/bin/in_readme
ExecStopPost=/bin/systemctl --no-block poweroff
StandardOutput=append:/out/report
StandardError=append:/out/errors
TimeoutStartSec=900
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s ../in-readme.service \
	"$root/etc/systemd/system/multi-user.target.wants/in-readme.service"
ln -sf /dev/null "$root/etc/systemd/system/systemd-firstboot.service"

# Repositories need a disk with hard links that the units may write.
with_fs ext4 1G || finish

# By default, systemd-nspawn denies Landlock to its machine.
landlock='landlock_create_ruleset landlock_add_rule landlock_restrict_self'
timeout 960 systemd-nspawn -q -D "$root" --boot --private-network \
	--register=no --keep-unit --machine="refd-$$" \
	--system-call-filter="$landlock" --bind-ro="$clone:/clone" \
	--bind="$T/out:/out" --bind="$FS:/srv" </dev/null >"$T/console" 2>&1
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
if [ "$scenario_bad" -gt 0 ]; then
	tail -n 60 "$T/out/output" "$T/out/errors"
fi
if [ "$status" != finished ]; then
	not_ok readme "status $status, before the end"
	tail -n 20 "$T/console"
fi
finish
