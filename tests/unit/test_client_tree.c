/*
 * Proves that client/base/tree.c stays beneath its directory: a link, also in
 * the place of a directory, is neither copied nor followed, and a removal
 * removes the link alone. A copy has the content of all files, and every write,
 * new name and removal changes a sum; a lock is found.
 *
 * client/base/walk.c shows all names below a directory, and follows no link. It
 * keeps no list of the names, so a directory with very many names costs no
 * memory. Levels that are too deep and names that are too long are reported,
 * and hide no other directory. So the search for repositories finds all others,
 * and can go on without the rest; a failure of the machine is no such rest.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/scan.h"
#include "client/base/tree.h"
#include "client/base/walk.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static void setup(void)
{
	tmp_setup();
	tmp_put("from/a", "one\n");
	tmp_put("from/dir/b", "two\n");
	tmp_put("from/dir/empty", "");
	tmp_put("vault/secret", "precious\n");
	tmp_mkdir("to");
}

static void copy_into(const char *to)
{
	struct tree t = { .task = TREE_COPY };

	t.to = tree_open(tmp_fd, to);
	tree_walk(&t, tmp_fd, "from");
	tree_walk(&t, tmp_fd, "absent");
}

static struct tree sum(void)
{
	struct tree t = { .task = TREE_SUM };

	tree_walk(&t, tmp_fd, "from");
	return t;
}

CASE(.setup = setup, .teardown = tmp_teardown, .seconds = 60);

TEST(copies)
{
	copy_into("to");
	tmp_run("diff -r from to/from");
	ck_assert(!tmp_exists("to/absent"));
}

static const char *const strange[] = { "ln -s ../vault from/link",
	"ln -s ../vault/secret from/link", "mkfifo from/fifo",
	"mv from moved && ln -s vault from" };

TEST(copies_no_link, .times = 4, .exit = 128)
{
	tmp_run("%s", strange[_i]);
	copy_into("to");
}

TEST(removes_beneath)
{
	struct tree t = { .task = TREE_REMOVE };

	tmp_run("ln -s ../vault from/link && ln -s ../../vault from/dir/link");
	tree_walk(&t, tmp_fd, "from");
	ck_assert(!tmp_exists("from"));
	tmp_run("ln -s vault from");
	tree_walk(&t, tmp_fd, "from");
	ck_assert(!tmp_exists("from"));
	ck_assert(tmp_exists("vault/secret"));
}

static const char *const changes[] = { "printf three >>from/dir/b",
	"printf ONE >from/new && mv from/new from/a", "rm from/dir/empty",
	"mkdir from/dir/c", "chmod 700 from/dir" };

TEST(sees_a_change, .times = 5)
{
	struct tree before = sum(), again = sum(), after;

	ck_assert(before.sum == again.sum);
	tmp_run("%s", changes[_i]);
	after = sum();
	ck_assert(before.sum != after.sum);
	ck_assert_ptr_null(after.lock);
}

TEST(finds_a_lock)
{
	char *wanted = xasprintf("%s/from/dir/b.lock", tmp_root);
	struct tree t;

	tmp_put("from/dir/b.lock", "");
	t = sum();
	ck_assert_str_eq(t.lock, wanted);
	free(t.lock);
	free(wanted);
}

TEST(writes_no_other_file, .exit = 128)
{
	tmp_run("ln -s vault/secret link");
	tree_write(tmp_fd, "link", "lost\n");
}

/* ---- the walk ---- */

struct seen {
	size_t nr, nr_dirs, nr_errors;
	int err, level;         /* of the last error */
	const char *past, *end; /* names */
};

static enum walk_next see(void *arg, const struct walk_at *at)
{
	struct seen *s = arg;
	struct stat st, by_path;

	if (at->err) {
		s->nr_errors++;
		s->err = at->err;
		s->level = at->level;
		return WALK_ON;
	}
	s->nr++;
	s->nr_dirs += at->dir >= 0;
	ck_assert_int_eq(
	    fstatat(at->around, at->name, &st, AT_SYMLINK_NOFOLLOW), 0);
	ck_assert_int_eq(lstat(at->path, &by_path), 0);
	ck_assert_uint_eq(st.st_ino, by_path.st_ino);
	ck_assert(S_ISDIR(st.st_mode) == (at->dir >= 0));
	if (s->end && !strcmp(at->name, s->end))
		return WALK_END;
	return s->past && !strcmp(at->name, s->past) ? WALK_PAST : WALK_ON;
}

