#!/bin/bash
# Proves that users who share a daemon cannot have more than their rights: be
# given another repository's records, write where the modes stop them, or stop
# the daemon, its next start or each other. The daemon runs as an unprivileged
# account. Each user may write one user group's repositories, and can change any
# file in them, refd's too. Owners of repositories have separate daemons; root's
# daemon serves none of theirs.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

with_people tenants || finish
ALICE=64001 BOB=64002
with_account 64000
# The same commit in every repository.
export GIT_AUTHOR_DATE='1785542400 +0000' GIT_COMMITTER_DATE='1785542400 +0000'

start() {
	start_daemon --config "$T/config"
}

# The daemon's answer to an update of one ref.
update() { # UID NAME REF OID
	as "$1" "$REFD" update --git-dir "$T/of$1/$2" --porcelain "$3" "$4" \
		2>/dev/null | sed -n '1s/ refs.* / /p;1s/^ok .*/ok/p' |
		cut -d' ' -f1
}

# ---- root's daemon and the repositories of other users ----

roots_daemon() {
	local own=$T/of$BOB/own.git mode
	as $BOB git init -q --bare "$own"
	his=$(as $BOB git -C "$own" commit-tree -m one \
		"$(as $BOB git -C "$own" mktree </dev/null)")
	AS_ACCOUNT=() STATE=$T/state.root SOCKET=$T/root.sock
	export REFD_SOCKET=$SOCKET
	start || return
	for mode in all objects refs; do
		case $mode in
		objects) chown root "$own" "$own/refs" ;;
		refs) chown root "$own/objects"; chown $BOB "$own/refs" ;;
		esac
		is "root's daemon refuses, $mode belonging to another" ng \
			"$(update $BOB own.git refs/heads/a "$his")"
		"$REFD" update --git-dir "$own" refs/heads/a "$his" 2>"$T/err"
		check 'and says whose it is and what to do' grep -q \
			"belongs to uid $BOB.*run a daemon as that user (refd@NAME.service in refd-daemon(8))" "$T/err"
	done
	check 'nothing is left in it' test ! -e "$own/refd"
	chown -R $BOB "$own"
	# A git-dir of another account is not read, and neither is its
	# commondir.
	as $BOB mkdir "$T/of$BOB/w.git"
	as $BOB sh -c "echo /etc >'$T/of$BOB/w.git/commondir'"
	check 'nothing is told of its commondir' grep -q 'is no repository that' \
		<<<"$(by_wire $BOB "$T/of$BOB/w.git" refs/heads/a "$his")"
	check 'it goes on' stop_daemon
	"$REFD" daemon --socket "$SOCKET" --state "$T/state" --root "$SERVED" \
		>"$T/out" 2>&1
	is 'nor does it use the state of another' 69 $?
	check 'and says so' grep -q 'state.*belongs to uid' "$T/out"
}

# ---- attempts to get the records of another user ----

# His id in her repository, with her own path.
another_s_id() {
	local id=$T/of$ALICE/y.git/refd/id
	is 'his' ok "$(update $BOB b.git refs/heads/a "$his")"
	is 'hers' ok "$(update $ALICE y.git refs/heads/a "$one")"
	as $ALICE sed -i "1s/.*/$(head -n 1 "$T/of$BOB/b.git/refd/id")/" "$id"
	# The daemon opens the repository again.
	as $ALICE git -C "$T/of$ALICE/y.git" config some.thing else
	is 'with his id' ok "$(update $ALICE y.git refs/heads/b "$one")"
	check 'it was not believed' test "$(head -n 1 "$id")" != \
		"$(head -n 1 "$T/of$BOB/b.git/refd/id")"
	is 'his is where it was' "$T/of$BOB/b.git" "$(python3 \
		"$ROOT/tests/lib/journal_copy.py" "$STATE" \
		'SELECT path FROM repo WHERE lower(hex(uuid)) = ?' \
		"$(sed -n 's/^uuid //p' "$T/of$BOB/b.git/refd/id")")"
}

