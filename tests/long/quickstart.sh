#!/bin/bash
# Proves that scripts/quickstart keeps all promises that it prints, also in a
# tree below a name with a space. The script shows progress during the build,
# and the messages of a failed build. If packages are missing, it prints only
# how to get them.

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

# A build that waits until its progress was seen.
mkdir "$T/bin"
cat >"$T/bin/make" <<MAKE
#!/bin/sh
seq 100
until [ -e "$T/seen" ]; do sleep 0.05; done
echo 'what was wrong'
exit 2
MAKE
chmod +x "$T/bin/make"
PATH=$T/bin:$PATH "$ROOT/scripts/quickstart" >"$T/said" 2>&1 &
own $!
check 'progress while the build runs' await 10 grep -q '100 files' "$T/said"
touch "$T/seen"
reap $!
is 'a build that fails' 1 $?
check 'and its words' grep -q 'what was wrong' "$T/said"

printf '#!/bin/sh\n' >"$T/bin/dpkg-query"
printf '#!/bin/sh\necho 1000\n' >"$T/bin/id"
chmod +x "$T/bin/dpkg-query" "$T/bin/id"
PATH=$T/bin:$PATH "$ROOT/scripts/quickstart" >"$T/said" 2>&1
is 'without the packages it fails' 1 $?
tail -n 1 "$T/said" >"$T/last"
check 'and ends with how to install them' \
	grep -q 'apt-get install .*libsqlite3-dev' "$T/last"
finish
