#!/bin/bash
# Proves that refd works in the same repositories as git: the table below runs
# git and refd side by side, as the owner, another account and root, with
# safe.directory and safe.bareRepository in every scope. Where git says
# "detected dubious ownership", refd says the same, and neither runs a hook of
# the repository nor asks the daemon that the repository names.
#
# In a shared repository, a member of the group can name a daemon, too. Only
# daemons of the repository's owner, of root and of the caller are believed,
# also if the file of the socket was exchanged.
#
# An older git lacks some rules of the newest git, which are refd's. Only a git
# from 2.46 on takes part in these cases (tests/long/ownership.sh).

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

with_people ownership || finish
ALICE=64001 MALLORY=64002
A=$T/of$ALICE M=$T/of$MALLORY
export REFD_SOCKET=$T/none.sock
mkdir "$A" "$M" "$T/of0"
chown $ALICE "$A"
chown $MALLORY "$M"
git_is_new=no
[ "$(printf '%s\n' 2.46 "$(as $ALICE git version | cut -d' ' -f3)" | sort -V |
	head -n 1)" != 2.46 ] || git_is_new=yes

# ---- repositories ----

repositories() { # UID DIRECTORY
	as "$1" git init -q "$2/wt"
	as "$1" git -C "$2/wt" commit -q --allow-empty -m one
	as "$1" mkdir "$2/wt/sub"
	as "$1" git -C "$2/wt" worktree add -q "$2/linked" 2>/dev/null
	as "$1" git init -q --bare "$2/bare.git"
	as "$1" git init -q --separate-git-dir "$2/sep.git" "$2/sep"
}

repositories $ALICE "$A"
repositories $MALLORY "$M"
# Mixed: a file, a directory or a link of one account leads to the other's.
cp -r "$A/wt" "$A/their-dir"
chown -R $MALLORY "$A/their-dir/.git"
mkdir "$A/their-file" "$M/my-file" "$A/my-link" "$A/my-pointer"
for dir in "$A/their-file" "$M/my-file"; do
	echo "gitdir: $A/bare.git" >"$dir/.git"
done
chown $MALLORY "$A/their-file/.git" "$M/my-file"
chown $ALICE "$A/their-file" "$M/my-file/.git"
echo "gitdir: $M/bare.git" >"$A/my-pointer/.git"
ln -s "$M/bare.git" "$A/my-link/.git"
chown -hR $ALICE "$A/my-link" "$A/my-pointer"
# A link of mallory to a place where everybody may make a ".git".
mkdir -m 1777 "$T/open"
echo "gitdir: $A/bare.git" | as $MALLORY tee "$T/open/.git" >/dev/null
as $MALLORY ln -s "$T/open" "$M/x.git"
as $MALLORY ln -s "$M/wt" "$M/way"
as $MALLORY git init -q --bare "$M/it's!"

# ---- the table ----

# Of both programs: "yes", or the message without the prefix.
git_says() { # UID DIRECTORY [COMMAND...]
	local said
	if said=$(as "$1" "${@:3}" git -C "$2" rev-parse --git-dir 2>&1); then
		echo yes
	else
		sed '/^warning: /d; s/^fatal: //' <<<"$said"
	fi
}

# Without arguments, refd update looks for the repository, and prints its usage.
refd_says() { # UID DIRECTORY [COMMAND...]
	local said status=0
	said=$(as "$1" "${@:3}" env -C "$2" "$REFD" update 2>&1) || status=$?
	if [ $status -eq 129 ]; then
		echo yes
	else
		sed '/^warning: /d; s/^fatal: //' <<<"$said"
	fi
}

# With a path that a person types. The daemon is away: 75.
restore_says() { # UID DIRECTORY [COMMAND...]
	local said status=0
	said=$(as "$1" "${@:3}" "$REFD" restore --repo "$2" --at 1 -n 2>&1) ||
		status=$?
	if [ $status -eq 75 ]; then
		echo yes
	else
		sed '/^refd: warning: /d; s/^refd: //' <<<"$said"
	fi
}

