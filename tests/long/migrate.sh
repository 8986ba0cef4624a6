#!/bin/bash
# Proves that refd migrate moves the refs of a repository between files and
# reftables and loses nothing: refs, refs to missing objects, symbolic refs that
# lead nowhere, HEAD, refs beside HEAD, reflogs with and without entries, modes,
# history and ids are as before, the daemon serves the repository afterwards,
# and a push during the migration waits and succeeds. Killed before any of its
# system calls, and 200 times at any moment beside pushes, refd migrate leaves a
# repository that works in one of the two formats, and the next call ends the
# work and leaves nothing behind. A program that writes the old refs too late
# loses nothing, and a git that outlives a kill delays the next call. Every
# refusal names its reason and changes nothing. A member of the group leads no
# git outside of the repository, and an owner of a repository finds neither the
# terminal nor the files of root.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if ! why=$("$ROOT/scripts/git-new" "$BUILD/git-experimental" experimental \
	2>&1); then
	skip 'a git with reftables' "not to be had: ${why//$'\n'/; }"
	finish
	exit
fi
PATH=$(cd "$BUILD" && pwd)/git-experimental:$PATH
export PATH
kinds=(mkdir mkdirat flock linkat renameat renameat2 unlink unlinkat syncfs
	fsync utimensat sendfile)

start_daemon || exit 1
repo=$T/repo.git

# A repository with all kinds of refs, made by git in FORMAT.
make_repo() { # FORMAT [REPOSITORY]
	local dir=${2:-$repo} i
	rm -rf "$dir"
	git init -q --bare --ref-format="$1" "$dir"
	git -C "$dir" config core.logAllRefUpdates always
	one=$(git -C "$dir" commit-tree -m one "$(git -C "$dir" mktree \
		</dev/null)")
	two=$(git -C "$dir" commit-tree -m two -p "$one" "$one^{tree}")
	git -C "$dir" tag -a -m tag v1 "$one"
	for i in 1 2 3; do
		printf 'create refs/heads/n%d/x %s\n' "$i" "$one"
	done | git -C "$dir" update-ref --stdin
	# Entries of each age stay.
	GIT_COMMITTER_DATE='2001-02-03T04:05:06Z' \
		git -C "$dir" update-ref refs/heads/main "$one"
	git -C "$dir" update-ref -m move refs/heads/main "$two" "$one"
	git -C "$dir" update-ref -d refs/heads/n3/x
	git -C "$dir" update-ref ORIG_HEAD "$one"
	git -C "$dir" update-ref refs/bisect/bad "$one"
	git -C "$dir" update-ref refs/worktree/own "$two"
	git -C "$dir" symbolic-ref refs/heads/symbolic refs/heads/main
	git -C "$dir" symbolic-ref refs/remotes/o/HEAD refs/remotes/o/gone
	# Both have a log. The names are in another order in files.
	git -C "$dir" update-ref refs/heads/a-b "$one"
	git -C "$dir" update-ref refs/heads/a/b "$one"
	git -C "$dir" reflog expire --expire=all refs/heads/a-b refs/heads/n1/x
	git -C "$dir" symbolic-ref HEAD refs/heads/main
	echo "$one branch of a fetch" >"$dir/FETCH_HEAD"
}

# A ref to an object that is not there any more.
lose_object() {
	lost=$(git -C "$repo" commit-tree -m lost "$one^{tree}")
	git -C "$repo" update-ref refs/heads/missing "$lost"
	rm "$repo/objects/${lost:0:2}/${lost:2}"
}

# Everything that git shows of the refs; of the logs the names and messages.
picture() { # REPOSITORY
	git -C "$1" for-each-ref --include-root-refs \
		--format='%(refname) %(objectname) %(symref)'
	git -C "$1" symbolic-ref HEAD
	git -C "$1" symbolic-ref refs/remotes/o/HEAD
	git -C "$1" reflog list | sort
	git -C "$1" reflog expire --all --dry-run --verbose --expire=all | sort
	cat "$1/FETCH_HEAD"
}

# The same, and every entry of the logs. Git shows no log of a ref to a missing
# object.
picture_of_logs() { # REPOSITORY
	local ref
	picture "$1"
	for ref in $(git -C "$1" reflog list | sort); do
		[ "$ref" = refs/heads/missing ] || echo "== $ref" "$(
			git -C "$1" reflog show --date=unix \
				--format='%H %gn %gd %gs' "$ref")"
	done
}

