#!/bin/bash
# Proves which repositories refd writes to, and what happens to repositories
# that are moved, replaced, copied or reached by two paths. Bad names and
# objects are refused one by one. refd never writes outside the roots, nor in a
# repository of an unsupported kind.
# Slow: a storm runs while repositories are moved.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

SERVED=$T/srv
# The daemon may remove files beside its socket, so the socket has an empty
# directory.
SOCKET=$T/socket/refd.sock
export REFD_SOCKET=$SOCKET
mkdir "$SERVED" "${SOCKET%/*}"

# The daemon's answer to a transaction with one ref, without the client's own
# checks.
ask() { # REPOSITORY OID [PREFIX]
	"$BUILD/tests/helper/storm" --socket "$SOCKET" --repo "$1" --oid "$2" \
		--clients 1 --txns 1 --create \
		--prefix "${3:-refs/heads/asked}" 2>&1 |
		sed -n 's/.*"ok":1,"failed":{}.*/ok/p
			s/.*"failed":{"\([a-z]*\)":1}.*/\1/p'
}

update() { # NAME ARGUMENT...
	local repo=$T/$1
	shift
	"$REFD" update -C "$repo" --porcelain "$@" 2>"$T/err"
}

# Lists every file below a directory, with its size and content.
contents() { # DIRECTORY
	(cd "$1" && find . -type f -exec sha1sum {} + | sort && find . -type d)
}

# The daemon answers STATUS and leaves the repository unchanged.
turned_away() { # REPORTED-AS STATUS REPOSITORY OID
	local before
	before=$(contents "$3")
	is "$1: $2" "$2" "$(ask "$3" "$4")"
	is "$1: nothing written" "$before" "$(contents "$3")"
}

# ---- which repositories ----

kinds() {
	local one
	new_repo outside.git bare
	one=$(new_commit outside.git one)
	turned_away 'outside the roots' norepo "$T/outside.git" "$one"
	ln -s "$T/outside.git" "$SERVED/link.git"
	"$REFD" update --git-dir "$SERVED/link.git" --porcelain \
		refs/heads/x "$one" >"$T/out" 2>/dev/null
	is 'a link that leads outside' 'ng refs/heads/x norepo' \
		"$(head -n 1 "$T/out" | cut -d' ' -f1-3)"
	"$REFD" update --git-dir "$SERVED/../outside.git" --porcelain \
		refs/heads/x "$one" >"$T/out" 2>/dev/null
	is 'a path that climbs out' 'ng refs/heads/x norepo' \
		"$(head -n 1 "$T/out" | cut -d' ' -f1-3)"
	check 'outside: still nothing there' test ! -e "$T/outside.git/refd"

	mkdir "$SERVED/nothing"
	turned_away 'no repository' norepo "$SERVED/nothing" "$one"
	"$REFD" update --git-dir "$SERVED/missing" refs/heads/x "$one" \
		2>/dev/null
	is 'missing: git'"'"'s status' 128 $?

	git init -q --bare "$SERVED/else.git"
	git -C "$SERVED/else.git" config core.repositoryFormatVersion 1
	git -C "$SERVED/else.git" config extensions.refStorage \
		"files://$T/store"
	turned_away 'refs elsewhere' unsupported "$SERVED/else.git" "$one"
}

# A repository of each object format is served, beside the other.
other_format() {
	local other=sha256
	[ "$FORMAT" = sha1 ] || other=sha1
	git init -q --object-format="$other" "$T/work256"
	git init -q --bare --object-format="$other" "$SERVED/other.git"
	git -C "$T/work256" commit -q --allow-empty -m one
	mkdir -p "$SERVED/other.git/hooks"
	ln -s "$REFD" "$SERVED/other.git/hooks/proc-receive"
	git -C "$SERVED/other.git" config receive.procReceiveRefs refs
	check 'the other object format: a push' git -C "$T/work256" push -q \
		"$SERVED/other.git" HEAD:refs/heads/x
	is 'the other object format: the ref' \
		"$(git -C "$T/work256" rev-parse HEAD)" \
		"$(ref_of srv/other.git refs/heads/x)"
	check 'the other object format: by refd' \
		test -e "$SERVED/other.git/refd/id"
}

