#!/bin/bash
# Proves that a stranger's first tests pass: as root, in a minimal Debian that
# has only the packages of "scripts/deps --test", with the clone below /root,
# where no other account can look, and in a container that denies Landlock and
# mounts. What such a machine lacks is skipped with the reason, and nothing
# fails. The programs are this machine's, because debians.sh builds in minimal
# roots, and the gates of `scripts/check --quick` see the same in each machine.
#
# BARE='--scenario tests/scenario/x.sh ...' gives these arguments to
# scripts/run-tests, in place of all quick tests. STACKS_CACHE=DIR keeps the
# Debian between runs.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/root.sh
. "$ROOT/tests/lib/root.sh"

root_needs bare --distro

suite=$(apt_private_codename)
# shellcheck disable=SC2016 # mmdebstrap's shell knows the root
if ! root_make "bare-$suite" "$suite" '' "$(sha256sum <"$ROOT/scripts/deps")" \
	--customize-hook="copy-in $ROOT/scripts/deps /tmp" \
	--customize-hook='chroot "$1" /tmp/deps --test && rm "$1/tmp/deps"'; then
	skip bare "$(root_why)"
	finish
fi

root=$T/root
scenario_mounts+=("$T/over" "$root")
check 'a root' root_mount "$root"
clone=$root/root/refd
mkdir "$clone"
git -c safe.directory='*' -C "$ROOT" ls-files -z --cached --others \
	--exclude-standard | (cd "$ROOT" && xargs -0 cp --parents -t "$clone")
git init -q "$clone"
git -C "$clone" add -A
git -C "$clone" commit -q -m tree
chown -R root:root "$root/root"
chmod 700 "$root/root"
is 'nobody else looks into /root' 700 "$(stat -c %a "$root/root")"

inside() { # COMMAND...
	timeout 3000 systemd-nspawn -q -D "$root" --as-pid2 --register=no \
		--keep-unit --private-network --console=pipe \
		--machine="refd-$$" --chdir=/root/refd "$@" \
		>"$T/said" 2>&1 </dev/null &
	own $!
	reap $!
}

cd "$ROOT" || exit 1
quick="--env SWEEP_STEP=17 --unit build/tests/unit --scenario $(
	grep -LE '^# (Slow|Alone): ' tests/scenario/*.sh | tr '\n' ' ')"
mkdir "$clone/build"
cp -a "$BUILD"/{bin,lib,man,share,stamp,tests} "$clone/build"
# shellcheck disable=SC2086 # a list of words
inside scripts/run-tests --brief --jobs $((2 * $(nproc))) \
	--env BUILD=/root/refd/build ${BARE:-$quick}
status=$?
grep -E '^skipped: | passed, ' "$T/said"
is 'the tests pass' 0 $status
[ $status -eq 0 ] || tail -n 60 "$T/said"
[ -n "${BARE:-}" ] || check 'and say that Landlock is denied' \
	grep -q '^skipped: .*Landlock' "$T/said"
finish