format_of() { # REPOSITORY
	git -C "$1" rev-parse --show-ref-format
}

# Files of the other format, of refd migrate and of git's migration.
litter() { # REPOSITORY
	local f
	for f in refd/migrate config.lock; do
		[ ! -e "$1/$f" ] || echo "$f"
	done
	compgen -G "$1/ref_migration.*"
	case $(format_of "$1") in
	files) [ ! -e "$1/reftable" ] || echo reftable ;;
	reftable)
		for f in packed-refs logs ORIG_HEAD; do
			[ ! -e "$1/$f" ] || echo "$f"
		done
		[ -f "$1/refs/heads" ] || echo 'refs/heads is no stub'
		;;
	esac
}

# ---- there and back ----

other() { # FORMAT
	[ "$1" = files ] && echo reftable || echo files
}

for to in files reftable; do
	make_repo "$(other "$to")"
	lose_object
	chmod 640 "$repo/config"
	"$REFD" update -C "$repo" refs/heads/early "$one" >/dev/null 2>&1
	before=$(picture_of_logs "$repo")
	is "to $to: says so" "$repo: the refs are in $to now" \
		"$("$REFD" migrate --ref-format="$to" "$repo" 2>&1)"
	is "to $to: format" "$to" "$(format_of "$repo")"
	is "to $to: refs and logs" "$before" "$(picture_of_logs "$repo")"
	prints_nothing "to $to: nothing is left" litter "$repo"
	is "to $to: mode of config" 640 "$(stat -c %a "$repo/config")"
	prints_nothing "to $to: git finds no fault" git -C "$repo" refs verify
	# An older git trusts the file.
	[ "$to" = reftable ] || is "to $to: git finds the peeled tag" \
		"$one refs/tags/v1^{}" \
		"$(/usr/bin/git -C "$repo" show-ref -d v1 | tail -n 1)"
	check "to $to: refd serves it" "$REFD" update -C "$repo" \
		refs/heads/late "$two"
	is "to $to: again" "$repo: the refs are in $to already" \
		"$("$REFD" migrate --ref-format="$to" "$repo" 2>&1)"
	prints_nothing "to $to: nothing is left by the second call" \
		litter "$repo"
done

# No program takes a part of the path for anything else. HEAD is detached.
odd=$T/$'of $(x)\'s "a\\b":\n*;.git'
for to in files reftable; do
	make_repo "$(other "$to")" "$odd"
	git -C "$odd" update-ref --no-deref HEAD "$two"
	before=$(picture_of_logs "$odd" 2>&1)
	check "an odd path, to $to" "$REFD" migrate --ref-format="$to" "$odd"
	is "an odd path, to $to: format" "$to" "$(format_of "$odd")"
	is "an odd path, to $to: refs and logs" "$before" \
		"$(picture_of_logs "$odd" 2>&1)"
	prints_nothing "an odd path, to $to: nothing is left" litter "$odd"
done
git init -q --bare --ref-format=files "$T/empty.git"
for to in reftable files; do
	check "no refs, to $to" "$REFD" migrate --ref-format=$to "$T/empty.git"
	is "no refs, to $to: HEAD" "$(git -C "$T/empty.git" symbolic-ref HEAD)" \
		"$(git config init.defaultBranch | sed 's,^,refs/heads/,' |
			grep . || echo refs/heads/master)"
done

# ---- a push during the migration ----

git init -q "$T/work"
git -C "$T/work" commit -q --allow-empty -m pushed
for to in files reftable; do
	from=$(other "$to")
	make_repo "$from"
	"$REFD" enable "$repo" >/dev/null
	git -C "$T/work" push -q "$repo" HEAD:refs/heads/before
	at=$(stat_of transactions)
	pushes=()
	for i in 1 2 3 4 5 6 7 8; do
		git -C "$T/work" push -q "$repo" "HEAD:refs/heads/p$i" \
			2>>"$T/push.err" &
		own $!
		pushes+=($!)
		[ "$i" -ne 4 ] || "$REFD" migrate --ref-format="$to" "$repo" \
			>"$T/said" 2>&1
	done
	for pid in "${pushes[@]}"; do reap "$pid"; done
	is "to $to: pushes wait" 9 "$(git -C "$repo" for-each-ref \
		refs/heads/before 'refs/heads/p*' | wc -l)"
	is "to $to: format after pushes" "$to" "$(format_of "$repo")"
	check "to $to: refd wrote them" \
		[ "$(stat_of transactions)" -ge $((at + 8)) ]
	check "to $to: history is complete" "$REFD" verify "$repo"