# ---- names and objects ----

names_and_objects() {
	local one tree before
	local name
	new_repo srv/repo.git bare
	one=$(new_commit srv/repo.git one)
	tree=$(git -C "$SERVED/repo.git" rev-parse "$one^{tree}")
	is 'a good one' ok "$(ask "$SERVED/repo.git" "$one")"
	before=$(contents "$SERVED/repo.git/refs")
	for name in 'refs/heads/../../escape' '../escape' $'refs/heads/a\nb' \
		'refs/heads/a b' 'refs/heads/.a' 'refs/heads/a.lock' \
		'refs/heads/a..b' 'refs/heads/@{a' "$T/absolute" \
		"refs/heads/$(printf 'x%.0s' {1..300})"; do
		is "name $(printf '%q' "${name:0:30}")" badname \
			"$(ask "$SERVED/repo.git" "$one" "$name")"
	done
	is 'no object there' noobject \
		"$(ask "$SERVED/repo.git" "$ABSENT" refs/heads/none)"
	is 'a tree for a branch' notcommit \
		"$(ask "$SERVED/repo.git" "$tree" refs/heads/tree)"
	is 'none of it written' "$before" "$(contents "$SERVED/repo.git/refs")"
	check 'nothing beside the repository' test ! -e "$T/escape" \
		-a ! -e "$SERVED/escape" -a ! -e "$T/absolute"
	is 'a tag may name a tree' ok \
		"$(ask "$SERVED/repo.git" "$tree" refs/tags/tree)"
	# The valid update among the invalid ones is done.
	update srv/repo.git --batch-updates --stdin >"$T/out" <<-END
		create refs/heads/bad $ABSENT
		create refs/heads/good $one
		create refs/heads/asked $one
	END
	is 'one by one' 'ng refs/heads/bad noobject
ok refs/heads/good
ng refs/heads/asked conflict' "$(head -n 3 "$T/out" | cut -d' ' -f1-3 |
		sed 's/^\(ok [^ ]*\).*/\1/')"
}

# ---- no files ----

# A reader of a FIFO would wait until somebody writes.
fifos() {
	local one name answer
	new_repo srv/fifo.git bare
	one=$(new_commit srv/fifo.git one)
	is 'FIFOs: a good one' ok "$(ask "$SERVED/fifo.git" "$one")"
	for name in config config.worktree HEAD commondir refd/id \
		objects/info/alternates; do
		new_repo srv/fifo.git bare >/dev/null
		rm -rf "$T/kept" "$SERVED/fifo.git/$name.kept"
		cp -a "$SERVED/fifo.git" "$T/kept"
		rm -f "$SERVED/fifo.git/$name"
		mkfifo "$SERVED/fifo.git/$name"
		case $name in
		# git reads this file only with extensions.worktreeConfig.
		config.worktree) answer=ok ;;
		# git does the work in its own way.
		objects/info/alternates) answer=unsupported ;;
		*) answer=norepo ;;
		esac
		is "FIFOs: $name" "$answer" \
			"$(timeout 120 bash -c "$(declare -f ask)
				BUILD=$BUILD SOCKET=$SOCKET
				ask '$SERVED/fifo.git' $one refs/heads/fifo")"
		rm -rf "$SERVED/fifo.git"
		cp -a "$T/kept" "$SERVED/fifo.git"
	done
	for name in id.new marker; do
		rm -f "$SERVED/fifo.git/refd/$name" "$SERVED/fifo.git/refd/id"
		mkfifo "$SERVED/fifo.git/refd/$name"
	done
	is 'FIFOs in the place of what refd writes' ok \
		"$(ask "$SERVED/fifo.git" "$one" refs/heads/mended)"
}

# ---- a repository that goes away and comes back ----

# The storm during the absence has ended with an error.
was_missed() {
	grep -q '"failed":{"norepo":' "$T/storm"
}

