#!/bin/bash
# Proves that the project directory of OSS-Fuzz builds, and that no fuzzer finds
# a crash, a leak or a hang. The fuzzers come from tests/fuzz/oss-fuzz/build.sh,
# with the seeds and dictionaries that OSS-Fuzz would get. Each fuzzer runs for
# FUZZ_SECONDS (60; 600 to go deep) and begins with its seeds, if there are any.
# If FUZZ_KEEP is set, each fuzzer keeps the inputs that reached new code in a
# directory there, and begins with these inputs the next time.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

seconds=${FUZZ_SECONDS:-60}
keep=${FUZZ_KEEP:-$T/fuzz}

if ! command -v clang++ >/dev/null; then
	skip fuzz 'no clang'
	finish
fi
mkdir -p "$BUILD/oss-fuzz"
out=$(cd "$BUILD/oss-fuzz" && pwd)
rm -f "$out"/fuzz_*

build() {
	cd "$ROOT" && env -u CFLAGS -u CXXFLAGS -u FUZZING_ENGINE \
		OUT="$out" WORK="$out/work" CC=clang CXX=clang++ \
		LIB_FUZZING_ENGINE=-fsanitize=fuzzer \
		tests/fuzz/oss-fuzz/build.sh
}
if ! (build) >"$T/build.log" 2>&1; then
	not_ok build "$(grep -m 1 -E 'error|undefined' "$T/build.log")"
	tail -n 30 "$T/build.log"
	finish
fi
prints_no 'the fuzzers bring their libraries' \
	'lib(check|subunit|sqlite3|z)\.so' ldd "$out/fuzz_repo"

for fuzzer in "$out"/fuzz_*; do
	name=${fuzzer##*/fuzz_}
	[[ $name != *.* ]] || continue
	mkdir -p "$keep/$name" "$T/seeds/$name"
	dict=()
	[ ! -f "$fuzzer.dict" ] || dict=("-dict=$fuzzer.dict")
	[ ! -f "${fuzzer}_seed_corpus.zip" ] || python3 -m zipfile \
		-e "${fuzzer}_seed_corpus.zip" "$T/seeds/$name"
	if (cd "$keep/$name" && timeout $((seconds + 120)) "$fuzzer" \
		-max_total_time="$seconds" -timeout=20 -verbosity=0 \
		${dict[@]+"${dict[@]}"} \
		-print_final_stats=1 . "$T/seeds/$name") \
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