done

# ---- killed at every call ----

# The call number WHEN of KIND: of any process, so that refd migrate cleans up
# after its attempt; or of the first process, which takes all with it. False:
# there are fewer calls.
kill_at() { # KIND WHEN FORMAT any|first
	local follow=-f
	[ "$4" = any ] || follow=-q
	(strace $follow -qq -o "$T/trace" -e "trace=$1" \
		-e "inject=$1:signal=KILL:when=$2" \
		"$REFD" migrate --ref-format="$3" "$repo" >"$T/said" 2>&1
		true) 2>/dev/null
	grep -q 'killed by SIGKILL' "$T/trace"
}

works() { # NAME WANTED-PICTURE
	local now
	now=$(picture "$repo" 2>&1)
	[ "$now" = "$2" ] && git -C "$repo" refs verify &&
		if [ ! -e "$repo/config.lock" ] || [ -e "$repo/refd/migrate" ]
		then return; fi
	not_ok "$1" "not as before: $(diff <(echo "$2") <(echo "$now") |
		head -n 3)"
	return 1
}

if ! strace -o /dev/null true 2>/dev/null; then
	skip 'killed at every call' 'no strace, or it may not trace'
	formats_killed=
else
	formats_killed='files reftable'
fi
for to in $formats_killed; do
	make_repo "$(other "$to")" "$T/origin.git"
	for kind in "${kinds[@]/%/:any}" "${kinds[@]/%/:first}"; do
		process=${kind#*:}
		kind=${kind%:*}
		bad=no
		for ((when = 1; when < 100; when++)); do
			rm -rf "$repo"
			cp -a "$T/origin.git" "$repo"
			wanted=$(picture "$repo")
			kill_at "$kind" "$when" "$to" "$process" || break
			name="to $to: $process process killed at $kind $when"
			works "$name" "$wanted" || bad=yes
			# A daemon that serves the repository meanwhile changes
			# nothing.
			"$REFD" update -C "$repo" refs/heads/meanwhile "$one" \
				>/dev/null 2>&1
			wanted=$(picture "$repo")
			if ! "$REFD" migrate --ref-format="$to" "$repo" \
				>"$T/said" 2>&1; then
				not_ok "$name: again" "$(cat "$T/said")"
				bad=yes
			fi
			works "$name: again" "$wanted" || bad=yes
			left=$(litter "$repo")
			if [ -n "$left$(format_of "$repo" |
				grep -v "^$to\$")" ]; then
				not_ok "$name: again" "left: $left"
				bad=yes
			fi
		done
		[ $bad = yes ] ||
			ok "to $to: $process killed at $((when - 1)) of $kind"
	done
done

# ---- killed after the turn, and a late program writes the old refs ----

# Kills refd migrate when the configuration has turned, but the old refs are
# still there. False: there is no such moment.
kill_after_turn() {
	local when
	for ((when = 1; when < 20; when++)); do
		rm -rf "$repo"
		cp -a "$T/origin.git" "$repo"
		kill_at syncfs "$when" reftable first || return 1
		[ ! -e "$repo/refd/migrate/states" ] ||
			[ "$(format_of "$repo")" = files ] || return 0
	done
	return 1
}

if [ -n "$formats_killed" ]; then
	make_repo files "$T/origin.git"
	check 'late: a kill' kill_after_turn
	echo "$two" >"$repo/refs/heads/late"
	check 'late: the next call' "$REFD" migrate --ref-format=reftable \
		"$repo"
	is 'late: the ref is there' "reftable $two" "$(format_of "$repo") $(
		git -C "$repo" rev-parse refs/heads/late)"
	prints_nothing 'late: nothing is left' litter "$repo"

	check 'both: a kill' kill_after_turn
	echo "$two" >"$repo/refs/heads/late"
	git -C "$repo" update-ref refs/heads/new "$two"
	for i in 1 2; do
		"$REFD" migrate --ref-format=reftable "$repo" >"$T/said" 2>&1
		is "both: call $i" 128 $?
		check "both: call $i: reason" grep -q 'compare both' "$T/said"
	done
	is 'both: each ref is there' "$two $two" "$(
		cat "$repo/refs/heads/late") $(
		git -C "$repo" rev-parse refs/heads/new)"
	rm "$repo/refd/migrate/states"
	check 'both: the last call' "$REFD" migrate --ref-format=reftable \
		"$repo"
	prints_nothing 'both: nothing is left' litter "$repo"
