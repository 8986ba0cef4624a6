#!/bin/bash
# Proves that refd's units work in a machine that boots, as `make install`
# installs them: activation, ready after recovery, restart and crash under load
# with clients that count, reload, watchdog, stop, failing starts, several
# accounts, numbers over TCP. Every trap of the units is sprung once. in_boot.sh
# runs inside the machine.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/root.sh
. "$ROOT/tests/lib/root.sh"

if [ "$(id -u)" -ne 0 ] || ! command -v systemd-nspawn >/dev/null; then
	skip boot 'wants root and systemd-nspawn'
	finish
fi
to=$T/root
mkdir -p "$to" "$T/srv" "$T/state" "$T/out"
chmod 755 "$T"
make_built DESTDIR="$to" install
cp "$BUILD/tests/helper/preload_flush.so" "$to/usr/local/lib/"
cp "$ROOT/debian/refd.postinst" "$ROOT/tests/lib/report.sh" \
	"$to/usr/local/lib/"
cp "$ROOT/tests/lib/in_boot.sh" "$to/usr/local/bin/in_boot"
cat >"$to/usr/local/lib/systemd/system/in-boot.service" <<'UNIT'
[Unit]
Description=The test
[Service]
Type=oneshot
ExecStart=/usr/local/bin/in_boot
ExecStopPost=/bin/systemctl --no-block poweroff
StandardOutput=append:/out/report
StandardError=append:/out/errors
TimeoutStartSec=150
UNIT
# systemd-firstboot would ask questions.
ln -s /dev/null "$to/usr/local/lib/systemd/system/systemd-firstboot.service"
cat >"$to/usr/local/lib/systemd/system/in-boot.target" <<'UNIT'
[Unit]
Requires=basic.target
Wants=in-boot.service
UNIT

root_boot / 180 --volatile=yes --bind-ro="$to/usr/local:/usr/local" \
	--bind="$T/srv:/srv/git" --bind="$T/state:/var/lib/refd" \
	systemd.unit=in-boot.target
root_report boot
finish
