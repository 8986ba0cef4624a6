/*
 * Proves that the row of an update has exactly the objects that other nodes may
 * lack, from repositories made by git, loose and packed, in both formats. In
 * every doubt, and beyond a bound, the row has nothing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/row_objects_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

/* ---- the repository ---- */

/* In r/: the commits a and b of the branch main. */
#define HISTORY                                                                \
	"git init -q r && cd r && mkdir -p dir/sub && echo f >f && echo g "    \
	">dir/g && echo h >dir/sub/h && git add . && git commit -q -m a && "   \
	"git tag a && echo f2 >f && git commit -q -a -m b && git tag b && "

/* raw TYPE NAME: a tag NAME of an object with the bytes of the standard input.
 * entry MODE-AND-NAME REVISION: an entry of a tree. */
#define RAW                                                                    \
	"raw() { git hash-object -t $1 --literally -w --stdin "                \
	">.git/refs/tags/$2; } && bin() { python3 -c 'import sys; "            \
	"sys.stdout.buffer.write(bytes.fromhex(sys.argv[1]))' $(git "          \
	"rev-parse $1); } && entry() { printf \"$1\\0\" && bin $2; } && "

static void make(const char *commands)
{
	tmp_run(HISTORY RAW "%s", commands);
	row_objects_rig_know("a");
}

static void pack(void)
{
	tmp_run("git -C r repack -q -a -d -f --depth=50");
}

/* ---- the walk ---- */

static struct suite_case sha256 = { .name = "sha256",
	.setup = odb_rig_setup_sha256,
	.teardown = row_objects_rig_teardown,
	.seconds = 120 };

CASE(.name = "sha1", .setup = odb_rig_setup,
    .teardown = row_objects_rig_teardown, .seconds = 120, .also = &sha256);

TEST(commits, .times = 2)
{
	make("git commit -q --allow-empty -m c && git tag c");
	if (_i > 0)
		pack();
	row_objects_rig_has("b", "b b^{tree} b:f");
	row_objects_rig_has("c", "c b b^{tree} b:f");
	row_objects_rig_has("b c", "c b b^{tree} b:f");
	row_objects_rig_has("b b", "b b^{tree} b:f");
	row_objects_rig_know("b");
	row_objects_rig_has("c", "c");
	row_objects_rig_has("b", "");
	ck_assert_uint_eq(row_objects_rig->len, 0);
	row_objects_rig_has("", "");
	row_objects_rig_know("");
	row_objects_rig_has("b",
	    "b b^{tree} b:f a a^{tree} a:f a:dir a:dir/g a:dir/sub "
	    "a:dir/sub/h");
	row_objects_rig_know("a a^{tree}");
	row_objects_rig_has("a:dir b",
	    "b b^{tree} b:f a:dir a:dir/g "
	    "a:dir/sub a:dir/sub/h");
}

TEST(tags, .times = 2)
{
	make("git tag -m x of-b b && git tag -m x of-tag of-b && git tag -m x "
	     "of-tree b^{tree} && git tag -m x of-file b:f && : >f && git "
	     "commit -q -a -m empty && git tag empty");
	if (_i > 0)
		pack();
	row_objects_rig_has("of-b", "of-b b b^{tree} b:f");
	row_objects_rig_has("of-tag", "of-tag of-b b b^{tree} b:f");
	row_objects_rig_has("of-file", "of-file b:f");
	row_objects_rig_know("of-b b");
	row_objects_rig_has("of-tag", "of-tag");
	row_objects_rig_has("empty", "empty empty^{tree} empty:f");
	/* A tree of a tag has no base. */
	row_objects_rig_has("of-tree",
	    "of-tree b^{tree} b:f b:dir b:dir/g b:dir/sub b:dir/sub/h");
}