fi

# ---- a git that outlives the kill ----

make_repo files
wanted=$(picture "$repo")
mkdir "$T/slow"
cat >"$T/slow/git" <<SCRIPT
#!/bin/bash
case " \$* " in
*' refs migrate --ref-format='*)
	touch "$T/begun"
	for ((i = 0; i < 600; i++)); do
		[ ! -e "$T/go" ] || break
		sleep 0.1
	done
	;;
esac
exec "$(cd "$BUILD" && pwd)/git-experimental/git" "\$@"
SCRIPT
chmod +x "$T/slow/git"
PATH=$T/slow:$PATH "$REFD" migrate --ref-format=reftable "$repo" \
	>"$T/said" 2>&1 &
migrate=$!
check 'an orphan: has begun' await 60 test -e "$T/begun"
kill -KILL $migrate
wait $migrate 2>/dev/null
"$REFD" migrate --ref-format=reftable "$repo" >"$T/said" 2>&1
is 'an orphan: the next call' 75 $?
check 'an orphan: reason' grep -q 'is at work' "$T/said"
touch "$T/go"
check 'an orphan: ends' await 60 flock -n "$repo/refd/migrate" true
check 'an orphan: a later call' "$REFD" migrate --ref-format=reftable "$repo"
is 'an orphan: the refs' "$wanted" "$(picture "$repo")"
prints_nothing 'an orphan: nothing is left' litter "$repo"

# ---- killed at any moment, beside pushes ----

# Pushes new branches until $T/stop, and prints those that were acknowledged.
push_on() { # NAME
	local i
	for ((i = 0; ; i++)); do
		[ ! -e "$T/stop" ] || break
		git -C "$T/work" push -q "$repo" "HEAD:refs/heads/$1/$i" \
			2>>"$T/push.err" && echo "refs/heads/$1/$i"
	done
}

make_repo files
"$REFD" enable "$repo" >/dev/null
wanted=$(picture "$repo")
rm -f "$T/stop"
for i in 1 2; do
	push_on "p$i" >"$T/acknowledged.$i" &
	own $!
	pushers[i]=$!
done
kills=0 ended=0 bad=no
while [ $kills -lt 200 ]; do
	to=$(other "$(format_of "$repo")")
	"$REFD" migrate --ref-format="$to" "$repo" >"$T/said" 2>&1 &
	migrate=$!
	sleep "$(printf '0.%03d' $((RANDOM % 700)))"
	kill -KILL "$migrate" 2>/dev/null
	wait "$migrate" 2>/dev/null
	# 137 is 128 and SIGKILL.
	if [ $? -eq 137 ]; then
		kills=$((kills + 1))
	else
		ended=$((ended + 1))
	fi
	n=$((kills + ended))
	if ! git -C "$repo" refs verify >"$T/verify" 2>&1 ||
		[ -s "$T/verify" ] ||
		! git -C "$repo" symbolic-ref HEAD >/dev/null; then
		bad=yes
		not_ok "kill $n" "$(head -n 3 "$T/verify")"
	fi
done
# The last kill may have left files.
for to in files reftable files; do
	"$REFD" migrate --ref-format=$to "$repo" >"$T/said" 2>&1 ||
		not_ok "after $kills kills, to $to" "$(cat "$T/said")"
done
touch "$T/stop"
wait "${pushers[@]}"
[ $bad = yes ] || ok "$kills kills, and $ended that came too late"
git -C "$repo" for-each-ref --format='%(refname) %(objectname)' >"$T/present"
pushed=$(git -C "$T/work" rev-parse HEAD)
is "beside kills: $(cat "$T/acknowledged".? | wc -l) pushes are there" '' \
	"$(sort "$T/acknowledged".? | sed "s/\$/ $pushed/" |
		comm -23 - <(sort "$T/present") | head -n 3)"
check 'beside kills: history is complete' "$REFD" verify "$repo"
sed -n 's,^\(refs/heads/p[12]/[0-9]*\) .*,delete \1,p' "$T/present" |
	git -C "$repo" update-ref --stdin
