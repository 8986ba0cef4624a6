#!/bin/bash
# Proves that hostile files of one repository neither end the daemon nor keep
# the daemon from serving another repository: a pack index truncated during use
# (F2), FIFOs in the place of an object, an index, a pack and an included file
# (F3), nested includes (F4), and very many refs to one large tag (F7). The same
# holds for directories below refs/ that are two thousand deep, when the daemon
# looks for locks after a kill, and when a repository is disowned. Alternates
# that refd may not read reveal nothing (F9).
# Slow: it makes thousands of directories and files.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

SERVED=$T/srv
mkdir "$SERVED"

# The daemon's answer to a one-ref transaction.
ask() { # REPOSITORY OID PREFIX
	timeout 120 "$BUILD/tests/helper/storm" --socket "$SOCKET" \
		--repo "$SERVED/$1" --oid "$2" --clients 1 --txns 1 --create \
		--prefix "refs/heads/$3" 2>&1 |
		sed -n 's/.*"ok":1,"failed":{}.*/ok/p
			s/.*"failed":{"\([a-z]*\)":1}.*/\1/p'
}

served=0
another_is_served() { # AFTER-WHAT
	served=$((served + 1))
	is "$1: another repository is served" ok \
		"$(ask other.git "$other" "other$served")"
}

