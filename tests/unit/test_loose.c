/*
 * Proves that refd reads loose refs as git does: file contents compared with
 * git, links, directories and special files. Also proves staging with an exact
 * mode, and clearing, searching and pruning of directories.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/store/files/format/loose.h"
#include "proto/limits.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define SHA1                  REFD_FORMAT_SHA1
#define READ(path, v)         loose_read(sys, tmp_fd, path, SHA1, v)
#define PARSE(text, len, v)   loose_parse(text, len, SHA1, v)
#define FORMAT(oid, to, text) loose_format(oid, SHA1, to, text)
#define HEX                   "0123456789abcdef0123456789abcdef01234567"
#define UPPER                 "0123456789ABCDEF0123456789ABCDEF01234567"
#define REST                  "89abcdef0123456789abcdef"

static const struct sys *sys = &sys_kernel;

struct content {
	enum refd_object_format format;
	const char *bytes;
	size_t len;
	enum loose_kind kind;
	const char *target;
};

#define C(literal, kind, target)                                               \
	{ SHA1, literal, sizeof(literal) - 1, kind, target }

static const struct content contents[] = {
	C(HEX "\n", LOOSE_OID, NULL),
	C(HEX, LOOSE_OID, NULL),
	C(HEX "\r\n", LOOSE_OID, NULL),
	C(HEX " \t\n\n", LOOSE_OID, NULL),
	C(HEX "\tanything at all\n", LOOSE_OID, NULL),
	C(HEX "\0anything", LOOSE_OID, NULL),
	C(UPPER "\n", LOOSE_OID, NULL),
	C(HEX "0\n", LOOSE_BROKEN, NULL),
	C(HEX "x", LOOSE_BROKEN, NULL),
	C(HEX "\v", LOOSE_BROKEN, NULL),
	C(HEX "\f\n", LOOSE_BROKEN, NULL),
	C(" " HEX "\n", LOOSE_BROKEN, NULL),
	C("0123456789abcdef0123456789abcdef0123456\n", LOOSE_BROKEN, NULL),
	C("", LOOSE_BROKEN, NULL),
	C("\n", LOOSE_BROKEN, NULL),
	C("\0\0\0\0\0\0\0\0", LOOSE_BROKEN, NULL),
	C("ref", LOOSE_BROKEN, NULL),
	C(" ref: refs/heads/y\n", LOOSE_BROKEN, NULL),
	C("REF: refs/heads/y\n", LOOSE_BROKEN, NULL),
	C("ref: refs/heads/y\n", LOOSE_SYMREF, "refs/heads/y"),
	C("ref:refs/heads/y", LOOSE_SYMREF, "refs/heads/y"),
	C("ref:\t \n refs/heads/y \r\n\n", LOOSE_SYMREF, "refs/heads/y"),
	C("ref: refs/heads/y\0junk\n", LOOSE_SYMREF, "refs/heads/y"),
	C(HEX REST "\n", LOOSE_BROKEN, NULL),
	{ REFD_FORMAT_SHA256, HEX REST "\n", 65, LOOSE_OID, NULL },
	{ REFD_FORMAT_SHA256, HEX "\n", 41, LOOSE_BROKEN, NULL },
};

#define NR_CONTENTS (sizeof(contents) / sizeof(contents[0]))

/* Thousands of directories on a busy disk take long. */
CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 60);

