/*
 * Proves on a real file system that no list and no table makes a snapshot hang,
 * follow a link, or take much memory: a list of 1 GB, a FIFO, a device, links,
 * names with a slash, 10,000 tables, tables that shrink or change meanwhile.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/store/stack/stack_reader.h"
#include "tests/lib/reftable_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static const struct sys *const sys = &sys_kernel;
static const enum refd_object_format format = REFD_FORMAT_SHA1;
static int git_fd, dirfd;
static struct stack *stack;
static struct stack_snapshot *snap;
static struct reftable_fault fault;

/* The absolute path. Static. */
static const char *at(const char *path)
{
	static char buf[4096];

	snprintf(buf, sizeof(buf), "%s/%s", tmp_root, path);
	return buf;
}

static int open_dir(const char *path)
{
	return SYS(sys, openat, AT_FDCWD, at(path), O_RDONLY | O_DIRECTORY, 0);
}

static void add(uint64_t index, const struct reftable_record *records,
    size_t nr)
{
	struct rh_bytes table = rh_table(format, index, index, records, nr);

	rh_add(sys, dirfd, &table, index, index, (uint32_t)index);
	rh_free(&table);
}

static void set_up(void)
{
	const struct reftable_record rec = rh_ref("refs/heads/main", 1, 1);

	tmp_setup();
	tmp_mkdir("repo/reftable");
	git_fd = open_dir("repo");
	dirfd = open_dir("repo/reftable");
	add(1, &rec, 1);
	ck_assert_int_eq(stack_open(sys, git_fd, &format, &stack), 0);
}

static void tear_down(void)
{
	stack_put(stack);
	close(dirfd);
	close(git_fd);
	tmp_teardown();
}

static void refused(int err, const char *words)
{
	char text[REFTABLE_FAULT_TEXT];

	ck_assert_int_eq(stack_snapshot(stack, &snap, &fault), err);
	ck_assert_ptr_null(snap);
	reftable_stack_fault_text(&fault, err, text);
	ck_assert_msg(strstr(text, words) != NULL, "%s", text);
}

static void remove_list(void)
{
	ck_assert_int_eq(unlink(at("repo/reftable/tables.list")), 0);
}

START_TEST(a_list_of_one_gigabyte)
{
	int fd = SYS(sys, openat, dirfd, REFTABLE_LIST, O_RDWR, 0);

	ck_assert_int_eq(ftruncate(fd, 1 << 30), 0);
	close(fd);
	refused(-EFBIG, "larger than 256 KiB");
}
END_TEST

START_TEST(a_fifo)
{
	remove_list();
	ck_assert_int_eq(mkfifo(at("repo/reftable/tables.list"), 0600), 0);
	refused(-EBADMSG, "not a regular file");
	remove_list();
	ck_assert_int_eq(mkfifo(at("repo/reftable/x.ref"), 0600), 0);
	rh_put(sys, dirfd, REFTABLE_LIST, "x.ref\n", 6);
	refused(-EBADMSG, "not a regular file");
}
END_TEST

START_TEST(a_device)
{
	if (!suite_is_root("a_device"))
		return;
	remove_list();
	if (mknod(at("repo/reftable/tables.list"), S_IFCHR | 0600,
		makedev(1, 5)) < 0) {
		suite_skip("a_device", "no devices here");
		return;
	}
	ck_assert_int_lt(stack_snapshot(stack, &snap, &fault), 0);
	ck_assert_ptr_null(snap);
}
END_TEST

START_TEST(links)
{
	struct stack *other;

	remove_list();
	ck_assert_int_eq(
	    symlink("/etc/passwd", at("repo/reftable/tables.list")), 0);
	refused(-ELOOP, strerror(ELOOP));
	remove_list();
	rh_put(sys, dirfd, REFTABLE_LIST, "x.ref\n", 6);
	ck_assert_int_eq(symlink("0x000000000001-0x000000000001-00000001.ref",
			     at("repo/reftable/x.ref")),
	    0);
	refused(-ELOOP, strerror(ELOOP));
	tmp_run("mv repo/reftable repo/r");
	ck_assert_int_eq(symlink("r", at("repo/reftable")), 0);
	ck_assert_int_lt(stack_open(sys, git_fd, &format, &other), 0);
	ck_assert_int_eq(stack_is_there(stack, git_fd), -ESTALE);
}
END_TEST

