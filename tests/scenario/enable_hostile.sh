#!/bin/bash
# Proves that refd enable, disable and doctor, run by root, read and write
# nothing outside of a hostile repository. In a repository of root, a member of
# the group replaces the hooks and the configuration by links, forges refd's
# notes, and exchanges the hooks for a link during the commands. An owner of
# other repositories puts links and FIFOs in the place of files. Neither stops
# the work on other repositories, nor sends control characters to a terminal.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

with_people enable_hostile || finish
unset GIT_CONFIG_NOSYSTEM
export GIT_CONFIG_SYSTEM=$T/etc/gitconfig REFD_SOCKET=
OWNER=64001 MEMBER=64002 GROUP=64009
export GROUPS_OF=$GROUP
mkdir "$T/etc" "$T/srv" "$T/vault"

# ---- what nobody may touch ----

fill_vault() {
	printf '[core]\n\tbare = true\n' >"$T/vault/config"
	echo precious >"$T/vault/proc-receive.new"
	ln -s /opt/theirs "$T/vault/proc-receive"
	chmod 700 "$T/vault"
}

vault() {
	find "$T/vault" -printf '%P %y %m %s %i %l\n' | sort
	cat "$T/vault/config"
}

vault_is_whole() { # REPORTED-AS
	if vault | diff "$T/vault.before" - >"$T/said.diff"; then
		ok "$1"
	else
		not_ok "$1" "$(cat "$T/said.diff")"
	fi
}

says() { # REPORTED-AS WORDS
	if grep -q -e "$2" "$T/said"; then
		ok "$1"
	else
		not_ok "$1" "$(cat "$T/said")"
	fi
}

# ---- a repository of root that a group may write ----

shared() { # NAME
	git init -q --bare --shared=group "$T/srv/$1"
	chgrp -R $GROUP "$T/srv/$1"
	repo=$T/srv/$1
}

member() {
	as $MEMBER "$@"
}

still_works() {
	shared plain.git
	cp "$repo/config" "$T/before"
	"$REFD" enable "$repo" &>/dev/null
	is 'a shared repository of root: enabled' 0 $?
	check 'and its hook' test -x "$repo/hooks/proc-receive"
	"$REFD" disable "$repo" &>/dev/null
	check 'as it was' cmp "$T/before" "$repo/config"
	check 'without the hook' test ! -e "$repo/hooks/proc-receive"
}

forged() {
	shared forged.git
	"$REFD" enable "$repo" &>/dev/null
	member mv "$repo/hooks" "$repo/moved"
	member ln -s "$T/vault" "$repo/hooks"
	member sed -i 's,hook = "[^"]*",hook = "/opt/theirs",' \
		"$repo/refd.gitconfig"
	check 'forged: the note is forged' \
		grep -q /opt/theirs "$repo/refd.gitconfig"
	"$REFD" disable "$repo" &>"$T/said"
	is 'forged: disable ends the work' 0 $?
	says 'forged: and leaves the link' 'hooks: a link .*: kept'
	vault_is_whole 'forged: nothing behind the link is removed'
	"$REFD" enable "$repo" &>"$T/said"
	is 'forged: enable refuses the link' 1 $?
	says 'forged: with a remedy' 'another user may have made; replace'
	vault_is_whole 'forged: nothing is made behind the link'
	"$REFD" doctor --fix "$repo" &>/dev/null
	vault_is_whole 'forged: the doctor makes nothing either'
}

linked_config() {
	shared config.git
	member rm "$repo/config"
	member ln -s "$T/vault/config" "$repo/config"
	"$REFD" enable "$repo" &>"$T/said"
	is 'a link as configuration: refused' 1 $?
	says 'a link as configuration: the reason' 'may have made this link'
	"$REFD" disable "$repo" &>"$T/said"
	"$REFD" doctor --fix "$repo" &>>"$T/said"
	vault_is_whole 'a link as configuration: its target is not written'
}

