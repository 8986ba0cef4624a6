/*
 * Proves that a fetch of refd-group leaves a repository with all objects that
 * the wanted ones need, from any state of the repository: missing, without the
 * bases, or with objects that are not connected. The repository's files lead
 * git to no program and no other repository. Git is real.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/group/service/fetch_repo.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define UUID "000102030405860708090a0b0c0d0e0f"

static uint8_t uuid[16] = { 0, 1, 2, 3, 4, 5, 0x86, 7, 8, 9, 10, 11, 12, 13, 14,
	15 };
static char *roots[2], *dir, *source;
static const char *place = "a b#.git";
static bool is_new;
static struct fetch_site site;
/* In place of refd: makes the hook in a repository that has no id yet. */
#define REFD_SCRIPT                                                            \
	"printf '#!/bin/sh\n[ $1 != enable ] || [ -e refd/id ] || "            \
	"{ mkdir hooks && ln -s $0 hooks/reference-transaction; }\n' "         \
	">refd && chmod +x refd"
static int cancel;
static enum refd_object_format format;
static struct text why;

static void make_source(const char *object_format)
{
	tmp_run("git init -q --bare --object-format=%s 'src/a b#.git' && "
		"git init -q -b main --object-format=%s w && cd w && "
		"for i in 1 2 3 4; do echo $i >f && git add f && "
		"git commit -qm $i || exit 1; done && "
		"git tag -a -m t t && git push -q '../src/a b#.git' "
		"HEAD:refs/heads/main t",
	    object_format, object_format);
	tmp_run("mkdir -p dst other");
}

static void setup(void)
{
	tmp_setup();
	roots[0] = xasprintf("%s/other", tmp_root);
	roots[1] = xasprintf("%s/dst", tmp_root);
	dir = xasprintf("%s/git", tmp_root);
	source = xasprintf("%s/src", tmp_root);
	site = (struct fetch_site){ roots, 2, dir,
		{ xasprintf("%s/refd", tmp_root), NULL } };
	cancel = eventfd(0, EFD_CLOEXEC);
	tmp_run(REFD_SCRIPT);
	fetch_dirs_make(dir);
	format = REFD_FORMAT_SHA1;
	is_new = false;
	place = "a b#.git";
	make_source("sha1");
}

static void teardown(void)
{
	close(cancel);
	free(roots[0]);
	free(roots[1]);
	free(dir);
	free(source);
	free(site.guard.refd);
	text_done(&why);
	tmp_teardown();
}

/* ---- calls ---- */

static struct refd_oid oid_of(const char *revision)
{
	char *hex = tmp_output("git -C w rev-parse '%s'", revision);
	struct refd_oid oid;

	ck_assert_msg(refd_oid_parse(hex, format, &oid) == 0, "%s", hex);
	free(hex);
	return oid;
}

static bool fetch_oids(const struct refd_oid *oids, size_t nr,
    const struct refd_oid *bases, size_t nr_bases)
{
	const struct fetch_wish wish = { source, "a b#.git", place, uuid,
		is_new, false, format, oids, nr, bases, nr_bases, cancel };

	text_clear(&why);
	return fetch_run(&site, &wish, &why);
}

/* Fetches WANTED, with BASE unless NULL. */
static bool fetch(const char *wanted, const char *base)
{
	struct refd_oid oid = oid_of(wanted), from = { { 0 } };

	if (base)
		from = oid_of(base);
	return fetch_oids(&oid, 1, &from, base != NULL);
}

static void assert_fetched(const char *wanted, const char *base)
{
	ck_assert_msg(fetch(wanted, base), "%s", why.data);
}

static void assert_refused(const char *text)
{
	ck_assert(!fetch("main", NULL));
	ck_assert_msg(strstr(why.data, text) != NULL, "%s", why.data);
}

/* The repository, as a shell word. */
#define REPO "'dst/a b#.git'"

/* A ref to REVISION has all objects. */
static void assert_whole(const char *revision)
{
	char *out;

	tmp_run("git -C " REPO " update-ref refs/whole $(git -C w rev-parse "
		"'%s')",
	    revision);
	out =
	    tmp_output("git -C " REPO " fsck --connectivity-only --no-dangling "
		       "2>&1 | grep -v ^notice:");
	ck_assert_str_eq(out, "");
	free(out);
}

static void make_empty(void)
{
	tmp_run("git init -q --bare " REPO);
}

/* Copies the commit alone. */
static void copy_commit(const char *revision)
{
	tmp_run("git -C w cat-file commit %s | git -C " REPO
		" hash-object -w -t commit --stdin --literally",
	    revision);
}

