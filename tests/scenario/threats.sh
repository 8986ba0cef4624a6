#!/bin/bash
# Proves the threat model, line by line (docs/security.md): who may do what
# through a daemon of an unprivileged account, and what nobody can. The users
# here have no names. Each may change every file of the repositories that one
# group shares, and send any request.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

with_people threats || finish
ALICE=64001 BOB=64002 MALLORY=64003 TEAM=64010
with_account 64000 $TEAM

update() { # UID REPO REF NEW [OLD]
	local uid=$1 repo=$2
	shift 2
	as "$uid" "$REFD" update --git-dir "$repo" --porcelain "$@" \
		2>"$T/err" | sed -n '1s/^ok .*/ok/p;1s/^ng [^ ]* \([a-z]*\).*/\1/p'
}

# The daemon's answer to a hand-made request.
say() { # UID VERB HEADERS [UPDATES], as python has them
	as "$1" python3 - "$SOCKET" "$2" "$3" "${4:-None}" <<'PYTHON'
import sys
from raw import Client, new_txid
_, path, verb, headers, updates = sys.argv
txid = new_txid()
kind, rest = Client(path).ask(verb, eval(headers), eval(updates))
print(kind, *(line.decode() for line in rest), sep="\n")
PYTHON
}

raw_update() { # UID REPO
	say "$1" transaction \
		"['txid '+txid, 'git-dir $2', 'common-dir 0 0',
		'object-format sha1', 'umask 0022']" \
		"[['verify refs/heads/none', '']]"
}

SERVED=$T/srv
mkdir -p "$SERVED" "$T/python" "$T/of$ALICE" "$T/of$BOB" "$T/of$MALLORY"
cp -r "$ROOT/tests/python/raw.py" "$ROOT/client/python/refd" "$T/python"
export PYTHONPATH=$T/python
cat >"$T/config" <<CONFIG
[daemon]
	allowUser = $ALICE
	allowUser = $BOB
	allowGroup = $TEAM
CONFIG
hers=$(repo_for $ALICE a.git)
A=$SERVED/of$ALICE/a.git
his=$(repo_for $BOB b.git)
B=$SERVED/of$BOB/b.git
start_daemon --config "$T/config" || exit 1

# ---- another user ----

another_uid() {
	is 'her own' ok "$(update $ALICE "$A" refs/heads/a "$hers")"
	is 'his, by her: denied' denied \
		"$(update $ALICE "$B" refs/heads/a "$his")"
	prints_nothing 'and not there' git --git-dir="$B" for-each-ref
	check 'who is not allowed: turned away' grep -q 'turned us away' \
		<(as $MALLORY "$REFD" ping 2>&1)
	chmod 2770 "$SERVED/of$BOB"
	is 'his' ok "$(update $BOB "$B" refs/heads/a "$his")"
	prints_nothing 'his history is not hers to read' \
		as $ALICE "$REFD" log --repo "$B"
	prints_no 'nor any of it' "$B" as $ALICE "$REFD" log
	is 'he reads it' 1 "$(as $BOB "$REFD" log --repo "$B" | wc -l)"
	chmod 2775 "$SERVED/of$BOB"
	is 'a checkpoint is not for her' denied "$(as $ALICE \
		"$REFD" checkpoint 2>&1 | grep -o denied | head -n 1)"
}

# She knows the ids of his transactions and sessions.
ids_of_another() {
	local id other
	id=$(as $BOB "$REFD" update --git-dir "$B" --porcelain refs/heads/i \
		"$his" | sed -n 's/^txn \([0-9a-f]*\) .*/\1/p')
	is 'his transaction: he may ask' committed "$(as $BOB "$REFD" query \
		"$id" | sed -n 's/^txn [0-9a-f]* //p')"
	is 'she may not' never-seen "$(as $ALICE "$REFD" query "$id" |
		sed -n 's/^txn [0-9a-f]* //p')"
	other=${id%?}f
	[ "$other" != "$id" ] || other=${id%?}0
	mkfifo "$T/in"
	as $BOB "$REFD" update --git-dir "$B" --stdin --txid "$other" \
		<"$T/in" >"$T/out" 2>&1 &
	own $!
	exec 8>"$T/in"
	printf 'start\ncreate refs/heads/s %s\nprepare\n' "$his" >&8
	await 10 grep -q 'prepare: ok' "$T/out"
	is 'his session: she cannot end it' never-seen \
		"$(say $ALICE abort "['txid $other']" | head -n 1)"
	printf 'commit\n' >&8
	exec 8>&-
	wait "${scenario_pids[-1]}"
	is 'he can' "$his" "$(git --git-dir="$B" rev-parse refs/heads/s)"
}

