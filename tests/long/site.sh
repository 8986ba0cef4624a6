#!/bin/bash
# Proves that `make docs` makes a site that a browser shows from the disk, and
# that no link of the site leads to nothing. In Chromium (tests/long/site.py) a
# reader has the navigation in the order of the README, finds words by the
# search, and sees the plots and the drawing, also in the dark and on a narrow
# screen. A link to no page, heading or manual page ends the build, and then no
# page is written.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$ROOT/tests/lib/group_run.sh"

if ! "$ROOT/scripts/deps" --browser >"$T/deps" 2>&1; then
	skip site "$(tail -n 1 "$T/deps")"
	finish
fi

# A copy, because faults are planted below. The directory of the site is made
# outside of the copy, and the copy is moved away before anybody looks.
mkdir "$T/tree"
git -C "$ROOT" -c safe.directory='*' ls-files -z --cached --others \
	--exclude-standard | (cd "$ROOT" && xargs -0 cp --parents -t "$T/tree")
make_docs() { # DIRECTORY
	env -u BUILD make -s -C "$T/tree" BUILD="$1" docs >"$T/said" 2>&1
}

# ---- links that lead nowhere ----

planted() { # NAME FAULT: what is planted must be the one fault
	if make_docs "$T/wrong"; then
		not_ok "$1" 'the build succeeds'
		return
	fi
	is "$1" "$2" "$(grep '\.md: ' "$T/said")"
	check "$1: nothing is written" test ! -e "$T/wrong/site"
}
plant() { # NAME LINE FAULT
	local page=docs/known.md
	printf '\n%s\n' "$2" >>"$T/tree/$page"
	planted "$1" "$page: $3"
	cp "$ROOT/$page" "$T/tree/$page"
}
plant 'a link to no page' '[a](nowhere.md#heading)' \
	'no such page: nowhere.md#heading'
plant 'a link to no heading' '[a](limits.md#nowhere)' \
	'no such heading: limits.md#nowhere'
plant 'a link to no heading of the same page' '[a](#nowhere)' \
	'no such heading: #nowhere'
plant 'a link out of the tree' '[a](../../tree/README.md)' \
	'no such page: ../../tree/README.md'
plant 'a link to a file of the machine' '[a](/etc/passwd)' \
	'no such page: /etc/passwd'
plant 'no manual page' 'See refd-nowhere(1).' \
	'no such manual page: refd-nowhere(1)'
plant 'an image that is missing' '![a](nowhere.svg)' \
	'no such page: nowhere.svg'
plant 'an image from the network' '![a](https://example.org/a.svg)' \
	'comes from the network: https://example.org/a.svg'
echo '# Lonely' >"$T/tree/docs/lonely.md"
planted 'a page without a link' 'docs/lonely.md: no link leads to this page'
rm "$T/tree/docs/lonely.md"

# ---- the site ----

if ! make_docs "$T/out"; then
	not_ok 'make docs' "$(tail -n 5 "$T/said" | tr '\n' '|')"
	finish
fi
ok 'make docs'
make_docs "$T/again"
check 'the same bytes in another build' diff -r "$T/out/site" "$T/again/site"
mv "$T/tree" "$T/away"
# Selenium is a package of Debian, for Debian's own Python.
PATH=/usr/bin:$PATH run_python long/site.py "$T/out/site" "$T/profile" "$T/ended"
check 'all looks were taken' test -e "$T/ended"
finish
