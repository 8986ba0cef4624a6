#!/bin/bash
# Proves the upgrade from the release with journal format 1 and version 1 of the
# wire, with the real programs. Eight clients and a pusher go on while the
# former daemon is stopped and this daemon starts on its journal. Every
# acknowledged update is in git, and once in the log. An id that is sent again
# gets its first answer.
#
# A journal that was not stopped is refused, byte for byte unchanged. After the
# former daemon has recovered the journal and was stopped, this daemon accepts
# it. This daemon recovers deferred records. The two releases refuse each other,
# and give the reason.
#
# The former release is built from git's history. Without this history:
# FORMER=DIR names a directory with refd, refd-daemon and refd-admin.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

former_commit=196bacb9054c382cdf700cb1f7890863fd289590
NEW=$BUILD/bin

# ---- the former release ----

build_former() {
	local as
	as=$(git -C "$ROOT" rev-parse -q --verify "$former_commit^{commit}") &&
		mkdir "$T/former" &&
		git -C "$ROOT" archive "$as" | tar -x -C "$T/former" &&
		env -u BUILD -u PROFILE -u MAKEFLAGS make -s -C "$T/former" \
			-j"$(nproc)" WERROR=0 all >"$T/make.log" 2>&1
}
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
if [ -z "${FORMER:-}" ] &&
	! git -C "$ROOT" rev-parse -q --verify "$former_commit^{commit}" \
		>/dev/null 2>&1; then
	skip upgrade "git's history has no $former_commit, and FORMER is not set"
	finish
elif [ -z "${FORMER:-}" ] && ! build_former; then
	not_ok 'the former release is built' "$(tail -n 3 "$T/make.log")"
	finish
fi
FORMER=${FORMER:-$T/former/build/bin}

# Replaces each file atomically, as a package manager does.
install_release() { # DIRECTORY
	local file
	for file in "$1"/*; do
		cp "$file" "$T/bin/.new" && mv "$T/bin/.new" "$T/bin/${file##*/}"
	done
}
mkdir "$T/bin"
REFD=$T/bin/refd
upgrade() { python3 "$ROOT/tests/lib/upgrade.py" "$@"; }
begin_load() { # REPO...
	rm -f "$T/enough"
	(cd "$T" && upgrade load "$REFD" 60 "$@") >"$T/load" 2>&1 &
	LOAD=$!
	own "$LOAD"
}
end_load() {
	touch "$T/enough"
	reap "$LOAD"
}
new_repo_of_values() { # NAME
	local i
	new_repo "$1" bare
	git -C "$T/$1" config core.logAllRefUpdates always
	for i in {1..7}; do new_commit "$1" "$i"; done >"$T/$1.oids"
}
fails() { ! "$@"; }

# ---- under load ----

repos=()
for i in {1..5}; do
	new_repo_of_values "r$i.git"
	repos+=("$T/r$i.git")
done
new_repo work
git init -q --bare "$T/pushed.git"
git -C "$T/pushed.git" config core.logAllRefUpdates always

# Each push has ten refs. The report about each ref goes to `told`: a ref that
# is reported as done must be there, and a refused ref must not.
pusher() {
	local n=0 i refs line
	while [ ! -e "$T/enough" ]; do
		n=$((n + 1)) refs=()
		for i in {1..10}; do refs+=("HEAD:refs/heads/p$n-$i"); done
		git -C "$T/work" push --porcelain "$T/pushed.git" "${refs[@]}" \
			2>>"$T/push.err" | while IFS=$'\t' read -r line ref _; do
			case $line in
			'*') echo "${ref#*:}" >>"$T/pushed" ;;
			'!') echo "${ref#*:}" >>"$T/refused" ;;
			esac
		done
	done
}

install_release "$FORMER"
check 'the former daemon starts' start_daemon
check 'refd enable' "$REFD" enable --socket "$SOCKET" "$T/pushed.git" >/dev/null
git -C "$T/pushed.git" config refd.fallback refuse
: >"$T/pushed"
: >"$T/refused"
begin_load "${repos[@]}"
pusher &
PUSHER=$!
own $PUSHER
sleep 8
check 'refd checkpoint' "$REFD" checkpoint
check 'the former daemon stops under load' stop_daemon
before=$(wc -l <"$T/acked")
install_release "$NEW"
check 'this daemon starts' start_daemon
sleep 8
check 'each client came to its end' end_load
cat "$T/load"
check 'the pusher, too' reap $PUSHER
echo "# acknowledged: $before by the former daemon, $(wc -l <"$T/acked") in all"
sed 's/^/# said: /' "$T/said"
check 'not little, by the former' test "$before" -gt 100
check 'and by this one' test "$(($(wc -l <"$T/acked") - before))" -gt 100
is 'nothing is lost, and ids get their first answer' '' \
	"$(cd "$T" && upgrade check "$REFD" "${repos[@]}" 2>&1)"
is 'clients were told nothing else' '' "$(grep -vE "cannot connect to|no \
greeting|speaks version [12] of refd's protocol|older \
version of the protocol" "$T/said")"
git -C "$T/pushed.git" for-each-ref --format='%(refname)' | sort >"$T/there"
echo "# pushes: $(wc -l <"$T/pushed") refs done, $(wc -l <"$T/refused") refused"
check 'pushes were done' test -s "$T/pushed"
is 'a push tells the truth of each ref' '' \
	"$(sort "$T/pushed" | diff - "$T/there" | head -n 3)"