# Eight clients, storm after storm, until the repository is back. No storm
# begins during the absence, so the first storm must be long enough to meet it.
storms() { # PREFIX OID OID
	local round=0
	while [ ! -e "$T/back" ]; do
		round=$((round + 1))
		"$BUILD/tests/helper/storm" --socket "$SOCKET" \
			--repo "$SERVED/away.git" --oid "$2" --oid "$3" \
			--prefix "$1/$round" --clients 8 \
			--txns 300 --refs 20 --log "$T/log" >>"$T/storm"
	done
}

has_grown() { # FILE BYTES-BEFORE
	[ "$(stat -c %s "$1")" -gt "$2" ]
}

# Lists refs whose log does not end in their value.
wrong_logs() {
	local log ref
	(cd "$SERVED/away.git/logs" && find . -type f -size +0) |
		while read -r log; do
			ref=${log#./}
			[ "$(tail -n 1 "$SERVED/away.git/logs/$ref" |
				cut -d' ' -f2)" = "$(ref_of srv/away.git \
				"$ref")" ] || echo "$ref"
		done
}

# git takes every ref's lock.
git_updates_all() { # OID
	git -C "$SERVED/away.git" for-each-ref --format='%(refname)' \
		refs/heads/storm | sed "s/.*/update & $1/" |
		git -C "$SERVED/away.git" update-ref --stdin
}

# The daemon may remove no file in the repository during its absence. Leftovers
# go when the repository is back.
away_round() { # ROUND OID OID
	local before prefix=refs/heads/storm/$1
	: >"$T/log"
	: >"$T/storm"
	rm -f "$T/back"
	storms "$prefix" "$2" "$3" &
	own $!
	await 10 has_grown "$T/log" 0
	mv "$SERVED/away.git" "$T/elsewhere.git"
	check "gone for a moment, $1: the clients are told" await 10 was_missed
	before=$(stat -c %s "$T/log")
	mv "$T/elsewhere.git" "$SERVED/away.git"
	check "gone for a moment, $1: the clients go on" \
		await 10 has_grown "$T/log" "$before"
	: >"$T/back"
	reap $!
	is "$1: and told nothing else" '' "$(grep '"failed":{"' "$T/storm" |
		grep -v '"failed":{"norepo":[0-9]*}')"
	is "$1: and nothing acknowledged is missing" \
		"$(awk '{ last[$1] = $2 } END {
			for (ref in last) print last[ref], ref }' "$T/log" |
			sort)" \
		"$(git -C "$SERVED/away.git" for-each-ref "$prefix" \
			--format='%(objectname) %(refname)' | sort)"
	no_locks "$1: no lock" srv/away.git
	is "$1: no line of what was refused" '' "$(wrong_logs)"
	check "$1: git updates every ref" git_updates_all "$2"
}

away_and_back() {
	local one two round
	new_repo srv/away.git bare
	git -C "$SERVED/away.git" config core.logAllRefUpdates always
	one=$(new_commit srv/away.git one)
	two=$(new_commit srv/away.git two)
	for round in 1 2; do
		away_round $round "$one" "$two"
	done
	is 'it is served again' ok "$(ask "$SERVED/away.git" "$one")"
}

# ---- a repository that is replaced under load ----

# Creates ref after ref, with the time of each request.
creator() { # ID OID
	local n=0 begun
	while [ ! -e "$T/enough" ]; do
		n=$((n + 1))
		begun=${EPOCHREALTIME/./}
		"$REFD" update -C "$SERVED/swap.git" "refs/heads/c$1/$n" "$2" \
			2>>"$T/why.$1" &&
			echo "$begun refs/heads/c$1/$n" >>"$T/acked.$1"
	done
}

# An update that began after this time is done.
goes_on() { # MICROSECONDS
	cat "$T"/acked.? |
		awk -v t="$1" '$1 > t { late = 1 } END { exit !late }'
}

