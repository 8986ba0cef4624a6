# shellcheck shell=bash
# Builds refd and its unit tests for a processor or a C library, and runs the
# unit tests. Sourced by tests/soak/processors.sh, on the machine and in roots.
# ROOT is the source tree; the results are in $T/TARGET.

units_build() { # TARGET MAKE-VARIABLE...
	local target=$1
	shift
	make -C "$ROOT" -j"$(nproc)" BUILD="$T/$target" CFLAGS=-O1 "$@" \
		units "$T/$target/bin/refd" "$T/$target/bin/refd-daemon"
}

# Reports one program. TARGET's programs run by COMMAND.
units_run_one() { # NAME TARGET COMMAND...
	local name=$1 target=$2 output=$T/$2/$1.out status=0
	shift 2
	if [ "$EPOCHSECONDS" -ge "$UNITS_END" ]; then
		echo "skip $target: $name: no time was left"
		return
	fi
	timeout -k 10 600 "$@" "$T/$target/tests/unit/$name" >"$output" 2>&1 \
		</dev/null || status=$?
	if [ $status -ne 0 ] || ! grep -qE '^100%: Checks: [1-9]' "$output"; then
		printf 'not ok %s: %s: status %s, %s\n' "$target" "$name" \
			"$status" "$(grep -E -m 3 ':[FE]:|rror' "$output" |
				tr '\n' ' ')"
		return
	fi
	printf 'ok %s: %s, %s checks\n' "$target" "$name" "$(sed -n \
		's/^100%: Checks: \([0-9]*\),.*/\1/p' "$output" |
		awk '{ sum += $1 } END { print sum }')"
	sed -n "s/^skip /skip $target: $name: /p" "$output"
}

# Reports the programs whose names do not match EXCEPT. After half an hour, no
# further program starts. libcheck's own limits are for idle machines.
units_run() { # TARGET EXCEPT COMMAND...
	local target=$1 except=$2
	shift 2
	export -f units_run_one
	export UNITS_END=$((EPOCHSECONDS + 1800))
	export T CK_TIMEOUT_MULTIPLIER=100 SWEEP_STEP=97 GIT_CONFIG_NOSYSTEM=1
	cd "$ROOT" || return
	printf '%s\n' tests/unit/test_*.c | sed 's|.*/||; s|\.c$||' |
		grep -vE "${except:-^$}" | xargs -P "$(nproc)" -I '{}' \
		bash -c 'units_run_one "$@"' bash '{}' "$target" "$@"
}