# ---- a group ----

groups() {
	local shared=$SERVED/shared/p.git oid
	install -d -o $ALICE -g $TEAM -m 2775 "$SERVED/shared"
	GROUPS_OF=$TEAM as $ALICE git init -q --bare --shared=group "$shared"
	chgrp -R $TEAM "$shared"
	oid=$(GROUPS_OF=$TEAM as $ALICE git -C "$shared" commit-tree -m one \
		"$(GROUPS_OF=$TEAM as $ALICE git -C "$shared" mktree </dev/null)")
	is 'a member, who is allowed as one' ok "$(GROUPS_OF=$TEAM \
		update $MALLORY "$shared" refs/heads/m "$oid")"
	is 'with the group and mode' "$TEAM 664" \
		"$(stat -c '%g %a' "$shared/refs/heads/m")"
	is 'one who is allowed, and no member' denied \
		"$(update $BOB "$shared" refs/heads/b "$oid")"
	is 'a member where the group may not write' denied \
		"$(GROUPS_OF=$TEAM update $MALLORY "$A" refs/heads/m "$hers")"
	check 'one of 4096 groups is served' grep -q serving <(in_groups 4096)
	check 'one of more is refused' grep -qF 'more than 4096 groups' \
		<(in_groups 4097)
}

in_groups() { # NUMBER
	GROUPS_OF=$(seq -s, 100000 $((99999 + $1))) as $BOB "$REFD" ping \
		--socket "$SOCKET" 2>&1
}

# ---- root ----

root_as_client() {
	is 'root may' ok "$("$REFD" update --git-dir "$A" --porcelain \
		refs/heads/r "$hers" | sed -n '1s/ .*//p')"
	is 'and it is the daemon'"'"'s' "$ACCOUNT" "$(stat -c %u "$A/refs/heads/r")"
}

# ---- namespaces ----

namespaces() {
	local other=$T/other.git
	if as $ALICE unshare -U -r true 2>/dev/null; then
		is 'root in a user namespace is who he was' denied "$(as $ALICE \
			unshare -U -r "$REFD" update --git-dir "$B" --porcelain \
			refs/heads/n "$his" 2>"$T/err" |
			sed -n '1s/^ng [^ ]* \([a-z]*\).*/\1/p')"
		is 'and may do what he might' ok "$(as $ALICE \
			unshare -U -r "$REFD" update --git-dir "$A" --porcelain \
			refs/heads/n "$hers" 2>"$T/err" | sed -n '1s/ .*//p')"
	else
		skip user-namespace 'users may make none here'
	fi
	if ! can_mount; then
		skip mount-namespace 'only root can mount'
		return
	fi
	# She has a different directory at the path of a repository.
	cp -a "$A" "$other"
	unshare -m sh -c "mount --make-rprivate / &&
		mount --bind '$other' '$A' &&
		'$REFD' update --git-dir '$A' refs/heads/v '$hers'" 2>"$T/err"
	check 'another directory at that path: said so' \
		grep -q 'is another directory for the daemon' "$T/err"
	prints_nothing 'nothing is written' \
		git --git-dir="$A" for-each-ref refs/heads/v
	# A daemon's socket is an ordinary file at any mount.
	mkdir "$T/box"
	is 'its socket in another mount namespace' ok "$(unshare -m sh -c "
		mount --make-rprivate / && mount --bind '$T' '$T/box' &&
		exec setpriv --reuid $ALICE --regid $ALICE --clear-groups \
		env HOME='$T/of$ALICE' REFD_SOCKET='$T/box/refd.sock' \
		'$REFD' update --git-dir '$A' --porcelain refs/heads/w '$hers'" \
		2>"$T/err" | sed -n '1s/ .*//p')"
}

# ---- paths outside the roots ----

