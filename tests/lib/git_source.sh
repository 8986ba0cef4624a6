# shellcheck shell=bash
# The tests of the installed git, from Debian's source package; sourced by
# scripts/git-tests.
#
#	git_source CACHE
#
# sees to it that CACHE/$git_version holds what they need: t/ with the program
# that they are helped by, the templates and the build's options. Sets
# git_version and real_git, the installed git. What is there is left alone; it
# takes a minute or two where nothing is.

# shellcheck source=tests/lib/apt.sh
. "$(dirname "${BASH_SOURCE[0]}")/apt.sh"

# Only what git's tests can't do without; none of it is the git under test.
git_source_make=(make -s NO_CURL=1 NO_EXPAT=1 NO_GETTEXT=1 NO_OPENSSL=1
	NO_PYTHON=1 NO_TCLTK=1)

git_source_build() { # SOURCE
	cd "$1" || return 1
	"${git_source_make[@]}" -j"$(nproc)" GIT-BUILD-OPTIONS \
		t/helper/test-tool || return 1
	"${git_source_make[@]}" -C templates
}

git_source_fetch() { # DIR VERSION
	apt_private "$1/apt" deb-src || return 1
	(cd "$1" && apt-get -qq source --download-only "git=$2" &&
		dpkg-source -x --no-check git_*.dsc src) >"$1/log" 2>&1 ||
		{ tail -n 20 "$1/log" >&2 && return 1; }
	(git_source_build "$1/src") >"$1/log" 2>&1 ||
		{ tail -n 20 "$1/log" >&2 && return 1; }
}

git_source() { # CACHE
	local version scratch
	# shellcheck disable=SC2034 # for the one that sources this
	real_git=$(command -v git) || return 1
	version=$(dpkg-query -W -f '${source:Version}' git) || return 1
	git_version=${version#*:}
	[ ! -e "$1/$git_version/GIT-BUILD-OPTIONS" ] || return 0
	echo "getting the source of git $version and building its test-tool"
	mkdir -p "$1"
	scratch=$(mktemp -d "$1/fetch.XXXXXX") || return 1
	if git_source_fetch "$scratch" "$version"; then
		find "$scratch/src/t/helper" -name '*.o' -delete
		mkdir "$scratch/new" "$scratch/new/templates"
		cp -r "$scratch/src/templates/blt" "$scratch/new/templates"
		mv "$scratch/src/t" "$scratch/src/GIT-BUILD-OPTIONS" \
			"$scratch/new"
		rm -rf "${1:?}/$git_version"
		mv "$scratch/new" "$1/$git_version"
	fi
	rm -rf "$scratch"
	[ -e "$1/$git_version/GIT-BUILD-OPTIONS" ]
}
