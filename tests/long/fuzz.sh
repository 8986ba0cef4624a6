#!/bin/bash
# Proves that no fuzzer finds a crash, a leak or a hang. Each fuzzer runs for
# FUZZ_SECONDS (60; 600 to go deep) and begins with its corpus, if there is one.
# If FUZZ_KEEP is set, each fuzzer keeps the inputs that reached new code in a
# directory there, and begins with these inputs the next time.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

seconds=${FUZZ_SECONDS:-60}
keep=${FUZZ_KEEP:-$T/fuzz}

for fuzzer in "$BUILD"/fuzz/fuzz_*; do
	name=${fuzzer##*/fuzz_}
	mkdir -p "$keep/$name"
	dict=()
	[ ! -f "$ROOT/tests/fuzz/$name.dict" ] ||
		dict=("-dict=$ROOT/tests/fuzz/$name.dict")
	corpus=$ROOT/tests/fuzz/corpus/$name
	[ -d "$corpus" ] || corpus=
	if (cd "$keep/$name" && timeout $((seconds + 120)) "$fuzzer" \
		-max_total_time="$seconds" -timeout=20 -verbosity=0 \
		${dict[@]+"${dict[@]}"} \
		-print_final_stats=1 . ${corpus:+"$corpus"}) \
		>"$T/$name.log" 2>&1; then
		ok "$name: $(sed -n 's/^stat::number_of_executed_units: //p' \
			"$T/$name.log") inputs in $seconds s"
	else
		not_ok "$name" "$(grep -aE 'ERROR|Test unit' "$T/$name.log" |
			tr '\n' ' ')"
		tail -n 30 "$T/$name.log"
	fi
done
finish
