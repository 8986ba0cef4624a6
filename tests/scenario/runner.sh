#!/bin/bash
# Proves that scripts/run-tests reports each program and misses no failure: of a
# program that reports a failure, crashes, reports nothing, hangs or leaves
# processes behind; also with several programs at a time, and some alone; and of
# a program that changes the machine's list of enabled repositories. Proves
# that the runner counts the skips of unit tests, ends a run that is too long, and
# prints lists and slow programs; and that the checks of tests/lib/scenario.sh
# for absent output fail if the command fails.
#
# Slow: it waits for the limits of hanging programs.
# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

# A later part tests CI=true, where a skip is a failure.
unset CI

plant() { # NAME: its text on standard input
	cat >"$T/$1.sh"
}

run_tests() { # ARGUMENT... -> $T/said, and its status
	"$ROOT/scripts/run-tests" "$@" >"$T/said" 2>/dev/null
}

says() { # PATTERN
	grep -qE "$1" "$T/said"
}

# The process may still be a zombie.
is_over() { # PID
	! grep '^State:' "/proc/$1/status" 2>/dev/null | grep -qv '[ZX] ('
}

plant good <<<'echo ok one; echo ok two'
plant bad <<<'echo ok one; echo "not ok two: it"; exit 1'
plant smiling <<<'echo "not ok two: it"'
plant mute <<<'exit 0'
plant failing <<<'echo ok one; exit 3'
plant shot <<'END'
echo ok one
kill -KILL $$
END
plant hanging <<<'echo ok one; sleep 600'
plant littering <<'END'
echo ok one
sleep 600 &
echo $! >"$0.pid"
END
plant lacking <<<'echo skip one: no moon'

for jobs in 1 3; do
	run_tests --jobs $jobs --limit 300 \
		--scenario "$T"/{good,lacking,bad,smiling}.sh \
		"$T"/{mute,failing,shot,littering}.sh \
		--limit 2 --scenario "$T/hanging.sh"
	check "$jobs at a time: the status is that of a failure" test $? -eq 1
	check "$jobs at a time: what passed" says '/good.sh \(2\) [0-9.]+ s$'
	check "$jobs at a time: what failed" says '/bad.sh: 1 of 2, '
	check "$jobs at a time: fails with status 0" \
		says '/smiling.sh: 1 of 1; status 0 in spite'
	check "$jobs at a time: says nothing" says '/mute.sh:.*reported nothing'
	check "$jobs at a time: fails and says so nowhere" \
		says '/failing.sh:.*status 3'
	check "$jobs at a time: is killed" says '/shot.sh:.*status 137'
	check "$jobs at a time: hangs" says '/hanging.sh:.*limit of 2 s'
	check "$jobs at a time: leaves a process" \
		says '/littering.sh:.*left processes'
	check "$jobs at a time: which is ended" \
		await 5 is_over "$(cat "$T/littering.sh.pid")"
	# A hanging program may have been ended before it reported its only ok.
	check "$jobs at a time: the counts" \
		says '^[67] passed, 7 failed, 1 skipped$'
done

plant writing <<'END'
mkdir -p "$XDG_STATE_HOME/refd/enabled"
echo repository >"$XDG_STATE_HOME/refd/enabled/list"
echo ok one
END
run_tests --scenario "$T"/writing.sh
check 'a change of the list of enabled repositories: the status' test $? -eq 1
check 'a change of the list of enabled repositories: its name' \
	says "^failed: the machine: .*/refd/enabled/list$"

CI=true run_tests --scenario "$T"/{good,lacking}.sh
check "a skip is a failure in CI" says '^2 passed, 1 failed, 0 skipped$'
run_tests --script "test 1 = 1" --script "test 1 = 2"
check "a script's status says it" says '^1 passed, 1 failed, 0 skipped$'
plant patient <<'END'
[ "${CK_TIMEOUT_MULTIPLIER:-1}" -ge 100 ]
END
run_tests --script "bash $T/patient.sh"
check "libcheck's own limits are not in the way" says '^1 passed, 0 failed'
run_tests --unit "$T"
check "a unit test that was not built has failed" test $? -eq 1