static void assert_id(const char *root)
{
	char *id = tmp_output("cat '%s/a b#.git/refd/id'", root);
	char *wanted =
	    xasprintf("uuid " UUID "\njournal %032d\npath %s/%s/a b#.git\n", 0,
		tmp_root, root);

	ck_assert_str_eq(id, wanted);
	free(id);
	free(wanted);
}

/* ---- tests ---- */

CASE(.setup = setup, .teardown = teardown, .seconds = 120);

TEST(objects_arrive_in_every_format, .times = 2)
{
	if (_i == 1) {
		tmp_run("rm -rf src w");
		format = REFD_FORMAT_SHA256;
		make_source("sha256");
	}
	tmp_run("git init -q --bare --object-format=%s " REPO,
	    _i == 1 ? "sha256" : "sha1");
	assert_fetched("main~2", NULL);
	assert_whole("main~2");
	assert_fetched("main", "main~2");
	assert_whole("main");
	assert_id("dst");
	/* Nothing is missing, so the source is not asked. */
	tmp_run("rm -rf src");
	assert_fetched("main", "main~2");
}

TEST(a_missing_repository_is_made)
{
	tmp_run("rmdir dst && ln -s other dst");
	roots[1] = (free(roots[1]), xasprintf("%s/nowhere", tmp_root));
	/* A crash in git init has left this. */
	tmp_run("mkdir -p other/.refd-" UUID "/objects && "
		"cd other/.refd-" UUID " && "
		"touch HEAD HEAD.lock config config.lock");
	assert_fetched("main~1", NULL);
	tmp_run("test \"$(ls -A other)\" = '.refd-" UUID "'");
	assert_fetched("main", NULL);
	/* As its row does. */
	tmp_run("mv other/.refd-" UUID " 'other/a b#.git'");
	assert_fetched("main", NULL);
	assert_whole("main");
	assert_id("other");
	tmp_run("test \"$(ls -A other)\" = 'a b#.git'");
	tmp_run("ls " REPO "/hooks/reference-transaction && git -C " REPO
		" gc --quiet");
}

TEST(objects_of_every_type)
{
	struct refd_oid oids[] = { oid_of("t"), oid_of("main~1^{tree}"),
		oid_of("main~2:f"), oid_of("main~2:f") };

	make_empty();
	ck_assert_msg(fetch_oids(oids, 4, NULL, 0), "%s", why.data);
	assert_whole("t");
	tmp_run("git -C " REPO " cat-file -e $(git -C w rev-parse main~2:f)");
}

TEST(bases_that_cannot_be_trusted, .times = 3)
{
	struct refd_oid oid = oid_of("main");
	struct refd_oid bases[] = { { { 1 } }, oid_of("main~1") };

	make_empty();
	if (_i > 0)
		copy_commit("main~1");
	if (_i > 1)
		copy_commit("main");
	ck_assert_msg(fetch_oids(&oid, 1, bases, 2), "%s", why.data);
	assert_whole("main");
}

/* The first fetch has a ref here, and its objects need not come again. */
TEST(a_base_saves_objects, .times = 2)
{
	assert_fetched("main~3", NULL);
	tmp_run("rm -rf dst && mv other dst && "
		"mv dst/.refd-" UUID " " REPO " && git -C " REPO
		" update-ref refs/heads/main $(git -C w rev-parse main~3)");
	if (_i > 0)
		tmp_run("git -C " REPO " pack-refs --all");
	assert_fetched("main~1", NULL);
	assert_fetched("main", "main~1");
	assert_whole("main");
	/* Each pack has one object of each type for every commit. */
	tmp_run("cd " REPO " && test $(git count-objects -v | sed -n "
		"'s/in-pack: //p') -eq 12");
}

TEST(broken_refs_do_not_matter)
{
	make_empty();
	tmp_run(
	    "cd " REPO " && mkdir -p refs/heads/d && "
	    "echo %040d >refs/heads/zero && echo %039d1 >refs/heads/gone && "
	    "echo x >refs/heads/odd && mkfifo refs/heads/fifo && "
	    "ln -s / refs/heads/link && ln -s /etc refs/tags/etc && "
	    "printf '%%s refs/heads/p\\n^%%s\\nodd\\n' %040d %040d "
	    ">packed-refs",
	    0, 0, 2, 3);
	tmp_run("mkdir " REPO "/refd && printf 'uuid " UUID
		"\njournal %032d\npath /x\n' >" REPO "/refd/id",
	    1);
	assert_fetched("main", NULL);
	tmp_run("cd " REPO " && rm -rf refs/heads/* refs/tags/* packed-refs");
	assert_whole("main");
}