# A member puts something else in the place of the record.
linked_record() {
	local make command
	for make in "ln -s $T/vault/config" mkfifo mkdir 'truncate -s 40G'; do
		shared record.git
		"$REFD" enable "$repo" &>/dev/null
		member mv "$repo/refd.gitconfig" "$repo/moved"
		# shellcheck disable=SC2086 # command and arguments
		member $make "$repo/refd.gitconfig"
		for command in enable disable 'doctor --fix'; do
			# shellcheck disable=SC2086 # command and option
			bounded "$REFD" $command "$repo"
			is "record by $make: $command" 1 $?
		done
		bounded "$REFD" enable --list
		check "record by $make: listed" test $? -le 1
		vault_is_whole "record by $make: nothing elsewhere changes"
		check "record by $make: the hook stays" \
			test -L "$repo/hooks/proc-receive"
		rm -r "$repo"
	done
	"$REFD" disable --all &>/dev/null
}

# An access control list shows as rights of root's group. The member moves a link
# of root into the place of the configuration.
grant_member() { # DIR
	python3 - "$1" $MEMBER <<-'PYTHON'
		import os, struct, sys
		none = 0xffffffff
		entries = [(1, 7, none), (2, 7, int(sys.argv[2])), (4, 5, none),
		           (16, 7, none), (32, 5, none)]
		acl = b''.join(struct.pack('<HHI', *entry) for entry in entries)
		os.setxattr(sys.argv[1], 'system.posix_acl_access',
		            struct.pack('<I', 2) + acl)
	PYTHON
}

listed_member() {
	local open=$T/srv/open
	repo=$T/srv/acl.git
	git init -q --bare "$repo"
	if ! grant_member "$repo" 2>/dev/null; then
		skip 'access control lists' 'the file system has none'
		return
	fi
	ln -s "$T/vault/config" "$repo/to-config"
	member rm "$repo/config"
	member mv "$repo/to-config" "$repo/config"
	"$REFD" enable "$repo" &>"$T/said"
	is 'access control list: a link as configuration is refused' 1 $?
	vault_is_whole 'access control list: its target is not written'
	mkdir "$open"
	git init -q --bare "$open/a.git"
	"$REFD" enable "$open/a.git" &>"$T/said"
	is 'a directory above: enabled' 0 $?
	"$REFD" disable "$open/a.git" &>"$T/said"
	grant_member "$open"
	"$REFD" enable "$open/a.git" &>"$T/said"
	is 'access control list of a directory above: refused' 1 $?
	says 'access control list of a directory above: the reason' \
		'may write to a directory above'
}

# The hooks are a link at every second moment of each command.
exchanged() {
	local i
	shared race.git
	chmod 755 "$T/vault"
	vault >"$T/vault.before"
	member ln -s "$T/vault" "$repo/link"
	member "$BUILD/tests/helper/exchange" 6 "$repo/hooks" "$repo/link" \
		>/dev/null &
	own $!
	for ((i = 0; i < 60; i++)); do
		"$REFD" enable "$repo" &>/dev/null
		"$REFD" disable "$repo" &>/dev/null
	done
	reap "$!"
	vault_is_whole 'exchanged: nothing behind the link changes'
	chmod 700 "$T/vault"
	vault >"$T/vault.before"
}

# ---- a hostile owner ----

hostile() { # NAME
	install -d -o $OWNER "$T/srv/owner"
	as $OWNER git init -q --bare "$T/srv/owner/$1"
	repo=$T/srv/owner/$1
}

# Root's own files must not decide, nor appear in messages.
system_reads_as_owner() {
	printf '[core]\n\thooksPath = /top/secret\n' >"$T/vault/secret"
	vault >"$T/vault.before"
	hostile reads.git
	as $OWNER ln -sf "$T/vault/secret" "$repo/config"
	"$REFD" enable --system --root "$T/srv" >"$T/said" 2>&1
	is 'system: a closed file behind a link decides nothing' 0 $?
	is 'system: and is not printed' '' "$(grep top/secret "$T/said")"
	"$REFD" disable --system >/dev/null
	as $OWNER rm -r "$repo"
}

