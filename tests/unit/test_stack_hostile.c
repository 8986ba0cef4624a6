/*
 * Proves on a real file system that no list and no table makes a snapshot hang,
 * follow a link, take much memory or read much: a list of 1 GB, a FIFO, a
 * device, links, names with a slash, 10,000 tables, tables that shrink or
 * change meanwhile, blocks of 16 MiB.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/store/tables/stack/stack_reader.h"
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

CASE(.setup = set_up, .teardown = tear_down, .seconds = 60);

TEST(a_list_of_one_gigabyte)
{
	int fd = SYS(sys, openat, dirfd, REFTABLE_LIST, O_RDWR, 0);

	ck_assert_int_eq(ftruncate(fd, 1 << 30), 0);
	close(fd);
	refused(-EFBIG, "larger than 256 KiB");
}

TEST(a_fifo)
{
	remove_list();
	ck_assert_int_eq(mkfifo(at("repo/reftable/tables.list"), 0600), 0);
	refused(-EBADMSG, "not a regular file");
	remove_list();
	ck_assert_int_eq(mkfifo(at("repo/reftable/x.ref"), 0600), 0);
	rh_put(sys, dirfd, REFTABLE_LIST, "x.ref\n", 6);
	refused(-EBADMSG, "not a regular file");
}

TEST(a_device)
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

TEST(links)
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

TEST(names_with_a_slash)
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

TEST(ten_thousand_tables)
{
	char *list = malloc(10000 * 8 + 1);
	unsigned i;

	for (i = 0; i < 10000; i++)
		sprintf(list + i * 6, "%05u\n", i);
	rh_put(sys, dirfd, REFTABLE_LIST, list, strlen(list));
	refused(-EFBIG, "500 tables");
	free(list);
}

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

TEST(tables_change_while_being_read)
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
		ck_assert_int_eq(stack_reader_init(&reader, snap, rh_budget()),
		    0);
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

/* ---- blocks of 16 MiB ---- */

#define BLOCK_MAX 0xffffff
#define DISTANT   64

static uint64_t bytes_read;

static ssize_t count_pread(const struct sys *self, int fd, void *buf,
    size_t len, off_t offset)
{
	ssize_t n = SYS(sys, pread, fd, buf, len, offset);

	(void)self;
	bytes_read += n > 0 ? (uint64_t)n : 0;
	return n;
}

/* A table that states a block size of 16 MiB, with a ref in each of its blocks,
 * which are as far from each other as they may be, and not on the disk. */
static void add_distant(uint64_t index)
{
	struct rh_bytes table = { 0 }, one;
	struct reftable_record rec;
	uint64_t i, end, header = 24;
	char name[32], path[64];
	int fd;

	rh_add(sys, dirfd, &table, index, index, (uint32_t)index);
	reftable_writer_name(index, index, (uint32_t)index, path);
	fd = SYS(sys, openat, dirfd, path, O_RDWR, 0);
	ck_assert_int_ge(fd, 0);
	for (i = 0; i < DISTANT; i++) {
		snprintf(name, sizeof(name), "refs/heads/d%02u", (unsigned)i);
		rec = rh_ref(name, index, (uint8_t)i);
		one = rh_table(format, index, index, &rec, 1);
		reftable_record_put(one.data + 5, 3, BLOCK_MAX);
		/* Only the first block has the header, also in its length and
		 * in its restart point. */
		end = one.len - 68;
		if (i > 0) {
			reftable_record_put(one.data + header + 1, 3,
			    end - header);
			reftable_record_put(one.data + end - 5, 3, 4);
		}
		ck_assert_int_eq(pwrite(fd, one.data + (i > 0 ? header : 0),
				     end - (i > 0 ? header : 0),
				     (off_t)(i * BLOCK_MAX)),
		    (ssize_t)(end - (i > 0 ? header : 0)));
		memcpy(one.data + one.len - 68, one.data, header);
		rh_mend_crc(&one);
		ck_assert_int_eq(pwrite(fd, one.data + one.len - 68, 68,
				     (off_t)(DISTANT * BLOCK_MAX)),
		    68);
		rh_free(&one);
	}
	close(fd);
}

TEST(distant_blocks)
{
	struct reftable_budget budget = REFTABLE_BUDGET(STACK_WORK_MAX);
	struct stack_reader reader;
	struct sys counting = *sys;
	struct stack *again;
	char name[32];
	unsigned i;

	add_distant(2);
	counting.pread = count_pread;
	ck_assert_int_eq(stack_open(&counting, git_fd, &format, &again), 0);
	ck_assert_int_eq(stack_snapshot(again, &snap, &fault), 0);
	ck_assert_int_eq(stack_reader_init(&reader, snap, &budget), 0);
	bytes_read = 0;
	/* Backwards: each look-up begins at the first block. */
	for (i = DISTANT; i-- > 0;) {
		snprintf(name, sizeof(name), "refs/heads/d%02u", i);
		ck_assert_int_eq(stack_reader_find(&reader, name, NULL), 1);
	}
	ck_assert_uint_le(bytes_read, DISTANT * DISTANT * 4096);
	/* All of it counts. */
	ck_assert_uint_le(budget.work + bytes_read,
	    STACK_WORK_MAX + DISTANT * STACK_WORK_EACH);
	ck_assert_uint_lt(REFTABLE_MEMORY_MAX - budget.memory, 16 * 4096);
	stack_reader_done(&reader);
	stack_snapshot_put(snap);
	stack_put(again);
}