/* A tree is compared with the trees at the same path in the parents. */
TEST(bases, .times = 2)
{
	make("echo g2 >dir/sub/h && git commit -q -a -m deep && git tag deep "
	     "&& git mv dir/sub moved && git commit -q -m moved && git tag "
	     "moved && git mv dir other && echo x >other/x && git add . && "
	     "git commit -q -m renamed && git tag renamed && git rm -q -r "
	     "moved && git commit -q -m gone && git tag gone && cp f moved && "
	     "git add moved && git commit -q -m kind && git tag kind");
	if (_i > 0)
		pack();
	row_objects_rig_know("b");
	row_objects_rig_has("deep",
	    "deep deep^{tree} deep:dir deep:dir/sub deep:dir/sub/h");
	/* The directory below a new name is not looked for elsewhere. */
	row_objects_rig_know("deep");
	row_objects_rig_has("moved",
	    "moved moved^{tree} moved:dir moved:moved deep:dir/sub/h");
	row_objects_rig_know("moved");
	row_objects_rig_has("renamed",
	    "renamed renamed^{tree} renamed:other renamed:other/g "
	    "renamed:other/x");
	row_objects_rig_know("renamed");
	row_objects_rig_has("gone", "gone gone^{tree}");
	row_objects_rig_know("gone");
	row_objects_rig_has("kind", "kind kind^{tree}");
	/* A directory takes the place of a file. */
	tmp_run("cd r && git rm -q f && mkdir f && echo y >f/y && git add . && "
		"git commit -q -m dir && git tag dir");
	row_objects_rig_know("kind");
	row_objects_rig_has("dir", "dir dir^{tree} dir:f dir:f/y");
}

/* The base has a directory of the same content with a different name. */
TEST(a_copy)
{
	make("cp -r dir/sub dir/copy && git add . && git commit -q -m copy && "
	     "git tag copy && cp -r dir/copy top && git add . && git commit -q "
	     "-m top && git tag top");
	row_objects_rig_know("b");
	row_objects_rig_has("copy", "copy copy^{tree} copy:dir");
	row_objects_rig_know("copy");
	row_objects_rig_has("top", "top top^{tree} top:top b:dir/sub/h");
}

/* Each entry of a merge is in one of the parents. */
TEST(merges, .times = 2)
{
	make("git checkout -q -b side a && echo k >k && echo g3 >dir/g && git "
	     "add . && git commit -q -m side && git merge -q -m m b && git tag "
	     "m && echo h5 >dir/sub/h && git add . && git commit -q --amend "
	     "-m evil && git tag evil");
	if (_i > 0)
		pack();
	row_objects_rig_know("b evil^1");
	row_objects_rig_has("m", "m m^{tree}");
	row_objects_rig_has("evil",
	    "evil evil^{tree} evil:dir evil:dir/sub evil:dir/sub/h");
	row_objects_rig_know("a");
	row_objects_rig_has("m",
	    "m m^{tree} m^1 m^1^{tree} m^1:dir m^1:dir/g m^1:k b b^{tree} b:f");
}

/* A tree that comes again does not hide what was new in between. */
TEST(a_revert)
{
	make(
	    "echo e >e && echo f3 >f && git add . && git commit -q -m added && "
	    "git tag added && echo f4 >f && git commit -q -a -m changed && git "
	    "tag changed && git tag again $(git commit-tree -m x -p changed "
	    "added^{tree})");
	row_objects_rig_know("b");
	row_objects_rig_has("again",
	    "again changed changed^{tree} changed:f added added^{tree} added:e "
	    "added:f");
}

/* A second root: nothing to compare with. */
TEST(no_parent)
{
	make("git checkout -q --orphan top && echo f4 >f && git add . && git "
	     "commit -q -m o && git tag root");
	row_objects_rig_has("root",
	    "root root^{tree} root:f root:dir "
	    "root:dir/g root:dir/sub root:dir/sub/h");
	row_objects_rig_has("a root",
	    "root root^{tree} root:f root:dir root:dir/g root:dir/sub "
	    "root:dir/sub/h");
}

/* ---- kinds ---- */

/* The same id as a file and as a directory is not the same thing: other nodes
 * have not followed the id as a directory. */
