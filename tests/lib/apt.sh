# shellcheck shell=bash
# A private apt beside the machine's apt: the same mirrors, different suites or
# sources, with lists and cache in a directory. Sourced by scripts/git-new,
# scripts/git-tests and tests/lib/root.sh. The machine's apt stays unchanged.
#
#	apt_private DIR deb|deb-src [SUITE...]
#
# makes and updates the private apt, and exports APT_CONFIG, so that all later
# calls of apt use it. The default is the machine's suites.

# Prints a line "MIRROR SUITE" for each suite that the machine's apt knows.
# Without lists, apt knows no suite: then the lines are those of a new Debian.
apt_private_suites() { # CODENAME
	local debian=http://deb.debian.org/debian known
	# shellcheck disable=SC2016 # the names are apt's
	known=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' \
		'Created-By: Packages' 'Origin: Debian' 'Component: main' |
		grep -E " $1(-updates|-security)?\$" | sort -u)
	printf '%s\n' "${known:-$debian $1
$debian $1-updates
$debian-security $1-security}"
}

apt_private_codename() {
	sed -n 's/^VERSION_CODENAME=//p' /etc/os-release
}

# Prints the mirror that has the machine's own suite, CODENAME, and other
# suites.
apt_private_mirror() { # CODENAME
	apt_private_suites "$1" | sed -n "s/ $1\$//p" | head -n 1
}

apt_private_conf() { # DIR
	cat <<-CONF
		Dir::Etc::SourceList "$1/sources.list";
		Dir::Etc::SourceParts "/dev/null";
		Dir::Etc::Preferences "/dev/null";
		Dir::Etc::PreferencesParts "/dev/null";
		Dir::State::Lists "$1/lists";
		Dir::State::status "/dev/null";
		Dir::Cache "$1/cache";
		APT::Sandbox::User "$(id -un)";
		Acquire::Languages "none";
	CONF
}

apt_private() { # DIR deb|deb-src [SUITE...]
	local dir=$1 type=$2 codename mirror suite
	local key=/usr/share/keyrings/debian-archive-keyring.gpg
	shift 2
	codename=$(apt_private_codename)
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	if [ $# -gt 0 ]; then
		mirror=$(apt_private_mirror "$codename")
		for suite; do echo "$mirror $suite"; done >"$dir/suites"
	else
		apt_private_suites "$codename" >"$dir/suites"
	fi
	while read -r mirror suite; do
		echo "$type [signed-by=$key] $mirror $suite main"
	done <"$dir/suites" >"$dir/sources.list"
	apt_private_conf "$dir" >"$dir/apt.conf"
	export APT_CONFIG=$dir/apt.conf
	apt-get -qq update
}
