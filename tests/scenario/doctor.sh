#!/bin/bash
# Proves that refd doctor finds every problem that it knows. The test makes each
# problem and looks for its id. A problem that --fix repairs is gone afterwards,
# and a second --fix has nothing to do. Other problems are gone when the test
# undoes them. On a sound repository the doctor finds nothing and lists its
# checks. Equal findings of many repositories are one group. Every id of the
# manual page is shown here or in the unit test.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"

# The test has a separate system configuration of git.
unset GIT_CONFIG_NOSYSTEM
export GIT_CONFIG_SYSTEM=$T/etc/gitconfig
mkdir "$T/etc"
chmod 755 "$T"
version=$("$REFD" version | cut -d ' ' -f 2)
shown=()

doctor() { # ARGUMENT...
	"$REFD" doctor --json "$@" >"$T/said" 2>"$T/err"
}

has() { # ID
	grep -q "\"id\":\"$1\"" "$T/said"
}

not_has() { # ID
	! has "$1"
}

sees() { # ID ARGUMENT...
	local id=$1
	shift
	shown+=("$id")
	doctor "$@"
	if ! has "$id"; then
		not_ok "$id is seen" "$(cat "$T/said" "$T/err")"
		return 1
	fi
	ok "$id is seen"
}

sees_no() { # ID ARGUMENT...
	local id=$1
	shift
	doctor "$@"
	if has "$id"; then
		not_ok "$id is gone" "$(cat "$T/said" "$T/err")"
	else
		ok "$id is gone"
	fi
}

# Seen, mended, and nothing to do the second time.
mends() { # ID ARGUMENT...
	local id=$1
	sees "$@" || return
	shift
	doctor --fix "$@"
	if grep "\"id\":\"$id\"" "$T/said" | grep -q '"repaired":true'; then
		ok "$id is mended"
	else
		not_ok "$id is mended" "$(cat "$T/said" "$T/err")"
	fi
	sees_no "$id" --fix "$@"
}

# The daemon may be writing to the directory.
remove() { # DIRECTORY
	await 10 rm -rf "$1" || not_ok "$1" 'could not be removed'
}

# Makes a new, enabled repository.
fresh() {
	remove "$T/a.git"
	new_repo a.git bare
	"$REFD" enable "$T/a.git" >"$T/enabled"
}

a() { git -C "$T/a.git" "$@"; }
# git config for the settings of refd.
record() { git config -f "$T/a.git/refd.gitconfig" "$@"; }
A=$T/a.git

# ---- nothing ----

healthy() {
	fresh
	"$REFD" doctor "$A" >"$T/said"
	is 'as it should be: nothing but the machine' \
		"$([ -z "$(without_landlock)" ] || echo daemon-unconfined)" \
		"$(sed -nE 's/^(error|warning|note): ([^:]*):.*/\2/p' "$T/said" |
			grep -vE '^(fs|space|inodes|flush)-')"
	check 'it says what it looked at' \
		grep -q "^looked at $A (durability journal)" "$T/said"
	"$REFD" update -C "$A" refs/heads/flushed "$(new_commit a.git flushed)" ||
		not_ok 'an update'
	(cd "$A" && "$REFD" doctor) >"$T/said"
	check 'how long a flush takes' grep -qE \
		'^looked at the journal.s disk: a flush takes [0-9.]+ ms, ' \
		"$T/said"
	check 'named by nothing: the one around' grep -q "^looked at $A" \
		"$T/said"
	"$REFD" doctor --bad 2>"$T/err"
	is 'a wrong option' 129 $?
	sees not-a-repository "$T/none"
	is 'an error: 1' 1 "$("$REFD" doctor "$T/none" >"$T/said"; echo $?)"
	# A state directory in memory is a second error.
	check 'one error, not one errors' \
		grep -qE '^0 repositories: (1 error|2 errors), ' "$T/said"
}

# ---- the hook ----