# The same while his repository is away: nothing is at the path that the journal
# knows.
an_id_of_one_who_is_away() { # HOW
	local id=$T/of$ALICE/y.git/refd/id his_id
	his_id=$(head -n 1 "$T/of$BOB/b.git/refd/id")
	mv "$T/of$BOB/b.git" "$T/of$BOB/away"
	"$1" "$id" "$his_id"
	as $ALICE git -C "$T/of$ALICE/y.git" config some.thing "$1"
	is "$1: with the id of one that is away" ok \
		"$(update $ALICE y.git "refs/heads/$1" "$one")"
	check "$1: it was not believed then" test "$(head -n 1 "$id")" != \
		"$his_id"
	is "$1: nobody else may write the new one" 644 "$(stat -c %a "$id")"
	mv "$T/of$BOB/away" "$T/of$BOB/moved.git"
	is "$1: his, moved" ok \
		"$(update $BOB moved.git "refs/heads/$1/m" "$his")"
	is "$1: keeps its id" "$his_id" \
		"$(head -n 1 "$T/of$BOB/moved.git/refd/id")"
	mv "$T/of$BOB/moved.git" "$T/of$BOB/b.git"
	is "$1: his, back" ok "$(update $BOB b.git "refs/heads/$1/n" "$his")"
}

in_a_file_of_hers() { # ID-FILE LINE
	as "$ALICE" sed -i "1s/.*/$2/" "$1"
}

# The file belongs to the daemon's account, because the daemon has made the ref.
in_a_ref() { # ID-FILE LINE
	local ref=$T/of$ALICE/y.git/refs/heads/w
	is 'a ref' ok "$(update "$ALICE" y.git refs/heads/w "$one")"
	as "$ALICE" sh -c "sed '1s/.*/$2/' '$1' >'$T/of$ALICE/id' &&
		cat '$T/of$ALICE/id' >'$ref' && mv -f '$ref' '$1'"
	is 'his id is in a file of the daemon' "$ACCOUNT $2" \
		"$(stat -c %u "$1") $(head -n 1 "$1")"
}

# She has the log open while the daemon gives it the mode that she has set.
in_a_log() { # ID-FILE LINE
	local repo=$T/of$ALICE/y.git two
	as "$ALICE" sh -c "umask 0; mkdir -p '$repo/logs/refs/heads'"
	as "$ALICE" git -C "$repo" config core.logAllRefUpdates always
	is 'a log' ok "$(update "$ALICE" y.git refs/heads/l "$one")"
	two=$(as "$ALICE" git -C "$repo" commit-tree -m two "$one^{tree}")
	as "$ALICE" git -C "$repo" config core.sharedRepository 0644
	check 'a second line' as "$ALICE" python3 - "$REFD" "$repo" "$1" "$2" \
		"$two" <<'PYTHON'
import os, subprocess, sys
refd, repo, id_file, line, two = sys.argv[1:]
log = repo + '/logs/refs/heads/l'
with open(id_file) as f:
    text = '\n'.join([line] + f.read().split('\n')[1:])
fd = os.open(log, os.O_RDWR)
subprocess.run([refd, 'update', '--git-dir', repo, 'refs/heads/l', two],
               check=True)
os.ftruncate(fd, 0)
os.pwrite(fd, text.encode(), 0)
os.rename(log, id_file)
PYTHON
	is 'his id is in a log of the daemon' "$ACCOUNT $2" \
		"$(stat -c %u "$1") $(head -n 1 "$1")"
}

# ---- attempts to write without access ----

# The daemon's answer to a user who knows a path without access to it.
by_wire() { # UID REPOSITORY REF OID
	python3 - "$ROOT/tests/powercut" "$SOCKET" "$@" <<'PYTHON'
import os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import wire
uid, repo, ref, oid = sys.argv[3:]
txn = wire.Transaction(repo, [b"update %s\0%s\0" % (
    ref.encode(), oid.encode())], "x")
headers = list(txn.headers())
os.setgroups([])
os.setgid(int(uid))
os.setuid(int(uid))
said = wire.Wire(sys.argv[2]).ask("transaction", headers, txn.updates)
print(b" ".join([said[0].encode()] + said[1]).replace(b"\0", b" ").decode())
PYTHON
}

