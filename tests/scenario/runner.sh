#!/bin/bash
# scripts/run-tests says of each program what became of it, and no failure
# gets by: one that says so, one that crashes, one that says nothing, hangs or
# leaves processes behind; also with several at a time, and some alone.
# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

# Where it is a failure to skip, this is tried below.
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

# Nobody may have waited for it yet.
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
	# What hangs may have been ended before it said its one ok.
	check "$jobs at a time: the counts" \
		says '^[67] passed, 7 failed, 1 skipped$'
done

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
run_tests --scenario
check "nothing is no success" test $? -eq 1

# Each says who began and who ended.
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
finish
