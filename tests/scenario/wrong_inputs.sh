#!/bin/bash
# Proves that a stranger's mistakes are answered: no wrong input is taken for a
# right one, and each message says what failed, on what, why, and what to do,
# often as a command. The exit status is not 0. Among the inputs are misspelt
# names, wrong paths, other people's repositories and sockets, a daemon that is
# away, values that cannot be, and a full disk. (options.sh has the command line
# of every command.)

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

# The command ends with STATUS, and the output has each of the PARTs, in this
# order: what failed and on what, why, and what to do.
wrong() { # STATUS PART... -- COMMAND...
	local wanted=$1 name said status rest part
	shift
	local parts=()
	while [ "$1" != -- ]; do
		parts+=("$1")
		shift
	done
	shift
	said=$(timeout 20 "$@" 2>&1 </dev/null)
	status=$?
	name=${*/"$REFD"/refd}
	name=${name//"$T/"/}
	is "$name: status" "$wanted" $status
	rest=${said//"$T/"/}
	for part in "${parts[@]}"; do
		if [[ $rest != *"$part"* ]]; then
			not_ok "$name" "no '$part' in: ${said//$'\n'/ | }"
			return
		fi
		rest=${rest#*"$part"}
	done
	ok "$name: message"
}
# An account without rights here. (timeout knows no functions.)
stranger=(setpriv --reuid 64001 --regid 64001 --clear-groups
	env "HOME=$T/of64001")

SERVED=$T/srv
mkdir "$SERVED"
new_repo srv/a.git bare
one=$(new_commit srv/a.git one)
tree=$(git -C "$SERVED/a.git" rev-parse "$one^{tree}")
new_repo elsewhere.git bare
cd "$T" || exit 1
daemon=("$REFD" daemon --socket "$SOCKET" --state "$STATE" --root srv)

# ---- nothing runs yet ----

wrong 75 'cannot connect to refd.sock' 'No such file' 'start the daemon' \
	'refd daemon --socket refd.sock' -- "$REFD" status
wrong 75 'cannot connect to refd.sock' 'No such file' 'start the daemon' -- \
	"$REFD" log
wrong 75 'cannot connect to refd.sock' 'No such file' 'refd.fallback=git' -- \
	"$REFD" update -C srv/a.git refs/heads/x "$one"
wrong 75 'cannot connect to srv' -- "$REFD" ping --socket srv

# ---- a daemon that cannot start ----

wrong 78 'no root' '--root or daemon.root' -- "${daemon[@]:0:6}"
wrong 78 "the root 'nowhere'" 'No such file' 'make the directory' \
	'daemon.root or --root' -- "${daemon[@]:0:6}" --root nowhere
wrong 78 "the root 'srv/a.git/HEAD'" 'Not a directory' \
	'daemon.root or --root' -- "${daemon[@]:0:6}" --root srv/a.git/HEAD
wrong 78 "daemon.socket is 'srv'" 'a directory of this name' \
	'name a path that is free' -- "${daemon[@]}" --socket "$T/srv"
wrong 69 'cannot bind the socket' 'No such file' '--socket or daemon.socket' \
	-- "${daemon[@]}" --socket /proc/none/refd.sock
wrong 69 "the socket's path" 'longer than the 107 bytes' 'name a shorter one' \
	-- "${daemon[@]}" --socket "$T/$(printf 'x%.0s' {1..107})"
wrong 69 "the state directory '/proc/none'" 'No such file' \
	'--state or daemon.state' -- "${daemon[@]}" --state /proc/none
wrong 64 "'fast' is not a durability mode" \
	'none, periodic, journal, batch or fsync' 'refd daemon -h' -- \
	"${daemon[@]}" --durability fast
wrong 78 "the configuration 'none.conf'" 'No such file' 'refd.conf(5)' -- \
	"$REFD" daemon --config none.conf

# ---- a configuration with several errors ----

cat >bad.conf <<'CONF'
[daemon]
	root = relative
	allowUser = nosuchuser
[batch]
	refs = many
	ref = 5
[durability]
	mode = fast
[journal]
	retention = 5
CONF
wrong 1 "bad.conf:2: daemon.root is 'relative'" 'absolute path' \
	"bad.conf:3: daemon.allowUser is 'nosuchuser'" 'no such user' \
	"bad.conf:5: batch.refs is 'many'" "bad.conf:6: unknown key 'batch.ref'" \
	"did you mean batch.refs?" "bad.conf:8: 'fast'" 'bad.conf:10: ' -- \
	"$REFD" check-config bad.conf
echo 'root is /srv/git' >worse.conf
wrong 1 'worse.conf:1: ' 'not followed by =' 'KEY = VALUE' -- \
	"$REFD" check-config worse.conf
wrong 1 "the configuration 'none.conf'" 'No such file' 'refd.conf(5)' -- \
	"$REFD" check-config none.conf

# ---- with a daemon ----

check 'the daemon starts' start_daemon
"$REFD" enable srv/a.git >/dev/null
check 'a ref is made' "$REFD" update -C srv/a.git refs/heads/main "$one"

wrong 69 "the state directory 'state' is in use by another refd" \
	'stop that one' '--state' -- "${daemon[@]}"
wrong 75 'is in use by another refd' 'stop that one' -- "$REFD" recover
wrong 129 "'updaet' is not a command" 'did you mean refd update?' -- \
	"$REFD" updaet
wrong 129 "'promote' is not a command" "'refd help' lists" -- "$REFD" promote
wrong 129 "unknown option \`jsn'" 'did you mean --json?' 'refd stats -h' -- \
	"$REFD" stats --jsn

# ---- repositories ----

for command in enable disable verify disown; do
	[ $command = verify ] && status=128 || status=1
	wrong "$status" "can't open 'nowhere.git'" 'No such file' \
		'name the directory of a repository' -- \
		"$REFD" "$command" nowhere.git
done
wrong 128 "can't open 'nowhere.git'" 'No such file' \
	'name the directory of a repository' -- \
	"$REFD" migrate --ref-format files nowhere.git
wrong 128 "no repository '/etc'" 'history has none' "'refd log' prints" -- \
	"$REFD" log --repo /etc
wrong 1 "not-a-repository: nowhere.git" 'No such file' \
	'remedy: name a repository' -- "$REFD" doctor nowhere.git
wrong 1 "'srv' is not a git repository" 'HEAD or objects/ is missing' -- \
	"$REFD" disown srv
wrong 128 "'srv' is not a repository" 'no refs or no objects' -- \
	"$REFD" verify srv
wrong 129 "unexpected argument 'srv/a.git'" 'for --clear-dead' \
	'refd locks -h' -- "$REFD" locks srv/a.git
wrong 128 "'elsewhere.git' is not under a root" 'daemon.root, --root' -- \
	"$REFD" update -C elsewhere.git refs/heads/x "$one"
wrong 1 'elsewhere.git: not enabled' 'would refuse every push' 'daemon.root' \
	-- "$REFD" enable elsewhere.git

# ---- refs, objects, times, ids ----

wrong 128 "refs/heads/x'" "nonexistent object $ABSENT" -- \
	"$REFD" update -C srv/a.git refs/heads/x "$ABSENT"
wrong 128 "refs/heads/x'" "non-commit object $tree to branch" -- \
	"$REFD" update -C srv/a.git refs/heads/x "$tree"
wrong 128 "refs/heads/main'" "is at $one but expected $ABSENT" -- \
	"$REFD" update -C srv/a.git refs/heads/main "$one" "$ABSENT"
wrong 128 "refs/heads/main/x'" "'refs/heads/main' exists" -- \
	"$REFD" update -C srv/a.git refs/heads/main/x "$one"
wrong 128 "bad name 'refs/heads/a..b'" -- \
	"$REFD" update -C srv/a.git refs/heads/a..b "$one"
wrong 128 'nosuchbranch: not a valid SHA1' -- \
	"$REFD" update -C srv/a.git refs/heads/x nosuchbranch
wrong 128 "'main' is not the full name" "'refs/heads/main'" -- \
	"$REFD" log --ref main
wrong 1 'no change of a ref' "'refs/heads/['" "'refd log' without --ref" -- \
	"$REFD" log --ref 'refs/heads/['
wrong 1 "no change by 'nosuchuser'" 'no account of this machine' \
	"'refd log' without --user" -- "$REFD" log --user nosuchuser
wrong 128 'no ref of the repository' "'refs/heads/nope'" '"refd log --repo' -- \
	"$REFD" restore --repo srv/a.git --ref refs/heads/nope --at 1
wrong 128 'there is no record 999' '@999' -- \
	"$REFD" restore --repo srv/a.git --at 999
wrong 128 "'yesterdya' is no time" "'2 hours ago'" -- \
	"$REFD" restore --repo srv/a.git --at yesterdya
wrong 128 "'last tuesdy' is no time" "'2 hours ago'" -- \
	"$REFD" log --since 'last tuesdy'
wrong 128 'there is no record 999' 'refd log -n 1' -- \
	"$REFD" watch --since 999
wrong 128 "'abc' is no transaction id" '32 hexadecimal digits' -- \
	"$REFD" query abc
wrong 128 "'abc' is no token" 'as in the JSON of refd update' -- \
	"$REFD" wait abc
wrong 129 "takes a number, not '-1'" -- "$REFD" log -n -1
wrong 129 "'sql' is no format of refs" 'files or reftable' -- \
	"$REFD" migrate --ref-format sql srv/a.git

wrong 128 "'none/deliver.db'" 'No such file' 'has not run' \
	'refd-deliver(8)' -- "$REFD" deliver --state "$T/none" --list
check 'paused' "$REFD" pause
wrong 75 'the daemon is paused' 'refd resume' -- \
	"$REFD" update --timeout 500 -C srv/a.git refs/heads/x "$one"
check 'resumed' "$REFD" resume

# ---- other people ----

others() {
	with_people 'other people' || return
	git config --global --add safe.directory '*'
	mkdir "$T/of64001" "$SERVED/of64001"
	git init -q --bare "$SERVED/of64001/b.git"
	chown -R 64001 "$T/of64001" "$SERVED/of64001"
	wrong 128 "'srv/of64001/b.git' belongs to uid 64001" \
		"root's repositories only" 'refd@NAME.service' -- \
		"$REFD" update -C srv/of64001/b.git refs/heads/x "$one"
	wrong 128 'cannot connect to refd.sock' 'Permission denied' -- \
		"${stranger[@]}" "$REFD" ping
	chmod 666 "$SOCKET"
	wrong 128 'refd.sock turned us away' 'not among those who may' \
		'daemon.allowUser, daemon.allowGroup' -- "${stranger[@]}" "$REFD" log
	wrong 1 'a.git belongs to root' 'enable it as that user or as root' -- \
		"${stranger[@]}" "$REFD" enable srv/a.git
	wrong 69 "the state directory 'state'" 'Permission denied' \
		'--state or daemon.state' -- "${stranger[@]}" "$REFD" daemon \
		--socket "$T/of64001/sock" --state "$STATE" --root srv
	chmod 600 bad.conf
	wrong 1 "the configuration 'bad.conf'" 'Permission denied' \
		'correct the name or the rights' -- \
		"${stranger[@]}" "$REFD" check-config bad.conf
}
others

# ---- a full disk ----

full() {
	local why
	mkdir "$T/full"
	if ! can_mount ||
		! why=$(mount -t tmpfs -o size=64k full "$T/full" 2>&1); then
		skip 'a full disk' "no tmpfs: ${why:-only root can mount}"
		return
	fi
	scenario_mounts+=("$T/full")
	dd if=/dev/zero of="$T/full/file" bs=1k 2>/dev/null
	wrong 69 'the journal' 'no space is left' "'full/state'" \
		'make room there' -- "$REFD" daemon --socket "$T/full.sock" \
		--state "$T/full/state" --root srv
}
full

is 'nothing has changed' "$one commit	refs/heads/main" \
	"$(git -C "$SERVED/a.git" for-each-ref)"
check 'and the daemon serves' "$REFD" ping
finish