# A tree with a directory of invented unit tests.
mkdir -p "$T/tree/scripts" "$T/tree/tests/unit" "$T/built"
cp "$ROOT/scripts/run-tests" "$T/tree/scripts"
: >"$T/tree/tests/unit/test_it.c"
run_unit() { # LINE-OF-OUTPUT...
	printf '#!/bin/sh\n' >"$T/built/test_it"
	printf 'echo "%s"\n' "$@" >>"$T/built/test_it"
	chmod +x "$T/built/test_it"
	"$T/tree/scripts/run-tests" --unit "$T/built" >"$T/said" 2>&1
}
counts='100%: Checks: 3, Failures: 0, Errors: 0'
run_unit "$counts"
check "a unit test without a skip" says '^3 passed, 0 failed, 0 skipped$'
run_unit 'skip one: no moon' "$counts"
check "a skip of a unit test is counted" says '^2 passed, 0 failed, 1 skipped$'
check "with its reason" says '^skipped: .*/test_it: one: no moon$'
CI=true run_unit 'skip one: no moon' "$counts"
check "and a failure in CI" says '^2 passed, 1 failed, 0 skipped$'
run_unit 'skip it: no moon'
check "a unit test that skips everything" says '^0 passed, 0 failed, 1 skipped$'
if [ "$(id -u)" -eq 0 ]; then
	chmod 755 "$T"
	setpriv --reuid 65534 --regid 65534 --clear-groups env TMPDIR=/tmp \
		"$BUILD/tests/unit/test_repo_config" >"$T/said" 2>&1
	check "a real unit test skips without root" \
		says '^skip another_owner_does_not_matter.*: only root'
fi
run_tests --scenario
check "nothing is no success" test $? -eq 1

# ---- the whole run ----

run_tests --total 2 --scenario "$T/hanging.sh" "$T/good.sh"
check "a run that is too long: fails" test $? -eq 1
check "a run that is too long: says so" \
	says '^failed: the whole run: passed its limit of 2 s'
check "a run that is too long: names what ran" \
	says '^failed: .*/hanging.sh: was running when the limit'
run_tests --total 600 --script true
check "a run in time" says '^1 passed, 0 failed, 0 skipped$'
run_tests --brief --slowest 1 --env SEEN=yes --script true \
	--scenario "$T"/{good,bad,lacking}.sh
check "--brief: a line per list" \
	says "^$T: 3 passed, 1 failed, 1 skipped, [0-9]+ s\$"
check "--brief: failures in detail" says '^    not ok two: it$'
# It can be the slowest.
check "--brief: no other program" \
	test "$(grep -c '^pass .*/good.sh' "$T/said")" -eq 0
check "--slowest" test "$(grep -c '^    [0-9.]* s ' "$T/said")" -eq 1
plant seeing <<<'printenv SEEN | grep -qx yes'
run_tests --env SEEN=yes --script "bash $T/seeing.sh"
check "--env" says '^1 passed, 0 failed'
run_tests --brief --script true --limit
check "an option without its argument" test $? -eq 129

# ---- scripts/check ----

# A tree with one scenario, in which the other stages have no work.
mkdir -p "$T/bin" "$T/tree/tests/scenario"
rm "$T/tree/tests/unit/test_it.c"
cp "$ROOT/scripts/check" "$T/tree/scripts"
echo 'echo ok it' >"$T/tree/tests/scenario/it.sh"
printf '# Slow: it is\nexit 1\n' >"$T/tree/tests/scenario/slow.sh"
for name in deps check-layers check-options git-tests; do
	printf '#!/bin/sh\n' >"$T/tree/scripts/$name"
done
cat >"$T/bin/make" <<'END'
#!/bin/sh
case $* in
*"$BREAK"*) echo it broke; exit 1 ;;
esac
END
chmod +x "$T/tree/scripts"/* "$T/bin/make"
check_tree() { # BROKEN-STAGE [OPTION]
	BREAK=$1 PATH=$T/bin:$PATH "$T/tree/scripts/check" "${@:2}" \
		>"$T/said" 2>&1
}
check 'scripts/check --quick passes' check_tree none --quick
check 'scripts/check: the expected time' says '^expected .*: 5 minutes$'
is 'scripts/check: a line per stage' \
	'build,build/tests/unit,make lint,packages,'\
'scripts/check-layers --self-test,scripts/check-options --self-test,'\
'tests/scenario' "$(sed -n '2,$s/: .*passed, .*//p' "$T/said" | sort | paste -sd,)"
check 'scripts/check: the counts are last' \
	test "$(tail -n 1 "$T/said")" = '4 passed, 0 failed, 0 skipped'
