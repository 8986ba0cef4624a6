#!/bin/bash
# Proves, with PostgreSQL and real repositories, that the daemon of a leader gets
# HELD only when followers have the objects, and all that the objects need: at
# once, at many repositories, beside batches, after kills of both programs, and
# after a new start of PostgreSQL. A follower that is away or that refuses gives
# NOT_HELD.
#
# GROUP_ONLY=test_NAME runs one case.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

binaries=/usr/lib/postgresql/15/bin
if [ ! -d "$binaries" ] || [ "$(id -u)" -ne 0 ]; then
	skip 'the objects of a group' \
		'needs root and PostgreSQL: scripts/deps --group'
	finish
	exit
fi
# PostgreSQL refuses to run as root.
chmod 711 "$T"
mkdir "$T/pg"
while read -r line; do
	case $line in
	ok\ *) ok "${line#ok }" ;;
	not\ ok\ *) not_ok "${line#not ok }" ;;
	*) echo "$line" ;;
	esac
done < <(python3 -B "$ROOT/tests/long/group_hold.py" "$BUILD/bin/refd-group" \
	"$T/pg" "$binaries" 65534 2>&1)
check 'all cases have run' grep -q . "$T/pg/ended"
finish
