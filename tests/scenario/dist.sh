#!/bin/bash
# Proves that `make dist` gives the same bytes in two places, with another umask
# and another configuration of git. The tarball is the commit, the bill of
# materials names the linked libraries, and the signature of CONTRIBUTING.md
# verifies. A changed tree makes no release.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

# A repository with this tree, uncommitted changes included.
tree() { # DIRECTORY
	git init -q "$T/$1" &&
		git -C "$ROOT" -c safe.directory='*' ls-files -z --cached --others \
			--exclude-standard |
		(cd "$ROOT" && xargs -0 cp --parents -t "$T/$1") &&
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
finish