hook_of() {
	fresh
	rm "$A/hooks/proc-receive"
	mends hook-missing "$A"
	rm "$A/hooks/proc-receive"
	mends enable-incomplete "$A"
	cp "$A/refd.gitconfig" "$T/record"
	rm "$A/hooks/proc-receive"
	REFD_SOCKET=$T/second.sock doctor --fix "$A"
	check 'a repair beside REFD_SOCKET restores the hook' \
		test -L "$A/hooks/proc-receive"
	check 'and keeps the socket' cmp "$T/record" "$A/refd.gitconfig"
	fresh
	rm "$A/hooks/proc-receive"
	printf '#!/bin/sh\n' >"$A/hooks/proc-receive"
	sees hook-not-executable "$A"
	chmod +x "$A/hooks/proc-receive"
	sees hook-not-refd "$A"
	sed "s/@(#)refd version $version/@(#)refd version ${version//[0-9]/0}/" "$REFD" \
		>"$A/hooks/proc-receive"
	sees hook-version "$A"
	cp "$REFD" "$A/hooks/proc-receive"
	doctor "$A"
	check 'a copy of refd is refd' sees_none hook-version hook-not-refd
	fresh
	a config core.hooksPath "$T/nowhere"
	sees hooks-path "$A"
	fresh
	a config refd.chain refs/for
	sees chain-missing "$A"
	a config --unset refd.chain
	sees_no chain-missing "$A"
	new_repo bare.git bare
	sees not-enabled "$T/bare.git"
	fresh
	printf '#!/bin/sh\n' >"$A/hooks/reference-transaction"
	chmod +x "$A/hooks/reference-transaction"
	sees transaction-hook "$A"
}

sees_none() { # ID...
	local id
	for id; do ! has "$id" || return 1; done
}

# ---- the patterns ----

patterns() {
	local key=receive.procReceiveRefs
	fresh
	record --unset-all $key
	mends patterns-missing "$A"
	record --unset $key '^refs$'
	mends patterns-partial "$A"
	a config --add $key '!:refs/heads'
	sees pattern-useless "$A"
	a config --unset $key '^[!]:refs/heads$'
	sees_no pattern-useless "$A"
	a config --add $key 'refs/heads refs/tags'
	sees pattern-useless "$A"
}

# ---- settings ----

settings() {
	fresh
	record --unset core.fsync
	sees fsync-objects "$A"
	mends fsync-unset "$A"
	check 'fsync-objects is gone with it' sees_none fsync-objects
	a config core.fsync reference
	sees fsync-objects "$A"
	a config core.fsyncObjectFiles true
	sees_no fsync-objects "$A"
	a config --unset core.fsyncObjectFiles
	a config core.fsync objects
	sees_no fsync-objects "$A"
	sees fsync-weak "$A"
	a config core.fsync objects,reference
	sees_no fsync-weak "$A"
	record --unset maintenance.pack-refs.enabled
	mends git-packs "$A"
	a config maintenance.pack-refs.enabled on
	sees git-packs "$A"
	a config maintenance.pack-refs.enabled no
	sees_no git-packs "$A"
	a config gc.packRefs notbare
	sees git-packs "$A"
	a config gc.packRefs 0
	sees_no git-packs "$A"
	a config core.fsyncMethod writeout-only
	sees fsync-method "$A"
	a config receive.shallowUpdate yes
	sees shallow-update "$A"
	a config receive.denyCurrentBranch updateInstead
	sees update-instead "$A"
	a config refd.fallback maybe
	sees fallback-invalid "$A"
	a config refd.durability much
	sees durability-invalid "$A"
	a config refd.durability fsync
	doctor "$A"
	check 'the mode of the repository' grep -q "$A (durability fsync)" \
		"$T/said"
	printf '[core\n' >>"$A/config"
	sees config-broken "$A"
	fresh
	a config core.sharedRepository group
	chmod g-ws "$A/refs"
	sees shared-modes "$A"
	chmod g+ws "$A/refs"
	sees_no shared-modes "$A"
	sees safe-directory "$A"
	git config --system --add safe.directory "$A"
	sees_no safe-directory "$A"
	a config --unset core.sharedRepository
	sees shared-unset "$A"
	remove "$A"
	git init -q --bare --object-format=sha256 "$A"
	sees_no format-not-served "$A"
	remove "$A"
	# Git ignores the extension in a repository of version 0, and reads no
	# newer repository with it.
	git init -q --bare "$A"
	a config extensions.compatObjectFormat sha256
	sees format-not-served "$A"
}

# ---- files ----