# One hostile repository does not end the work on others.
not_stopped() {
	local other
	hostile bad.git
	other=$T/srv/plain.git
	"$REFD" enable "$repo" "$other" &>/dev/null
	as $OWNER git -C "$repo" config receive.shallowUpdate perhaps
	git config -f "$other/refd.gitconfig" \
		--unset-all receive.procReceiveRefs
	"$REFD" enable --all >"$T/said" 2>&1
	is 'a bad boolean: the next repository is mended' 'refs adm!:refs' \
		"$(git -C "$other" config --get-all receive.procReceiveRefs |
			paste -sd ' ')"
	as $OWNER git -C "$repo" config --unset receive.shallowUpdate
	"$REFD" disable "$repo" "$other" >/dev/null
	as $OWNER rm -r "$repo"
}

# The address sanitizer needs terabytes of addresses.
bounded() { # COMMAND...
	(
		grep -aq __asan_init "$REFD" || ulimit -v 2000000
		timeout 20 "$@"
	) &>"$T/said"
}

# In the place of each file that refd reads to find a repository.
no_files() {
	local file make command
	for file in HEAD commondir .git config; do
		for make in mkfifo 'ln -s /dev/zero' 'truncate -s 1T'; do
			hostile none.git
			as $OWNER rm -f "$repo/$file"
			# shellcheck disable=SC2086 # command and arguments
			as $OWNER $make "$repo/$file"
			for command in enable disable doctor; do
				bounded "$REFD" "$command" "$repo"
				check "$file by $make: $command" test $? -le 1
			done
			rm -r "$repo"
		done
	done
}

# In the place of git, when it runs as the owner.
spy() { # SCRIPT
	mkdir -p "$T/spy"
	cat >"$T/spy/git" <<-END
		#!/bin/bash
		if [ "\$(id -u)" = $OWNER ]; then
			$1
		fi
		exec $(command -v git) "\$@"
	END
	chmod +x "$T/spy/git"
}

# The owner can trace a git that runs as the owner. So git has no terminal, and
# nothing else of root's. The process around git is the owner's for good, and
# nobody can read its memory.
traced() {
	hostile traced.git
	install -m 666 /dev/null "$T/files"
	install -m 666 /dev/null "$T/errors"
	spy "{
		echo terminal: \$(ps -o tty= -p \$\$)
		find /proc/\$\$/fd -lname '/dev/pts/*' -o -lname '$T/vault/*'
		env | grep ROOTS_OWN
		grep ^Uid: /proc/\$PPID/status
		cat /proc/\$PPID/environ
	} >>'$T/files' 2>>'$T/errors'"
	ROOTS_OWN=secret PATH=$T/spy:$PATH script -qec \
		"exec 7<$T/vault/config; $REFD enable $repo" /dev/null \
		>"$T/said" </dev/null
	says 'a terminal: root has one' 'receive.procReceiveRefs +='
	is 'the owner gets no terminal, file or variable of root' \
		'terminal: ?' "$(sort -u "$T/files" | grep -v ^Uid:)"
	is 'nor a process with a way back to root' \
		"Uid: $OWNER $OWNER $OWNER $OWNER" \
		"$(grep ^Uid: "$T/files" | sort -u | xargs)"
	check 'nor its memory' grep -q 'environ: Permission denied' "$T/errors"
	"$REFD" disable "$repo" &>/dev/null
	as $OWNER rm -r "$repo"
}

