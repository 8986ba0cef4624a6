#!/bin/bash
# Proves that `make dist` gives the same bytes in two places, with another umask
# and another configuration of git. The tarball is the commit, the bill of
# materials names the linked libraries, and the signature of CONTRIBUTING.md
# verifies. A changed tree makes no release, nor does a tree in which a file has
# another version, or CHANGELOG.md has no day of the release.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

# A repository with this tree, uncommitted changes included, on the day of its
# release.
tree() { # DIRECTORY
	git init -q "$T/$1" &&
		git -C "$ROOT" -c safe.directory='*' ls-files -z --cached --others \
			--exclude-standard |
		(cd "$ROOT" && xargs -0 cp --parents -t "$T/$1") &&
		sed -i '0,/^## /s/^## \([^ ]*\).*/## \1 (2023-11-14)/' \
			"$T/$1/CHANGELOG.md" &&
		git -C "$T/$1" add -A &&
		git -C "$T/$1" commit -q -m release --date=@1700000000
}
dist() { # DIRECTORY
	(cd "$T/$1" && BUILD=$(realpath "$BUILD") scripts/dist "$T/$1.out")
}
export GIT_COMMITTER_DATE=@1700000000

check 'a tree' tree one
check 'a release' dist one
git config --global tar.umask 0077
git config --global log.showSignature true
umask 0077
check 'a copy of the tree' tree a-second-one
check 'a release elsewhere' dist a-second-one
umask 0022
check 'the same bytes' diff -r "$T/one.out" "$T/a-second-one.out"
sums() { sha256sum --quiet --strict -c SHA256SUMS; }
cd "$T/one.out" || exit 1
check 'the check sums' sums
is 'they name both files' "$(echo refd-*)" \
	"$(sed 's/.*  //' SHA256SUMS | xargs)"

mkdir "$T/unpacked"
tar -C "$T/unpacked" -xzf refd-*.tar.gz
check 'the tarball is the tree' diff -r --exclude=.git "$T/one" \
	"$T/unpacked"/refd-*
is 'its modes' 'drwxr-xr-x root/root' "$(tar -tvzf refd-*.tar.gz |
	awk '/^d/ { print $1, $2 }' | sort -u)"
is 'its times' 2023-11-14 "$(tar -tvzf refd-*.tar.gz |
	awk '{ print $4 }' | sort -u)"

libraries=(libc6 libcurl libevent-core libsqlite3-0 zlib1g)
# A daemon that is built with a sanitizer confines itself to nothing.
ldd "$BUILD/bin/refd-daemon" | grep -q 'lib[at]san' ||
	libraries+=(libseccomp2)