closed_above() {
	local repo=$T/of$BOB/b.git
	chmod -R a+rwX "$repo/refs"
	check 'refs for everybody' grep -q committed \
		<<<"$(by_wire $ALICE "$repo" refs/heads/open "$his")"
	chmod 2770 "$T/of$BOB"
	check 'and a closed directory above' grep -q 'can reach' \
		<<<"$(by_wire $ALICE "$repo" refs/heads/closed "$his")"
	is 'his are for himself' ok "$(update $BOB b.git refs/heads/o "$his")"
	chmod 2775 "$T/of$BOB"
}

# ---- a user's own daemon ----

# Root notices an older copy of its state as the daemon does.
his_own_daemon() {
	local own=$T/of$BOB account
	STATE=$own/state SERVED=$own SOCKET=$own/sock
	export REFD_SOCKET=$SOCKET REFD_STATE=$STATE
	his=$(as $BOB git -C "$own/own.git" commit-tree -m two \
		"$(as $BOB git -C "$own/own.git" mktree </dev/null)")
	his_daemon || return
	is 'his own daemon' ok "$(update $BOB own.git refs/heads/p "$his")"
	check 'his daemon stops' stop_daemon
	cp -a "$STATE" "$own/older"
	his_daemon || return
	for i in 1 2 3 4; do
		update $BOB own.git refs/heads/p$i "$his" >/dev/null
	done
	check 'his daemon stops again' stop_daemon
	mv "$STATE" "$own/newer"
	mv "$own/older" "$STATE"
	# Root leaves a state alone that a group or a third user can exchange.
	account=$(stat -c %u "$T")
	chown 0 "$T"
	chown $BOB "$own"
	chmod g-w "$own"
	"$REFD" recover --state "$STATE" --root "$own" >"$T/said" 2>&1
	is 'an older copy, by root' 74 $?
	check 'says so' grep -q 'is an older copy' "$T/said"
	rm -r "$STATE"
	mv "$own/newer" "$STATE"
	check 'the newer one, by root' "$REFD" recover --state "$STATE" \
		--root "$own"
	chown "$account" "$T"
	his_daemon || return
	is 'and by himself' ok "$(update $BOB own.git refs/heads/q "$his")"
	check 'his daemon stops at last' stop_daemon
}

his_daemon() {
	setpriv --reuid $BOB --regid $BOB --clear-groups env HOME="$own" \
		"$REFD" daemon --socket "$SOCKET" --state "$STATE" \
		--root "$SERVED" >>"$LOG" 2>&1 </dev/null &
	DAEMON=$!
	own $DAEMON
	check 'it serves' "$REFD" ping --socket "$SOCKET" --wait 120
}

# ---- attempts to stop other users ----

# Alice takes all connections that she can get. Bob still gets a connection.
all_connections() {
	local holder
	mkfifo "$T/hold"
	exec 9<>"$T/hold"
	setpriv --reuid $ALICE --regid $ALICE --clear-groups \
		"$BUILD/tests/helper/many_conns" "$SOCKET" 32 \
		<&9 >"$T/held" 2>&1 9>&- &
	holder=$!
	own $holder
	await 10 grep -q answered "$T/held"
	check 'her connections leave some to him' test -n \
		"$(as $BOB timeout 60 "$REFD" ping --socket "$SOCKET")"
	kill "$holder"
	reap "$holder"
	exec 9>&-
}

# Lists of alternates. Each list names the next list very often.
many_alternates() {
	local i dir=$T/of$ALICE/alternates
	for i in 1 2 3 4 5; do
		as $ALICE mkdir -p "$dir/$i/info" "$dir/$i/pack"
		# The last list is missing: a deeper chain would be noticed at
		# once.
		[ $i -eq 5 ] || yes "$dir/$((i + 1))" 2>/dev/null | head -c 60000 |
			sed '$d' >"$dir/$i/info/alternates"
	done
	as $ALICE sh -c "echo '$dir/1' >'$T/of$ALICE/z.git/objects/info/alternates'"
	as $ALICE timeout 120 "$BUILD/tests/helper/storm" \
		--socket "$SOCKET" --repo "$T/of$ALICE/z.git" --oid "$hers" \
		--clients 1 --txns 1 --create --prefix refs/heads/a \
		>"$T/z" 2>&1 &
	own $!
	i=$!
	sleep 0.2
	his=$(as $BOB git -C "$T/of$BOB/b.git" commit-tree -m two \
		"$(as $BOB git -C "$T/of$BOB/b.git" mktree </dev/null)")
	check 'very many alternates are in nobody else'"'"'s way' \
		as $BOB timeout 120 "$REFD" update --git-dir "$T/of$BOB/b.git" \
		refs/heads/c "$his"
	reap $i
	check 'and she is told' grep -q '"unsupported":1' "$T/z"
}

