#!/bin/bash
# Proves that refd's units work in a machine that boots, as `make install`
# installs them: activation, ready after recovery, restart and crash under load
# with clients that count, reload, watchdog, stop, failing starts, several
# accounts, numbers over TCP. Every trap of the units is sprung once. in_boot.sh
# runs inside the machine.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if [ "$(id -u)" -ne 0 ] || ! command -v systemd-nspawn >/dev/null; then
	skip boot 'wants root and systemd-nspawn'
	finish
fi
landlock='landlock_create_ruleset landlock_add_rule landlock_restrict_self'
to=$T/root
mkdir -p "$to" "$T/srv" "$T/state" "$T/out"
chmod 755 "$T"
make -s -C "$ROOT" -o all BUILD="$BUILD" DESTDIR="$to" install \
	>"$T/make.log" 2>&1
cp "$BUILD/tests/helper/preload_flush.so" "$to/usr/local/lib/"
cp "$ROOT/debian/refd.postinst" "$to/usr/local/lib/"
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

# By default, systemd-nspawn denies Landlock to its machine.
timeout 180 systemd-nspawn -q -D / --volatile=yes --boot --private-network --register=no \
	--keep-unit --machine="refd-$$" --system-call-filter="$landlock" \
	--bind-ro="$to/usr/local:/usr/local" --bind="$T/srv:/srv/git" \
	--bind="$T/state:/var/lib/refd" --bind="$T/out:/out" \
	systemd.unit=in-boot.target \
	</dev/null >"$T/console" 2>&1
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
	tail -n 30 "$T/out/errors"
fi
if [ "$status" != finished ]; then
	not_ok boot "status $status, before the end"
	tail -n 20 "$T/console"
fi
finish