TEST(many_objects_at_once)
{
	struct refd_oid *oids = xcalloc(10000, sizeof(*oids));
	char *list, *line, *next;
	size_t nr = 0;

	tmp_run("(for i in $(seq 10000); do printf 'commit refs/heads/many\\n"
		"committer a <a@x> %%d +0000\\ndata 1\\nx' $i; done) | "
		"git -C 'src/a b#.git' fast-import --quiet");
	list = tmp_output("git -C 'src/a b#.git' rev-list many");
	for (next = list; nr < 10000 && (line = strsep(&next, "\n")); nr++)
		ck_assert_int_eq(refd_oid_parse(line, format, &oids[nr]), 0);
	ck_assert_uint_eq(nr, 10000);
	make_empty();
	ck_assert_msg(fetch_oids(oids, nr, NULL, 0), "%s", why.data);
	tmp_run(
	    "test $(git -C " REPO
	    " cat-file --batch-all-objects --batch-check | wc -l) -eq 10001");
	free(list);
	free(oids);
}

TEST(the_source_is_a_url)
{
	free(source);
	source = xasprintf("file://%s/src/", tmp_root);
	make_empty();
	assert_fetched("main", NULL);
	assert_whole("main");
}

/* ---- refused ---- */

TEST(a_missing_object_is_no_success)
{
	const struct refd_oid oid = { { 1 } };

	make_empty();
	ck_assert(!fetch_oids(&oid, 1, NULL, 0));
	/* The messages of git are not for everybody. */
	ck_assert_msg(strstr(why.data, "status 128") &&
		!strstr(why.data, "0100"),
	    "%s", why.data);
}

/* The leader may have replaced the repository by now. The row of the new
 * repository brings the new one to this node. */
TEST(a_different_repository_stays)
{
	make_empty();
	tmp_run("mkdir " REPO "/refd && printf 'uuid %032d\\njournal %032d\\n"
		"path /x\\n' >" REPO "/refd/id",
	    1, 2);
	assert_fetched("main", NULL);
	tmp_run("test -z \"$(find " REPO "/objects -type f)\" && "
		"test -e other/.refd-" UUID "/objects/pack/*.pack && "
		"rm -r other/.refd-" UUID);
	/* A power loss can leave this. */
	tmp_run("printf '\\0\\0' >" REPO "/refd/id");
	assert_fetched("main", NULL);
	assert_id("dst");
	assert_fetched("main", NULL);
}

/* A repository that was renamed on the leader is not here yet. */
TEST(a_repository_is_found_elsewhere, .times = 2)
{
	make_empty();
	assert_fetched("main~1", NULL);
	tmp_run("mkdir -p dst/x/y && mv " REPO " dst/x/y/z.git && "
		"mkdir -p dst/x/not.git/objects dst/x/not.git/sub && "
		"ln -s ../x dst/x/link && "
		"mkdir -p dst/a/refd dst/b/refd dst/c/refd && "
		"cp -r dst/x/y/z.git other/.refd-way-" UUID "-1 && "
		"head -c 8193 /dev/zero | tr '\\0' a >dst/a/refd/id && "
		"python3 -c 'import socket; "
		"socket.socket(socket.AF_UNIX).bind(\"dst/b/refd/id\")' && "
		"mkfifo dst/c/refd/id");
	place = "new/name.git";
	is_new = _i > 0;
	assert_fetched("main", NULL);
	if (!is_new) {
		tmp_run("test ! -e other/new && mv dst/x/y/z.git " REPO);
		assert_whole("main");
	} else {
		tmp_run("test -e other/new/.refd-" UUID "/refd/id");
	}
}

/* A member of a shared repository can write any id into a ref that refd made.
 * So an id that others may write, as after chmod -R g+w, counts only at the
 * path of the repository. */
