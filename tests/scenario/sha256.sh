#!/bin/bash
# Proves that refd serves repositories of SHA-256 as repositories of SHA-1: a
# repository of each format behind the same daemon, packed-refs, git beside
# refd, kill -9, a change of the format in place. Other scenarios run again with
# repositories of SHA-256: refd update and sessions compared with git, pushes,
# and recovery; in tests/long/sha256.sh also symbolic refs, restore, verify,
# history, chained hooks, the rules of receive-pack, and storms with kill -9. So
# do the sweeps of the unit tests: a crash, a power loss and a failure during
# transactions and recovery, in files and in reftables.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

again() { # SCENARIO
	local said
	if said=$(REFD_TEST_FORMAT=sha256 BUILD=$BUILD \
		bash "$ROOT/tests/scenario/$1.sh" 2>&1); then
		ok "$1, with SHA-256"
	else
		not_ok "$1, with SHA-256" "$(grep -a '^not ok' <<<"$said" |
			head -n 5)"
		printf '%s\n' "$said" | tail -n 60
	fi
}

# The unit tests make the ids of their worlds (tests/lib/world.h) longer.
swept() { # TEST
	if REFD_TEST_FORMAT=sha256 SWEEP_STEP=$(is_long && echo 1 || echo 17) \
		"$BUILD/tests/unit/test_$1" >"$T/said" 2>&1; then
		ok "test_$1, with SHA-256"
	else
		not_ok "test_$1, with SHA-256" "$(tail -n 3 "$T/said")"
	fi
}

# A repository of SHA-256 whose refs, logs and objects git finds in order.
is_sound() { # NAME REPO
	check "$1: fsck" git -C "$2" fsck --strict --no-dangling
	is "$1: every id has 64 digits" '' "$(git -C "$2" for-each-ref \
		--format='%(objectname)' | grep -vE '^[0-9a-f]{64}$')"
}

two_formats() {
	local format id
	for format in sha1 sha256; do
		GIT_DEFAULT_HASH=$format new_repo $format.git bare
		id=$(new_commit $format.git first)
		check "$format: update" "$REFD" update -C "$T/$format.git" \
			refs/heads/main "$id"
		is "$format: the ref" "$id" \
			"$(git -C "$T/$format.git" rev-parse refs/heads/main)"
		"$REFD" log --repo "$T/$format.git" --json >"$T/log"
		check "$format: history has the whole id" \
			grep -q "\"$id\"" "$T/log"
	done
	"$REFD" update -C "$T/sha256.git" refs/heads/main 0123456 2>"$T/err"
	is 'an abbreviation of no object' 128 $?
	check 'an abbreviation' "$REFD" update -C "$T/sha256.git" \
		refs/heads/short "${id:0:12}"
	is 'its id' "$id" "$(git -C "$T/sha256.git" rev-parse refs/heads/short)"
}

many() {
	local id i
	id=$(git -C "$T/sha256.git" rev-parse refs/heads/main)
	for ((i = 0; i < 300; i++)); do
		echo "create refs/tags/many$i $id"
	done >"$T/many"
	check 'many at once' "$REFD" update -C "$T/sha256.git" --stdin \
		<"$T/many"
	is 'many: as lines of packed-refs' 300 \
		"$(grep -c refs/tags/many "$T/sha256.git/packed-refs")"
	check 'git packs and collects beside' git -C "$T/sha256.git" gc -q
	check 'packed refs are deleted' "$REFD" update -C "$T/sha256.git" -d \
		refs/tags/many7
	is 'many: one is gone' 299 \
		"$(git -C "$T/sha256.git" for-each-ref refs/tags | grep -c .)"
}