files() {
	local i=0
	fresh
	if [ "$(id -u)" -eq 0 ]; then
		chown -R 65534 "$A"
		chown root "$A/refs/tags"
		sees owner-mixed "$A"
		chown 65534 "$A/refs/tags"
		sees_no owner-mixed "$A"
		chown root "$A/refs"
		sees owner-mixed "$A"
		fresh
	else
		skip owners 'only root can be several people'
	fi
	ln -sf refs/heads/main "$A/HEAD"
	sees head-link "$A"
	: >"$T/elsewhere"
	ln -s "$T/elsewhere" "$A/packed-refs"
	sees packed-refs-link "$A"
	ln -s "$T" "$A/refs/heads/out"
	sees refs-link "$A"
	fresh
	mkdir -p "$A/worktrees/w"
	echo "$T/w/.git" >"$A/worktrees/w/gitdir"
	sees worktree-gone "$A"
	ln -s "$T" "$A/worktrees/l"
	sees worktree-link "$A"
	echo "$T/nothing" >"$A/objects/info/alternates"
	sees alternate-missing "$A"
	new_repo served.git bare
	"$REFD" enable "$T/served.git" >"$T/enabled"
	doctor "$T/served.git"
	cp -a "$T/served.git" "$T/copy.git"
	sees id-clash "$T/served.git" "$T/copy.git"
	echo junk >"$T/copy.git/refd/id"
	sees id-broken "$T/copy.git"
	rm -r "$T/copy.git"
	# "refd enable" has had the daemon open the other repositories.
	fresh
	cp -a "$A" "$T/copy.git"
	echo junk >"$T/copy.git/refd/id"
	sees repository-refused "$T/copy.git"
	check 'repository-refused: the remedy has commands' grep -q \
		'"remedy":"[^"]*add daemon.root .*refd disown ' "$T/said"
	check 'and in whose words' grep -q 'the daemon says: .*refd/id' \
		"$T/said"
	rm -r "$T/copy.git"
}

# ---- the machine ----

lists() {
	fresh
	new_repo gone.git bare
	"$REFD" enable "$T/gone.git" >"$T/enabled"
	rm -r "$T/gone.git"
	mends listed-gone
	mkdir "$T/deep"
	new_repo deep/gone.git bare
	"$REFD" enable "$T/deep/gone.git" >"$T/enabled"
	rm -r "$T/deep"
	doctor --fix
	check 'what may be a disk that is not mounted stays listed' \
		has listed-gone
	mkdir "$T/deep"
	doctor --fix
	mkdir "$T/srv"
	new_repo srv/b.git bare
	"$REFD" enable --system --root "$T/srv" >"$T/enabled"
	doctor --all
	check 'what is below a root is looked at' \
		grep -q "$T/srv/b.git (durability" "$T/said"
	check 'and served' sees_none include-not-reached hook-missing
	chmod 700 "$T/etc"
	sees system-unreadable
	chmod 755 "$T/etc"
	git config --system --unset-all "includeIf.gitdir:$T/srv/.path"
	mends system-incomplete
	git config --system --unset-all "includeIf.gitdir:$T/srv/.path"
	sees include-not-reached --all
	cp "$T/etc/refd/gitconfig" "$T/record"
	REFD_SOCKET=$T/second.sock doctor --fix
	check 'a repair of the system keeps the socket beside REFD_SOCKET, too' \
		cmp "$T/record" "$T/etc/refd/gitconfig"
	mv "$T/srv" "$T/away"
	sees system-unsearched --all
	mv "$T/away" "$T/srv"
	sees_no system-unsearched --all
	git config -f "$T/etc/refd/gitconfig" --unset core.fsync
	sees fsync-unset "$T/srv/b.git"
	check 'below a root: the remedy of fsync-unset' \
		grep -q '"remedy":"[^"]*, or refd enable --system' "$T/said"
	"$REFD" enable --system >"$T/enabled"
	sees_no fsync-unset "$T/srv/b.git"
	"$REFD" disable --system >"$T/enabled"
	cp "$STATE/enabled/list" "$T/list"
	truncate -s 40G "$STATE/enabled/list"
	sees list-unreadable --all
	check_fails 'without its list, the doctor does not end well' \
		"$REFD" doctor --all
	cp "$T/list" "$STATE/enabled/list"
	sees_no list-unreadable --all
}

gits() {
	local name
	mkdir "$T/bin" "$T/empty"
	for name in 2.28.0 2.30.2; do
		# shellcheck disable=SC2016 # the script's own words
		printf '#!/bin/sh\n[ "$1" != version ] || { echo git version %s; exit; }\nexec %s "$@"\n' \
			"$name" "$(command -v git)" >"$T/bin/git"
		chmod +x "$T/bin/git"
		case $name in
		2.28*) PATH=$T/bin:$PATH sees git-old ;;
		*) PATH=$T/bin:$PATH sees git-no-fsync ;;
		esac
	done
	PATH=$T/bin:$PATH sees git-versions
	(cd / && PATH=$T/empty "$REFD" doctor --json) >"$T/said"
	shown+=(git-missing)
	check 'git-missing is seen' has git-missing
}

