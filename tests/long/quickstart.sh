#!/bin/bash
# What scripts/quickstart shows people who have read nothing yet is so: all of
# its promises are kept; in a tree below a name with a space, too. Where
# packages are missing it says how to get them, and nothing else.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

shows() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >"$T/said" 2>&1; then
		ok "$name"
	else
		not_ok "$name" "$(grep -m1 -A1 'NOT AS PROMISED' "$T/said" ||
			tail -n 3 "$T/said")"
	fi
}

shows quickstart env BUILD="$BUILD" "$ROOT/scripts/quickstart"

mkdir "$T/a tree"
ln -s "$ROOT"/* "$T/a tree"
rm -f "$T/a tree/build"
shows 'the same below a name with a space' \
	env -u BUILD "$T/a tree/scripts/quickstart"

mkdir "$T/bin"
printf '#!/bin/sh\n' >"$T/bin/dpkg-query"
printf '#!/bin/sh\necho 1000\n' >"$T/bin/id"
chmod +x "$T/bin/dpkg-query" "$T/bin/id"
PATH=$T/bin:$PATH "$ROOT/scripts/quickstart" >"$T/said" 2>&1
is 'without the packages it fails' 1 $?
tail -n 1 "$T/said" >"$T/last"
check 'and ends with how to install them' \
	grep -q 'apt-get install .*libsqlite3-dev' "$T/last"
finish
