#!/bin/bash
# Proves the steps of docs/group.md, "One active machine", for a disk with
# repositories and state that a second machine takes over, as with DRBD. The
# first machine loses power under load. The start on the second machine is
# refused, and no repository is written. After `refd recover --adopt` the daemon
# starts there, and every acknowledged update is there. An early update waits for
# the recovery, or fails. Then the disk moves back as planned, and to
# the second machine by a power loss again, where the marker of a finished
# recovery is left from its former turn. The machine that lost the disk is
# refused.
#
# A machine is a mount namespace with its own machine id, boot id and directory
# of the socket. One image takes the place of both halves of the DRBD device.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

if [ ! -e /etc/machine-id ] || ! can_mount; then
	skip failover 'needs root, mount namespaces, and /etc/machine-id'
	finish
fi
with_fs ext4 256M || finish
SERVED=$FS/git
STATE=$FS/refd
SOCKET=$T/sock/refd.sock
export REFD_SOCKET=$SOCKET REFD_STATE=$STATE
repo=$SERVED/a.git
mkdir "$SERVED" "$T/sock"

# ---- the machines ----

cat >"$T/on" <<ON
#!/bin/bash
here=\$1
shift
mount --bind "\$here/id" /etc/machine-id &&
	mount --bind "\$here/boot" /proc/sys/kernel/random/boot_id &&
	mount --bind "\$here/run" "$T/sock" && exec "\$@"
ON
chmod +x "$T/on"
on() { # MACHINE COMMAND...
	unshare -m "$T/on" "$T/machine$1" "${@:2}"
}
boots() { # MACHINE
	rm -rf "$T/machine$1/run"
	mkdir -p "$T/machine$1/run"
	cat /proc/sys/kernel/random/uuid >"$T/machine$1/boot"
}
for machine in 1 2; do
	boots $machine
	tr -d - </proc/sys/kernel/random/uuid >"$T/machine$machine/id"
done
serve() { # MACHINE
	unshare -m "$T/on" "$T/machine$1" "$REFD" daemon --root "$SERVED" \
		>>"$LOG" 2>&1 </dev/null &
	DAEMON=$!
	own "$DAEMON"
	on "$1" "$REFD" ping --wait 120 >/dev/null
}
leaves() {
	umount "$FS" && await 5 has_no_device
}
has_no_device() {
	[ -z "$(losetup -j "$FS.img")" ]
}
# Fencing: the disk goes nowhere else while the machine can write.
cut_power() { # MACHINE nologflush|logflush
	kill -STOP "$DAEMON"
	kill -STOP -- "-$load"
	"$BUILD/tests/helper/shutdown_fs" "$2" "$FS" || return
	kill_daemon
	kill -KILL -- "-$load"
	reap "$load"
	boots "$1"
	leaves
}
has_disk() {
	mount -o loop "$FS.img" "$FS"
}
# The steps of docs/group.md.
take_over() { # MACHINE
	rm -f "$T/machine$1/run/refd.sock.replayed"
	has_disk
}

# ---- load ----