# ---- the daemon ----

# Starts a server that says HELLO and, if there is a "--", sends the rest as the
# answer to the first request.
pretend() { # HELLO... [-- ANSWER...]
	python3 - "$T/fake.sock" "$@" <<'PYTHON' &
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1] + ".new")
s.listen(8)
os.rename(sys.argv[1] + ".new", sys.argv[1])
def say(c, lines):
    for line in lines:
        c.sendall(b"%04x" % (len(line) + 4) + line.encode())
    c.sendall(b"0000")
args = sys.argv[2:] + ["--"]
at = args.index("--")
while True:
    c, _ = s.accept()
    say(c, args[:at])
    c.recv(4096)
    if args[at + 1:-1]:
        say(c, args[at + 1:-1])
        c.recv(4096)
    c.close()
PYTHON
	FAKE=$!
	own "$FAKE"
	while [ ! -S "$T/fake.sock" ]; do sleep 0.02; done
}

end_pretending() {
	kill "$FAKE"
	reap "$FAKE"
	rm "$T/fake.sock"
}

daemons() {
	local rest=('horizon 0' 'pid 1' 'limit updates=10 bytes=10')
	sees daemon-away --socket "$T/nowhere.sock"
	pretend 'refd version=2' 'software refd/0.0' 'state recovering' \
		"${rest[@]}"
	sees daemon-version --socket "$T/fake.sock"
	sees daemon-not-serving --socket "$T/fake.sock"
	end_pretending
	pretend 'refd version=2' "software refd/$version" 'state serving' \
		"${rest[@]}" -- 'answer 1 pairs' 'pair fatal no room' \
		'pair awaiting_repos 2' 'pair flush_hangs_s 20' \
		'pair doubted_filesystems 1' 'pair journal_damaged 1' \
		'pair confined_without Landlock (it has none)'
	sees daemon-unconfined --socket "$T/fake.sock"
	sees fs-failed --socket "$T/fake.sock"
	sees journal-damaged --socket "$T/fake.sock"
	sees daemon-fatal --socket "$T/fake.sock"
	sees recovery-awaits --socket "$T/fake.sock"
	sees flush-hangs --socket "$T/fake.sock"
	end_pretending
	pretend 'refd version=2' "software refd/$version" 'state serving' \
		"${rest[@]}" -- 'answer 1 pairs' 'pair state serving' \
		'pair role follower' 'pair serves_reads no' \
		'pair group_lag_ms 20000'
	sees node-behind --socket "$T/fake.sock"
	sees_no node-waits --socket "$T/fake.sock"
	end_pretending
	pretend 'refd version=2' "software refd/$version" 'state serving' \
		"${rest[@]}" -- 'answer 1 pairs' 'pair state serving' \
		'pair role waits' 'pair serves_reads no' 'pair group_lag_ms 20000'
	sees node-waits --socket "$T/fake.sock"
	sees group-unmarked --socket "$T/fake.sock" "$A"
	: >"$A/refd/group"
	sees_no group-unmarked --socket "$T/fake.sock" "$A"
	check 'a node may have the file' not_has group-left
	sees group-unguarded --socket "$T/fake.sock" "$A"
	ln -s "$REFD" "$A/hooks/reference-transaction"
	sees_no group-unguarded --socket "$T/fake.sock" "$A"
	rm "$A/hooks/reference-transaction"
	end_pretending
	sees group-left "$A"
	rm "$A/refd/group"
	sees_no group-left "$A"
	check 'and nothing else is missing' not_has group-unmarked
	pretend 'refd version=9'
	sees daemon-protocol --socket "$T/fake.sock"
	end_pretending
	fresh
	if [ "$(id -u)" -eq 0 ]; then
		chown -R 65534 "$A"
		sees socket-closed "$A"
		chmod 666 "$SOCKET"
		sees user-denied "$A"
		sees user-denied --user nobody
		chmod 660 "$SOCKET"
	else
		skip denied 'only root can be several people'
	fi
	chmod 777 "$STATE"
	sees state-open
	chmod 700 "$STATE"
	sees_no state-open
	stop_daemon
	git init -q --bare "$T/state-in.git"
	STATE=$T/state-in.git/state start_daemon --durability none
	sees state-in-repository
	fresh
	sees durability-weak "$A"
	stop_daemon
	start_daemon
}

# ---- file systems ----

