/*
 * Proves that the cost of a packed-refs is bounded. A look-up reads some
 * blocks, whatever the size of the file. A rewrite holds some blocks. A file
 * that is sparse, shortened meanwhile, or sorted against its header fails only
 * the request. (Finding F6.)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/packed_fixture.h"
#include "tests/lib/suite.h"

#define GIB ((off_t)1 << 30)

static size_t nr_reads, nr_bytes;

static ssize_t counting_pread(const struct sys *table, int fd, void *buf,
    size_t len, off_t offset)
{
	ssize_t n = sys_kernel.pread(table, fd, buf, len, offset);

	nr_reads++;
	nr_bytes += n > 0 ? (size_t)n : 0;
	return n;
}

static void count_anew(void)
{
	sys.pread = counting_pread;
	nr_reads = nr_bytes = 0;
}

/* Sparse: HEAD, a hole, and a line end as the last of SIZE bytes. */
static void make_sparse(const char *head, off_t size)
{
	int fd;

	tmp_put("packed-refs", head);
	fd = openat(tmp_fd, "packed-refs", O_WRONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, size), 0);
	ck_assert_int_eq(pwrite(fd, "\n", 1, size - 1), 1);
	close(fd);
}

/* Sorted, NR refs; every tenth with a peeled line. */
static void make_sorted(unsigned nr)
{
	char path[4096];
	unsigned i;
	FILE *f;

	snprintf(path, sizeof(path), "%s/packed-refs", tmp_root);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(HEADER, f);
	for (i = 0; i < nr; i++)
		fprintf(f, "%040x refs/heads/topic/%07u\n%s", i, i,
		    i % 10 == 0 ? "^" B "\n" : "");
	ck_assert_int_eq(fclose(f), 0);
}

static const char *name_of(unsigned i)
{
	static char name[64];

	snprintf(name, sizeof(name), "refs/heads/topic/%07u", i);
	return name;
}

static void check_value(const struct packed_snapshot *snap, unsigned i)
{
	char hex[REFD_OID_MAX_HEX + 1], want[REFD_OID_MAX_HEX + 1];
	struct refd_oid oid;

	ck_assert_int_eq(packed_lookup(snap, name_of(i), &oid), 1);
	snprintf(want, sizeof(want), "%040x", i);
	ck_assert_str_eq(refd_oid_hex(&oid, REFD_FORMAT_SHA1, hex), want);
}

CASE(.setup = packed_setup, .teardown = packed_teardown, .seconds = 120);

TEST(a_sparse_file_costs_nothing)
{
	static const struct refd_oid oid = { .bytes = { 1 } };
	struct packed_edit edit = { .name = "refs/heads/new", .oid = &oid };
	struct packed_snapshot *snap = NULL;
	bool changed;

	count_anew();
	make_sparse("", 2 * GIB);
	ck_assert_int_eq(packed_snapshot(packed, &snap), -EFBIG);
	make_sparse(HEADER A " refs/heads/a\n", GIB);
	ck_assert_int_eq(packed_snapshot(packed, &snap), 0);
	ck_assert_int_eq(packed_lookup(snap, "refs/heads/a", NULL), -EBADMSG);
	ck_assert_int_eq(packed_check(snap), -EBADMSG);
	ck_assert_int_eq(packed_rewrite_begin(packed, &edit, 1, 0644, true,
			     INT64_MAX, &changed),
	    -EBADMSG);
	ck_assert(!tmp_exists("packed-refs.new"));
	packed_snapshot_put(snap);
	make_sparse(HEADER, 2 * GIB);
	snap = take();
	ck_assert_int_eq(packed_check(snap), -EFBIG);
	ck_assert_int_eq(packed_rewrite_begin(packed, &edit, 1, 0644, true,
			     INT64_MAX, &changed),
	    -EFBIG);
	packed_snapshot_put(snap);
	ck_assert_uint_lt(nr_bytes, 256 << 10);
}

/* 64 MB, a million refs: look-ups as far apart as possible, and in order. */
TEST(a_look_up_reads_some_blocks)
{
	const unsigned nr = 1000000;
	struct packed_snapshot *snap;
	char found[REFD_PATH_MAX];
	struct rusage before, after;
	unsigned i, nth = 0;
	struct stat st;

	make_sorted(nr);
	getrusage(RUSAGE_SELF, &before);
	count_anew();
	snap = take();
	for (i = 0; i < 1000; i++) {
		nth = (nth + 611953) % nr;
		check_value(snap, nth);
	}
	/* Seventeen halvings, eight of them remembered. */
	ck_assert_uint_le(nr_reads, 1000 * 10 + 256);
	ck_assert_uint_le(nr_bytes, (1000 * 10 + 256) * 8193);
	count_anew();
	for (i = 0; i < nr; i += 7)
		check_value(snap, i);
	ck_assert_int_eq(fstatat(tmp_fd, "packed-refs", &st, 0), 0);
	ck_assert_uint_le(nr_reads, (size_t)st.st_size / 4096 * 10);
	ck_assert_int_eq(packed_lookup(snap, "refs/heads/topic/1", NULL), 0);
	ck_assert_int_eq(packed_lookup(snap, "refs/heads/topic/9999999", NULL),
	    0);
	ck_assert_int_eq(packed_find_below(snap, "refs/heads/", found), 1);
	ck_assert_str_eq(found, name_of(0));
	ck_assert_int_eq(packed_find_below(snap, "refs/heads/u", found), 0);
	ck_assert_int_eq(packed_check(snap), 0);
	packed_snapshot_put(snap);
	getrusage(RUSAGE_SELF, &after);
	/* A sanitizer uses additional memory; the file has 66 MB. */
	ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, 48 << 10);
}

