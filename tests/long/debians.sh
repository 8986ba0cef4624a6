#!/bin/bash
# Proves that refd builds without a warning, and that scripts/quickstart keeps
# all of its promises, in minimal roots of Debian 12, Debian 13 and sid. The
# roots have the packages of `scripts/deps --build` and no others, and separate
# mounts, processes and (empty) networks. STACKS_CACHE=DIR keeps the roots
# between runs.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/root.sh
. "$ROOT/tests/lib/root.sh"

root_needs debians --stacks

# With uncommitted changes, without build/.
mkdir "$T/refd"
(cd "$ROOT" && git -c safe.directory='*' ls-files -z --cached --others \
	--exclude-standard | xargs -0 cp --parents -t "$T/refd")

# Runs in the new namespaces.
quickstart() {
	set -e
	root_mount "$T/root"
	root_system "$T/root"
	cp -r "$T/refd" "$T/root/srv"
	exec env -i TERM=dumb \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		chroot "$T/root" /srv/refd/scripts/quickstart
}
export -f quickstart root_mount root_system
export T

for suite in bookworm trixie sid; do
	# shellcheck disable=SC2016 # mmdebstrap's shell knows the root
	if ! root_make "build-$suite" "$suite" '' \
		"$(sha256sum <"$ROOT/scripts/deps")" \
		--customize-hook="copy-in $ROOT/scripts/deps /tmp" \
		--customize-hook='chroot "$1" /tmp/deps --build && rm "$1/tmp/deps"'
	then
		skip $suite "$(root_why)"
		continue
	fi
	export ROOT_BASE
	unshare -m -p -f -n --kill-child --propagation private \
		bash -c quickstart >"$T/$suite" 2>&1 &
	own $!
	if reap $!; then
		ok $suite
	else
		not_ok $suite "$(grep -m1 -A1 -E 'NOT AS PROMISED|error:' \
			"$T/$suite" || tail -n 3 "$T/$suite")"
	fi
done
finish