# The owner may end or stop the work in the owner's repositories, and costs root
# nothing else.
ended() {
	local other=$T/srv/plain.git signal
	hostile ended.git
	for signal in KILL STOP; do
		spy "kill -$signal \$PPID; exec sleep 30"
		PATH=$T/spy:$PATH timeout 20 "$REFD" enable "$repo" "$other" \
			>"$T/said" 2>&1
		is "SIG$signal: root's command goes on" 1 $?
		says "SIG$signal: and says who" \
			"ended.git: the work .* user $OWNER was .* a signal"
		check "SIG$signal: the next repository is enabled" \
			test -e "$other/hooks/proc-receive"
		"$REFD" disable "$repo" "$other" >/dev/null
		PATH=$T/spy:$PATH timeout 20 "$REFD" doctor "$repo" "$other" \
			>"$T/said" 2>&1
		says "SIG$signal: the doctor finds it" \
			"^error: not-checked: $repo: .* user $OWNER was"
		says "SIG$signal: and goes on" "^note: not-enabled: $other"
	done
	as $OWNER rm -r "$repo"
}

# The doctor's repairs are part of one command, in which an owner can end three
# works. Nor do they change a repository that was put in the place of another.
repaired() {
	local repos=() old=$T/srv/owner/old.git i
	for i in 1 2 3 4 5; do
		hostile fix$i.git
		repos+=("$repo")
	done
	"$REFD" enable "${repos[@]}" &>/dev/null
	as $OWNER rm "${repos[@]/%//hooks/proc-receive}"
	install -m 666 /dev/null "$T/ended"
	# A repair reads the file of the configuration, and a check does not.
	spy "case \$* in *--file*)
		echo ended >>$T/ended
		kill -KILL \$PPID;;
	esac"
	PATH=$T/spy:$PATH "$REFD" doctor --fix "${repos[@]}" &>"$T/said"
	is 'repairs: the owner ends three' 3 "$(wc -l <"$T/ended")"
	says 'repairs: the others are not tried' \
		"fix5.git: the work .* user $OWNER was not tried"
	spy "[ -e $old ] || {
		mv $repo $old
		cp -a $old $repo
	}"
	PATH=$T/spy:$PATH "$REFD" doctor --fix "$repo" &>"$T/said"
	says 'repairs: not of another repository' \
		'fix5.git: another repository is there since the check'
	check 'repairs: nothing is changed' test ! -e "$repo/hooks/proc-receive"
	"$REFD" doctor --fix "${repos[@]}" >"$T/said" 2>&1
	check 'repairs: of the checked repositories' \
		test -x "$repo/hooks/proc-receive"
	is 'repairs: without a report of enable' 0 \
		"$(grep -c 'proc-receive: linked' "$T/said")"
	"$REFD" disable "${repos[@]}" "$old" &>/dev/null
	as $OWNER rm -r "${repos[@]}" "$old"
}

# The owner of a repository cannot lead root to the repository of another user.
led_on() {
	local other=$T/srv/member.git
	hostile led.git
	git init -q --bare "$other"
	chown -R $MEMBER "$other"
	echo "$other" | as $OWNER tee "$repo/commondir" >/dev/null
	"$REFD" enable "$repo" &>"$T/said"
	is 'commondir of another user: refused' 1 $?
	says 'commondir of another user: with a remedy' "name $other itself"
	is 'commondir of another user: no change' '' \
		"$(git config --includes -f "$other/config" --get-all core.fsync)"
	as $OWNER rm -r "$repo"
}

untouched() { # REPORTED-AS REPOSITORY
	is "$1" '' \
		"$(git config --includes -f "$2/config" --get-all core.fsync)"
}

