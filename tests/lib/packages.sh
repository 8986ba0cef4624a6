# shellcheck shell=bash
# Builds the Debian packages of this tree, with the command of
# docs/installation.md. Sourced after scenario.sh, in a script that has the
# packages of "scripts/deps --distro".

# shellcheck source=tests/lib/readme.sh
. "$ROOT/tests/lib/readme.sh"

export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'

# Builds in $T/DIRECTORY, as from a clone of the tree with uncommitted changes.
# COMMAND runs the build, for example in another root. On failure, reports the
# first errors.
packages_build() { # DIRECTORY [COMMAND...]
	local dir=$T/$1
	mkdir -p "$dir/refd" "$dir/home" &&
		git -C "$ROOT" ls-files -z --cached --others --exclude-standard |
		(cd "$ROOT" && xargs -0 cp --parents -t "$dir/refd") &&
		"${@:2}" env -u BUILD -u DESTDIR -u TMPDIR -C "$dir/refd" \
			HOME="$dir/home" DEB_BUILD_OPTIONS="parallel=$(nproc)" \
			bash --norc -c "$(readme_block \
				"$ROOT/docs/installation.md" Debian)" \
			>"$dir.log" 2>&1 && return
	not_ok dpkg-buildpackage "$(grep -m 3 -E 'error:|Error' "$dir.log" ||
		tail -n 3 "$dir.log")"
	return 1
}
