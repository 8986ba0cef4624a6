#!/bin/bash
# Proves the handling of the configuration. check-config shows the effective
# values and their origins, or all errors. SIGHUP applies the keys that can change and names
# the others; a bad file changes nothing. Sections of roots set the permitted
# users and the durability. A second daemon is told the conflict.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"
# shellcheck source=tests/lib/people.sh
. "$ROOT/tests/lib/people.sh"
unset REFD_SOCKET REFD_STATE

# Before the first hook: users may not reach the build, and get a copy.
has_people=
with_people sections && has_people=yes
config=$T/config
mkdir "$T/srv" "$T/srv/closed" "$T/srv/scratch" "$T/other"
# The test counts flushes, and a checkpoint flushes unpromised rows, too.
write_config() { # LINES...
	printf '%s\n' '[daemon]' "root = $T/srv" "state = $STATE" \
		"socket = $SOCKET" "$@" '[checkpoint]' 'interval = 1h' \
		'[durability]' 'interval = 1h' >"$config"
}

# ---- check-config ----

write_config '[batch]' 'refs = 500'
is in-order "$config: in order" "$("$REFD" check-config "$config")"
origins=$(REFD_STATE=/env "$REFD" check-config --show-origin \
	--socket /given "$config")
origin_of() { # KEY=VALUE
	sed -n "s|	$1\$||p" <<<"$origins"
}
is origin-default default "$(origin_of limits.connections=10000)"
is origin-file "file $config:6" "$(origin_of batch.refs=500)"
is origin-environment 'environment REFD_STATE' "$(origin_of daemon.state=/env)"
is origin-option 'command line --socket' "$(origin_of daemon.socket=/given)"
is each-once '' "$(cut -f 2 <<<"$origins" | cut -d= -f1 | sort | uniq -d)"

is units-are-shown "file $config:8 file $config:10" "$(origin_of \
	checkpoint.interval=1h) $(origin_of durability.interval=1h)"
printf '[batchs]\n\tref = 1\n' >"$T/bad"
got=$("$REFD" check-config "$T/bad" 2>&1)
is bad-status 1 $?
is bad-nearest "refd: $T/bad:2: unknown key 'batchs.ref'; did you mean \
batch.refs?" "$got"
# All errors at once; what a wrong value may have caused is no error.
printf '%s\n' '[batchs]' 'ref = 1' '[daemon]' "root = $T/srv" \
	"root = $T/none" 'root = srv' 'state = /etc/passwd' '[durability]' \
	'mode = fast' '[group]' 'name' 'node = a' "[root \"$T/nowhere\"]" \
	'durability = none' >"$T/bad"
"$REFD" check-config "$T/bad" >"$T/out" 2>&1
is bad-lines '2 6 9 11' "$(sed -n "s|^refd: $T/bad:\([0-9]*\):.*|\1|p" \
	"$T/out" | paste -sd ' ')"
is bad-paths "daemon.state $T/none $T/nowhere" "$(sed -nE "\\|$T/bad:|d
	s/^refd: can't open the root '([^']*)': .*/\1/p
	s/^refd: (daemon.[a-z]*) .*/\1/p" "$T/out" |
	paste -sd ' ')"
printf '[daemon]\nroot = srv\n' >"$T/bad"
is bad-root-alone 1 "$("$REFD" check-config "$T/bad" 2>&1 | wc -l)"
"$REFD" check-config --frob >"$T/out" 2>&1
is usage-status 129 $?

# ---- SIGHUP ----

start_plain() {
	"$REFD" daemon --config "$config" >>"$LOG" 2>&1 </dev/null &
	DAEMON=$!
	own "$DAEMON"
	"$REFD" ping --socket "$SOCKET" --wait 120 >/dev/null
}

reloads=0
reloaded() {
	[ "$(grep -cE 'event=reload(ed|-failed) ' "$LOG")" -ge "$reloads" ]
}
reload() {
	reloads=$((reloads + 1))
	kill -HUP "$DAEMON"
	await 10 reloaded
}

new_repo srv/a.git bare
commit=$(new_commit srv/a.git one)
# Enabled while no daemon runs, so that none has served it.
new_repo srv/closed/b.git bare
closed=$(new_commit srv/closed/b.git one)
REFD_STATE=$STATE "$REFD" enable --socket "$SOCKET" "$T/srv/closed/b.git" \
	>"$T/out" 2>&1
check enabled-without-a-daemon test -e "$T/srv/closed/b.git/hooks/proc-receive"
check starts start_plain
write_config '[batch]' 'refs = 7' '[durability]' 'mode = batch' \
	'[daemon]' 'allowGroup = 54321'
check reloads reload
logged applied 'event=setting-changed key=batch.refs was="500" is="7"'
logged applied-mode 'key=durability.mode was="journal" is="batch"'
is mode-in-force batch "$("$REFD" status -v --socket "$SOCKET" |
	sed -n 's/^durability: //p')"
is socket-mode 666 "$(stat -c %a "$SOCKET")"

# Seven refs in a batch, however many wait.
for i in $(seq 50); do echo "create refs/heads/w$i $commit"; done |
	"$REFD" update -C "$T/srv/a.git" --socket "$SOCKET" --batch-updates \
		--stdin >/dev/null