# Makes a repository NAME; the daemon has looked up its packed commit $one.
packed_repo() { # NAME
	new_repo "srv/$1" bare
	one=$(new_commit "srv/$1" one)
	git -C "$SERVED/$1" update-ref refs/heads/there "$one"
	git -C "$SERVED/$1" repack -q -a -d
	chmod +w "$SERVED/$1"/objects/pack/*
	is "$1: it is served" ok "$(ask "$1" "$one" before)"
}

truncated() {
	local suffix
	for suffix in idx pack; do
		packed_repo "cut-$suffix.git"
		truncate -s 0 "$SERVED/cut-$suffix.git"/objects/pack/*.$suffix
		is "F2: its $suffix is cut off" io \
			"$(ask "cut-$suffix.git" "$one" after)"
		another_is_served "F2, $suffix"
	done
}

fifos() {
	local suffix file
	for suffix in idx pack; do
		packed_repo "fifo-$suffix.git"
		file=$(echo "$SERVED/fifo-$suffix.git"/objects/pack/*.$suffix)
		rm "$file" && mkfifo "$file"
		touch "$SERVED/fifo-$suffix.git/config"
		is "F3: a FIFO for its $suffix" io \
			"$(ask "fifo-$suffix.git" "$one" after)"
		another_is_served "F3, $suffix"
	done
	new_repo srv/fifo.git bare
	one=$(new_commit srv/fifo.git one)
	file=$SERVED/fifo.git/objects/${one:0:2}/${one:2}
	rm -f "$file" && mkfifo "$file"
	is 'F3: a FIFO for an object' io "$(ask fifo.git "$one" after)"
	another_is_served 'F3, an object'
	new_repo srv/include.git bare
	one=$(new_commit srv/include.git one)
	git -C "$SERVED/include.git" config include.path included
	mkfifo "$SERVED/include.git/included"
	is 'F3: a FIFO for an included file' norepo \
		"$(ask include.git "$one" after)"
	another_is_served 'F3, an included file'
}

peak_kb() {
	sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$DAEMON/status"
}

# Each file includes the next file eight times, ten deep.
includes() {
	local i
	new_repo srv/nested.git bare
	one=$(new_commit srv/nested.git one)
	for i in 0 1 2 3 4 5 6 7 8 9; do
		yes "path = n$((i + 1))" 2>/dev/null | head -n 8 |
			sed '1i [include]' >"$SERVED/nested.git/n$i"
	done
	printf '[core]\n\tlogAllRefUpdates\n' >"$SERVED/nested.git/n10"
	git config -f "$SERVED/nested.git/config" include.path n0
	is 'F4: nested includes' unsupported "$(ask nested.git "$one" after)"
	another_is_served F4
	check 'F4: the daemon stays small' test "$(peak_kb)" -lt 65536
	# An include below the repository is read.
	git config -f "$SERVED/nested.git/config" include.path n10
	is 'F4: one include' ok "$(ask nested.git "$one" good)"
	# An include elsewhere is not read. A client that does not send the
	# settings is refused; the commands send the settings.
	git config -f "$SERVED/nested.git/config" include.path /etc/hostname
	is 'F4: an include elsewhere' unsupported \
		"$(ask nested.git "$one" elsewhere)"
	check 'F4: refd update says what it sets' "$REFD" update \
		--git-dir "$SERVED/nested.git" --porcelain refs/heads/said "$one"
}

cpu_ticks() {
	awk '{ print $14 + $15 }' "/proc/$DAEMON/stat"
}

many_tags() {
	local tag before i
	new_repo srv/tags.git bare
	one=$(new_commit srv/tags.git one)
	tag=$({
		printf 'object %s\ntype commit\ntag t\ntagger a <a> 1 +0000\n\n' \
			"$one"
		seq 3000000 | head -c 20971520
	} | git -C "$SERVED/tags.git" hash-object -t tag -w --stdin)
	before=$(cpu_ticks)
	for ((i = 0; i < 400; i++)); do
		echo "create refs/tags/t$i $tag"
	done | timeout 300 "$REFD" update --git-dir "$SERVED/tags.git" --stdin
	is 'F7: 400 refs to one tag of 20 MiB' 0 $?
	check "F7: $(($(cpu_ticks) - before)) ticks of processor" \
		test $(($(cpu_ticks) - before)) -lt 500
	is 'F7: all of them are peeled right' 400 \
		"$(git -C "$SERVED/tags.git" for-each-ref \
			--format='%(*objectname)' refs/tags | grep -c "$one")"
	check 'F7: none of them is packed' \
		test ! -s "$SERVED/tags.git/packed-refs"
}

# The answer is the same whether the object is in the closed store or nowhere.
alternates() {
	local there absent=1234567890123456789012345678901234567890 store
	new_repo closed.git bare
	there=$(new_commit closed.git secret)
	new_repo srv/theirs.git bare
	new_commit srv/theirs.git secret >/dev/null
	chown -R 64007:64007 "$SERVED/theirs.git" 2>/dev/null
	new_repo srv/curious.git bare
	for store in "$T/closed.git" "$SERVED/theirs.git" "$T/nothing"; do
		[ "$store" != "$SERVED/theirs.git" ] ||
			[ "$(stat -c %u "$store")" = 64007 ] || continue
		echo "$store/objects" \
			>"$SERVED/curious.git/objects/info/alternates"
		is "F9: ${store#"$T/"}, an object that is there" unsupported \
			"$(ask curious.git "$there" there)"
		is "F9: ${store#"$T/"}, one that is not" unsupported \
			"$(ask curious.git "$absent" absent)"
	done
}

# Directories below each other, made in steps: the whole path is longer than a
# call accepts. And a token of the daemon's, as left by a killed daemon.
deep() {
	local refd=$SERVED/deep.git/refd path=a i
	new_repo srv/deep.git bare
	one=$(new_commit srv/deep.git one)
	is 'deep directories: before' ok "$(ask deep.git "$one" before)"
	kill_daemon
	for ((i = 0; i < 9; i++)); do path+=/$path; done
	(
		cd "$SERVED/deep.git/refs/heads" || exit
		for ((i = 0; i < 4; i++)); do
			mkdir -p "$path" && cd -P "$path" || exit
		done
	)
	: >"$refd/stage/0000000000000001.0"
	ln "$refd/stage/0000000000000001.0" "$refd/second"
	check 'deep directories: the daemon starts after a kill' start_daemon
	is 'deep directories: it is served' ok "$(ask deep.git "$one" after)"
	another_is_served 'deep directories'
	stop_daemon
	: >"$refd/stage/0000000000000001.0"
	ln -f "$refd/stage/0000000000000001.0" "$refd/second"
	"$REFD" disown "$SERVED/deep.git" >"$T/out"
	is 'deep directories: it is disowned' 0 $?
	check 'deep directories: its token is gone' \
		test ! -e "$refd/stage/0000000000000001.0"
	check 'the daemon starts again' start_daemon
}

check 'the daemon starts' start_daemon
new_repo srv/other.git bare
other=$(new_commit srv/other.git one)
truncated
fifos
includes
many_tags
alternates
deep
check 'the daemon lives' "$REFD" ping --socket "$SOCKET"
finish
