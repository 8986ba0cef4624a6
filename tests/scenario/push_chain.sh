#!/bin/bash
# Proves that a proc-receive hook behind refd's works. The refs of refd.chain go
# to this hook, and its answers are copied, beside refs that refd serves. The
# result is compared with a copy of the repository that has only this hook.
# refd's own hook is in a central core.hooksPath, the other hook in the
# repository. tests/long/push_chain.sh adds: a hook that does not answer is
# ended after a minute.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/push_pair.sh
. "$(dirname "$0")/../lib/push_pair.sh"

# This hook writes down its input, also byte by byte, and answers for each ref
# by name.
chained_hook() {
	cat <<'END'
#!/bin/bash
pkt() { printf '%04x%s' $((${#1} + 4)) "$1"; }
cut() {
	dd bs=1 count="$1" status=none | tee -a "$HOOK_LOG.bytes" | tr '\0' ' '
}
get() {
	local len
	while len=$(cut 4) && [ $((16#$len)) -gt 0 ]; do
		[ $((16#$len)) -eq 4 ] || cut $((16#$len - 4))
		echo
	done
}
version=$(get)
if [ -e "$GIT_DIR/version2" ]; then
	pkt version=2
	printf 0000
	exit
fi
case $version in
*push-options*) printf '001aversion=1\0push-options0000' ;;
*) pkt version=1; printf 0000 ;;
esac
commands=$(get)
case $version in
*push-options*) options=$(get) ;;
esac
printf '%s\n' "$version" "$commands" "options: $options" "in $(pwd)" \
	"GIT_DIR=$GIT_DIR" >>"$HOOK_LOG"
while read -r old new ref; do
	echo "working on $ref" >&2
	case $ref in
	*/made)
		git update-ref "refs/pull/${ref#refs/for/}" "$new"
		pkt "ok $ref"
		pkt "option refname refs/pull/${ref#refs/for/}"
		pkt "option new-oid $new"
		;;
	*/twice)
		pkt "ok $ref"
		pkt 'option refname refs/pull/1'
		pkt 'option forced-update'
		pkt "ok $ref"
		pkt 'option refname refs/pull/2'
		;;
	*/no) pkt "ng $ref not this one" ;;
	*/bare-no) pkt "ng $ref" ;;
	*/git) pkt "ok $ref"; pkt 'option fall-through' ;;
	*/forgotten) ;;
	*/odd) pkt "maybe $ref" ;;
	*/stranger) pkt 'ok refs/heads/stranger' ;;
	*/neighbour) pkt 'ok refs/heads/with-neighbour' ;;
	*/lone)
		pkt 'option refname refs/heads/x'
		pkt "ng $ref not this one"
		pkt 'option refname refs/heads/y'
		;;
	*/crash) kill -9 $$ ;;
	*/late) sleep 300 & wait ;;
	*) pkt "ok $ref" ;;
	esac
done <<<"$commands"
printf 0000
END
}

make_server() {
	bare_server "$1"
	git -C "$1" config receive.advertisePushOptions true
	chained_hook >"$1/hooks/proc-receive"
	chmod +x "$1/hooks/proc-receive"
	case $1 in
	*/git/s) git -C "$1" config receive.procReceiveRefs refs/for ;;
	esac
}

# Called by pair for refd's.
enable_server() { # DIRECTORY
	git -C "$1" config core.hooksPath "$T/central"
	git -C "$1" config refd.socket "$SOCKET"
	git -C "$1" config --add receive.procReceiveRefs refs
	git -C "$1" config --add receive.procReceiveRefs 'adm!:refs'
	git -C "$1" config refd.chain refs/for
}

answers() {
	local ref
	pair chain
	push_pair 'its own alone' @ "$one:refs/for/main"
	served_pair 'its own and others' @ "$one:refs/for/made" \
		"$two:refs/heads/main" "$one:refs/for/twice" \
		"$one:refs/heads/new" "$one:refs/for/no"
	for ref in bare-no git forgotten odd stranger neighbour lone; do
		push_pair "it answers: $ref" @ "$one:refs/for/$ref" \
			"$one:refs/heads/with-$ref"
	done
	push_pair 'push options' -o one -o 'two words' -o '' @ \
		"$one:refs/for/main" "$one:refs/heads/o1"
	push_pair 'push options and none of its own' -o one @ \
		"$one:refs/heads/o2"
	push_pair 'atomic: its own' --atomic @ "$one:refs/for/a" \
		"$one:refs/for/b"
	push_pair 'atomic: one of its own fails' --atomic @ \
		"$one:refs/for/a" "$one:refs/for/no"
	push_pair 'a name that only begins alike' @ "$one:refs/fork/x"
	touch "$T"/{git,refd}/s/version2
	push_pair 'a version that nobody knows' @ "$one:refs/for/main" \
		"$one:refs/heads/o3"
	rm "$T"/{git,refd}/s/version2
	check 'each byte that the hook reads is the same as with git alone' \
		cmp "$T/hook-log.refd.bytes" "$T/hook-log.git.bytes"
}

