#!/bin/bash
# Proves looks: changes by writers who do not tell refd are found and recorded
# as "seen", once, with the values before and after, and with the owner of the
# file. The first look of a repository records nothing. Updates of refd and of
# git through the gate are never seen, not even while git has changed the refs
# and has not told refd. Direct edits, deletions, packed refs, directories
# instead of refs, and changes while the daemon is away are found. A directory
# names all repositories below it, and one that refuses keeps no other from
# being looked at. After a mix of plain git, direct edits, refd, the gate and
# kill -9 of the daemon, the replayed feed leads to the refs on disk.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/changes.sh
. "$ROOT/tests/lib/changes.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

export REFD_SOCKET=$SOCKET
unset GIT_REFLOG_ACTION

look() { # NAME
	"$REFD" look "$T/$1" >"$T/looked" 2>&1 || cat "$T/looked" >&2
}

# New changes that a look finds on disk.
news() { # NAME
	look "$1"
	news_of "$1" --foreign
}

expect() { # REPORTED-AS NAME LINE...
	is "$1" "$(printf '%s\n' "${@:3}" | sort)" "$(news "$2")"
}

# The two commits A and B have the same ids everywhere.
make_repo() { # NAME
	new_repo "$1" bare
	export GIT_COMMITTER_DATE='1700000000 +0000' \
		GIT_AUTHOR_DATE='1700000000 +0000'
	A=$(new_commit "$1" A) B=$(new_commit "$1" B)
}

# Nobody edits reftables.
edit() { # REPO REF VALUE
	if [ "$REF_FORMAT" = files ]; then
		echo "$3" >"$1/$2"
	else
		git -C "$1" update-ref "$2" "$3"
	fi
}

# ---- each kind of change ----

kinds() {
	local repo=$T/one.git
	make_repo one.git
	git -C "$repo" update-ref refs/heads/old "$A"
	is 'the first look records nothing' '' "$(news one.git)"
	git -C "$repo" update-ref refs/heads/new "$A"
	git -C "$repo" update-ref refs/heads/old "$B"
	expect 'git without the gate' one.git "refs/heads/new - $A" \
		"refs/heads/old $A $B"
	is 'a second look finds nothing' '' "$(news one.git)"
	is 'the owner of the file' "$(id -u) seen" "$("$REFD" log --foreign \
		--repo "$repo" --json -n 1 | python3 -c '
import json, sys
c = json.loads(sys.stdin.readline())
print(c["uid"], c["origin"])')"
	edit "$repo" refs/heads/new "$B"
	expect 'an editor' one.git "refs/heads/new $A $B"
	if [ "$REF_FORMAT" = files ]; then
		: >"$repo/refs/heads/new"
		is 'an empty file is no change' '' "$(news one.git)"
		echo "$B" >"$repo/refs/heads/new"
	fi
	is 'the same value again' '' "$(news one.git)"
	git -C "$repo" pack-refs --all
	is 'packing' '' "$(news one.git)"
	git -C "$repo" update-ref -d refs/heads/new
	expect 'a deletion' one.git "refs/heads/new $B -"
	git -C "$repo" update-ref refs/heads/d/f "$A"
	news one.git >/dev/null
	git -C "$repo" update-ref -d refs/heads/d/f
	git -C "$repo" update-ref refs/heads/d "$A"
	expect 'a ref instead of a directory' one.git \
		"refs/heads/d/f $A -" "refs/heads/d - $A"
	"$REFD" update -C "$repo" refs/heads/old "$A" >/dev/null
	"$REFD" update -C "$repo" refs/heads/own "$A" >/dev/null
	"$REFD" update -C "$repo" -d refs/heads/d >/dev/null
	is 'updates of refd are not seen' '' "$(news one.git)"
	git -C "$repo" symbolic-ref HEAD refs/heads/own
	is 'a symbolic ref' 'HEAD ?' "$(news one.git | cut -c 1-6)"
	stop_daemon
	git -C "$repo" update-ref refs/heads/away "$B"
	start_daemon
	expect 'a change while the daemon was away' one.git \
		"refs/heads/away - $B"
	is 'the feed leads to the refs' '' "$(differs one.git)"
}

gate() {
	make_repo gated.git
	"$REFD" enable --gate "$T/gated.git" >/dev/null
	news gated.git >/dev/null
	git -C "$T/gated.git" update-ref refs/heads/a "$A"
	is 'the gate told refd' '' "$(news gated.git)"
	is 'its origin' gate "$("$REFD" log --repo "$T/gated.git" --json -n 1 |
		python3 -c 'import json, sys
print(json.loads(sys.stdin.readline())["origin"])')"
	held
}