check_tree none
check 'scripts/check: everything, with a failure' test $? -eq 1
check 'scripts/check: the slow scenario, too' \
	says '^failed: tests/scenario/slow.sh'
check_tree none --profile tsan
is 'scripts/check --profile: a line per stage' \
	'build,build/tsan/tests/unit,packages,tests/scenario' \
	"$(sed -n '2,$s/: .*passed, .*//p' "$T/said" | sort | paste -sd,)"
check_tree none --profile debug
check 'scripts/check --profile: has no sanitizer' test $? -eq 129
check_tree 'PROFILE=asan tests' --profile asan
check 'scripts/check --profile: its build fails' says '^build: failed$'
check_tree lint --quick
check 'scripts/check: a gate fails' test $? -eq 1
check 'scripts/check: the gate, by name' says '^failed: make lint: status 1$'
check 'scripts/check: the gate, in detail' says '^ *it broke$'
check_tree ' tests' --quick
check 'scripts/check: a build fails' test $? -eq 1
check 'scripts/check: the build, in detail' says '^it broke$'
check 'scripts/check: the build, by name' says '^build: failed$'
check_tree none --slow
check 'scripts/check: an unknown option' test $? -eq 129

cp "$ROOT/scripts/check-long" "$T/tree/scripts"
mkdir "$T/tree/tests/long"
cat >"$T/tree/tests/long/it.sh" <<'END'
[ "$BUILD" = "$PWD/build" ] && echo ok it
END
rm "$T/tree/tests/scenario/slow.sh"
PATH=$T/bin:$PATH BREAK=none "$T/tree/scripts/check-long" >"$T/said" 2>&1
check 'scripts/check-long passes' test $? -eq 0
is 'scripts/check-long: a long test, and a scenario under two sanitizers' \
	'3 passed, 0 failed, 0 skipped' "$(tail -n 1 "$T/said")"
sed -i 's/^limit=7200$/limit=2/' "$T/tree/scripts/check-long"
echo 'sleep 600' >"$T/tree/tests/long/it.sh"
PATH=$T/bin:$PATH BREAK=none "$T/tree/scripts/check-long" >"$T/said" 2>&1
check 'scripts/check-long: fails when its time has passed' test $? -eq 1
check 'scripts/check-long: says so' says '^failed: the whole run: passed its'

# ---- tests/lib/scenario.sh ----

plant silent <<END
. "$ROOT/tests/lib/scenario.sh"
prints_nothing one true
prints_no two x echo y
prints_nothing three false
prints_nothing four echo y
prints_no five x sh -c 'echo y; exit 1'
prints_no six x echo xy
prints_no seven '' sh -c 'echo y >&2'
finish
END
run_tests --scenario "$T/silent.sh"
check "a command that fails has not printed nothing" \
	says '/silent.sh: 5 of 7, '

# Each scenario logs its begin and its end.
for name in a b; do
	plant $name <<-'END'
		echo "begin $0" >>"${0%/*}/log"
		for ((i = 0; i < 1000; i++)); do
			[ "$(grep -c begin "${0%/*}/log")" -ge 2 ] && break
			sleep 0.1
		done
		echo "end $0" >>"${0%/*}/log"
		echo ok it
	END
done
plant c <<'END'
# Alone: it says so
echo alone >>"${0%/*}/log"
echo ok it
END
run_tests --jobs 2 --scenario "$T"/{c,a,b}.sh
check "two run at a time" test "$(sed -n 2p "$T/log" | cut -c1-5)" = begin
check "and one alone behind them" test "$(sed -n 5p "$T/log")" = alone

# A later line "# Alone:", for example in a planted file, has no effect.
: >"$T/log"
for name in d e; do
	sed "1a cat >/dev/null <<'PLANTED'\n# Alone: not this file\nPLANTED" \
		"$T/a.sh" >"$T/$name.sh"
done
run_tests --jobs 2 --scenario "$T"/{d,e}.sh
check "a later line makes no scenario run alone" \
	test "$(sed -n 2p "$T/log" | cut -c1-5)" = begin
finish
