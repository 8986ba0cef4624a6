#!/bin/bash
# Each fuzzer for FUZZ_SECONDS (60; 600 to go deep), beginning with its corpus;
# what it finds is kept in FUZZ_KEEP, if that is set: a directory for each, of
# inputs that reached something new, to go on from the next time.

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
	if (cd "$keep/$name" && timeout $((seconds + 120)) "$fuzzer" \
		-max_total_time="$seconds" -timeout=20 -verbosity=0 \
		${dict[@]+"${dict[@]}"} \
		-print_final_stats=1 . "$ROOT/tests/fuzz/corpus/$name") \
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
