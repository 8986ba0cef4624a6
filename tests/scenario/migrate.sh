#!/bin/bash
# Proves what refd migrate does without a git that knows reftables: each refusal
# names its reason and changes nothing; while refd migrate is at work in a
# repository, updates and pushes wait and then succeed, and other repositories
# are served; a directory reftable/ which a killed refd migrate has left is put
# aside before refd writes. Root works as the owner, and no program that the
# owner can trace has root's terminal. A directory that another user has made
# beforehand is refused. tests/long/migrate.sh migrates.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

start_daemon || exit 1
new_repo repo.git bare
new_repo other.git bare
repo=$T/repo.git
one=$(new_commit repo.git one)
other=$(new_commit other.git one)
"$REFD" enable "$repo" >/dev/null
git init -q "$T/work"
git -C "$T/work" commit -q --allow-empty -m pushed

refuses() { # NAME STATUS PATTERN ARGUMENT...
	local name=$1 wanted=$2 pattern=$3 was
	shift 3
	was=$(cd "$repo" && find . -path ./refd -prune -o -printf '%p %s\n' |
		sort)
	"$REFD" migrate "$@" >"$T/said" 2>&1
	is "$name: status" "$wanted" $?
	check "$name: reason" grep -q -e "$pattern" "$T/said"
	is "$name: unchanged" "$was" "$(cd "$repo" &&
		find . -path ./refd -prune -o -printf '%p %s\n' | sort)"
	check "$name: nothing is left" [ ! -e "$repo/refd/migrate" ]
}

refuses 'no format' 129 'ref-format. is required' "$repo"
refuses 'unknown format' 129 'no format of refs' --ref-format=sql "$repo"
refuses 'no repository' 128 'No such file' --ref-format=files \
	"$T/absent.git"
refuses 'no repository' 128 'not a git repository' --ref-format=files \
	"$T/state"
is 'the same format' "$repo: the refs are in files already" \
	"$("$REFD" migrate --ref-format=files "$repo" 2>&1)"
check 'the same format: nothing is left' [ ! -e "$repo/refd/migrate" ]
stop_daemon
refuses 'no daemon' 75 . --ref-format=reftable "$repo"
start_daemon || exit 1
refuses 'an old git' 128 'put 2.48 or later first in PATH' \
	--ref-format=reftable "$repo"

# ---- while refd migrate is at work ----

"$REFD" update -C "$repo" refs/heads/before "$one"
mkdir -m 700 "$repo/refd/migrate"
exec 9<"$repo/refd/migrate"
flock -n 9
touch "$repo/config"
is 'at work: an update that cannot wait' 1 "$(
	"$REFD" update -C "$repo" --timeout 300 refs/heads/late "$one" \
		>"$T/said" 2>&1 && echo 0 || echo 1)"
# On a slow machine the time may be over before the daemon answers.
is_named() {
	grep -q 'refd migrate is at work' "$T/said" ||
		{ "$REFD" update -C "$repo" --timeout 300 refs/heads/late \
			"$one" >"$T/said" 2>&1
			false; }
}
check 'at work: is named' await 20 is_named
"$REFD" update -C "$repo" refs/heads/waits "$one" >"$T/said.update" 2>&1 &
own $!
update=$!
git -C "$T/work" push -q "$repo" HEAD:refs/heads/pushed >"$T/said.push" 2>&1 &
own $!
push=$!
check 'at work: a different repository' "$REFD" update -C "$T/other.git" \
	refs/heads/x "$other"
# The daemon has closed the repository.
await 10 flock -n "$repo/refd/lock" true
check 'at work: refd/lock is free' flock -n "$repo/refd/lock" true
is 'at work: nobody was served' before "$(git -C "$repo" for-each-ref \
	--format='%(refname:lstrip=2)' refs/heads)"
at=$(stat_of transactions)
rmdir "$repo/refd/migrate"
exec 9<&-
check 'at work: the update waits' reap "$update"
check 'at work: the push waits' reap "$push"
is 'at work: both are there' 'before pushed waits ' "$(git -C "$repo" \
	for-each-ref --format='%(refname:lstrip=2)' refs/heads | tr '\n' ' ')"
check 'at work: refd wrote both' [ "$(stat_of transactions)" -ge $((at + 2)) ]

# ---- after a kill ----

mkdir -m 700 "$repo/refd/migrate" "$repo/reftable"
touch "$repo/config"
check 'killed: an update' "$REFD" update -C "$repo" refs/heads/again "$one"
stop_daemon
start_daemon || exit 1
check 'killed: after a restart' "$REFD" update -C "$repo" refs/heads/more "$one"
check 'killed: reftable/ is aside' [ ! -e "$repo/reftable" ]
is 'killed: the next call' "$repo: the refs are in files already" \
	"$("$REFD" migrate --ref-format=files "$repo" 2>&1)"
check 'killed: nothing is left' [ ! -e "$repo/refd/migrate" ]
check 'killed: refd verify' "$REFD" verify "$repo"

# ---- a group of nodes ----

# Such a repository has no marker that lets git write, so no later call helps.
new_repo nodes.git bare
check 'a group of nodes: an update' "$REFD" update -C "$T/nodes.git" \
	refs/heads/one "$(new_commit nodes.git one)"
touch "$T/nodes.git/refd/group"
"$REFD" migrate --ref-format=reftable "$T/nodes.git" >"$T/said" 2>&1
is 'a group of nodes: status' 128 $?
check 'a group of nodes: reason' grep -q 'is in a group of nodes' "$T/said"
check 'a group of nodes: nothing was changed' \
	test ! -e "$T/nodes.git/refd/migrate" -a ! -e "$T/nodes.git/reftable"

stop_daemon

# ---- several users ----

# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"
with_people 'several users' || finish
OWNER=64001
with_account $OWNER
export REFD_SOCKET=$T/owner.sock
SOCKET=$REFD_SOCKET STATE=$T/owner.state
start_daemon || exit 1
repo_for $OWNER theirs.git >/dev/null
repo=$T/of$OWNER/theirs.git

# The owner can trace the git that runs as the owner.
real=$(command -v git)
mkdir "$T/spy"
install -m 666 /dev/null "$T/files"
cat >"$T/spy/git" <<END
#!/bin/bash
if [ "\$(id -u)" = $OWNER ]; then
	echo "terminal: \$(ps -o tty= -p \$\$)" >>"$T/files"
	find /proc/\$\$/fd -lname '/dev/pts/*' >>"$T/files"
fi
exec $real "\$@"
END
chmod +x "$T/spy/git"
PATH=$T/spy:$PATH script -qec "$REFD migrate --ref-format=reftable $repo" \
	/dev/null >"$T/said" </dev/null
check 'a terminal: root gets the answer' grep -q 'first in PATH' "$T/said"
is 'a terminal: the owner does not get it' 'terminal: ?' \
	"$(sort -u "$T/files")"
prints_nothing 'root: makes no file of root' find "$repo" -user 0

mkdir -m 777 "$repo/refd/migrate"
chown 64002 "$repo/refd/migrate"
as $OWNER "$REFD" migrate --ref-format=reftable "$repo" >"$T/said" 2>&1
is 'a directory of another user: status' 128 $?
check 'a directory of another user: reason' grep -q 'open to another user' \
	"$T/said"
finish