check 'refd verify' "$REFD" verify --state "$STATE" "${repos[@]}" \
	"$T/pushed.git" >/dev/null
is 'no lock' '' "$(find "${repos[@]}" "$T/pushed.git" -name '*.lock')"
is 'no complaint' '' "$(complaints)"

# ---- different releases ----

one=$(head -n 1 "$T/r1.git.oids")
told() { # REPORTED-AS WORDS REF
	local name=$1 words=$2 ref=$3
	"$REFD" update -C "$T/r1.git" "$ref" "$one" 2>"$T/err"
	check "$name: is told" grep -q "$words" "$T/err"
	check "$name: a push fails" fails git -C "$T/work" push -q --atomic \
		"$T/pushed.git" "HEAD:$ref-a" "HEAD:$ref-b" 2>"$T/err"
	check "$name: and says why" grep -q "$words" "$T/err"
	is "$name: nothing is there" '' "$(ref_of r1.git "$ref")$(
		git -C "$T/pushed.git" for-each-ref "$ref-*")"
}
install_release "$FORMER"
told 'a former client' \
	'older version of the protocol than the daemon: install the same' \
	refs/heads/by-former
check 'this daemon stops' stop_daemon
find "$STATE" -type f -exec sha256sum {} + | sort >"$T/sums"
timeout 60 "$REFD" daemon --socket "$SOCKET" --state "$STATE" --root "$T" \
	>"$T/err" 2>&1
is 'the former daemon refuses the journal' 69 $?
check 'and says why' grep -q 'was written by a newer refd' "$T/err"
is 'unchanged' '' "$(find "$STATE" -type f -exec sha256sum {} + | sort |
	diff "$T/sums" -)"
STATE=$T/state-of-former
check 'a former daemon' start_daemon
install_release "$NEW"
told 'a client of this release' \
	'speaks version 1 .* this program version 2: install the same release' \
	refs/heads/by-new
check 'it stops' stop_daemon

# ---- killed ----

new_repo_of_values killed.git
STATE=$T/state-killed
install_release "$FORMER"
check 'a former daemon again' start_daemon
begin_load "$T/killed.git"
sleep 3
kill_daemon 2>/dev/null
install_release "$NEW"
sums() {
	find "$STATE" "$T/killed.git" -type f ! -name '*-shm' \
		-exec sha256sum {} + | sort
}
sums >"$T/sums"
for i in 1 2; do
	timeout 60 "$REFD" daemon --socket "$SOCKET" --state "$STATE" \
		--root "$T" >"$T/err" 2>&1
	is "a journal that was not stopped is refused, $i" 69 $?
done
check 'and the sentence says what to do' grep -q "(format 1), which was not \
stopped: start that refd again, run 'refd checkpoint', stop it, and start this \
one" "$T/err"
check 'by hand, too' fails "$REFD" recover --state "$STATE" --root "$T" \
	2>"$T/err"
check 'and says the same' grep -q 'start that refd again' "$T/err"
is 'byte for byte unchanged' '' "$(sums | diff "$T/sums" - | head -n 3)"
install_release "$FORMER"
check 'the former daemon recovers' start_daemon
check 'its checkpoint' "$REFD" checkpoint
check 'and stops' stop_daemon
install_release "$NEW"
check 'then this one starts' start_daemon
check 'its clients came to their end' end_load
is 'nothing is lost of it' '' \
	"$(cd "$T" && upgrade check "$REFD" "$T/killed.git" 2>&1)"
check 'it stops' stop_daemon

# ---- deferred records ----

if with_fs ext4 64M; then
	git init -q --bare "$FS/r.git"
	git -C "$FS/r.git" config core.logAllRefUpdates always
	one=$(git -C "$FS/r.git" commit-tree -m x \
		"$(git -C "$FS/r.git" mktree </dev/null)")
	sync -f "$FS"
	printf '[checkpoint]\n\tinterval = 3600000\n' >"$T/config"
	STATE=$T/state-awaiting
	install_release "$FORMER"
	check 'a former daemon, without checkpoints' \
		start_daemon --config "$T/config"
	for i in {1..50}; do
		"$REFD" update -C "$FS/r.git" "refs/heads/x$i" "$one" || break
	done
	kill -STOP "$DAEMON"
	"$BUILD/tests/helper/shutdown_fs" nologflush "$FS"
	kill_daemon 2>/dev/null
	umount "$FS"
	check 'it starts without the disk' start_daemon
	check 'and is stopped' stop_daemon
	install_release "$NEW"
	check 'this one has what awaits' start_daemon
	is 'all of it' 50 "$("$REFD" status -v | sed -n 's/^awaiting_refs: //p')"
	mount -o loop "$FS.img" "$FS"
	echo "# $(git -C "$FS/r.git" for-each-ref | wc -l) refs left by the cut"
	is_recovered() { "$REFD" status -v | grep -qx 'awaiting_refs: 0'; }
	check 'the disk is back' await 30 is_recovered
	is 'nothing is lost' 50 "$(git -C "$FS/r.git" for-each-ref \
		--format='%(objectname)' | grep -cx "$one")"
	check 'it stops' stop_daemon
fi
finish