# Notes each acknowledged ref and its value.
clients() { # ROUND
	local i
	for i in 1 2 3; do
		while "$REFD" update -C "$repo" \
			"refs/heads/u$1.$i/$((++m))" "$one"; do
			echo "refs/heads/u$1.$i/$m $one" >>"$T/acknowledged"
		done &
	done
	while git -C "$T/work$1" commit -q --allow-empty -m $((++n)) &&
		git -C "$T/work$1" push -q "$repo" "HEAD:refs/heads/p$1/$n"; do
		echo "refs/heads/p$1/$n $(git -C "$T/work$1" rev-parse HEAD)" \
			>>"$T/acknowledged"
	done
	wait
}
export -f clients
export REFD T repo
load_on() { # MACHINE ROUND
	new_repo "work$2"
	# shellcheck disable=SC2016 # the new shell expands it
	n=0 m=0 setsid unshare -m "$T/on" "$T/machine$1" bash -c \
		'clients "$1"' clients "$2" >"$T/load" 2>&1 </dev/null &
	load=$!
	own "$load"
}
enough() {
	[ "$(grep -c "/[pu]$1[./]" "$T/acknowledged")" -ge 60 ] &&
		[ "$(grep -c "/p$1/" "$T/acknowledged")" -ge 5 ]
}
sums() {
	(cd "$SERVED" && find . -type f -exec sha256sum {} + | sort -k 2)
}
refs() {
	git -C "$repo" for-each-ref --format='%(refname) %(objectname)' | sort
}
is_whole() { # NAME MACHINE
	is "$1: what was acknowledged is there" '' \
		"$(sort "$T/acknowledged" | comm -23 - <(refs) | head -n 3)"
	check "$1: refd verify" on "$2" "$REFD" verify "$repo"
	prints_nothing "$1: git fsck" git -C "$repo" fsck --no-dangling \
		--no-progress
	no_locks "$1: no lock is left" "${repo#"$T/"}"
	echo "# $(wc -l <"$T/acknowledged") acknowledged, $(
		grep -c heads/p "$T/acknowledged") of them pushes"
}
refused() { # NAME MACHINE
	local was
	was=$(sums)
	timeout 60 unshare -m "$T/on" "$T/machine$2" "$REFD" daemon \
		--root "$SERVED" >"$T/refused" 2>&1 </dev/null
	check "$1: the start is refused" grep -q 'belongs to another machine' \
		"$T/refused"
	is "$1: and writes no repository" '' "$(diff <(echo "$was") <(sums))"
}
adopts() { # MACHINE
	on "$1" "$REFD" recover --adopt >"$T/said" || return
	echo "# $(tail -n 1 "$T/said")"
}
# Adopts the disk. An update comes before any start of the daemon, which would
# remove a marker. (git itself refuses a push as long as refs lack objects.)
adopt() { # NAME MACHINE
	local early
	unshare -m "$T/on" "$T/machine$2" "$REFD" update -C "$repo" \
		"refs/heads/early$1" "$one" >"$T/early" 2>&1 &
	early=$!
	own $early
	sleep 1
	is "$1: git does no update that comes early" '' \
		"$(ref_of "${repo#"$T/"}" "refs/heads/early$1")"
	refused "$1" "$2"
	check "$1: refd recover --adopt" adopts "$2"
	check "$1: it serves" serve "$2"
	reap $early
	is "$1: then refd has it, or it has failed" $? \
		"$(on "$2" "$REFD" log --repo "$repo" --ref \
			"refs/heads/early$1" | grep -q "early$1"; echo $?)"
	is_whole "$1" "$2"
}

# ---- the first machine ----

new_repo work
one=$(git -C "$T/work" rev-parse HEAD)
export one
git init -q --bare "$repo"
check 'the first machine serves' serve 1
on 1 "$REFD" enable "$repo" >/dev/null
# Then only the marker keeps git from a write while the daemon is away.
git -C "$repo" config refd.fallback git
check 'a push' on 1 git -C "$T/work" push -q "$repo" HEAD:refs/heads/main
sync -f "$FS"
: >"$T/acknowledged"
load_on 1 1
check 'load' await 30 enough 1
check 'its power is cut' cut_power 1 nologflush

# ---- the second takes over ----

check 'the second machine gets the disk' take_over 2
adopt failover 2

# ---- as planned ----

load_on 2 2
check 'load' await 30 enough 2
kill -KILL -- "-$load"
reap "$load"
check 'a stop' stop_daemon
check 'the disk leaves' leaves
check 'the first machine gets the disk' take_over 1
refused 'planned move' 1
check 'planned move: refd recover --adopt' adopts 1
check 'planned move: it serves' serve 1
is_whole 'planned move' 1

# ---- the second again ----

load_on 1 3
check 'load' await 30 enough 3
check 'the power of the first machine is cut' cut_power 1 logflush
check 'the second machine has the marker of its former turn' \
	test -s "$T/machine2/run/refd.sock.replayed"
check 'and gets the disk' take_over 2
adopt second-failover 2
check 'a stop' stop_daemon
refused 'the first machine' 1
finish
