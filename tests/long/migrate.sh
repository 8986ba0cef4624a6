#!/bin/bash
# Proves that refd migrate moves the refs of a repository between files and
# reftables and loses nothing: refs, symbolic refs, HEAD, refs beside HEAD,
# reflogs, modes, history and ids are as before, the daemon serves the
# repository afterwards, and a push during the migration waits and succeeds.
# Killed before any of its system calls, refd migrate leaves a repository that
# works in one of the two formats, and the next call ends the work and leaves
# nothing behind. Every refusal names its reason and changes nothing.

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
kinds='mkdirat flock linkat renameat unlinkat syncfs fsync utimensat'

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
	git -C "$dir" update-ref refs/heads/main "$one"
	git -C "$dir" update-ref -m move refs/heads/main "$two" "$one"
	git -C "$dir" update-ref -d refs/heads/n3/x
	git -C "$dir" update-ref ORIG_HEAD "$one"
	git -C "$dir" symbolic-ref refs/heads/symbolic refs/heads/main
	git -C "$dir" symbolic-ref HEAD refs/heads/main
	echo "$one branch of a fetch" >"$dir/FETCH_HEAD"
}

# Everything that git shows of the refs.
picture() { # REPOSITORY
	local ref
	git -C "$1" for-each-ref --include-root-refs \
		--format='%(refname) %(objectname) %(symref)'
	git -C "$1" symbolic-ref HEAD
	for ref in $(git -C "$1" reflog list); do
		echo "== $ref"
		git -C "$1" reflog show --format='%H %gn %gd %gs' --date=unix \
			"$ref"
	done
	cat "$1/FETCH_HEAD"
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
	chmod 640 "$repo/config"
	"$REFD" update -C "$repo" refs/heads/early "$one" >/dev/null 2>&1
	before=$(picture "$repo")
	is "to $to: says so" "$repo: $(git -C "$repo" for-each-ref \
		--include-root-refs | wc -l) refs are in $to now" \
		"$("$REFD" migrate --ref-format="$to" "$repo" 2>&1)"
	is "to $to: format" "$to" "$(format_of "$repo")"
	is "to $to: refs and logs" "$before" "$(picture "$repo")"
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

# The call number WHEN of KIND. False: there are fewer calls.
kill_at() { # KIND WHEN FORMAT
	(strace -f -qq -o "$T/trace" -e "trace=$1" \
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
	for kind in $kinds; do
		bad=no
		for ((when = 1; when < 60; when++)); do
			rm -rf "$repo"
			cp -a "$T/origin.git" "$repo"
			wanted=$(picture "$repo")
			kill_at "$kind" "$when" "$to" || break
			name="to $to: killed at $kind $when"
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
			# The copy of a killed git is git's.
			left=$(grep -v ref_migration <<<"$left")
			if [ -n "$left$(format_of "$repo" |
				grep -v "^$to\$")" ]; then
				not_ok "$name: again" "left: $left"
				bad=yes
			fi
		done
		[ $bad = yes ] || ok "to $to: killed at $((when - 1)) of $kind"
	done
done

# ---- other programs ----

to=files
make_repo reftable
(exec 9>"$repo/reftable/tables.list.lock" && sleep 3 &&
	rm "$repo/reftable/tables.list.lock") &
own $!
await 10 test -e "$repo/reftable/tables.list.lock"
"$REFD" migrate --ref-format=files "$repo" >"$T/said" 2>&1
is 'a lock of another program' 128 $?
check 'a lock of another program: is named' grep -q \
	"reftable/tables.list.lock exists" "$T/said"
is 'a lock of another program: format' reftable "$(format_of "$repo")"
await 10 test ! -e "$repo/reftable/tables.list.lock"

touch "$repo/config.lock"
"$REFD" migrate --ref-format=files "$repo" >"$T/said" 2>&1
is 'a lock of the configuration' 128 $?
check 'a lock of the configuration: is named' grep -q 'config.lock exists' \
	"$T/said"
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
		sleep 0.3
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
git clone -q "$repo" "$T/tree"
git -C "$repo" worktree add -q "$T/linked" n1/x
refuses 'worktrees' 128 'has linked worktrees' \
	"$REFD" migrate --ref-format=files "$repo"
git -C "$repo" worktree remove "$T/linked"
mkdir "$repo/logs"
"$REFD" migrate --ref-format=files "$repo" >"$T/said" 2>&1
is 'files of an unknown origin: status' 128 $?
check 'files of an unknown origin: reason' grep -q '/logs exists' "$T/said"
rmdir "$repo/logs"
flock "$repo/refd/lock" "$REFD" migrate --timeout 1 --ref-format=files \
	"$repo" >"$T/said" 2>&1
is 'a different daemon: status' 75 $?
check 'a different daemon: reason' grep -q 'another daemon has' "$T/said"
is 'a different daemon: format' reftable "$(format_of "$repo")"
mkdir "$repo/refd/migrate"
flock "$repo/refd/migrate" "$REFD" migrate --ref-format=files "$repo" \
	>"$T/said" 2>&1
is 'two calls: status' 128 $?
check 'two calls: reason' grep -q 'is at work' "$T/said"
rmdir "$repo/refd/migrate"
mkdir "$T/old"
cat >"$T/old/git" <<SCRIPT
#!/bin/sh
case " \$* " in
*' version '*) echo git version 2.39.5 ;;
*' refs migrate '*) echo "git: 'refs' is not a git command." >&2; exit 1 ;;
*) exec $BUILD/git-experimental/git "\$@" ;;
esac
SCRIPT
chmod +x "$T/old/git"
refuses 'an old git' 128 'came with git 2.46' \
	env "PATH=$T/old:$PATH" "$REFD" migrate --ref-format=files "$repo"
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
finish