# Makes a file system with these options and a repository, and expects the
# finding ID.
disk() { # ID MOUNT-OPTIONS MKFS-OPTION...
	local id=$1 how=$2 image=$T/disk.img dir=$T/disk why
	shift 2
	mkdir -p "$dir"
	rm -f "$image"
	truncate -s 16M "$image"
	if ! why=$(mkfs.ext4 -q -F "$@" "$image" 2>&1 &&
		mount -o "loop$how" "$image" "$dir" 2>&1); then
		skip "$id" "${why//$'\n'/; }"
		return
	fi
	scenario_mounts+=("$dir")
	git init -q --bare "$dir/d.git" 2>"$T/err"
	case $id in
	space-low) head -c 20M /dev/zero >"$dir/full" 2>"$T/err" ;;
	inodes-low)
		(cd "$dir" && seq 2000 | xargs touch) 2>"$T/err"
		;;
	fs-read-only) mount -o remount,ro "$dir" ;;
	esac
	sees "$id" "$dir/d.git"
	umount "$dir"
	unset 'scenario_mounts[-1]'
}

other_disk() { # ID TYPE [OPTION]
	local id=$1 dir=$T/other why
	mkdir -p "$dir"
	if ! why=$(mount -t "$2" ${3:+-o "$3"} none "$dir" 2>&1); then
		skip "$id" "${why//$'\n'/; }"
		return
	fi
	scenario_mounts+=("$dir")
	git init -q --bare "$dir/d.git"
	sees "$id" "$dir/d.git"
	new_repo on.git bare
	if [ "$2" = tmpfs ]; then
		echo "$dir/d.git/objects" >"$T/on.git/objects/info/alternates"
		sees alternate-elsewhere "$T/on.git"
		"$REFD" enable "$dir/d.git" >"$T/enabled"
		sees state-elsewhere "$dir/d.git"
	fi
	# The daemon has open files there.
	umount -l "$dir"
	unset 'scenario_mounts[-1]'
}

disks() {
	if ! can_mount; then
		skip disks 'only root can mount'
		return
	fi
	disk fs-no-journal '' -O ^has_journal
	# As in a container.
	if with_fs ext4 16M && git init -q --bare "$FS/a.git" &&
		mount -t tmpfs tmpfs /sys/fs/ext4; then
		doctor "$FS/a.git"
		umount /sys/fs/ext4
		check 'a journal without facts' sees_none fs-no-journal
	fi
	disk fs-no-barrier ,nobarrier
	disk fs-writeback ,data=writeback
	disk fs-read-only ''
	disk space-low '' -m 0
	disk inodes-low '' -N 64
	other_disk fs-memory tmpfs
	mkdir -p "$T"/{lower,upper,work}
	other_disk fs-overlay overlay \
		"lowerdir=$T/lower,upperdir=$T/upper,workdir=$T/work"
}

# A path that is a different directory for the daemon.
views() {
	local dir=$T/view
	mkdir "$dir"
	fresh
	if ! mount --bind "$A" "$dir" 2>/dev/null; then
		skip views 'only root can mount'
		return
	fi
	scenario_mounts+=("$dir")
	umount "$dir"
	unset 'scenario_mounts[-1]'
	unshare -m sh -c "mount --make-rprivate / &&
		cp -a '$A' '$T/other.git' && mount --bind '$T/other.git' '$A' &&
		'$REFD' doctor --json '$A'" >"$T/said" 2>"$T/err"
	shown+=(daemon-sees-other)
	check 'daemon-sees-other is seen' has daemon-sees-other
	rm -rf "$T/other.git"
	stop_daemon
	if unshare -U -r true 2>/dev/null; then
		unshare -U -r "$REFD" daemon --socket "$SOCKET" \
			--state "$STATE" --root "$SERVED" >>"$LOG" 2>&1 &
		DAEMON=$!
		own "$DAEMON"
		"$REFD" ping --wait 120 >"$T/pong"
		sees daemon-user-namespace
		stop_daemon
	else
		skip daemon-user-namespace 'no user namespaces'
	fi
	start_daemon
}