is 'beside kills: nothing else has changed' "$wanted" "$(picture "$repo")"
prints_nothing 'beside kills: nothing is left' litter "$repo"
rm "$T/stop"

# ---- other programs ----

to=files
make_repo reftable
touch "$repo/reftable/tables.list.lock"
"$REFD" migrate --ref-format=files "$repo" >"$T/said" 2>&1
is 'a lock of another program' 128 $?
check 'a lock of another program: is named' grep -q \
	"left a lock.*reftable/tables.list.lock" "$T/said"
is 'a lock of another program: format' reftable "$(format_of "$repo")"
rm "$repo/reftable/tables.list.lock"

touch "$repo/config.lock"
"$REFD" migrate --ref-format=files "$repo" >"$T/said" 2>&1
is 'a lock of the configuration' 128 $?
check 'a lock of the configuration: is named' grep -q \
	"config.lock: File exists" "$T/said"
check 'a lock of the configuration: stays' test -e "$repo/config.lock"
rm "$repo/config.lock"
prints_nothing 'a lock of the configuration: nothing is left' litter "$repo"

# Git writes all the time, and loses no acknowledged update.
make_repo reftable
(
	i=0
	while [ ! -e "$T/stop" ]; do
		i=$((i + 1))
		git -C "$repo" update-ref "refs/heads/git$i" "$one" \
			2>/dev/null && echo "refs/heads/git$i"
		sleep 1
	done
) >"$T/acknowledged" &
own $!
writer=$!
for to in files reftable files reftable; do
	"$REFD" migrate --ref-format="$to" "$repo" >"$T/said" 2>&1 ||
		not_ok "beside git, to $to" "$(cat "$T/said")"
done
touch "$T/stop"
wait "$writer"
git -C "$repo" for-each-ref --format='%(refname)' | sort >"$T/present"
is "beside git: $(wc -l <"$T/acknowledged") updates are there" '' \
	"$(sort "$T/acknowledged" | comm -23 - "$T/present" | head -n 3)"

# ---- refusals ----

refuses() { # NAME STATUS PATTERN COMMAND...
	local name=$1 wanted=$2 pattern=$3 was now
	shift 3
	was=$(picture "$repo")
	"$@" >"$T/said" 2>&1
	is "$name: status" "$wanted" $?
	check "$name: reason" grep -q -e "$pattern" "$T/said"
	now=$(picture "$repo")
	is "$name: unchanged" "$was" "$now"
	prints_nothing "$name: nothing is left" litter "$repo"
}

make_repo reftable
git -C "$repo" worktree add -q "$T/linked" n1/x
refuses 'worktrees' 128 'has linked worktrees' \
	"$REFD" migrate --ref-format=files "$repo"
git -C "$repo" worktree remove "$T/linked"
mkdir "$repo/logs"
"$REFD" migrate --ref-format=files "$repo" >"$T/said" 2>&1
is 'files of an unknown origin: status' 128 $?
check 'files of an unknown origin: reason' grep -q '/logs exists' "$T/said"
rmdir "$repo/logs"
flock "$repo/refd/lock" "$REFD" migrate --ref-format=files "$repo" \
	>"$T/said" 2>&1
is 'a different daemon: status' 75 $?
check 'a different daemon: reason' grep -q 'another daemon has' "$T/said"
is 'a different daemon: format' reftable "$(format_of "$repo")"
mkdir -m 700 "$repo/refd/migrate"
flock "$repo/refd/migrate" "$REFD" migrate --ref-format=files "$repo" \
	>"$T/said" 2>&1
is 'two calls: status' 75 $?
check 'two calls: reason' grep -q 'is at work' "$T/said"
rmdir "$repo/refd/migrate"
mkdir "$T/old"
cat >"$T/old/git" <<SCRIPT
#!/bin/sh
case " \$* " in
*' refs migrate '*) echo "git: 'refs' is not a git command." >&2; exit 1 ;;
*' for-each-ref '*) echo 'error: unknown option' >&2; exit 129 ;;
*) exec "$(cd "$BUILD" && pwd)/git-experimental/git" "\$@" ;;
esac
SCRIPT
chmod +x "$T/old/git"
refuses 'an old git' 128 'put 2.48 or later first in PATH' \
	env "PATH=$T/old:$PATH" "$REFD" migrate --ref-format=files "$repo"
