#!/bin/bash
# Proves that refd builds without a warning, that the quick start of the README
# works as written, and that scripts/quickstart keeps all of its promises, in
# minimal roots of Debian 12, Debian 13 and sid. The roots have the packages of
# `scripts/deps --build` and no others, and separate mounts, processes and
# (empty) networks. .ci/run runs this first, for Debian 13 alone:
# SUITES='bookworm sid' names the suites. STACKS_CACHE=DIR keeps the roots
# between runs.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/root.sh
. "$ROOT/tests/lib/root.sh"
# shellcheck source=tests/lib/readme.sh
. "$ROOT/tests/lib/readme.sh"

root_needs debians --stacks

# A clone with a commit of this tree, uncommitted changes included, because the
# quick start pushes HEAD.
mkdir "$T/refd"
(cd "$ROOT" && git -c safe.directory='*' ls-files -z --cached --others \
	--exclude-standard | xargs -0 cp --parents -t "$T/refd")
git init -q "$T/refd"
git -C "$T/refd" add -A
git -C "$T/refd" commit -q -m tree

{
	echo 'cd ~/refd || exit 1'
	readme_block "$ROOT/README.md" 'Quick start'
} >"$T/commands"
check 'the README has a quick start' grep -q '^git push' "$T/commands"

# Runs in the new namespaces. A user without rights types the quick start, and
# scripts/quickstart uses the same build afterwards. A shell with -e ends at the
# first failure, and the processes of the namespace end with it.
# shellcheck disable=SC2317 # the new namespaces call it
in_root() {
	set -e
	root_mount "$T/root"
	root_system "$T/root"
	mkdir -p "$T/root/home"
	chroot "$T/root" useradd -m dev
	cp -r "$T/refd" "$T/commands" "$T/root/home/dev"
	chroot "$T/root" chown -R dev: /home/dev
	as_dev bash --norc -e /home/dev/commands
	as_dev /home/dev/refd/scripts/quickstart
}
# shellcheck disable=SC2317
as_dev() { # COMMAND...
	env -i TERM=dumb HOME=/home/dev WERROR=1 MAKEFLAGS="-j$(nproc)" \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		chroot "$T/root" \
		setpriv --reuid dev --regid dev --init-groups "$@"
}
export -f in_root as_dev root_mount root_system
export T

for suite in ${SUITES:-bookworm trixie sid}; do
	# shellcheck disable=SC2016 # mmdebstrap's shell knows the root
	if ! root_make "build-$suite" "$suite" '' \
		"$(sha256sum <"$ROOT/scripts/deps")" \
		--customize-hook="copy-in $ROOT/scripts/deps /tmp" \
		--customize-hook='chroot "$1" /tmp/deps --build && rm "$1/tmp/deps"'
	then
		skip "$suite" "$(root_why)"
		continue
	fi
	export ROOT_BASE
	unshare -m -p -f -n --kill-child --propagation private \
		bash -c in_root >"$T/$suite" 2>&1 &
	own $!
	if reap $!; then
		ok "$suite"
	else
		not_ok "$suite" "$(grep -m1 -A1 -E 'NOT AS PROMISED|error:' \
			"$T/$suite" || tail -n 3 "$T/$suite")"
	fi
	check "$suite: the quick start ends with the push in the log" \
		grep -q 'refs/heads/main' "$T/$suite"
done
finish
