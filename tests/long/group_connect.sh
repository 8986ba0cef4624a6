#!/bin/bash
# Proves, with PostgreSQL over TLS in a network of its own, that refd-group works
# with sslmode=verify-full and with a password from ~/.pgpass or a service file,
# or with a certificate; that a wrong or expired certificate, a wrong password,
# and a server that does not answer give a message with the remedy, and no wait
# of more than ten seconds; that refd-group goes on as soon as the fault is
# mended; that no message has a password; and that a pooler is refused.
#
# GROUP_ONLY='test_NAME ...' chooses cases.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

if [ ! -d "$binaries" ] || [ "$(id -u)" -ne 0 ] ||
	! command -v pgbouncer >/dev/null; then
	skip 'connections to PostgreSQL' \
		'needs root and PostgreSQL: scripts/deps --group'
	finish
	exit
fi
# PostgreSQL refuses to run as root.
chmod 711 "$T"
mkdir "$T/pg" "$T/pki"
while read -r line; do
	case $line in
	ok\ *) ok "${line#ok }" ;;
	not\ ok\ *) not_ok "${line#not ok }" ;;
	*) echo "$line" ;;
	esac
done < <(unshare --net --fork --kill-child \
	python3 -B "$ROOT/tests/long/group_connect.py" "$BUILD/bin/refd-group" \
	"$T/pg" "$T/pki" "$binaries" 65534 2>&1)
check 'all cases have run' grep -q . "$T/pg/ended"
finish
