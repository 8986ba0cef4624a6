#!/bin/bash
# Proves that trouble in a repository with refs in reftables is reported, changes
# nothing, and harms no other repository: damaged tables and lists, a lock of
# another program that never goes, git that merges without a pause, a full disk,
# kills at the calls of a commit. With ids of SHA-1 and of SHA-256.

# shellcheck source=tests/lib/scenario.sh
export REFD_TEST_REFS=reftable
. "$(dirname "$0")/../lib/scenario.sh"

if ! why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" experimental \
	2>&1); then
	skip 'a git with reftables' "not to be had: ${why//$'\n'/; }"
	finish
	exit
fi
storm=$(cd "$BUILD" && pwd)/tests/helper/storm
# A commit has the same id in every repository of a format.
export GIT_COMMITTER_DATE='1700000000 +0100'
export GIT_AUTHOR_DATE=$GIT_COMMITTER_DATE

start_daemon || exit 1
cd "$T" || exit 1

served() { # NAME
	new_repo "$1" bare
	"$REFD" enable "$T/$1" >/dev/null 2>&1
	one=$(new_commit "$1" one)
}

sound() { # REPORTED-AS REPOSITORY
	prints_nothing "$1: git finds no fault" git -C "$2" refs verify
	prints_nothing "$1: no locks" find "$2" -name '*.lock'
	check "$1: the daemon is the same" kill -0 "$DAEMON"
}

# ---- damage ----

damage() { # WHAT DIRECTORY TABLE
	case $1 in
	cut) truncate -s 40 "$3" ;;
	'without its end') truncate -s -10 "$3" ;;
	empty) : >"$3" ;;
	missing) rm "$3" ;;
	'a block of no type')
		printf '!' | dd of="$3" bs=1 conv=notrunc status=none \
			seek=$((${#one} == 40 ? 24 : 28))
		;;
	'a wrong check sum')
		printf nonsense | dd of="$3" bs=1 conv=notrunc status=none \
			seek=$(($(stat -c %s "$3") - 8))
		;;
	'of another hash') cp other.git/reftable/*.ref "$3" ;;
	'a table twice') cat "$T/whole/tables.list" >>"$2/tables.list" ;;
	'no list') rm "$2/tables.list" ;;
	'an empty list') : >"$2/tables.list" ;;
	'a path in the list') echo ../HEAD >>"$2/tables.list" ;;
	esac
}

damaged() { # FORMAT
	local what name dir=$T/damaged-$1.git/reftable other=sha1 n=0
	[ "$1" = sha256 ] || other=sha256
	served "sane-$1.git"
	served "damaged-$1.git"
	for name in a b; do
		GIT_TEST_REFTABLE_AUTOCOMPACTION=false git -C \
			"damaged-$1.git" update-ref "refs/heads/$name" "$one"
	done
	rm -rf other.git whole
	GIT_DEFAULT_HASH=$other git init -q --bare other.git
	cp -rp "$dir" whole
	for what in cut 'without its end' empty missing 'a block of no type' \
		'a wrong check sum' 'of another hash' 'a table twice' \
		'no list' 'an empty list' 'a path in the list'; do
		damage "$what" "$dir" "$dir/$(tail -n 1 whole/tables.list)"
		name="$1, $what"
		(cd "$dir" && sha1sum -- *) >"$T/was"
		"$REFD" update -C "damaged-$1.git" refs/heads/b "$one" \
			>"$T/said" 2>&1
		is "$name: refused" 128 $?
		check "$name: reason" grep -qE 'reftable|tables\.list' "$T/said"
		is "$name: nothing is changed" '' \
			"$(cd "$dir" && sha1sum -- * | diff "$T/was" -)"
		check "$name: another repository is served" "$REFD" update \
			-C "sane-$1.git" refs/heads/$((++n)) "$one"
		cp -p whole/* "$dir"
		check "$name: repaired by hand" "$REFD" update \
			-C "damaged-$1.git" refs/heads/b "$one"
		find "$dir" -type f -delete
		cp -p whole/* "$dir"
	done
	sound "$1, damaged" "damaged-$1.git"
}

# ---- a lock that never goes ----

# The status of an update, and the seconds it took.
answer() { # REPOSITORY NAME
	local since=${EPOCHREALTIME/./} said
	said=$(echo "create refs/heads/$2 $one" | "$REFD" update -C "$T/$1" \
		--timeout 3000 --porcelain --batch-updates --stdin 2>/dev/null |
		awk '$1 == "ok" { print $1 } $1 == "ng" { print $3 }')
	echo "$said $(((${EPOCHREALTIME/./} - since) / 1000000))"
}

held() { # FORMAT
	local i waiting=()
	served "free-$1.git"
	served "held-$1.git"
	: >"held-$1.git/reftable/tables.list.lock"
	git -C "held-$1.git" config core.filesRefLockTimeout -1
	for i in 1 2 3; do
		answer "held-$1.git" "held$i" >"$T/held.$i" &
		own $!
		waiting+=($!)
	done
	for ((i = 0; i < 20; i++)); do
		answer "free-$1.git" "free$i"
	done | sort | uniq -c >"$T/free"
	is "$1, a lock for ever: another repository is served at once" \
		'20 ok 0' "$(xargs <"$T/free")"
	wait "${waiting[@]}"
	for i in 1 2 3; do
		check "$1, a lock for ever: locked, at the deadline" \
			grep -qE '^locked [3-9]' "$T/held.$i"
	done
	git -C "held-$1.git" config --unset core.filesRefLockTimeout
	is "$1, a lock for ever: locked after lock-wait" 'locked 1' \
		"$(answer "held-$1.git" held4)"
	check "$1, a lock for ever: it stays" \
		rm "held-$1.git/reftable/tables.list.lock"
	check "$1, a lock for ever: served without it" "$REFD" update \
		-C "held-$1.git" refs/heads/main "$one"
	sound "$1, a lock for ever" "held-$1.git"
}

# ---- git merges without a pause ----

merging() { # FORMAT
	local i gits=() said
	served "merging-$1.git"
	rm -f "$T/stop"
	for i in 1 2; do
		while [ ! -e "$T/stop" ]; do
			git -C "merging-$1.git" pack-refs --all 2>/dev/null &&
				echo merged
		done >"$T/merged.$i" &
		own $!
		gits+=($!)
	done
	said=$("$storm" --socket "$SOCKET" --repo "$T/merging-$1.git" \
		--oid "$one" --oid "$(new_commit "merging-$1.git" two)" \
		--clients 8 --txns 200 --timeout 60000)
	: >"$T/stop"
	wait "${gits[@]}"
	is "$1, git merges $(cat "$T"/merged.* | wc -l) times: all succeed" \
		1600 "$(sed -n 's/.*"ok": *\([0-9]*\).*/\1/p' <<<"$said")"
	sound "$1, git merges" "merging-$1.git"
}

# ---- scenarios for refs in files ----

again() { # FORMAT SCENARIO
	if REFD_TEST_REFS=reftable REFD_TEST_FORMAT=$1 BUILD=$BUILD \
		"$ROOT/tests/scenario/$2.sh" >"$T/said" 2>&1; then
		ok "$1, $2"
	else
		not_ok "$1, $2" "$(grep -a '^not ok' "$T/said" | head -n 5)"
	fi
}

for format in sha1 sha256; do
	export GIT_DEFAULT_HASH=$format
	damaged "$format"
	held "$format"
	merging "$format"
	again "$format" nospace
	again "$format" kill_calls
done
finish