TEST(a_content_reads_as_git_reads_it, .times = NR_CONTENTS)
{
	const struct content *c = &contents[_i];
	struct loose_value v;
	char *out, *want = NULL;

	tmp_run("git init -q --bare --object-format=%s r",
	    refd_object_format_name(c->format));
	tmp_put_bytes("r/refs/heads/x", c->bytes, c->len);
	ck_assert_int_eq(
	    loose_read(sys, tmp_fd, "r/refs/heads/x", c->format, &v), 0);
	ck_assert_int_eq(v.kind, c->kind);
	ck_assert_int_gt(v.mtime_ns, 0);
	/* only one of the commands answers, or none if the ref is broken */
	out = tmp_output("cd r; git symbolic-ref -q refs/heads/x "
			 "2>/dev/null || "
			 "git rev-parse -q --verify refs/heads/x "
			 "2>/dev/null || echo broken");
	switch (v.kind) {
	case LOOSE_OID:
		ck_assert_int_gt(asprintf(&want, HEX "%s\n",
				     c->format == SHA1 ? "" : REST),
		    0);
		break;
	case LOOSE_SYMREF:
		ck_assert_str_eq(v.target, c->target);
		ck_assert_int_gt(asprintf(&want, "%s\n", v.target), 0);
		break;
	case LOOSE_BROKEN:
		want = strdup("broken\n");
		break;
	case LOOSE_ABSENT:
	case LOOSE_DIR:
		ck_abort();
	}
	ck_assert_str_eq(out, want);
	free(want);
	free(out);
	loose_value_done(&v);
	loose_value_done(&v);
}

/* From an exact allocation, so that a sanitizer sees any longer read. */
TEST(parsing_stays_inside_its_bytes, .times = NR_CONTENTS)
{
	const struct content *c = &contents[_i];
	struct loose_value v;
	char hex[REFD_OID_MAX_HEX + 1];
	size_t len;
	char *copy;

	for (len = 0; len <= c->len; len++) {
		copy = malloc(len > 0 ? len : 1);
		memcpy(copy, c->bytes, len);
		ck_assert_int_eq(loose_parse(copy, len, c->format, &v), 0);
		if (v.kind == LOOSE_OID)
			ck_assert_str_eq(refd_oid_hex(&v.oid, SHA1, hex), HEX);
		loose_value_done(&v);
		free(copy);
	}
}

TEST(only_what_is_written_by_rule_is_exact)
{
	static const char *const inexact[] = { HEX, HEX "\r\n", HEX "\n\n",
		HEX " ", HEX "x\n", "ref: refs/heads/y", "ref:" };
	static const char torn[] = "ref: refs/he\0\0\0\n";
	static const char symref[] = "ref: refs/heads/y\n";
	struct loose_value v;
	size_t i;

	ck_assert_int_eq(PARSE(HEX "\n", REFD_SHA1_HEX + 1, &v), 0);
	ck_assert(v.exact);
	ck_assert_int_eq(PARSE(symref, strlen(symref), &v), 0);
	ck_assert(v.exact);
	loose_value_done(&v);
	ck_assert_int_eq(PARSE(torn, sizeof(torn) - 1, &v), 0);
	ck_assert(!v.exact);
	loose_value_done(&v);
	for (i = 0; i < sizeof(inexact) / sizeof(inexact[0]); i++) {
		ck_assert_int_eq(PARSE(inexact[i], strlen(inexact[i]), &v), 0);
		ck_assert(!v.exact);
		loose_value_done(&v);
	}
}

TEST(an_empty_target_is_the_callers_to_refuse)
{
	struct loose_value v;

	ck_assert_int_eq(PARSE("ref: \n", 6, &v), 0);
	ck_assert_int_eq(v.kind, LOOSE_SYMREF);
	ck_assert_str_eq(v.target, "");
	loose_value_done(&v);
}

static enum loose_kind kind_of(const char *path)
{
	struct loose_value v;
	enum loose_kind kind;

	ck_assert_int_eq(READ(path, &v), 0);
	kind = v.kind;
	loose_value_done(&v);
	return kind;
}

TEST(long_contents)
{
	char *big = malloc(100000);

	memset(big, ' ', 100000);
	memcpy(big, HEX, REFD_SHA1_HEX);
	tmp_put_bytes("oid", big, 100000);
	memcpy(big, "ref:", 4);
	memset(big + 4, 'a', 99996);
	tmp_put_bytes("sym", big, 100000);
	free(big);
	ck_assert_int_eq(kind_of("oid"), LOOSE_OID);
	ck_assert_int_eq(kind_of("sym"), LOOSE_BROKEN);
}