START_TEST(names_with_a_slash)
{
	static const char *const lists[] = { "../reftable/x.ref\n",
		"/etc/passwd\n", "a/b.ref\n", "..\n", ".\n", "\n",
		".hidden\n" };
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		rh_put(sys, dirfd, REFTABLE_LIST, lists[i], strlen(lists[i]));
		refused(-EBADMSG, "no name of a table");
	}
}
END_TEST

START_TEST(ten_thousand_tables)
{
	char *list = malloc(10000 * 8 + 1);
	unsigned i;

	for (i = 0; i < 10000; i++)
		sprintf(list + i * 6, "%05u\n", i);
	rh_put(sys, dirfd, REFTABLE_LIST, list, strlen(list));
	refused(-EFBIG, "500 tables");
	free(list);
}
END_TEST

/* ---- while being read ---- */

static atomic_bool is_over;

/* Cuts, grows and overwrites every table, and replaces the list. */
static void *spoil(void *arg)
{
	char path[100], junk[4096];
	unsigned n = 0, i;
	FILE *f;

	(void)arg;
	while (!atomic_load(&is_over)) {
		i = ++n % 8 + 1;
		snprintf(path, sizeof(path),
		    "repo/reftable/0x%012x-0x%012x-%08x.ref", i, i, i);
		memset(junk, (int)n, sizeof(junk));
		f = fopen(at(path), "r+");
		ck_assert_ptr_nonnull(f);
		fseek(f, n * 37 % 6000, SEEK_SET);
		fwrite(junk, 1, n * 101 % 300, f);
		fflush(f);
		if (n % 3 == 0 && ftruncate(fileno(f), n * 977 % 9000) < 0)
			break;
		fclose(f);
	}
	return NULL;
}

static int ignore(void *arg, const struct reftable_record *record)
{
	(void)arg;
	(void)record;
	return 0;
}

START_TEST(tables_change_while_being_read)
{
	struct reftable_record records[200];
	struct stack_reader reader = { 0 };
	char names[100][32], found[REFD_PATH_MAX];
	pthread_t thread;
	unsigned i, n, nr_ok = 0;
	uint64_t t;

	for (i = 0; i < 100; i++) {
		snprintf(names[i], sizeof(names[i]), "refs/heads/%03u", i);
		records[i] = rh_ref(names[i], 0, 1);
		records[100 + i] = rh_log(names[i], 0, 0, 1, "m\n");
	}
	for (t = 2; t <= 8; t++) {
		for (i = 0; i < 200; i++)
			records[i].update_index = t;
		add(t, records, 200);
	}
	ck_assert_int_eq(pthread_create(&thread, NULL, spoil, NULL), 0);
	for (n = 0; n < 2000; n++) {
		if (stack_snapshot(stack, &snap, &fault) < 0)
			continue;
		nr_ok++;
		ck_assert_int_eq(stack_reader_init(&reader, snap), 0);
		for (i = 0; i < 100; i++) {
			stack_reader_find(&reader, names[i], NULL);
			stack_reader_has_log(&reader, names[i]);
			stack_reader_conflict(&reader, names[i], NULL, NULL,
			    found);
		}
		stack_reader_each(&reader, REFTABLE_REFS, "", ignore, NULL);
		stack_reader_each(&reader, REFTABLE_LOGS, "", ignore, NULL);
		stack_reader_done(&reader);
		stack_snapshot_put(snap);
		if (n % 2 == 0)
			stack_snapshot_forget(stack);
	}
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
	(void)nr_ok;
}
END_TEST

int main(void)
{
	Suite *s = suite_create("stack_hostile");
	TCase *tc = tcase_create("stack_hostile");

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, a_list_of_one_gigabyte);
	tcase_add_test(tc, a_fifo);
	tcase_add_test(tc, a_device);
	tcase_add_test(tc, links);
	tcase_add_test(tc, names_with_a_slash);
	tcase_add_test(tc, ten_thousand_tables);
	tcase_add_test(tc, tables_change_while_being_read);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