TEST(an_id_that_others_may_write)
{
	make_empty();
	assert_fetched("main~1", NULL);
	tmp_run("mv " REPO " dst/z.git && chmod 664 dst/z.git/refd/id");
	place = "new/name.git";
	/* z.git may be the renamed repository, so the fetch makes no second
	 * one. */
	assert_refused("others may write a refd/id with its uuid, " UUID);
	/* Nor does the fetch take an empty repository at the path. */
	tmp_run("git init -q --bare dst/new/name.git");
	assert_refused("others may write a refd/id with its uuid, " UUID);
	tmp_run("test ! -e dst/new/name.git/refd && rm -r dst/new");
	tmp_run("mkdir dst/new && mv dst/z.git dst/new/.refd-" UUID);
	assert_refused("others may write a refd/id with its uuid, " UUID);
	tmp_run("test ! -e other/new && test -e dst/new/.refd-" UUID "/HEAD");
	/* The right one comes first, wherever it is. */
	tmp_run("cd dst && mv new/.refd-" UUID " y.git && cp -a y.git x.git && "
		"cp -a y.git z.git && chmod 644 x.git/refd/id");
	assert_fetched("main", NULL);
	tmp_run("cd dst && oid=$(git -C ../w rev-parse main) && "
		"git -C x.git cat-file -e $oid && ! git -C y.git cat-file -e "
		"$oid && ! git -C z.git cat-file -e $oid");
	tmp_run("cd dst && rm -r x.git y.git && mv z.git new/name.git");
	assert_fetched("main", NULL);
	tmp_run("git -C dst/new/name.git cat-file -e $(git -C w rev-parse "
		"main)");
}

#define UUIDS "uuid " UUID "\\njournal " UUID "\\n"

static const char *const no_ids[] = {
	UUIDS "path x\\n0x000000000001-0x000000000001-00000001.ref\\n",
	UUIDS "path /x",
	UUIDS "path /x\\n\\0\\n",
	UUIDS "path /",
	UUIDS,
};
#define NO_IDS (sizeof(no_ids) / sizeof(no_ids[0]))

/* A list of reftables, and the copy of a torn log, can have a line of somebody
 * else, in a file that only this account may write. */
TEST(a_text_that_is_no_id, .times = (int)NO_IDS)
{
	make_empty();
	assert_fetched("main~1", NULL);
	tmp_run("mv " REPO " dst/z.git && printf '%s' >dst/z.git/refd/id",
	    no_ids[_i]);
	place = "new/name.git";
	assert_fetched("main", NULL);
	tmp_run("test -e other/new/.refd-" UUID "/refd/id && "
		"! git -C dst/z.git cat-file -e $(git -C w rev-parse main)");
}

/* The rows of the group do not have all refs of these. */
TEST(old_refs_are_refused)
{
	make_empty();
	copy_commit("main");
	tmp_run("git -C w rev-parse main >" REPO "/refs/heads/old");
	assert_fetched("main", NULL);
	tmp_run("test ! -e " REPO "/refd && rm -r other/.refd-" UUID);
	tmp_run("rm " REPO "/refs/heads/old");
	uuid[6] = 0x46;
	assert_refused("copy it from the leader");
	tmp_run("rm -r " REPO);
	assert_refused("copy it from the leader");
	tmp_run("test ! -e " REPO);
	uuid[6] = 0x86;
	assert_fetched("main", NULL);
}

TEST(links_are_refused, .times = 8)
{
	static const char *const plant[] = {
		"mv " REPO " real && ln -s ../real " REPO,
		"mv " REPO "/objects real && ln -s ../../real " REPO "/objects",
		"mv " REPO "/objects/pack real && ln -s ../../../real " REPO
		"/objects/pack",
		"mkdir real && ln -s ../../real " REPO "/refd",
		"mkdir " REPO "/refd && ln -s /etc/passwd " REPO "/refd/id",
		"mkdir " REPO "/refd && mkfifo " REPO "/refd/id",
		"ln -s ../real.git/objects " REPO "/objects/info/alternates",
		"echo /x >" REPO "/objects/info/alternates",
	};

	make_empty();
	tmp_run("mkdir -p " REPO "/objects/info");
	tmp_run("%s", plant[_i]);
	ck_assert_int_eq(fetch("main", NULL), _i < 6 && _i != 2);
	tmp_run("! test -d real || test -z \"$(find real -name 'pack-*')\"");
}

/* None of the commands leaves the file. */
TEST(the_configuration_of_the_repository_has_no_effect)
{
	struct refd_oid oid = oid_of("main");

	make_empty();
	tmp_run("cd " REPO " && for key in core.fsmonitor core.sshCommand "
		"core.alternateRefsCommand core.gitProxy credential.helper "
		"gc.auto; do git config $key 'touch %s/bad'; done && "
		"git config core.hooksPath %s/hooks && "
		"git config url.%s/nowhere.insteadOf %s/src && "
		"git config extensions.partialClone x && "
		"git config remote.x.promisor true",
	    tmp_root, tmp_root, tmp_root, tmp_root);
	setenv("GIT_OBJECT_DIRECTORY", "/nowhere", 1);
	setenv("GIT_CONFIG_COUNT", "1", 1);
	ck_assert_msg(fetch_oids(&oid, 1, NULL, 0), "%s", why.data);
	unsetenv("GIT_OBJECT_DIRECTORY");
	unsetenv("GIT_CONFIG_COUNT");
	ck_assert(!tmp_exists("bad"));
	assert_whole("main");
}