TEST(a_rewrite_holds_some_blocks)
{
	const unsigned nr = 500000;
	static struct packed_edit edits[1001];
	struct refd_oid oid = { .bytes = { 7 } };
	struct packed_snapshot *snap;
	struct rusage before, after;
	bool changed;
	unsigned i;

	make_sorted(nr);
	for (i = 0; i < 1000; i++)
		edits[i].name = strdup(name_of(i * 500));
	edits[1000] = (struct packed_edit){ .name = "refs/tags/new",
		.oid = &oid,
		.peeled = &oid };
	getrusage(RUSAGE_SELF, &before);
	ck_assert_int_eq(packed_rewrite_begin(packed, edits, 1001, 0644, false,
			     INT64_MAX, &changed),
	    0);
	ck_assert_int_eq(packed_rewrite_finish(packed), 0);
	getrusage(RUSAGE_SELF, &after);
	ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, 16 << 10);
	snap = take();
	ck_assert_int_eq(packed_check(snap), 0);
	ck_assert_int_eq(packed_lookup(snap, "refs/tags/new", NULL), 1);
	for (i = 0; i < nr; i += 250)
		if (i % 500 == 0)
			ck_assert_int_eq(packed_lookup(snap, name_of(i), NULL),
			    0);
		else
			check_value(snap, i);
	packed_snapshot_put(snap);
	for (i = 0; i < 1000; i++)
		free((char *)(uintptr_t)edits[i].name);
}

/* A user with write access may change the file at any moment. */
TEST(a_file_that_is_shortened_is_an_error)
{
	struct packed_snapshot *snap;

	make_sorted(10000);
	snap = take();
	check_value(snap, 9999);
	tmp_run("truncate -s 5000 packed-refs");
	ck_assert_int_eq(packed_lookup(snap, name_of(5), NULL), -EBADMSG);
	ck_assert_int_eq(packed_check(snap), -EBADMSG);
	packed_snapshot_put(snap);
}

TEST(a_rewrite_without_time_is_given_up)
{
	struct packed_edit gone = { .name = "refs/heads/topic/0000007" };
	bool changed = true;

	make_sorted(10000);
	ck_assert_int_eq(packed_rewrite_begin(packed, &gone, 1, 0644, true,
			     now_ns - 1, &changed),
	    -ETIMEDOUT);
	ck_assert(!changed);
	ck_assert(!tmp_exists("packed-refs.new"));
	ck_assert_str_ne(value(gone.name), "");
}

static void append(const char *text, unsigned times)
{
	int fd = openat(tmp_fd, "packed-refs", O_WRONLY | O_APPEND);

	ck_assert_int_ge(fd, 0);
	while (times-- > 0)
		ck_assert_int_eq(write(fd, text, strlen(text)),
		    (ssize_t)strlen(text));
	close(fd);
}

/* A merge would lose the deletion. */
TEST(a_wrong_order_is_not_rewritten)
{
	struct packed_edit gone = { .name = "refs/heads/topic/0000007" };
	bool changed;

	make_sorted(2000);
	append(A " refs/heads/a\n", 1);
	ck_assert_int_eq(packed_rewrite_begin(packed, &gone, 1, 0644, true,
			     INT64_MAX, &changed),
	    -EILSEQ);
	ck_assert(!tmp_exists("packed-refs.new"));
}

TEST(an_unsorted_file_has_a_bound)
{
	struct packed_snapshot *snap = NULL;
	unsigned nr = 60000;

	tmp_put("packed-refs", "# pack-refs with: peeled \n" B " refs/z\n");
	append(A " refs/a\n", nr);
	ck_assert_str_eq(value("refs/a"), A);
	ck_assert_str_eq(value("refs/z"), B);
	append(A " refs/a\n", nr);
	ck_assert_int_eq(packed_snapshot(packed, &snap), -EFBIG);
}

/* Refs before and behind the long record are found; the long record is
 * refused. */
TEST(a_long_record_is_malformed)
{
	struct packed_snapshot *snap = NULL;
	char *line = malloc(5001);

	memset(line, 'x', 5000);
	line[5000] = '\0';
	memcpy(line, A " refs/heads/z", 53);
	make_sorted(10000);
	append(line, 1);
	append("\n", 1);
	snap = take();
	check_value(snap, 17);
	ck_assert_int_eq(packed_check(snap), -EBADMSG);
	ck_assert_int_lt(packed_lookup(snap, "refs/heads/z", NULL), 1);
	packed_snapshot_put(snap);
	line[4096 - 1] = '\0';
	make_sorted(10000);
	append(line, 1);
	append("\n", 1);
	snap = take();
	ck_assert_int_eq(packed_check(snap), 0);
	ck_assert_int_eq(packed_lookup(snap, line + REFD_SHA1_HEX + 1, NULL),
	    1);
	packed_snapshot_put(snap);
	free(line);
}