TEST(an_id_of_another_kind)
{
	make("sub=b:dir/sub && (entry '100644 x' $sub) | raw tree file && "
	     "(entry '40000 y' $sub) | raw tree dir && (entry '40000 x' $sub) "
	     "| raw tree same && (entry '40000 x' b:f) | raw tree no-dir && "
	     "for t in file dir same no-dir; do git tag c-$t $(git "
	     "commit-tree -m x -p b $t); done && for t in dir same file; do "
	     "git tag on-$t $(git commit-tree -m x -p c-file $t); done && git "
	     "tag back $(git commit-tree -m x -p c-dir file)");
	row_objects_rig_know("c-file");
	row_objects_rig_has("on-dir", "on-dir dir b:dir/sub b:dir/sub/h");
	row_objects_rig_has("on-same", "on-same same b:dir/sub b:dir/sub/h");
	row_objects_rig_has("on-file", "on-file");
	row_objects_rig_know("c-dir");
	row_objects_rig_refuses("back");
	row_objects_rig_know("b");
	row_objects_rig_refuses("c-file");
	row_objects_rig_refuses("c-no-dir");
	row_objects_rig_has("c-dir", "c-dir dir b:dir/sub b:dir/sub/h");
}

TEST(a_submodule)
{
	make("git update-index --add --cacheinfo 160000,$(git rev-parse "
	     "b | tr 0-9 1-90),module && git commit -q -m s && git tag s");
	row_objects_rig_know("b");
	row_objects_rig_has("s", "s s^{tree}");
}

/* Malformed objects, and references to objects of a wrong type. */
TEST(malformed)
{
	static const char *const tips[] = { "no-tree", "file-tree", "tag-tree",
		"tree-parent", "tag-parent", "file-parent", "bad-tag",
		"bad-tree", "of-bad-tree", "null-tree", "null-parent" };
	size_t i;

	make("git tag -m x t b && p() { git rev-parse $1; } && made() { printf "
	     "'tree %s\nparent %s\n' $(p $2) $(p $3) | raw commit $1; } && "
	     "echo tree | raw commit no-tree && echo object | raw tag bad-tag "
	     "&& echo x | raw tree bad-tree && made file-tree b:f b && made "
	     "tag-tree t b && made tree-parent b^{tree} b^{tree} && made "
	     "tag-parent b^{tree} t && made file-parent b^{tree} a:f && made "
	     "of-bad-tree bad-tree b && null=$(p b | tr 0-9a-f 0) && printf "
	     "'tree %s\n' $null | raw commit null-tree && printf 'tree "
	     "%s\nparent %s\n' $(p b^{tree}) $null | raw commit null-parent");
	row_objects_rig_know("b b^{tree}");
	for (i = 0; i < sizeof(tips) / sizeof(tips[0]); i++)
		row_objects_rig_refuses(tips[i]);
	row_objects_rig_has("t b", "t");
}

/* The base that a known parent names is malformed. */
TEST(a_malformed_base)
{
	make("echo x | raw tree bad && printf 'tree %s\\n' $(git rev-parse "
	     "bad) | raw commit p && printf 'tree %s\\n' $(git rev-parse b:f) "
	     "| raw commit q && for c in p q; do git tag on-$c $(git "
	     "commit-tree -m x -p $c b^{tree}); done");
	row_objects_rig_know("p q");
	row_objects_rig_refuses("on-p");
	row_objects_rig_refuses("on-q");
}

/* ---- bounds ---- */

/* Known commits with different trees: the most, and one more. */
TEST(parents)
{
	make(
	    "for i in 1 2 3 4 5 6 7 8 9; do echo $i >n && git add n && t=$(git "
	    "write-tree) && git tag p$i $(git commit-tree -m $i -p a $t) && "
	    "git tag like$i $(git commit-tree -m x -p a $t); set -- $@ -p p$i "
	    "-p like$i; [ $i -lt 8 ] || git tag of$i $(git commit-tree -m x "
	    "$@ a^{tree}); done");
	row_objects_rig_know("p1 p2 p3 p4 p5 p6 p7 p8 p9 like1 like2 like3 "
			     "like4 like5 like6 like7 like8 like9");
	row_objects_rig_has("of8", "of8 a^{tree} a:f");
	row_objects_rig_refuses("of9");
}