make_repo files
echo garbage >"$repo/refs/heads/bad"
refuses 'a broken ref' 128 'ignoring broken ref refs/heads/bad' \
	"$REFD" migrate --ref-format=reftable "$repo"
rm "$repo/refs/heads/bad"
ln -s main "$repo/refs/heads/link"
refuses 'a link' 128 'refs/heads/link: Too many levels of symbolic links' \
	"$REFD" migrate --ref-format=reftable "$repo"
rm "$repo/refs/heads/link"
make_repo reftable
stop_daemon
refuses 'no daemon' 75 . "$REFD" migrate --ref-format=files "$repo"
start_daemon

# A full disk.
if with_fs ext4 20M; then
	mv "$repo" "$FS/repo.git"
	repo=$FS/repo.git
	stop_daemon
	start_daemon --root "$FS"
	for ((i = 0; i < 2000; i++)); do
		echo "create refs/heads/many/$i $one"
	done | git -C "$repo" update-ref --stdin
	dd if=/dev/zero of="$FS/fill" bs=4k 2>/dev/null
	refuses 'a full disk' 128 'o space left' \
		"$REFD" migrate --ref-format=files "$repo"
	rm "$FS/fill"
	check 'a full disk: later' "$REFD" migrate --ref-format=files "$repo"
fi
stop_daemon

# ---- a member of the group of a shared repository ----

closed() { # all of the closed repository
	(cd "$T/closed.git" && find . -printf '%p %y %m %s %i %T@\n' | sort &&
		find . -type f -exec cat {} + | sha256sum)
}

# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"
if ! with_people 'a member of the group'; then
	finish
	exit
fi
OWNER=64001 MEMBER=64002
export GROUPS_OF=64009 REFD
with_account $OWNER $GROUPS_OF
chmod 755 "$T"
repo=$T/shared.git
git config --global safe.directory '*'
mkdir -p "$T/of$OWNER"
make_repo reftable "$T/closed.git"
make_repo files
git -C "$repo" config core.sharedRepository group
chown -R $OWNER:$GROUPS_OF "$repo" "$T/closed.git"
find "$repo" -type d -exec chmod 2775 {} +
find "$repo" -type f -exec chmod g+w {} +
chmod 700 "$T/closed.git"
SOCKET=$T/shared.sock STATE=$T/shared.state SERVED=$T
export REFD_SOCKET=$SOCKET
start_daemon || exit 1
was=$(closed)
check 'a shared repository' as $OWNER "$REFD" update -C "$repo" \
	refs/heads/early "$one"
refs=$(picture "$repo")
# Below a directory of the member, and above the owner's own directory.
as $MEMBER mkdir -m 777 "$repo/refd/migrate"
for name in refd/migrate/new refd; do
	as $MEMBER ln -sfn "$T/closed.git" "$repo/link"
	as $MEMBER "$BUILD/tests/helper/exchange" 15 "$repo/$name" \
		"$repo/link" >/dev/null &
	own $!
	member=$! done=0 tries=0
	while kill -0 $member 2>/dev/null; do
		to=$(other "$(format_of "$repo")")
		as $OWNER "$REFD" migrate --ref-format="$to" "$repo" \
			>>"$T/said" 2>&1 && done=$((done + 1))
		tries=$((tries + 1))
	done
	reap $member
	is "$name exchanged, $done of $tries done: the closed repository" \
		"$was" "$(closed)"
	is "$name exchanged: the refs" "$refs" "$(picture "$repo")"
	as $OWNER rm -rf "$repo/refd/migrate" "$repo/link"
done
check 'exchanged: a directory of a member is refused' grep -q \
	'open to another user' "$T/said"
for to in files reftable files; do
	check "exchanged: later, to $to" as $OWNER "$REFD" migrate \
		--ref-format=$to "$repo"
done
check 'root: to reftable' "$REFD" migrate --ref-format=reftable "$repo"
check 'root: to files' "$REFD" migrate --ref-format=files "$repo"
prints_nothing 'root: makes no file of root' find "$repo" -user 0
is 'the refs at the end' "$refs" "$(picture "$repo")"
is 'shared: the group may write' '' "$(find "$repo/refs" "$repo/logs" \
	"$repo/packed-refs" "$repo/config" "$repo/HEAD" ! -perm -g+w)"
finish