replaced() {
	local one i pids=() swapped
	new_repo srv/swap.git bare
	one=$(new_commit srv/swap.git one)
	cp -r "$SERVED/swap.git" "$SERVED/new.git"
	for i in 1 2 3 4; do
		creator $i "$one" &
		pids+=($!)
		own $!
	done
	await 10 goes_on 0
	mv "$SERVED/swap.git" "$SERVED/old.git"
	mv "$SERVED/new.git" "$SERVED/swap.git"
	swapped=${EPOCHREALTIME/./}
	await 10 goes_on "$swapped"
	sleep 0.5
	: >"$T/enough"
	for i in "${pids[@]}"; do reap "$i"; done
	git -C "$SERVED/old.git" for-each-ref --format='%(refname)' |
		sort >"$T/old"
	git -C "$SERVED/swap.git" for-each-ref --format='%(refname)' |
		sort >"$T/new"
	sort "$T"/acked.? >"$T/acked"
	awk -v t="$swapped" '$1 > t { print $2 }' "$T/acked" | sort >"$T/after"
	awk '{ print $2 }' "$T/acked" | sort >"$T/all"
	check "replaced: clients went on ($(wc -l <"$T/after") afterwards)" \
		test -s "$T/after"
	is 'replaced: nothing lands in the old one' '' \
		"$(comm -12 "$T/old" "$T/after")"
	is 'replaced: all that was asked for later is in the new one' '' \
		"$(comm -23 "$T/after" "$T/new")"
	is 'replaced: nothing acknowledged is missing' '' \
		"$(comm -23 "$T/all" <(sort -m "$T/old" "$T/new"))"
	is 'replaced: each ref is in one of them only' '' \
		"$(comm -12 "$T/old" "$T/new")"
	no_locks 'replaced: no lock in the old one' srv/old.git
	no_locks 'replaced: no lock in the new one' srv/swap.git
	check 'replaced: the new one has an id of its own' \
		bash -c "! cmp -s '$SERVED/old.git/refd/id' \
			'$SERVED/swap.git/refd/id'"
	is 'the old one is served under its new name' ok \
		"$(ask "$SERVED/old.git" "$one")"
}

# ---- copies, and two paths ----

copied() {
	local one uuid
	new_repo srv/first.git bare
	one=$(new_commit srv/first.git one)
	is 'copied: the first' ok "$(ask "$SERVED/first.git" "$one")"
	uuid=$(head -n 1 "$SERVED/first.git/refd/id")
	cp -r "$SERVED/first.git" "$SERVED/second.git"
	is 'copied: the copy is served' ok \
		"$(ask "$SERVED/second.git" "$one" refs/heads/copy)"
	check 'copied: under an id of its own' \
		test "$uuid" != "$(head -n 1 "$SERVED/second.git/refd/id")"
	is 'copied: the first keeps its id' "$uuid" \
		"$(head -n 1 "$SERVED/first.git/refd/id")"
	is 'copied: and is served too' ok \
		"$(ask "$SERVED/first.git" "$one" refs/heads/more)"
	check 'copied: each has its own refs' \
		test -z "$(ref_of srv/first.git refs/heads/copy/0/0-0)" \
		-a -z "$(ref_of srv/second.git refs/heads/more/0/0-0)"
}

two_paths() {
	local one two path pids=()
	if [ "$(id -u)" -ne 0 ] || ! mkdir "$SERVED/other-path" ||
		! mount --bind "$SERVED/first.git" "$SERVED/other-path" \
			2>/dev/null; then
		skip 'two paths' 'no bind mounts here'
		return
	fi
	scenario_mounts+=("$SERVED/other-path")
	git -C "$SERVED/first.git" config core.logAllRefUpdates always
	one=$(new_commit srv/first.git p1)
	two=$(new_commit srv/first.git p2)
	for path in first.git other-path; do
		"$BUILD/tests/helper/storm" --socket "$SOCKET" \
			--repo "$SERVED/$path" --same-ref --clients 4 \
			--txns 10 --oid "$one" --oid "$two" \
			>"$T/storm.$path" &
		pids+=($!)
		own $!
	done
	for path in "${pids[@]}"; do reap "$path"; done
	for path in first.git other-path; do
		check "two paths: $path" grep -q '"ok":40,"failed":{}' \
			"$T/storm.$path"
	done
	is 'two paths: every swap once' 80 \
		"$(wc -l <"$SERVED/first.git/logs/refs/heads/storm/same")"
	no_locks 'two paths: no lock' srv/first.git
}

check 'the daemon starts' start_daemon
kinds
other_format
names_and_objects
fifos
away_and_back
replaced
copied
two_paths
finish