static struct seen walk(struct seen s, const char *below)
{
	char *path = xasprintf("%s/%s", tmp_root, below);

	ck_assert_int_eq(walk_below(path, see, &s), 0);
	free(path);
	return s;
}

TEST(walks)
{
	struct seen s;

	tmp_run(
	    "ln -s ../vault from/link && ln -s ../../vault from/dir/link && "
	    "mkfifo from/fifo");
	s = walk((struct seen){ 0 }, "from/");
	ck_assert_uint_eq(s.nr, 8);
	ck_assert_uint_eq(s.nr_dirs, 2);
	ck_assert_uint_eq(s.nr_errors, 0);
	s = walk((struct seen){ .past = "dir" }, "from");
	ck_assert_uint_eq(s.nr, 5);
	s = walk((struct seen){ .end = "b" }, "from/dir");
	ck_assert_uint_le(s.nr, 4);
	ck_assert_int_eq(chdir(tmp_root), 0);
	ck_assert_int_eq(walk_below("from/absent", see, &s), -ENOENT);
	ck_assert_int_eq(walk_below("from/a", see, &s), -ENOTDIR);
	ck_assert_int_eq(walk_below("from/link", see, &s), -ENOTDIR);
}

static void descend(const char *name, int levels)
{
	int dir = tree_open(tmp_fd, "from"), i, next;

	for (i = 0; i < levels; i++) {
		next = tree_make(dir, name);
		close(dir);
		dir = next;
	}
	close(dir);
}

TEST(walks_past_the_deepest)
{
	struct seen s;

	descend("d", WALK_LEVELS_MAX + 50);
	s = walk((struct seen){ 0 }, "from");
	ck_assert_uint_eq(s.nr, 5 + WALK_LEVELS_MAX);
	ck_assert_uint_eq(s.nr_errors, 1);
	ck_assert_int_eq(s.err, -ELOOP);
	ck_assert_int_eq(s.level, WALK_LEVELS_MAX);
}

TEST(walks_past_the_longest)
{
	char name[256];
	struct seen s;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	descend(name, 20);
	s = walk((struct seen){ 0 }, "from");
	ck_assert_uint_eq(s.nr, 5 + 15);
	ck_assert_uint_eq(s.nr_errors, 1);
	ck_assert_int_eq(s.err, -ENAMETOOLONG);
}

static void count_up(const char *dir, void *data)
{
	size_t *nr = data;

	ck_assert(scan_is_repository(dir));
	++*nr;
}

TEST(finds_all_but_what_is_beyond)
{
	struct rlimit was, few;
	size_t nr = 0, nr_beyond;
	char name[256];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	descend("d", WALK_LEVELS_MAX + 1);
	descend(name, 20);
	tmp_run("git init -q --bare from/x.git");
	ck_assert_int_eq(chdir(tmp_root), 0);
	ck_assert(scan_all_but_beyond("from/", count_up, &nr, &nr_beyond));
	ck_assert_uint_eq(nr, 1);
	ck_assert_uint_eq(nr_beyond, 2);
	ck_assert(!scan_repositories("from/", count_up, &nr));
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = 40;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	ck_assert(!scan_all_but_beyond("from/", count_up, &nr, &nr_beyond));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
}

static long peak_kib(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss;
}

/* The names have 2.5 MB. */
TEST(keeps_no_names)
{
	int dir = tree_open(tmp_fd, "from"), i;
	char name[256];
	size_t nr = 0;
	long before;

	descend("d", WALK_LEVELS_MAX + 1);
	tmp_run("git init -q --bare from/x.git && git init -q from/dir/wt && "
		"git init -q --bare from/x.git/inside.git && "
		"git init -q --bare vault/v.git && ln -s ../vault from/link");
	memset(name, 'n', sizeof(name));
	tree_write(dir, "one", "");
	for (i = 0; i < 10000; i++) {
		snprintf(name + 240, sizeof(name) - 240, "%d", i);
		ck_assert_int_eq(linkat(dir, "one", dir, name, 0), 0);
	}
	close(dir);
	ck_assert_int_eq(chdir(tmp_root), 0);
	before = peak_kib();
	ck_assert(!scan_repositories("from/", count_up, &nr));
	ck_assert_uint_eq(nr, 2);
	/* A sanitizer keeps what was freed. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	ck_assert_int_lt(peak_kib() - before, 2 << 10);
#else
	(void)before;
#endif
}