# A sparse packed-refs, larger than memory.
large_file() {
	as $ALICE truncate -s 64G "$T/of$ALICE/x.git/packed-refs"
	as $ALICE "$REFD" update --git-dir "$T/of$ALICE/x.git" refs/heads/l \
		"$one" 2>"$T/err"
	check 'a packed-refs of 64 GiB without a line' \
		grep -q 'packed-refs has a malformed line' "$T/err"
	as $ALICE rm "$T/of$ALICE/x.git/packed-refs"
	as $ALICE cp "$T/of$ALICE/x.git/config" "$T/of$ALICE/config"
	as $ALICE truncate -s 64G "$T/of$ALICE/x.git/config"
	as $ALICE "$BUILD/tests/helper/storm" \
		--socket "$SOCKET" --repo "$T/of$ALICE/x.git" --oid "$one" \
		--clients 1 --txns 1 --create --prefix refs/heads/m \
		>"$T/out" 2>&1
	check 'a config that is too large' \
		grep -q '"unsupported":1' "$T/out"
	as $ALICE cp "$T/of$ALICE/config" "$T/of$ALICE/x.git/config"
	is 'and once it is gone' ok "$(update $ALICE x.git refs/heads/l "$one")"
}

# Her repository has seen more of the journal than there will ever be.
note_of_hers() {
	local note=$T/of$ALICE/x.git/refd/checkpoint
	is 'one more' ok "$(update $ALICE x.git refs/heads/n "$one")"
	check 'noted' "$REFD" checkpoint
	check 'the note is there' grep -q '^lsn ' "$note"
	check 'stopped' stop_daemon
	as $ALICE sh -c "sed 's/^lsn .*/lsn 00000000000099999999/' '$note' \
		>'$note.new' && mv -f '$note.new' '$note'"
	check 'a note of hers stops no start' start
	is 'nor her' ok "$(update $ALICE x.git refs/heads/o "$one")"
	check 'noted again' "$REFD" checkpoint
	is 'by the daemon' "$ACCOUNT" "$(stat -c %u "$note")"
	# A ref of the daemon's account that she may write.
	check 'a ref' as $ALICE sh -c "umask 0; '$REFD' update \
		--git-dir '$T/of$ALICE/x.git' refs/heads/w '$one'"
	check 'stopped again' stop_daemon
	as $ALICE sh -c "cat '$note' >'$T/of$ALICE/note' &&
		cat '$T/of$ALICE/note' >'$T/of$ALICE/x.git/refs/heads/w' &&
		mv -f '$T/of$ALICE/x.git/refs/heads/w' '$note' &&
		sed 's/^lsn .*/lsn 00000000000099999999/' '$T/of$ALICE/note' \
			>'$note'"
	check 'her text is there' grep -q 99999999 "$note"
	is 'in a file of the daemon' "$ACCOUNT" "$(stat -c %u "$note")"
	check 'such a note stops no start' start
}

cat >"$T/config" <<CONFIG
[daemon]
	allowUser = $ALICE
	allowUser = $BOB
[limits]
	connections = 32
CONFIG
one=$(repo_for $ALICE x.git)
repo_for $ALICE y.git >"$T/out"
hers=$(repo_for $ALICE z.git)
his=$(repo_for $BOB b.git)
start || exit 1
another_s_id
an_id_of_one_who_is_away in_a_file_of_hers
an_id_of_one_who_is_away in_a_ref
an_id_of_one_who_is_away in_a_log
closed_above
all_connections
many_alternates
large_file
note_of_hers
check 'stopped at last' stop_daemon
roots_daemon
his_own_daemon
finish