/* git runs with the configuration of a copy (join_copy.h), so none of the old
 * files may be there. */
TEST(a_copy_has_no_file_of_an_old_repository)
{
	const struct fetch_wish wish = { .source = source,
		.source_path = place,
		.path = place,
		.uuid = uuid,
		.copies = true,
		.format = format,
		.cancel = -1 };
	struct fetch_repo repo;
	char *out;

	tmp_run("git init -q --bare other/old && cd other/old && mkdir refd && "
		"printf 'uuid " UUID "\njournal %032d\npath /x\n' >refd/id && "
		"chmod 644 refd/id && "
		"git symbolic-ref refs/heads/a refs/heads/b && "
		"git config include.path /evil && echo /evil >commondir && "
		"cd .. && "
		"cp -r old .refd-" UUID " && cp -r old 'a b#.git'",
	    1);
	ck_assert_msg(fetch_repo_open(&repo, &site, &wish, &why), "%s",
	    why.data);
	out = tmp_output("cd other/.refd-" UUID " && stat -c %%a . && "
			 "find refs -type f && ls commondir 2>/dev/null; "
			 "grep -r evil .");
	ck_assert_str_eq(out, "700\n");
	free(out);
	ck_assert_msg(fetch_repo_place(&site, &wish, &why), "%s", why.data);
	fetch_repo_close(&repo);
	tmp_run(
	    "cd other && test $(stat -c %%a 'a b#.git' old | uniq | wc -l) = 1 && "
	    "test ! -e .refd-" UUID " && ! grep -rq evil 'a b#.git' && "
	    "diff -r old .refd-way-" UUID "-*");
}

/* Its rows would take an old copy, or a part of a new one, for the present
 * one. */
TEST(an_old_copy_leaves_its_place)
{
	const struct fetch_wish wish = { .path = "t/x.git",
		.uuid = uuid,
		.copies = true,
		.format = format,
		.cancel = -1 };

	tmp_run("git init -q --bare other/t/x.git && cd other/t && "
		"mkdir x.git/refd && printf 'uuid " UUID
		"\njournal %032d\npath /x\n' >x.git/refd/id && "
		"chmod 644 x.git/refd/id && "
		"cp -r x.git old && cp -r x.git .refd-" UUID,
	    1);
	ck_assert(fetch_repo_leave(&site, &wish));
	tmp_run("cd other/t && test ! -e x.git && test ! -e .refd-" UUID " && "
		"test $(ls -d .refd-way-" UUID "-* | wc -l) = 2 && "
		"for way in .refd-way-*; do diff -r old $way || exit 1; done");
	ck_assert(fetch_repo_leave(&site, &wish));
	/* Others stay. */
	tmp_run("cd other/t && ln -s old x.git && mkdir -p .refd-" UUID "/refd "
		"&& echo uuid %032d >.refd-" UUID "/refd/id",
	    1);
	ck_assert(fetch_repo_leave(&site, &wish));
	tmp_run("cd other/t && test -L x.git && test -e .refd-" UUID);
}

TEST(a_fetch_can_be_ended)
{
	char *path = xstrdup(getenv("PATH"));
	char *with = xasprintf("%s/bin:%s", tmp_root, path);
	char *fifo = xasprintf("%s/fifo", tmp_root);

	tmp_put("bin/ssh",
	    "#!/bin/sh\n"
	    "echo $$ >$HOME/pid\n"
	    "echo \"$*\" >$HOME/words\n"
	    "echo >$HOME/fifo\n"
	    "exec sleep 1000\n");
	tmp_run("chmod +x bin/ssh && mkfifo fifo");
	setenv("PATH", with, 1);
	free(source);
	source = xstrdup("ssh://host/src");
	close(cancel);
	cancel = open(fifo, O_RDWR | O_CLOEXEC);
	make_empty();
	assert_refused("git was ended");
	setenv("PATH", path, 1);
	/* ssh ends if the source has vanished. */
	tmp_run("grep -q ServerAliveInterval=5 words");
	/* The child of git has ended, too. */
	tmp_run("for i in $(seq 100); do cat /proc/$(cat pid)/status | "
		"grep -q 'State:.[RSD]' || exit 0; sleep 0.1; done; exit 1");
	free(path);
	free(with);
	free(fifo);
}