for library in "${libraries[@]}"; do
	check "the bill names $library" grep -q \
		"^Relationship: SPDXRef-refd DYNAMIC_LINK SPDXRef-$library" ./*.spdx
done
is 'every package has its relationship' '' \
	"$(comm -23 <(sed -n 's/^SPDXID: //p' ./*.spdx | sort -u) \
		<(grep '^Relationship: ' ./*.spdx | tr ' ' '\n' | sort -u))"
check 'it names the tarball' grep -q \
	"^PackageChecksum: SHA256: $(sha256sum <refd-*.tar.gz | cut -c-64)\$" \
	./*.spdx

# ---- signed as CONTRIBUTING.md says ----

if command -v ssh-keygen >/dev/null; then
	ssh-keygen -q -t ed25519 -N '' -f "$T/key"
	echo "refd $(cat "$T/key.pub")" >"$T/signers"
	check 'a signature' ssh-keygen -q -Y sign -f "$T/key" -n refd SHA256SUMS
	verified() {
		ssh-keygen -q -Y verify -f "$T/signers" -I refd -n refd \
			-s SHA256SUMS.sig <SHA256SUMS 2>/dev/null
	}
	check 'is verified' verified
	echo >>SHA256SUMS
	forged() { ! verified; }
	check 'a changed file is not' forged
else
	skip 'a signature' 'there is no ssh-keygen'
fi

echo >>"$T/one/README.md"
changed() { ! dist one 2>"$T/why"; }
check 'a changed tree makes no release' changed
check 'and says why' grep -q 'changes without a commit' "$T/why"

# ---- the version ----

# Gives each file the version in the form of its tool.
set_version() { # VERSION DEBIAN ALPINE PYTHON
	cd "$T/one" || exit 1
	sed -i "s/^\(VERSION *:= \).*/\1$1/" Makefile
	sed -i "1s/(.*)/($2)/" debian/changelog
	sed -i "s/^\(Version: \).*/\1$2/" scripts/distro/refd.spec
	sed -i "s/^\(pkgver=\).*/\1$3/" scripts/distro/APKBUILD
	sed -i "s/^\(version = \)\".*/\1\"$4\"/" client/python/pyproject.toml
	sed -i "s/^\(version = \)\".*/\1\"$1\"/" client/rust/Cargo.{toml,lock}
	sed -i "s,\(refd/\)[^ ]*\( pid\),\1$1\2,
		s/\(Version \)[0-9][^ ]*/\1$1/" README.md
	sed -i "/ yes |\$/s/[0-9]*\.[0-9]*\.[0-9][^ ,|]*/$1/" SECURITY.md
	sed -i "0,/^## /s/^## .*/## $1 (2023-11-14)/" CHANGELOG.md
}
# Prints the exit status, and the files that differ.
differ() { # [OPTION]
	local status=0
	"$T/one/scripts/check-version" "$@" >"$T/why" 2>&1 || status=$?
	echo "$status" "$(sed 's/:.*//' "$T/why" | sort -u | xargs)"
}

set_version 7.8.9 7.8.9 7.8.9 7.8.9
is 'a release: all files agree' '0 ' "$(differ --release)"
set_version 7.8.9-rc2 7.8.9~rc2 7.8.9_rc2 7.8.9rc2
is 'a candidate: all files agree' '0 ' "$(differ --release)"
others=
while IFS=: read -r file line; do
	others+=$file$'\n'
	cp "$file" "$T/right"
	sed -i "/$line/s/7\.8\.9/7.8.8/" "$file"
	is "another version in $file, $line" "1 $file" "$(differ)"
	cp "$T/right" "$file"
	sed -i "/$line/s/7\.8\.9[^ \")]*/7.8.9+rc2/" "$file"
	is "another form in $file, $line" "1 $file" "$(differ)"
	cp "$T/right" "$file"
	sed -i "/$line/d" "$file"
	is "no version in $file, $line" "1 $file" "$(differ)"
	cp "$T/right" "$file"
done <<'END'
CHANGELOG.md:^## [0-9]
README.md: pid [0-9]
README.md:Version [0-9]
SECURITY.md: yes |$
client/python/pyproject.toml:^version = "
client/rust/Cargo.lock:^version = "
client/rust/Cargo.toml:^version = "
debian/changelog:^refd (
scripts/distro/APKBUILD:^pkgver=
scripts/distro/refd.spec:^Version: [0-9]
END
others=$(sort -u <<<"${others%$'\n'}" | xargs)
cp Makefile "$T/right"
sed -i 's/^\(VERSION *:= \).*/\17.9.0/' Makefile
is 'another version in the Makefile: all others differ' "1 $others" \
	"$(differ)"
sed -i 's/^\(VERSION *:= \).*/\17.8.9-beta/' Makefile
is 'a version that has no form' \
	"1 $(xargs -n 1 <<<"Makefile $others" | sort | xargs)" "$(differ)"
cp "$T/right" Makefile

sed -i '0,/^## /s/^\(## [^ ]*\).*/\1 (unreleased)/' CHANGELOG.md
is 'without the day of the release: all files agree' '0 ' "$(differ)"
is 'and there is no release' '1 CHANGELOG.md' "$(differ --release)"
git commit -qam unreleased
check 'nor does the tree make a release' changed
check 'and says why' grep -q '^CHANGELOG.md: .*no day of the release' "$T/why"
finish