# git reports a crash for every ref, also for its own refs. With refd, refs
# outside refd.chain succeed.
crashes() {
	push_one refd @ "$one:refs/for/crash" "$one:refs/heads/beside"
	check 'it crashes: that is said' grep -q \
		'refs/for/crash.*fail to run proc-receive hook' "$T/refd.out"
	is 'it crashes: the others are there' "$one" \
		"$(ref_of refd/s refs/heads/beside)"
}

mixed() {
	local refs
	refs=$(git -C "$T/refd/s" for-each-ref)
	push_one refd --atomic @ "$one:refs/for/a" "$one:refs/heads/mixed"
	is 'atomic, both: refused' 2 \
		"$(grep -c "an atomic push can't go both" "$T/refd.out")"
	is 'atomic, both: nothing done' "$refs" \
		"$(git -C "$T/refd/s" for-each-ref)"
}

# refd hands these refs on if the daemon can't do the rest.
away() {
	kill_daemon
	push_one refd @ "$one:refs/for/made" "$two:refs/heads/away"
	is 'daemon away: git does the rest' "$two" \
		"$(ref_of refd/s refs/heads/away)"
	check 'daemon away: the hook did its own' \
		grep -q refs/pull/made "$T/refd.out"
	check 'daemon away: it is back' start_daemon
}

which_hook() {
	git -C "$T/refd/s" config --unset core.hooksPath
	mv "$T/refd/s/hooks/proc-receive" "$T/refd/s/hooks/other"
	ln -s "$REFD" "$T/refd/s/hooks/proc-receive"
	push_one refd @ "$one:refs/for/main" "$one:refs/heads/w1"
	check 'refd itself is the hook: the key is named' \
		grep -q 'refd.chainHook can name another' "$T/refd.err"
	is 'refd itself is the hook: its refs are refused' 1 \
		"$(grep -c '^!.*refs/for/main' "$T/refd.out")"
	is 'refd itself is the hook: the others are not' "$one" \
		"$(ref_of refd/s refs/heads/w1)"
	git -C "$T/refd/s" config refd.chainHook "$T/refd/s/hooks/other"
	push_one refd @ "$one:refs/for/made"
	check 'refd.chainHook' grep -q refs/pull/made "$T/refd.out"
	rm "$T/refd/s/hooks/proc-receive"
	printf '#!/bin/sh\nexec "%s" hook proc-receive\n' "$REFD" \
		>"$T/refd/s/hooks/proc-receive"
	chmod +x "$T/refd/s/hooks/proc-receive"
	git -C "$T/refd/s" config --unset refd.chainHook
	push_one refd @ "$one:refs/for/main"
	check 'refd again by a script: no circle' \
		grep -q 'refd.chainHook can name another' "$T/refd.err"
}

# Takes the minute that a hook has, beside all other parts.
late_begin() {
	cp -r "$T/refd/s" "$T/late.git"
	HOOK_LOG=$T/late.log git -C "$T/work" push --porcelain "$T/late.git" \
		"$one:refs/for/late" "$one:refs/heads/in-time" \
		>"$T/late.out" 2>"$T/late.err" &
	late=$!
	own $late
}

is_over() {
	! pgrep -f "$T/late.git/hooks/proc-receive" >/dev/null
}

late_end() {
	reap "$late"
	is 'too late: the push ends' 1 $?
	check 'too late: the outcome is called unknown' \
		grep -q 'refs/for/late.*outcome unknown' "$T/late.out"
	is 'too late: the others are there' "$one" \
		"$(ref_of late.git refs/heads/in-time)"
	check 'too late: nothing of it is left running' await 10 is_over
}

mkdir "$T/central"
ln -s "$REFD" "$T/central/proc-receive"
check 'the daemon starts' start_daemon
make_work
pair late
! is_long || late_begin
answers
crashes
mixed
away
which_hook
! is_long || late_end
finish
