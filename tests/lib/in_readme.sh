#!/bin/bash
# tests/long/readme.sh runs this script in the machine that it boots. The script
# takes the commands from the README, and runs them as written. A command of the
# README that the script does not know is a failure. Reports as a scenario does.

# shellcheck source=tests/lib/report.sh
. /usr/local/lib/report.sh
# shellcheck source=tests/lib/readme.sh
. /clone/tests/lib/readme.sh
readme=/clone/README.md

check() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >>/out/output 2>&1; then ok "$name"; else
		not_ok "$name" "status $?: $(tail -n 8 /out/output |
			tr '\n' '|')"
	fi
}

block() { readme_block "$readme" "$1"; } # HEADING

# The commands below a comment of the everyday tasks.
task() { # COMMENT
	echo "# $1" >>/run/tasks
	block 'Everyday tasks' | awk -v comment="# $1" '
		$0 == comment { here = 1; next }
		here && /^#/ { exit }
		here && NF' >/run/task
	if [ "$(wc -l </run/task)" -lt 1 ] || [ "$(wc -l </run/task)" -gt 7 ]; then
		not_ok "$1" "$(wc -l </run/task) commands"
	fi
	cat /run/task
}

# Runs commands as written, in a single shell, until one fails.
# shellcheck disable=SC2016 # bash in the file knows the command
as_written() { # NAME COMMANDS
	printf 'set -e\ntrap '\''echo "failed: $BASH_COMMAND"'\'' ERR\n%s\n' \
		"$2" >/run/commands
	chmod 644 /run/commands
	check "$1" ${RUN_AS:+setpriv --reuid "$RUN_AS" --regid "$RUN_AS" \
		--init-groups env HOME="/home/$RUN_AS"} \
		bash --norc /run/commands
}

new_repo() { # USER PATH
	setpriv --reuid "$1" --regid "$1" --init-groups \
		git init -q --bare "$2"
}
# Pushes as the owner, with the configuration of a new account.
push() { # USER PATH ARGUMENT...
	local user=$1 path=$2
	shift 2
	setpriv --reuid "$user" --regid "$user" --init-groups \
		env HOME="/home/$user" git -c safe.directory='*' \
		-C /clone push -q "$path" "$@" >/run/pushed 2>&1
}
by_refd() { ! grep -q 'git updates the refs itself' /run/pushed; }

# ---- quick start ----

git config --system safe.directory '*'
for user in dev git alice; do useradd -m "$user"; done
cp -r /clone /home/dev/refd
chown -R dev:dev /home/dev/refd
cd /home/dev/refd || exit 1
RUN_AS=dev as_written 'quick start' "$(block 'Quick start')"
check 'the log shows the push' grep -q 'refs/heads/main' /out/output
pkill -u dev refd-daemon

# ---- installation, and the first push ----

cp -r /home/dev/refd /root/refd
chown -R root:root /root/refd
cd /root/refd || exit 1
install -d -o git -g git /srv/git
new_repo git /srv/git/a.git
as_written 'installation' "$(block 'Installation')"
check 'the first push' push git /srv/git/a.git HEAD:refs/heads/topic
check 'by refd' by_refd
check 'doctor finds nothing' refd doctor --all

# ---- everyday tasks ----

# Not in the clone: doctor looks at the repository around it.
cd / || exit 1

branch=$(git -C /srv/git/a.git rev-parse refs/heads/topic)
check 'somebody deletes the branch' push git /srv/git/a.git :refs/heads/topic
commands=$(task 'Who deleted the branch? The last line of the answer brings it back.')
as_written 'who deleted a branch' "$(head -n 1 <<<"$commands")"
check 'the account is named' grep -qP '\tgit\t.*\trefs/heads/topic\tdeleted' \
	/out/output
# The reader takes the record from the answer.
record=$(tail -n 1 /out/output | sed 's/.*--at //')
restore=$(sed -n "2s/RECORD/$record/p" <<<"$commands")
check 'the answer has the command' grep -qF -- "$restore" /out/output
as_written 'bring it back' "$restore"
is 'the branch is back' "$branch" \
	"$(git -C /srv/git/a.git rev-parse refs/heads/topic)"

as_written 'why pushes are slow' "$(task 'Why are pushes slow?')"
check 'the cost of a flush is said' grep -qi flush /out/output

install -d -o alice -g alice /home/alice/git
new_repo alice /home/alice/git/b.git
as_written 'another account' \
	"$(task 'Serve the repositories of another account.')"
check 'its push' push alice /home/alice/git/b.git HEAD:refs/heads/main
check 'by its daemon' by_refd
is 'as this account' alice "$(ps -o user= -p "$(systemctl show -p MainPID \
	--value refd@alice.service)")"

cd /root/refd || exit 1
as_written 'remove refd' "$(task 'Remove refd.')"
check 'a push without refd' push git /srv/git/a.git HEAD:refs/heads/after
check 'another account, too' push alice /home/alice/git/b.git \
	HEAD:refs/heads/after
is 'no daemon is left' '' "$(pgrep refd-daemon)"
check 'no program is left' [ ! -e /usr/local/bin/refd ]

# ---- nothing of the README was left out ----

is 'every task was done' "$(block 'Everyday tasks' | grep '^#')" \
	"$(cat /run/tasks)"
# scripts/check has this test, and "A push" is a drawing.
is 'no other heading has commands' \
	$'Quick start\nA push\nInstallation\nEveryday tasks\nTests' \
	"$(readme_headings "$readme")"
echo finished