# Git has changed a ref, and its hook tells refd as soon as $T/go exists.
held() {
	local repo=$T/gated.git pid hook
	hook=$repo/hooks/reference-transaction
	mkdir "$T/gate"
	mv "$hook" "$T/gate"
	cat >"$hook" <<-HOOK
		#!/bin/sh
		if [ "\$1" = committed ] && [ ! -e '$T/go' ]; then
			touch '$T/held'
			until [ -e '$T/go' ]; do sleep 0.05; done
		fi
		exec '$T/gate/reference-transaction' "\$@"
	HOOK
	chmod +x "$hook"
	git -C "$repo" update-ref refs/heads/a "$B" &
	pid=$!
	check 'git is held after its change' await 20 test -e "$T/held"
	is 'it has changed the ref' "$B" \
		"$(git -C "$repo" rev-parse refs/heads/a)"
	is 'a change of an open gate is not seen' '' "$(news gated.git)"
	touch "$T/go"
	wait "$pid"
	is 'nor after its record' '' "$(news gated.git)"
	is 'the gate recorded it once' "refs/heads/a - $A
refs/heads/a $A $B" "$(changes gated.git)"
	is 'the feed leads to the refs of the gate' '' "$(differs gated.git)"
	mv "$T/gate/reference-transaction" "$hook"
}

rights() {
	with_people 'without the right to write: no look' || return
	as 65534 "$REFD" look --socket "$SOCKET" "$T/one.git" >"$T/out" 2>&1
	is 'without the right to write: no look' 1 \
		"$(grep -c 'one.git: denied: uid 65534 may not write' "$T/out")"
}

# As a timer looks: at the bare repositories and work trees below a directory.
all_below() {
	local code=0
	mkdir -p "$T/all"
	make_repo all/bare.git
	new_repo all/tree
	mkdir -p "$T/all/broken.git/objects"
	touch "$T/all/broken.git/HEAD"
	"$REFD" look "$T/all" >"$T/out" 2>&1 || code=$?
	is 'a repository that is refused gives the status' 1 "$code"
	is 'and its name' 1 "$(grep -c 'all/broken.git: ' "$T/out")"
	git -C "$T/all/bare.git" update-ref refs/heads/a "$A"
	git -C "$T/all/tree" commit -q --allow-empty -m one
	"$REFD" look "$T/all" >"$T/out" 2>&1
	is 'the others are looked at' "$T/all/bare.git: 1
$T/all/tree: 1" "$(sed -n 's/changes by other writers: //p' "$T/out" | sort)"
	is 'the changes are in history' "refs/heads/a - $A" \
		"$(changes all/bare.git)"
	code=0
	"$REFD" pause >"$T/out" 2>&1
	"$REFD" look "$T/all/bare.git" >"$T/out" 2>&1 || code=$?
	"$REFD" resume >>"$T/out" 2>&1
	is 'a look that has to wait asks for another run' 75 "$code"
}

allowed() {
	stop_daemon
	printf '[daemon]\n\tallowUser = nobody\n' >>"$T/config"
	start_daemon --config "$T/config"
	rights
	stop_daemon
	start_daemon
}

# Changes in more than one transaction, in one look.
many() {
	local i
	make_repo many.git
	news many.git >/dev/null
	for ((i = 0; i < 2500; i++)); do
		echo "create refs/heads/r$i $A"
	done | git -C "$T/many.git" update-ref --stdin
	is 'one look finds all changes' 2500 "$(news many.git | wc -l)"
}

# Otherwise the next look would be the first again, and would lose changes.
no_place() {
	local code=0
	make_repo place.git
	mv "$STATE/seen" "$T/seen.away"
	touch "$STATE/seen"
	"$REFD" look "$T/place.git" >"$T/out" 2>&1 || code=$?
	is 'a first look that cannot be kept fails' 1 "$code"
	rm "$STATE/seen"
	mv "$T/seen.away" "$STATE/seen"
}

# ---- all writers ----

# Each writer has refs of its own, and one ref of all.
writer() { # KIND SEED NR
	local i repo=$T/mix.git ref oid
	RANDOM=$2
	for ((i = 0; i < $3; i++)); do
		ref=refs/heads/$1$((RANDOM % 5))
		[ $((RANDOM % 6)) -gt 0 ] || ref=refs/heads/all
		oid=$A
		[ $((RANDOM % 2)) -eq 0 ] || oid=$B
		case $1$((RANDOM % 4)) in
		git0) git -C "$repo" update-ref -d "$ref" ;;
		git1) git -C "$repo" pack-refs --all ;;
		git*) git -C "$repo" update-ref "$ref" "$oid" ;;
		edit*) edit "$repo" "$ref" "$oid" ;;
		refd0) "$REFD" update -C "$repo" -d "$ref" ;;
		refd*) "$REFD" update -C "$repo" "$ref" "$oid" ;;
		look*) "$REFD" look "$repo" ;;
		esac
	done >"$T/mix.out.$1" 2>&1
}

mix() {
	local round kind pids
	make_repo mix.git
	news mix.git >/dev/null
	for round in 1 2 3; do
		pids=()
		for kind in git edit refd look; do
			writer $kind $round 25 &
			pids+=($!)
		done
		if [ $round -eq 2 ]; then
			sleep 0.3
			kill_daemon
			start_daemon
		fi
		wait "${pids[@]}"
		news mix.git >/dev/null
		is "round $round: the feed leads to the refs" '' \
			"$(differs mix.git)"
		is "round $round: nothing more is found" '' "$(news mix.git)"
	done
}

start_daemon || exit 1
cd "$T" || exit 1
kinds
gate
many
no_place
all_below
allowed
mix
finish
