/*
 * Proves that client/base/tree.c stays beneath its directory: a link, also in
 * the place of a directory, is neither copied nor followed, and a removal
 * removes the link alone. A copy has the content of all files, and every write,
 * new name and removal changes a sum; a lock is found.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "client/base/tree.h"
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

START_TEST(copies)
{
	copy_into("to");
	tmp_run("diff -r from to/from");
	ck_assert(!tmp_exists("to/absent"));
}
END_TEST

static const char *const strange[] = { "ln -s ../vault from/link",
	"ln -s ../vault/secret from/link", "mkfifo from/fifo",
	"mv from moved && ln -s vault from" };

START_TEST(copies_no_link)
{
	tmp_run("%s", strange[_i]);
	copy_into("to");
}
END_TEST

START_TEST(removes_beneath)
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
END_TEST

static const char *const changes[] = { "printf three >>from/dir/b",
	"printf ONE >from/new && mv from/new from/a", "rm from/dir/empty",
	"mkdir from/dir/c", "chmod 700 from/dir" };

START_TEST(sees_a_change)
{
	struct tree before = sum(), again = sum(), after;

	ck_assert(before.sum == again.sum);
	tmp_run("%s", changes[_i]);
	after = sum();
	ck_assert(before.sum != after.sum);
	ck_assert_ptr_null(after.lock);
}
END_TEST

START_TEST(finds_a_lock)
{
	char *wanted = xasprintf("%s/from/dir/b.lock", tmp_root);
	struct tree t;

	tmp_put("from/dir/b.lock", "");
	t = sum();
	ck_assert_str_eq(t.lock, wanted);
	free(t.lock);
	free(wanted);
}
END_TEST

START_TEST(writes_no_other_file)
{
	tmp_run("ln -s vault/secret link");
	tree_write(tmp_fd, "link", "lost\n");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("client_tree");
	TCase *tc = tcase_create("client_tree");

	tcase_add_checked_fixture(tc, setup, tmp_teardown);
	tcase_add_test(tc, copies);
	tcase_add_loop_exit_test(tc, copies_no_link, 128, 0, 4);
	tcase_add_test(tc, removes_beneath);
	tcase_add_loop_test(tc, sees_a_change, 0, 5);
	tcase_add_test(tc, finds_a_lock);
	tcase_add_exit_test(tc, writes_no_other_file, 128);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