TEST(nothing_there_is_absent)
{
	tmp_put("file", HEX);
	ck_assert_int_eq(kind_of("no"), LOOSE_ABSENT);
	ck_assert_int_eq(kind_of("no/such/path"), LOOSE_ABSENT);
	ck_assert_int_eq(kind_of("file/below"), LOOSE_ABSENT);
}

TEST(links_are_read_and_never_followed)
{
	struct loose_value v;

	tmp_put("refs/heads/y", HEX "\n");
	tmp_run("ln -s refs/heads/y good; ln -s ../outside out; "
		"ln -s refs/heads/a..b bad; ln -s refs/heads abs; "
		"ln -s \"$PWD/refs/heads/y\" full; ln -s loop loop");
	ck_assert_int_eq(READ("good", &v), 0);
	ck_assert_int_eq(v.kind, LOOSE_SYMREF);
	ck_assert_str_eq(v.target, "refs/heads/y");
	loose_value_done(&v);
	ck_assert_int_eq(kind_of("out"), LOOSE_BROKEN);
	ck_assert_int_eq(kind_of("bad"), LOOSE_BROKEN);
	ck_assert_int_eq(kind_of("full"), LOOSE_BROKEN);
	ck_assert_int_eq(kind_of("loop"), LOOSE_BROKEN);
	ck_assert_int_eq(READ("abs/y", &v), -ELOOP);
	ck_assert_int_eq(READ("loop/x", &v), -ELOOP);
}

TEST(directories)
{
	tmp_mkdir("empty/a/b");
	tmp_mkdir("empty/c");
	tmp_mkdir("locked/a");
	tmp_put("locked/a/x.lock", "");
	tmp_put("full/.hidden", "");
	tmp_mkdir("linked");
	tmp_run("ln -s ../empty linked/x");
	ck_assert_int_eq(kind_of("empty"), LOOSE_ABSENT);
	ck_assert(tmp_exists("empty/a/b"));
	ck_assert_int_eq(kind_of("locked"), LOOSE_DIR);
	ck_assert_int_eq(kind_of("full"), LOOSE_DIR);
	ck_assert_int_eq(kind_of("linked"), LOOSE_DIR);
}