between batch-refs 8 "$(REFD_SOCKET=$SOCKET stat_of batches)" 100

write_config '[journal]' 'retention = 5s' '[daemon]' "root = $T/other" \
	'socket = /elsewhere'
reload
for key in journal.retention daemon.root daemon.socket; do
	check "restart-$key" grep -qE \
		"event=setting-waits key=$key .*when the daemon is restarted" \
		"$LOG"
done
logged taken-back 'event=setting-changed key=daemon.allowGroup was="54321"'
is socket-mode-back 660 "$(stat -c %a "$SOCKET")"
before=$(grep -c 'event=setting-waits' "$LOG")
reload
is restart-is-named-again $((before * 2)) \
	"$(grep -c 'event=setting-waits' "$LOG")"

write_config '[durability]' 'mode = fast'
reload
logged bad-file-is-said "event=reload-failed error=\"$config:6: 'fast' is not a durability mode"
check bad-file-changes-nothing "$REFD" update -C "$T/srv/a.git" \
	--socket "$SOCKET" refs/heads/after "$commit"
is bad-file-mode journal "$("$REFD" status -v --socket "$SOCKET" |
	sed -n 's/^durability: //p')"

# The daemon was started before the group was configured. It is told nothing.
write_config '[group]' 'name = main' 'node = a'
updates() { # REF
	"$REFD" update -C "$T/srv/a.git" --socket "$SOCKET" "refs/heads/$1" \
		"$commit" >"$T/out" 2>&1
}
nr=0
refuses_for_group() {
	updates "group-$((nr += 1))"
	grep -q 'started without it.*systemctl restart refd.service' "$T/out"
}
check unused-group-refuses await 10 refuses_for_group
is unused-group-writes-nothing '' "$(ref_of srv/a.git "refs/heads/group-$nr")"
write_config
check without-a-group await 10 updates without-group

# ---- sections ----

new_repo srv/scratch/c.git bare
scratch=$(new_commit srv/scratch/c.git one)
flushes() {
	"$REFD" stats --socket "$SOCKET" | sed -n 's/^flushes: //p'
}
if [ -n "$has_people" ]; then
	# The repositories are root's.
	export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory
	export GIT_CONFIG_VALUE_0='*'
	write_config 'allowUser = 10001' "[root \"$T/srv/closed\"]" \
		'allowUser = 10002' "[root \"$T/srv/scratch\"]" \
		'durability = none'
	chmod -R a+rwX "$T/srv"
	reload
	update_as() { # UID REPO REF COMMIT
		as "$1" "$REFD" update -C "$T/$2" --socket "$SOCKET" "$3" "$4" \
			>"$T/out" 2>&1
	}
	check allowed-in-general update_as 10001 srv/a.git refs/heads/u1 \
		"$commit"
	# A refused request makes nothing in the repository. So git takes each
	# push of somebody whom the list lacks, and not the first one alone.
	# Git gives receive-pack no configuration of the environment.
	mkdir "$T/of10001"
	printf '[safe]\n\tdirectory = *\n' >"$T/of10001/.gitconfig"
	push_as() { # UID REF
		as "$1" git -C "$T/srv/closed/b.git" push -q . "$closed:$2" \
			>"$T/out" 2>&1
	}
	for nr in 1 2; do
		check "left-to-git-$nr" push_as 10001 refs/heads/by-git-$nr
		check "which-is-said-$nr" grep -q 'git updates the refs' "$T/out"
	done
	check not-served-by-a-refusal test ! -e "$T/srv/closed/b.git/refd"
	check allowed-by-a-section update_as 10002 srv/closed/b.git \
		refs/heads/u2 "$closed"
	update_as 10001 srv/closed/b.git refs/heads/u1 "$closed"
	check not-in-a-section grep -q 'not among those who may use' "$T/out"
	update_as 10002 srv/a.git refs/heads/u2 "$commit"
	check nowhere-else grep -q 'not among those who may use' "$T/out"
	prints_nothing not-in-the-history as 10001 "$REFD" log \
		--socket "$SOCKET" --repo "$T/srv/closed/b.git"

	# One commit for each update, with a flush if the mode promises one. The
	# first update in a repository registers the repository durably.
	scratch() { # NAME
		"$REFD" update -C "$T/srv/scratch/c.git" --socket "$SOCKET" \
			"refs/heads/$1" "$scratch"
	}
	scratch first
	before=$(flushes)
	scratch second
	is weaker-section "$before" "$(flushes)"
	"$REFD" update -C "$T/srv/a.git" --socket "$SOCKET" refs/heads/x \
		"$commit"
	between stronger-general $((before + 1)) "$(flushes)" $((before + 3))

	write_config
	reload
	update_as 10002 srv/closed/b.git refs/heads/u3 "$closed"
	is taken-away 128 $?
	check taken-away-is-said grep -q 'Permission denied' "$T/out"
fi

# ---- a second daemon ----

write_config
timeout 120 "$REFD" daemon --config "$config" >"$T/out" 2>&1 </dev/null
is second-status 69 $?
check second-says-so grep -qE 'in use by another|another daemon listens' \
	"$T/out"
stop_daemon
is exit-status 0 $?
finish
