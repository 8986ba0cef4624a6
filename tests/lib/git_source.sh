# shellcheck shell=bash
# A git and its tests, from Debian's packages; sourced by scripts/git-tests.
#
#	git_source CACHE [SUITE]
#
# The git is the installed git, or the git of a Debian suite (scripts/git-new).
# Sets git_dir, the directory below CACHE with the files for its tests (t/ with
# its helper program, the templates, the options of the build), and git_version.
# Existing files stay unchanged; the first call takes a minute or two.
#
#	git_stage DIR [SUITE]
#
# copies everything to a place that other users can read: DIR/git, the tests;
# DIR/exec, git's programs, except git itself. Sets real_git.

# shellcheck source=tests/lib/apt.sh
. "$(dirname "${BASH_SOURCE[0]}")/apt.sh"

# Builds only the programs that git's tests need, as quickly as possible: the
# git under test is the installed git.
git_source_make=(make -s CFLAGS=-O0 NO_CURL=1 NO_EXPAT=1 NO_GETTEXT=1 NO_OPENSSL=1
	NO_PYTHON=1 NO_RUST=1 NO_TCLTK=1)

git_source_build() { # SOURCE
	cd "$1" || return 1
	"${git_source_make[@]}" -j"$(nproc)" GIT-BUILD-OPTIONS \
		t/helper/test-tool || return 1
	"${git_source_make[@]}" -C templates
}

git_source_fetch() { # DIR VERSION [SUITE]
	(
		apt_private "$1/apt" deb-src ${3:+"$3"}
		cd "$1" || exit 1
		apt-get -qq source --download-only "git=$2" &&
			dpkg-source -x --no-check git_*.dsc src &&
			git_source_build src
	) >"$1/log" 2>&1 && return
	tail -n 20 "$1/log" >&2
	return 1
}

# A package that was built again has a new version.
git_source_version() { # CACHE [SUITE]
	if [ $# -gt 1 ]; then
		scripts/git-new "$1/$2" "$2" >/dev/null &&
			sed -E 's/^[^ ]* //; s/\+b[0-9]+$//' "$1/$2/VERSION"
	else
		dpkg-query -W -f '${source:Version}' git
	fi
}

git_source() { # CACHE [SUITE]
	local version scratch new lock
	version=$(git_source_version "$@") || return 1
	git_version=${version#*:}
	git_dir=$1/$git_version
	[ ! -e "$git_dir/GIT-BUILD-OPTIONS" ] || return 0
	echo "getting the source of git $version and building its test-tool"
	mkdir -p "$1"
	# Another run may be building the same git.
	exec {lock}>"$1/lock" && flock "$lock" || return 1
	if [ -e "$git_dir/GIT-BUILD-OPTIONS" ]; then
		exec {lock}>&-
		return 0
	fi
	scratch=$(mktemp -d "$1/fetch.XXXXXX") || return 1
	new=$scratch/new
	if git_source_fetch "$scratch" "$version" ${2:+"$2"}; then
		find "$scratch/src/t" -name '*.o' -delete
		mkdir "$new" "$new/templates"
		mv "$scratch/src/templates/blt" "$new/templates"
		mv "$scratch/src/t" "$scratch/src/GIT-BUILD-OPTIONS" "$new"
		rm -rf "$git_dir"
		mv "$new" "$git_dir"
	fi
	rm -rf "$scratch"
	exec {lock}>&-
	[ -e "$git_dir/GIT-BUILD-OPTIONS" ]
}

git_stage() { # DIR [SUITE]
	local suite=${2:-} from
	cp -r "$git_dir" "$1/git"
	from=$(sed -n "s/^GIT_SOURCE_DIR='\(.*\)'/\1/p" \
		"$1/git/GIT-BUILD-OPTIONS")
	[ -z "$from" ] || sed -i "s#$from#$1/git#" "$1/git/GIT-BUILD-OPTIONS"
	mkdir "$1/exec"
	if [ -z "$suite" ]; then
		real_git=$(command -v git)
		ln -s "$("$real_git" --exec-path)"/* "$1/exec"
	else
		from=$(dirname "$git_dir")/$suite
		cp -r "$from" "$1/new"
		real_git=$1/new/exec/git
		# Programs that git starts are in DIR/exec.
		sed "s#$from/#$1/new/#g; /GIT_EXEC_PATH/d" \
			"$from/exec/git" >"$real_git"
		ln -s "$1"/new/exec/* "$1/exec"
	fi
	rm "$1/exec/git"
}