TEST(special_files_are_broken_and_hang_nobody)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	ck_assert_int_eq(mkfifoat(tmp_fd, "fifo", 0666), 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%.90s/sock", tmp_root);
	ck_assert_int_eq(bind(s, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(kind_of("fifo"), LOOSE_BROKEN);
	ck_assert_int_eq(kind_of("sock"), LOOSE_BROKEN);
	close(s);
}

TEST(a_value_is_staged_with_its_mode)
{
	static const mode_t modes[] = { 0600, 0640, 0664, 0666, 0444 };
	char name[16], content[LOOSE_CONTENT_MAX], *text;
	struct refd_oid oid;
	size_t i;
	int fd, len;

	ck_assert_int_eq(refd_oid_parse(UPPER, SHA1, &oid), 0);
	len = FORMAT(&oid, NULL, content);
	ck_assert_int_eq(len, 41);
	/* Umask of the daemon. */
	umask(0);
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		snprintf(name, sizeof(name), "s%zu", i);
		fd = loose_stage(sys, tmp_fd, name, content, (size_t)len,
		    modes[i]);
		ck_assert_int_ge(fd, 0);
		close(fd);
		ck_assert_uint_eq(tmp_mode(name), modes[i]);
		text = tmp_get(name);
		ck_assert_str_eq(text, HEX "\n");
		free(text);
	}
	ck_assert_int_eq(loose_stage(sys, tmp_fd, "s0", "x", 1, 0600), -EEXIST);
	ck_assert(tmp_exists("s0"));
}

TEST(a_symref_is_formatted_as_git_writes_it)
{
	static const struct refd_oid oid;
	char content[LOOSE_CONTENT_MAX], *target;
	struct loose_value value;
	int len;

	len = FORMAT(&oid, "refs/heads/x", content);
	ck_assert_str_eq(content, "ref: refs/heads/x\n");
	ck_assert_int_eq(len, (int)strlen(content));
	ck_assert_int_eq(PARSE(content, (size_t)len, &value), 0);
	ck_assert_int_eq(value.kind, LOOSE_SYMREF);
	ck_assert_str_eq(value.target, "refs/heads/x");
	loose_value_done(&value);
	target = malloc(LOOSE_CONTENT_MAX + 1);
	memset(target, 'a', LOOSE_CONTENT_MAX);
	target[LOOSE_CONTENT_MAX] = '\0';
	ck_assert_int_eq(FORMAT(&oid, target, content), -ENAMETOOLONG);
	target[LOOSE_CONTENT_MAX - 7] = '\0';
	ck_assert_int_eq(FORMAT(&oid, target, content), LOOSE_CONTENT_MAX - 1);
	target[LOOSE_CONTENT_MAX - 7] = 'a';
	target[LOOSE_CONTENT_MAX - 6] = '\0';
	ck_assert_int_eq(FORMAT(&oid, target, content), -ENAMETOOLONG);
	free(target);
}

static int no_space(const struct sys *s, int fd, const void *buf, size_t len)
{
	sys_kernel.write_all(s, fd, buf, len / 2);
	return -ENOSPC;
}

TEST(a_failed_staging_leaves_nothing)
{
	struct sys faulty = sys_kernel;

	faulty.write_all = no_space;
	ck_assert_int_eq(loose_stage(&faulty, tmp_fd, "s", HEX "\n", 41, 0666),
	    -ENOSPC);
	ck_assert(!tmp_exists("s"));
}

TEST(empty_trees_are_cleared)
{
	char *blocker = (char *)"untouched";

	tmp_mkdir("a/b/c/d");
	tmp_mkdir("a/x");
	ck_assert_int_eq(loose_clear_dirs(sys, tmp_fd, "a", &blocker), 0);
	ck_assert_ptr_null(blocker);
	ck_assert(!tmp_exists("a"));
	ck_assert_int_eq(loose_clear_dirs(sys, tmp_fd, "a", NULL), 0);
	tmp_put("f", "x");
	ck_assert_int_eq(loose_clear_dirs(sys, tmp_fd, "f", NULL), 0);
	ck_assert(tmp_exists("f"));
}

TEST(a_tree_with_something_in_it_stays)
{
	char *blocker;

	tmp_put("a/b/c.lock", "");
	tmp_mkdir("a/b/e");
	ck_assert_int_eq(loose_clear_dirs(sys, tmp_fd, "a", &blocker),
	    -ENOTEMPTY);
	ck_assert_str_eq(blocker, "a/b/c.lock");
	free(blocker);
	ck_assert(tmp_exists("a/b/c.lock"));
	ck_assert_int_eq(loose_clear_dirs(sys, tmp_fd, "a", NULL), -ENOTEMPTY);
}

/* A search of many directories ends at a limit. */
TEST(of_very_many_directories_not_all_are_walked)
{
	char *found = NULL;

	tmp_run("mkdir -p a/b; cd a/b; seq 9990 | xargs mkdir");
	ck_assert_int_eq(loose_find_below(sys, tmp_fd, "a", &found), 0);
	tmp_run("cd a; seq 20 | xargs mkdir");
	ck_assert_int_eq(loose_find_below(sys, tmp_fd, "a", &found), -E2BIG);
	ck_assert_int_eq(loose_dir_holds_file(sys, tmp_fd, "a"), -E2BIG);
	ck_assert_int_eq(loose_clear_dirs(sys, tmp_fd, "a", NULL), -E2BIG);
	tmp_run("rm -r a/b");
	ck_assert_int_eq(loose_clear_dirs(sys, tmp_fd, "a", NULL), 0);
	ck_assert(!tmp_exists("a"));
}

/* A link is not a directory that may be emptied. */
TEST(clearing_does_not_follow_links)
{
	tmp_mkdir("outside/empty");
	tmp_mkdir("a");
	tmp_run("ln -s ../outside a/l; ln -s outside top");
	ck_assert_int_eq(loose_clear_dirs(sys, tmp_fd, "a", NULL), -ENOTEMPTY);
	ck_assert_int_eq(loose_clear_dirs(sys, tmp_fd, "top", NULL), 0);
	ck_assert(tmp_exists("outside/empty"));
}

/* Some file systems return no type in readdir(3). */
static int untyped(const struct sys *s, struct sys_dir *dir,
    struct sys_dirent *entry)
{
	int r = sys_kernel.dir_next(s, dir, entry);

	entry->type = 0;
	return r;
}

TEST(refs_below_a_name_are_found)
{
	struct sys plain = sys_kernel;
	char *found = NULL;

	plain.dir_next = untyped;
	tmp_mkdir("refs/heads/a/empty");
	tmp_put("refs/heads/a/x.lock", "");
	tmp_put("refs/heads/a/.tmp", "");
	tmp_put("refs/heads/a/d.lock/ref", HEX);
	ck_assert_int_eq(loose_find_below(sys, tmp_fd, "refs/heads/a", &found),
	    0);
	ck_assert_int_eq(loose_find_below(sys, tmp_fd, "refs/heads/no", &found),
	    0);
	ck_assert_int_eq(
	    loose_find_below(&plain, tmp_fd, "refs/heads/a", &found), 0);
	ck_assert_ptr_null(found);
	tmp_put("refs/heads/a/b/c", HEX);
	ck_assert_int_eq(loose_find_below(sys, tmp_fd, "refs/heads/a", &found),
	    1);
	ck_assert_str_eq(found, "refs/heads/a/b/c");
	free(found);
	ck_assert_int_eq(
	    loose_find_below(&plain, tmp_fd, "refs/heads/a", &found), 1);
	ck_assert_str_eq(found, "refs/heads/a/b/c");
	free(found);
	ck_assert_int_eq(
	    loose_find_below(sys, tmp_fd, "refs/heads/a/b/c", &found), 0);
}

TEST(a_path_that_is_too_long_is_told)
{
	char path[REFD_PATH_MAX + 1];
	struct loose_value v;
	char *found;

	memset(path, 'a', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	ck_assert_int_eq(READ(path, &v), -ENAMETOOLONG);
	ck_assert_int_eq(loose_find_below(sys, tmp_fd, path, &found),
	    -ENAMETOOLONG);
	ck_assert_int_eq(loose_clear_dirs(sys, tmp_fd, path, NULL),
	    -ENAMETOOLONG);
	loose_prune_parents(sys, tmp_fd, path, 0);
}

TEST(empty_parents_are_pruned_down_to_what_is_kept)
{
	tmp_mkdir("refs/heads/a/b/c");
	loose_prune_parents(sys, tmp_fd, "refs/heads/a/b/c/ref", 2);
	ck_assert(!tmp_exists("refs/heads/a"));
	ck_assert(tmp_exists("refs/heads"));
	tmp_mkdir("refs/heads/a/b/c");
	tmp_put("refs/heads/a/x", HEX);
	loose_prune_parents(sys, tmp_fd, "refs/heads/a/b/c/ref", 2);
	ck_assert(!tmp_exists("refs/heads/a/b"));
	ck_assert(tmp_exists("refs/heads/a"));
	loose_prune_parents(sys, tmp_fd, "HEAD", 0);
	loose_prune_parents(sys, tmp_fd, "refs/heads/ref", 2);
	ck_assert(tmp_exists("refs/heads"));
}