# ANSWER: yes, no (dubious), or bare (not permitted). NEW: not of an old git.
case_of() { # ANSWER [new] UID DIRECTORY [COMMAND...]
	local wanted=$1 new='' refd git kind=yes name typed
	shift
	if [ "$1" = new ]; then
		new=yes
		shift
	fi
	name="$(basename "$2") of $(basename "$(dirname "$2")") as $1: $case"
	refd=$(refd_says "$@")
	case $refd in
	*'dubious ownership'*) kind=no ;;
	*'cannot use bare'*) kind=bare ;;
	esac
	is "$name" "$wanted" "$kind"
	git=$refd
	if [ -z "$new" ] || [ $git_is_new = yes ]; then
		git=$(git_says "$@")
		is "$name: as git" "$git" "$refd"
	fi
	# A typed path is not searched, and names a bare repository.
	typed=$(restore_says "$@")
	case $2,$wanted in
	*/sub,* | "$M"/*,bare) return ;;
	*,bare) git=yes ;;
	esac
	is "$name: as a typed path" "$git" "$typed"
}

configured() { # UID TEXT
	case=$2
	printf '%b' "$2" >"$T/of$1/.gitconfig"
}

case='no configuration'
for dir in wt wt/sub wt/.git linked bare.git sep sep.git; do
	case_of yes $ALICE "$A/$dir"
	case_of no $ALICE "$M/$dir"
	case_of no 0 "$M/$dir"
done
case_of no $ALICE "$A/their-dir"
case_of no $ALICE "$A/their-file"
case_of no $ALICE "$M/my-file"
case_of no $ALICE "$A/my-pointer"
case_of yes $ALICE "$A/my-link"
case_of no $ALICE "$M/x.git"
case_of no $ALICE "$T/open"
case_of no $ALICE "$M/way"
case_of no $ALICE "$M/it's!"

case='SUDO_UID'
case_of yes 0 "$M/wt" env SUDO_UID=$MALLORY
case_of no 0 "$M/wt" env SUDO_UID=$ALICE
case_of no 0 "$M/wt" env SUDO_UID=
case_of no 0 "$M/wt" env "SUDO_UID=$MALLORY x"
case_of no $ALICE "$M/wt" env SUDO_UID=$MALLORY

listed() { # ANSWER VALUE DIRECTORY [new]
	configured $ALICE "[safe]\n\tdirectory = $2\n"
	case_of "$1" ${4:+"$4"} $ALICE "$3"
}
listed yes "$M/wt" "$M/wt"
listed yes "$M/wt" "$M/wt/sub"
listed no "$M/wt" "$M/bare.git"
listed no "$M/wt/.git" "$M/wt"
listed yes "$M/wt/.git" "$M/wt/.git"
listed yes "$M/bare.git" "$M/bare.git"
listed yes "$A/their-file" "$A/their-file"
listed no "$A/bare.git" "$A/their-file"
listed yes '*' "$M/wt/sub"
listed yes '*' "$M/x.git"
listed yes "$M/*" "$M/wt/sub" new
listed yes "$T/*" "$M/bare.git" new
listed no "$M/wt/*" "$M/wt" new
listed no "$M/w*" "$M/wt"
listed yes "$M/wt/" "$M/wt" new
listed yes "$M/way" "$M/wt" new
listed no "$M/none/../wt" "$M/wt"
listed yes . "$M/wt" new
listed no . "$M/wt/sub"
listed no wt "$M/wt"
# shellcheck disable=SC2088 # git expands it
listed yes '~/../of64002/wt' "$M/wt" new
listed yes "~root/..$M/wt" "$M/wt" new
listed no '%(prefix)/wt' "$M/wt"
listed yes "%(prefix)/..$M/wt" "$M/wt" new

text() { # ANSWER TEXT [new]
	configured $ALICE "$2"
	case_of "$1" ${3:+"$3"} $ALICE "$M/wt"
}
text no "[safe]\n\tdirectory = *\n\tdirectory =\n"
text no "[safe]\n\tdirectory = *\n\tdirectory\n"
text yes "[safe]\n\tdirectory =\n\tdirectory = $M/wt\n"
text yes "[SAFE]\n\tDirectory = $M/wt\n\tdirectory = /elsewhere\n"
text no "[safe \"x\"]\n\tdirectory = *\n"
printf '[safe]\n\tdirectory = *\n' >"$T/included"
text yes "[include]\n\tpath = $T/included\n"
text no "[includeIf \"gitdir:$M/\"]\n\tpath = $T/included\n"
text no "[includeIf \"gitdir:/\"]\n\tpath = $T/included\n"

configured $ALICE ''
as $MALLORY git -C "$M/wt" config safe.directory '*'
case='the repository lists itself'
case_of no $ALICE "$M/wt"
case='the system lists it'
case_of yes $ALICE "$M/wt" env -u GIT_CONFIG_NOSYSTEM \
	GIT_CONFIG_SYSTEM="$T/included"
case='the environment lists it'
case_of yes new $ALICE "$M/wt" env GIT_CONFIG_COUNT=1 \
	GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0="$M/wt"
case='the environment resets the list'
configured $ALICE "[safe]\n\tdirectory = *\n"
case_of no new $ALICE "$M/wt" env GIT_CONFIG_COUNT=1 \
	GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=
configured $ALICE '[safe]\n\tbareRepository = explicit\n'
case_of bare $ALICE "$A/bare.git"
case_of bare $ALICE "$M/bare.git"
case_of bare $ALICE "$A/sep.git"
case_of yes $ALICE "$A/wt/sub"
case_of yes new $ALICE "$A/wt/.git"
case_of yes new $ALICE "$A/wt/.git/worktrees/linked"
configured $ALICE '[safe]\n\tbareRepository = all\n'
case_of yes $ALICE "$A/bare.git"
configured $ALICE ''

# git trusts a path in GIT_DIR: receive-pack has checked it before the hooks.
case='GIT_DIR'
for dir in wt/.git bare.git; do
	is "$dir as root in GIT_DIR" yes \
		"$(refd_says 0 / env GIT_DIR="$M/$dir")"
done

# ---- hooks and settings ----

# The owner's own daemon would take the hostile update.
SOCKET=$M/evil.sock STATE=$M/state SERVED=$M
AS_ACCOUNT=(setpriv --reuid "$MALLORY" --regid "$MALLORY" --clear-groups)
printf '#!/bin/sh\nid -u >>%s/ran\n' "$T" >"$M/hook"
chmod 755 "$M/hook"
cp "$M/hook" "$M/wt/.git/hooks/reference-transaction"
touch "$T/ran" "$LOG"
chmod 666 "$T/ran"
as $MALLORY git -C "$M/wt" config refd.socket "$SOCKET"
one=$(as $MALLORY git -C "$M/wt" rev-parse HEAD)
unset REFD_SOCKET
printf '[daemon]\n\tallowUser = %s\n' $ALICE >"$T/config"
check "mallory's daemon starts" start_daemon --config "$T/config"

refused() { # NAME UID COMMAND...
	local said status=0
	: >"$T/ran"
	said=$(as "$2" env -C "$M/wt" "${@:3}" 2>&1) || status=$?
	is "$1: no hook runs" '' "$(cat "$T/ran")"
	is "$1: refused" 128 $status
	is "$1: as git" "$(git_says "$2" "$M/wt")" \
		"$(sed 's/^fatal: //; s/^refd: //' <<<"$said")"
}
for uid in 0 $ALICE; do
	refused "update as $uid" "$uid" "$REFD" update refs/heads/x "$one"
	refused "restore as $uid" "$uid" "$REFD" restore --at 1 -n
	refused "a typed path as $uid" "$uid" "$REFD" restore \
		--repo "$M/wt" --at 1 --force
	: >"$T/ran"
	said=$(as "$uid" env -C "$M/wt" "$REFD" ping 2>&1)
	is "ping as $uid goes to no daemon of the repository" 0 \
		"$(grep -c "$SOCKET" <<<"$said")"
done

check 'the owner may' as $MALLORY "$REFD" update -C "$M/wt" refs/heads/x "$one"
check 'and the hook runs as the owner' grep -q $MALLORY "$T/ran"

# ---- the daemon that a repository names ----

GROUP=64009
export GROUPS_OF=$GROUP
shared=$T/shared.git
for uid in 0 $ALICE $MALLORY; do
	configured "$uid" '[safe]\n\tdirectory = *\n'
done
as $ALICE git init -q --bare --shared=group "$A/shared.git"
chgrp -R $GROUP "$A/shared.git"
mv "$A/shared.git" "$shared"
cp -a "$shared" "$T/kept.git"
one=$(as $ALICE git -C "$shared" commit-tree -m one \
	"$(as $ALICE git -C "$shared" mktree </dev/null)")
theirs=$SOCKET
SOCKET=$A/refd.sock STATE=$A/state SERVED=$T
AS_ACCOUNT=(setpriv --reuid "$ALICE" --regid "$ALICE" --groups "$GROUP")
printf '[daemon]\n\tallowUser = %s\n' $MALLORY >"$T/config"
check "alice's daemon starts" start_daemon --config "$T/config"
mine=$SOCKET

# A push, an update and a question, in the shared repository.
asks() { # UID [COMMAND...]
	as "$1" "${@:2}" env -C "$shared" "$REFD" ping 2>&1
}
names() { # SOCKET
	as $MALLORY git -C "$shared" config refd.socket "$1"
}
answers() { asks "$@" >"$T/said"; }
believed() { # NAME UID [COMMAND...]
	check "$1" answers "${@:2}"
}
doubted() { # NAME UID OWNER [COMMAND...]
	local said status=0
	said=$(asks "$2" "${@:4}") || status=$?
	is "$1" 128 $status
	check "$1: with the reason" grep -q \
		"socket $named of user $3, .*owner (user $ALICE)" <<<"$said"
}

named=$theirs
as $ALICE env REFD_STATE="$A/list" "$REFD" enable --socket "$named" "$shared" \
	>"$T/said" 2>&1
check 'enable warns' grep -q "not serve.* of user $MALLORY" "$T/said"
doubted "mallory's, by alice" $ALICE $MALLORY
doubted "mallory's, by root" 0 $MALLORY
believed "mallory's, by mallory" $MALLORY
believed 'in an option' $ALICE env REFD_SOCKET="$named"
configured $ALICE "[safe]\n\tdirectory = *\n[refd]\n\tsocket = $named\n"
believed "by alice's own choice, too" $ALICE
configured $ALICE "[safe]\n\tdirectory = *\n[refd]\n\tsocket = /other\n"
doubted "against alice's choice" $ALICE $MALLORY
configured $ALICE '[safe]\n\tdirectory = *\n'
doubted 'with a git to list the settings' $ALICE $MALLORY \
	env GIT_CONFIG_COUNT=0
printf '[refd]\n\tsocket = %s\n' "$named" >"$T/included"
as $MALLORY git -C "$shared" config --unset refd.socket
as $MALLORY git -C "$shared" config include.path "$T/included"
doubted 'in an included file' $ALICE $MALLORY
as $MALLORY git -C "$shared" config --unset include.path
names "$named"

update() { as $ALICE "$REFD" update -C "$shared" refs/heads/x "$one"; }
update >"$T/said" 2>&1
is 'an update is refused' 128 $?
check 'an update is refused: with the reason' grep -q "of user $MALLORY" \
	"$T/said"
push() { as $ALICE git -C "$shared" push -q "$shared" "$one:$1"; }
push refs/heads/pushed >"$T/said" 2>&1
is 'a push is refused' 1 $?
check 'a push is refused: with the reason' grep -q "of user $MALLORY" "$T/said"
is 'and git did not do it' '' "$(as $ALICE git -C "$shared" for-each-ref)"

named=$mine
names "$named"
believed "the owner's, by the owner" $ALICE
believed "the owner's, by a member" $MALLORY
believed "the owner's, by root" 0
check 'an update' update
check 'a push' push refs/heads/pushed
# The file is one account's, and the process another's.
chown $MALLORY "$mine"
doubted 'the file is exchanged' $ALICE $MALLORY
chown $ALICE "$mine" "$theirs"
named=$theirs
names "$named"
doubted 'the process is exchanged' $ALICE $MALLORY

# As the unit refd@keeper: root made the socket, in a directory of the account.
KEEPER=64003
install -d -o $KEEPER "$T/of$KEEPER"
printf '[daemon]\n\troot = %s\n\tallowGroup = %s\n' "$T" $GROUP \
	>"$T/keeper.config"
python3 - "$T/of$KEEPER" "$T/keeper.config" "$REFD" setpriv \
	--reuid $KEEPER --regid $KEEPER --groups $GROUP >>"$LOG" 2>&1 <<'PYTHON' &
import os, socket, sys
home, config, refd, *become = sys.argv[1:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
s.bind(home + '/refd.sock')
os.chmod(home + '/refd.sock', 0o666)
s.listen(64)
os.dup2(os.dup(s.fileno()), 3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1',
    LISTEN_FDNAMES='refd', HOME=home)
os.execvp(become[0], [*become, refd, 'daemon', '--config', config, '--state',
    home + '/state'])
PYTHON
own $!
shared=$T/kept.git named=$T/of$KEEPER/refd.sock
names "$named"
two=$(as $ALICE git -C "$shared" commit-tree -m two \
	"$(as $ALICE git -C "$shared" mktree </dev/null)")
check "root's socket" await 10 answers $ALICE
check "root's socket: an update" as $ALICE "$REFD" update -C "$shared" \
	refs/heads/kept "$two"
is 'by the account' $KEEPER "$(stat -c %u "$shared/refs/heads/kept")"
finish