elsewhere() {
	local there=$T/secret
	install -d -m 700 "$there" "$there/dir"
	raw_update $ALICE "$there/dir" >"$T/is"
	raw_update $ALICE "$there/non" >"$T/not"
	sed -i 's,/secret/[a-z]*,/secret/X,;/^txid/d' "$T/is" "$T/not"
	check 'what is there elsewhere cannot be asked' cmp -s "$T/is" "$T/not"
	check 'it is refused' grep -q 'not under a root' "$T/is"
	as $ALICE ln -s "$there" "$SERVED/of$ALICE/link"
	raw_update $ALICE "$SERVED/of$ALICE/link/dir" >"$T/is"
	raw_update $ALICE "$SERVED/of$ALICE/link/non" >"$T/not"
	sed -i 's,/link/[a-z]*,/link/X,;/^txid/d' "$T/is" "$T/not"
	check 'nor by a link' cmp -s "$T/is" "$T/not"
	raw_update $ALICE "$SERVED/of$ALICE/../../secret/dir" >"$T/is"
	check 'nor by ..' grep -q 'not under a root' "$T/is"
	as $ALICE mkdir "$SERVED/of$ALICE/w.git"
	as $ALICE sh -c "echo '$B' >'$SERVED/of$ALICE/w.git/commondir'"
	raw_update $ALICE "$SERVED/of$ALICE/w.git" >"$T/is"
	check 'a common dir of another: refused' \
		grep -q 'is no repository that uid' "$T/is"
	as $ALICE sh -c "echo ../../../secret >'$SERVED/of$ALICE/w.git/commondir'"
	raw_update $ALICE "$SERVED/of$ALICE/w.git" >"$T/is"
	check 'and a root' grep -q 'not under a root' "$T/is"
}

# ---- links ----

# At each place that refd writes to, a link leads to files that only the
# daemon's account may change.
planted() {
	local name repo=$SERVED/of$ALICE/l.git oid before
	install -d -m 700 "$T/prey" "$T/prey/heads"
	echo precious >"$T/prey/file"
	echo precious >"$T/prey/heads/x"
	chown -R "$ACCOUNT" "$T/prey"
	before=$(find "$T/prey" -printf '%p %u %m %s %T@\n' | sort)
	for name in refs/heads refs/heads/x refs/heads/x.lock refs/heads/d \
		logs logs/refs logs/refs/heads logs/refs/heads/x packed-refs \
		packed-refs.lock packed-refs.new HEAD HEAD.lock refd refd/id \
		refd/lock refd/stage refd/checkpoint refd/marker refd/saved \
		objects/pack config worktrees refs
	do
		rm -rf "$repo"
		oid=$(repo_for $ALICE l.git)
		as $ALICE git -C "$repo" config core.logAllRefUpdates always
		case $name in refd/*)
			update $ALICE "$repo" refs/heads/first "$oid" >"$T/out"
			as $ALICE git -C "$repo" config some.thing "$name" ;;
		esac
		as $ALICE sh -c "cd '$repo' && rm -rf '$name' &&
			mkdir -p '$(dirname "$name")'"
		case $name in
		refs/heads | logs* | refd | refd/stage | refd/saved | refs | \
			worktrees | objects/pack | refs/heads/d)
			as $ALICE ln -s "$T/prey" "$repo/$name" ;;
		*) as $ALICE ln -s "$T/prey/file" "$repo/$name" ;;
		esac
		update $ALICE "$repo" refs/heads/x "$oid" >"$T/out"
		update $ALICE "$repo" refs/heads/d/x "$oid" >"$T/out"
		update $ALICE "$repo" -d refs/heads/x >"$T/out"
		"$REFD" checkpoint
		[ "$before" = "$(find "$T/prey" -printf '%p %u %m %s %T@\n' |
			sort)" ] || not_ok "a link at $name" 'it led out'
	done
	is 'links at every step lead nowhere' "$before" \
		"$(find "$T/prey" -printf '%p %u %m %s %T@\n' | sort)"
	check 'the daemon goes on' "$REFD" ping
	is 'for him as well' ok "$(update $BOB "$B" refs/heads/p "$his")"
}

# ---- echoed text ----

echoed() {
	local esc=$'\e]0;owned\a\e[31m\xc2\x9b1m'
	{
		as $ALICE "$REFD" update --git-dir "$A" "refs/heads/$esc" \
			"$hers"
		as $ALICE "$REFD" update --git-dir "$A" --porcelain \
			"refs/heads/$esc" "$hers"
		as $ALICE "$REFD" query "$esc"
		"$REFD" doctor "$SERVED/$esc"
	} >"$T/said" 2>&1
	as $ALICE git init -q --bare "$SERVED/of$ALICE/$esc.git"
	raw_update $ALICE "$SERVED/of$ALICE/$esc.git" >"$T/out" 2>&1
	check 'no escapes on a terminal' test -z \
		"$(LC_ALL=C grep -aE $'\e|\xc2\x9b' "$T/said")"
	check 'nor in the log' test -z "$(LC_ALL=C grep -aE $'\e|\xc2\x9b' "$LOG")"
}

another_uid
ids_of_another
groups
root_as_client
namespaces
elsewhere
planted
echoed
check 'stopped' stop_daemon
finish