killed() {
	local id next
	id=$(git -C "$T/sha256.git" rev-parse refs/heads/main)
	next=$(new_commit sha256.git next)
	git -C "$T/sha256.git" config core.logAllRefUpdates always
	check 'before the kill' "$REFD" update -C "$T/sha256.git" -m killed \
		refs/heads/main "$next" "$id"
	kill -KILL "$DAEMON"
	wait "$DAEMON" 2>/dev/null
	check 'the daemon starts again' start_daemon
	is 'the ref is as before the kill' "$next" \
		"$(git -C "$T/sha256.git" rev-parse refs/heads/main)"
	is 'its log, too' "$id $next" "$(cut -d' ' -f1,2 \
		"$T/sha256.git/logs/refs/heads/main")"
	check 'verify finds nothing' "$REFD" verify "$T/sha256.git"
	is_sound 'after the kill' "$T/sha256.git"
}

# Git takes the format from the repository's own configuration alone.
named_elsewhere() {
	local id
	GIT_DEFAULT_HASH=sha1 new_repo named.git bare
	git -C "$T/named.git" config core.repositoryFormatVersion 1
	id=$(new_commit named.git first)
	check "sha256 in the user's configuration: update" \
		env GIT_CONFIG_COUNT=1 GIT_CONFIG_VALUE_0=sha256 \
		GIT_CONFIG_KEY_0=extensions.objectFormat \
		"$REFD" update -C "$T/named.git" refs/heads/main "$id"
	is "sha256 in the user's configuration: the ref" "$id" \
		"$(git -C "$T/named.git" rev-parse refs/heads/main)"
}

# A client of version 1 of the protocol does not say the format of its ids.
old_client() {
	local id
	id=$(git -C "$T/sha256.git" rev-parse refs/heads/main)
	is 'a client of version 1: refused' 'refused badrequest' "$(
		PYTHONPATH=$ROOT/client/python:$ROOT/tests/python python3 -B - \
			"$SOCKET" "$T/sha256.git" "$id" <<-'PYTHON'
			import sys
			from raw import Client, new_txid, transaction
			kind, lines = Client(sys.argv[1]).ask("transaction", [
			    h for h in transaction(new_txid(), sys.argv[2], "umask 0022")
			    if not h.startswith("object-format")],
			    [("create refs/heads/old", sys.argv[3])])
			print(kind, *(line[7:].decode() for line in lines
			              if line.startswith(b"status ")))
		PYTHON
	)"
	check 'a client of version 1: no effect' [ -z "$(git -C "$T/sha256.git" \
		for-each-ref refs/heads/old)" ]
}

# A repository gets the other format in place, and keeps refd's records.
converted() {
	local id
	GIT_DEFAULT_HASH=sha1 new_repo converted.git bare
	id=$(new_commit converted.git first)
	check 'before the conversion' "$REFD" update -C "$T/converted.git" \
		refs/heads/main "$id"
	id=$(git -C "$T/sha256.git" rev-parse refs/heads/main)
	rm -r "$T/converted.git/objects" "$T/converted.git/refs/heads/main"
	cp -r "$T/sha256.git/objects" "$T/sha256.git/config" "$T/converted.git"
	check 'after the conversion' "$REFD" update -C "$T/converted.git" \
		refs/heads/new "$id"
	kill -KILL "$DAEMON"
	wait "$DAEMON" 2>/dev/null
	check 'the daemon starts with records of both formats' start_daemon
	check 'and serves' "$REFD" update -C "$T/converted.git" \
		refs/heads/after "$id"
}

check 'the daemon starts' start_daemon
two_formats
many
killed
named_elsewhere
old_client
converted
scenarios=(update push session recover)
is_long && scenarios+=(symref restore verify history push_chain push_rules kill)
for scenario in "${scenarios[@]}"; do
	again "$scenario"
done
sweeps=(apply_stack_sweep recover_stack_sweep recover_stack_mend stack_cut
	apply_sweep recover_sweep packed_many_sweep)
is_long && sweeps+=(recover_stack recover_stack_batch recover_stack_locks
	apply_stack checkpoint_tidy stack_beside durability_faults sweep_rest)
for sweep in "${sweeps[@]}"; do
	swept "$sweep"
done
finish