# Nor by a link, nor by a file ".git" in a directory of root.
led_by_links() {
	local other=$T/srv/member.git open=$T/open dir
	mkdir -m 1777 "$open"
	as $OWNER tee "$open/.git" <<<"gitdir: $other" >/dev/null
	as $OWNER ln -s "$open" "$T/srv/owner/open.git"
	as $OWNER ln -s "$other" "$T/srv/owner/other.git"
	as $OWNER ln -s "$other" "$open/linked"
	for dir in "$T"/srv/owner/{open,other}.git "$open"{,/linked}; do
		"$REFD" enable "$dir" &>"$T/said"
		is "$dir leads to another user: refused" 1 $?
		says "$dir leads to another user: with a remedy" \
			"name $T/.* itself"
		untouched "$dir leads to another user: no change" "$other"
		"$REFD" doctor --fix "$dir" &>"$T/said"
		says "$dir leads to another user: the doctor refuses, too" \
			"^error: not-a-repository: $dir: .*itself"
	done
	"$REFD" enable "$other" >/dev/null 2>&1
	for dir in "$T"/srv/owner/{open,other}.git "$open"{,/linked}; do
		"$REFD" disable "$dir" &>"$T/said"
		is "$dir leads to another user: disable refuses" 1 $?
	done
	check 'no link disables' test -e "$other/hooks/proc-receive"
	"$REFD" disable "$other" >/dev/null
	rm -r "$open" "$T"/srv/owner/{open,other}.git
}

# The list belongs to the account of the daemon, which can name any path there.
led_by_the_list() {
	local other=$T/srv/member.git lists=$T/lists
	install -d -o $OWNER "$lists" "$lists/enabled"
	hostile listed.git
	"$REFD" enable "$other" &>/dev/null
	printf 'repository %s\n' "$other" "$repo" |
		as $OWNER tee "$lists/enabled/list" >/dev/null
	REFD_STATE=$lists "$REFD" enable --all &>"$T/said"
	is 'a list of an account: entries of others are refused' 1 $?
	says 'a list of an account: with the command' \
		"$other belongs to user $MEMBER.*: run \"refd enable $other\""
	check 'a list of an account: its own entry is enabled' \
		test -e "$repo/hooks/proc-receive"
	git config -f "$other/refd.gitconfig" --unset core.fsync
	REFD_STATE=$lists "$REFD" doctor --all --fix &>"$T/said"
	says 'a list of an account: the doctor repairs no other' \
		"not-checked: $other: it belongs to user $MEMBER"
	untouched 'a list of an account: nor changes it' "$other"
	REFD_STATE=$lists "$REFD" disable --all &>"$T/said"
	is 'a list of an account: disable refuses, too' 1 $?
	says 'a list of an account: with the command' \
		": run \"refd disable $other\""
	check 'a list of an account: the other stays enabled' \
		test -e "$other/hooks/proc-receive"
	check 'a list of an account: its own entry is disabled' \
		test ! -e "$repo/hooks/proc-receive"
	as $OWNER truncate -s 40G "$lists/enabled/list"
	REFD_STATE=$lists bounded "$REFD" enable --list
	is 'a list of 40 GiB: not read' 1 $?
	says 'a list of 40 GiB: the reason' 'cannot read the list'
	"$REFD" disable "$other" >/dev/null
	as $OWNER rm -r "$repo"
}

visible() {
	local name
	name=$(printf 'a\033]0;b.git')
	hostile "$name"
	"$REFD" enable "$repo" >"$T/said" 2>&1
	"$REFD" enable --list >>"$T/said" 2>&1
	"$REFD" disable "$repo" >>"$T/said" 2>&1
	says 'control characters: the name is there' 'a?]0;b.git/hooks'
	is 'control characters: and nothing else of it' '' \
		"$(grep -a "$(printf '\033')" "$T/said")"
}

# A question of root does not go to the daemon of the repository's owner.
led_to_a_daemon() {
	hostile asks.git
	as $OWNER git -C "$repo" config refd.socket "$T/evil.sock"
	env -C "$repo" "$REFD" pause >"$T/said" 2>&1
	is 'a socket of the owner is not asked' 0 \
		"$(grep -c "$T/evil.sock" "$T/said")"
	as $OWNER env -C "$repo" "$REFD" ping >"$T/said" 2>&1
	says 'but by the owner' "$T/evil.sock"
}

fill_vault
vault >"$T/vault.before"
still_works
forged
linked_config
linked_record
listed_member
exchanged
system_reads_as_owner
not_stopped
no_files
traced
ended
repaired
led_on
led_by_links
led_by_the_list
led_to_a_daemon
visible
vault_is_whole 'in the end'
finish