/* A commit, a tree, and files. */
TEST(objects)
{
	make("for i in $(seq 62); do echo $i >$i; done; git add . && git "
	     "commit -q -m fits && git tag fits && git reset -q --hard b && "
	     "for i in $(seq 63); do echo $i >$i; done; git add . && git "
	     "commit -q -m many && git tag many");
	row_objects_rig_know("b");
	ck_assert_int_eq(row_objects_rig_collect("fits"), 0);
	row_objects_rig_refuses("many");
	row_objects_rig_refuses("fits a:f");
}

TEST(contents)
{
	make("seq 100000 | head -c 65536 >x && git tag fits $(git hash-object "
	     "-w x) && echo >>x && git tag large $(git hash-object -w x) && "
	     "head -c 65535 x >y && git tag y $(git hash-object -w y) && "
	     "printf 1 >1 && git tag one $(git hash-object -w 1) && : >e && "
	     "git tag empty $(git hash-object -w e)");
	row_objects_rig_has("fits", "fits");
	row_objects_rig_refuses("large");
	row_objects_rig_has("y one", "y one");
	row_objects_rig_refuses("fits one");
	row_objects_rig_refuses("one fits");
	row_objects_rig_has("fits empty", "fits empty");
}

/* A tree of 128 KiB and a tree with a byte more, in a known parent. */
TEST(a_large_base)
{
	make("id=$(git rev-parse b:f) && s=$((12 + ${#id} / 2)) && n=$((131072 "
	     "/ s)) && pad=$(printf %$((131072 % s))s | tr ' ' x) && for more "
	     "in '' x; do t=$( (seq 1000 $((998 + n)) && echo last$pad$more) | "
	     "sed \"s/^/100644 blob $id\t/\" | git mktree) && git cat-file -s "
	     "$t >>sizes && git tag p$more $(git commit-tree -m x $t) && git "
	     "tag on$more $(git commit-tree -m x -p p$more $(printf '100644 "
	     "blob %s\tz\n' $id | git mktree)); done && printf "
	     "'131072\n131073\n' | cmp - sizes");
	row_objects_rig_know("p px");
	row_objects_rig_has("on", "on on^{tree}");
	row_objects_rig_refuses("onx");
}

/* Also entries that need no object take time: their names are compared. */
TEST(late)
{
	make("id=$(git rev-parse b:dir/sub) && git tag many $(git commit-tree "
	     "-m x -p b $(seq -f \"40000 tree $id\t%.0f\" 1200 | git mktree))");
	row_objects_rig_know("b b:dir/sub");
	row_objects_rig_step_ns = 1000;
	row_objects_rig_has("many", "many many^{tree}");
	row_objects_rig_step_ns = 10000;
	row_objects_rig_refuses("many");
	row_objects_rig_step_ns = ROW_OBJECTS_NS / 4;
	row_objects_rig_has("b:f", "b:f");
	row_objects_rig_know("a");
	row_objects_rig_refuses("b");
}

/* ---- unreadable objects ---- */

/* At each place of the walk an object is missing, cut, or a different one. */
TEST(unreadable)
{
	static const char *const places[] = { "c", "c^{tree}", "c:dir",
		"c:dir/g", "b", "b^{tree}", "b:dir" };
	static const char *const faults[] = { "rm -f $f", ": >$f",
		"head -c 10 $f >x; cp x $f", "cp $(path a:f) $f" };
	size_t i, j;

	make("echo g9 >dir/g && git commit -q -a -m c && git tag c");
	row_objects_rig_know("b");
	tmp_run("cp -r r keep");
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		for (j = 0; j < sizeof(faults) / sizeof(faults[0]); j++) {
			tmp_run("path() { p=$(git -C keep rev-parse $1); echo "
				"r/.git/objects/${p%%${p#??}}/${p#??}; } && "
				"f=$(path %s) && chmod +w $f && %s",
			    places[i], faults[j]);
			/* The tags are there, and git reads no object. */
			row_objects_rig_refuses("c");
			tmp_run("rm -rf r && cp -r keep r");
		}
	row_objects_rig_has("c", "c c^{tree} c:dir c:dir/g");
}
