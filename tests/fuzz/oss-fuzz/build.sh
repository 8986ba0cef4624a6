#!/bin/bash
# Builds all fuzzers into the directory OUT, each with its dictionary and seeds,
# as OSS-Fuzz expects them. Runs in the top directory of the source. OSS-Fuzz
# sets all variables. tests/long/fuzz.sh builds by this script too:
#
#	OUT=DIR CC=clang CXX=clang++ LIB_FUZZING_ENGINE=-fsanitize=fuzzer \
#		tests/fuzz/oss-fuzz/build.sh
#
# Without CFLAGS and CXXFLAGS, the flags are those of "make fuzz".

set -eu
build=${WORK:-$OUT/work}/refd
mkdir -p "$OUT"

# The machines that run the fuzzers have no libraries of this image.
libs='-Wl,-Bstatic -lcheck_pic -lsubunit -lsqlite3 -lz -Wl,-Bdynamic -lm -lrt'
make -j"$(nproc)" fuzz BUILD="$build" CLANG="$CC" FUZZ_LIBS="$libs" \
	${CFLAGS:+FUZZ_FLAGS="$CFLAGS"} \
	FUZZ_LINK="$CXX ${CXXFLAGS:-\$(FUZZ_FLAGS)} $LIB_FUZZING_ENGINE"

for source in tests/fuzz/fuzz_*.c; do
	fuzzer=$(basename "$source" .c)
	name=${fuzzer#fuzz_}
	# These start git, which the machines of OSS-Fuzz lack.
	case ${FUZZING_ENGINE:+$name} in
	gitconfig | repo) continue ;;
	esac
	cp "$build/fuzz/$fuzzer" "$OUT/"
	[ ! -f "tests/fuzz/$name.dict" ] ||
		cp "tests/fuzz/$name.dict" "$OUT/$fuzzer.dict"
	[ ! -d "tests/fuzz/corpus/$name" ] ||
		python3 -m zipfile -c "$OUT/${fuzzer}_seed_corpus.zip" \
			"tests/fuzz/corpus/$name"/*
done