# Proves that doctor runs check-config on the file of the daemon's owner, and
# does not judge the file without refd-admin, which has check-config.
own_config() {
	mkdir -p "$T/own/refd"
	printf '[batch]\n\trefs = 0\n' >"$T/own/refd/config"
	with_people daemon-config || return
	chown 65534 "$T/own/refd/config"
	own_doctor() { # PROGRAM
		as 65534 env XDG_RUNTIME_DIR="$T/own" XDG_CONFIG_HOME="$T/own" \
			"$1" doctor --json --socket "$T/own/refd.sock" \
			>"$T/said" 2>"$T/err"
	}
	own_doctor "$REFD"
	shown+=(daemon-config)
	check 'daemon-config is seen' has daemon-config
	check 'with the line' grep -qF \
		"\"$T/own/refd/config:2: batch.refs is '0'" "$T/said"
	printf '[daemon]\n\troot = %s\n' "$T" >"$T/own/refd/config"
	own_doctor "$REFD"
	check 'daemon-config is gone' not_has daemon-config
	check 'and the file was looked at' grep -qF \
		"the configuration $T/own/refd/config" "$T/said"
	cp "$REFD" "$T/own/client"
	own_doctor "$T/own/client"
	check 'a client alone judges no configuration' not_has daemon-config
	is 'and does not claim to' 0 \
		"$(grep -cF "the configuration $T/own" "$T/said")"
}

# The owner ends the check of the owner's repository, and no other check.
not_checked() {
	with_people not-checked || return
	fresh
	chown -R 65534 "$A"
	mkdir "$T/killer"
	cat >"$T/killer/git" <<-END
		#!/bin/bash
		[ "\$(id -u)" != 65534 ] || kill -KILL \$PPID
		exec $(command -v git) "\$@"
	END
	chmod +x "$T/killer/git"
	PATH=$T/killer:$PATH sees not-checked "$A"
	sees_no not-checked "$A"
	chown -R 0 "$A"
}

# ---- many repositories ----

# The objects of both commands have the same keys.
keys_of() { # COMMAND...
	"$REFD" "$@" --json "$T"/many/*.git | python3 -c '
import json, sys
d = json.load(sys.stdin)
print(sorted(d), sorted(d["findings"][0]))'
}

many() {
	local i
	mkdir "$T/many"
	for i in 1 2 3 4 5; do
		git init -q --bare "$T/many/$i.git"
		: >"$T/many/$i.git/refs/heads/empty"
	done
	"$REFD" doctor "$T"/many/*.git >"$T/said"
	is 'equal findings are one group' \
		'note: not-enabled: 5 repositories: pushes are left to git' \
		"$(grep not-enabled "$T/said")"
	is 'with the first names' "    $T/many/1.git
    $T/many/2.git
    $T/many/3.git
    and 2 more; -v shows each
    remedy: refd enable <repository>" \
		"$(grep -A 5 not-enabled "$T/said" | tail -n 5)"
	"$REFD" doctor -v "$T"/many/*.git >"$T/said"
	is '-v shows each' 5 "$(grep -c '^note: not-enabled' "$T/said")"
	"$REFD" verify --state "$STATE" "$T"/many/*.git >"$T/said"
	is 'and so does verify' 'error: ref-broken: 5 repositories: its file is empty' \
		"$(grep ref-broken "$T/said")"
	is 'one form of JSON' "$(keys_of verify --state "$STATE")" \
		"$(keys_of doctor)"
	rm -r "$T/many"
}

# ---- writers who tell nobody ----

foreign_writes() {
	fresh
	"$REFD" look "$A" >/dev/null
	"$REFD" update -C "$A" refs/heads/a "$(new_commit a.git a)" >/dev/null
	sees_no foreign-writes "$A"
	a update-ref refs/heads/b refs/heads/a
	"$REFD" look "$A" >/dev/null
	sees foreign-writes "$A"
	check 'how many' grep -q '1 of its last 2 changes' "$T/said"
}

# ---- coverage of all ids ----

all_ids() {
	local id missing=
	sed -n 's/^\.It Cm \([a-z-]*\)$/\1/p' \
		"$ROOT/client/doctor/refd-doctor.1" >"$T/ids"
	while read -r id; do
		case " ${shown[*]} $1 " in
		*" $id "*) ;;
		*) missing+=" $id" ;;
		esac
	done <"$T/ids"
	if [ "$scenario_skipped" -gt 0 ]; then
		skip 'every id was shown' "not all could be:$missing"
	else
		is 'every id was shown' '' "$missing"
	fi
}

start_daemon
healthy
foreign_writes
hook_of
patterns
settings
files
lists
gits
daemons
disks
views
many
own_config
not_checked
# The unit test covers these ids, because this machine lacks the causes;
# units.sh covers daemon-cannot-start.
all_ids 'fs-network fs-fuse fs-no-links fs-untried hardlinks-unprotected '\
'daemon-cannot-start flush-slow'
finish
