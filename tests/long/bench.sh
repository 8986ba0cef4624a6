#!/bin/bash
# Proves that every workload of the bench works, at its smallest size: all of
# them run, all refs are really there, and every figure has its place in the
# tables.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

export PYTHONDONTWRITEBYTECODE=1
"$ROOT/scripts/bench" --tiny --dir "$T/b" >"$T/out" 2>&1
is 'all workloads' 0 $?
for workload in B1 B2 B3 B3t B4 B5 B6 B7 B8 B9 counts; do
	check "$workload is in the table" grep -q "^$workload  " "$T/out"
done
check 'its JSON' python3 -m json.tool "$T/b/none.json" /dev/null
finish
