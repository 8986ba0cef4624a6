/*
 * Proves that a log is whole again after a power loss damaged it. NULs and torn
 * lines go, later lines of other writers stay, missing lines come back once and
 * in order, and git reads the result. A failed repair can be repeated.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/files/format/reflog.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LOG          "logs/refs/heads/x"

#define OID     "0123456789012345678901234567890123456789"
#define LINE(n) OID " " OID " A <a@b> 1700000000 +0000\t" n "\n"
#define L1      LINE("1")
#define L2      LINE("2")
#define L3      LINE("3")
#define NULS    "\0\0\0\0\0\0\0\0"

static const struct sys *sys = &sys_kernel;
static const char *const wanted[] = { L1, L2, L3 };

struct damage {
	const char *what;
	const char *before;
	size_t len;
	const char *after;
	size_t added, cut;
};

#define D(what, before, after, added, cut)                                     \
	{ what, before, sizeof(before) - 1, after, added, cut }

/* Repairs that should add L1, L2 and L3. */
static const struct damage damages[] = {
	D("whole", L1 L2 L3, L1 L2 L3, 0, 0),
	D("empty", "", L1 L2 L3, 3, 0),
	D("one lost", L1 L2, L1 L2 L3, 1, 0),
	D("NULs alone", NULS NULS, L1 L2 L3, 3, 16),
	D("NULs at the end", L1 NULS NULS, L1 L2 L3, 2, 16),
	D("torn", L1 "0123", L1 L2 L3, 2, 4),
	D("torn by its line feed",
	    L1 OID " " OID " A <a@b> 1700000000 +0000\t2", L1 L2 L3, 2, 108),
	D("torn, then NULs", L1 "0123" NULS, L1 L2 L3, 2, 12),
	D("NULs, then a line feed", L1 NULS "\n", L1 L2 L3, 2, 9),
	D("a line behind NULs", L1 NULS LINE("git"), L1 LINE("git") L2 L3, 2,
	    8),
	D("two lines behind NULs", L1 "torn" NULS L2 LINE("git"),
	    L1 L2 LINE("git") L3, 1, 12),
	D("the tail of one behind NULs", L1 NULS " +0000\t2\n" L3, L1 L3 L2, 1,
	    17),
	D("NULs twice", NULS L1 NULS L2 NULS, L1 L2 L3, 1, 24),
	D("foreign lines stay", LINE("a") L2 LINE("b"),
	    LINE("a") L2 LINE("b") L1 L3, 2, 0),
	D("whole but for a torn end", L1 L2 L3 "0123", L1 L2 L3, 0, 4),
	D("odd lines stay", "odd\n\n" L1, "odd\n\n" L1 L2 L3, 2, 0),
};

static struct reflog_file log_at(const char *path)
{
	return (struct reflog_file){ .sys = sys,
		.dirfd = tmp_fd,
		.path = path,
		.format = REFD_FORMAT_SHA1,
		.file_mode = 0640,
		.dir_mode = 0750 };
}

static int repair(const struct sys *table, const char *const *lines, size_t nr,
    bool create, size_t *added, size_t *cut)
{
	struct reflog_file log = log_at(LOG);

	log.sys = table;
	log.create = create;
	return reflog_repair(&log, lines, nr, 0, added, cut);
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 60);

TEST(damage_is_repaired, .times = COUNT(damages))
{
	const struct damage *d = &damages[_i];
	size_t added = 99, cut = 99;
	char *text;

	tmp_put_bytes(LOG, d->before, d->len);
	ck_assert_int_eq(repair(sys, wanted, 3, false, &added, &cut), 0);
	text = tmp_get(LOG);
	ck_assert_msg(strcmp(text, d->after) == 0, "%s: %s", d->what, text);
	ck_assert_msg(added == d->added && cut == d->cut,
	    "%s: added %zu, cut %zu", d->what, added, cut);
	free(text);
	ck_assert_int_eq(repair(sys, wanted, 3, false, &added, &cut), 0);
	ck_assert_uint_eq(added, 0);
	ck_assert_uint_eq(cut, 0);
}

/* The line behind NULs is a line in its own object format alone. */
TEST(lines_of_sha256)
{
#define OID256     OID "012345678901234567890123"
#define LINE256(n) OID256 " " OID256 " A <a@b> 1700000000 +0000\t" n "\n"
	static const char before[] = LINE256("1") NULS LINE256("git") "torn";
	static const char *const lines[] = { LINE256("1"), LINE256("2") };
	struct reflog_file log = log_at(LOG);
	size_t added, cut;
	char *text;

	tmp_put_bytes(LOG, before, sizeof(before) - 1);
	log.format = REFD_FORMAT_SHA256;
	ck_assert_int_eq(reflog_repair(&log, lines, 2, 0, &added, &cut), 0);
	text = tmp_get(LOG);
	ck_assert_str_eq(text, LINE256("1") LINE256("git") LINE256("2"));
	free(text);
	ck_assert_uint_eq(cut, 12);
	tmp_put_bytes(LOG, before, sizeof(before) - 1);
	ck_assert_int_eq(repair(sys, lines, 2, false, &added, &cut), 0);
	text = tmp_get(LOG);
	ck_assert_str_eq(text, LINE256("1") LINE256("2"));
	free(text);
}

static unsigned nr_writes;
static size_t write_limit; /* bytes until the disk is full */

static ssize_t limited_pwrite(const struct sys *s, int fd, const void *buf,
    size_t len, off_t offset)
{
	nr_writes++;
	if (write_limit == 0)
		return -ENOSPC;
	if (len > write_limit)
		len = write_limit;
	write_limit -= len;
	return sys_kernel.pwrite(s, fd, buf, len, offset);
}

/* However far a failed repair came, the next repair completes it. */
TEST(a_failed_repair_can_be_repeated, .times = COUNT(damages))
{
	const struct damage *d = &damages[_i];
	struct sys faulty = sys_kernel;
	size_t added, cut, limit;
	char *text;
	int r = -1;

	faulty.pwrite = limited_pwrite;
	for (limit = 0; r < 0; limit += 7) {
		tmp_put_bytes(LOG, d->before, d->len);
		write_limit = limit;
		r = repair(&faulty, wanted, 3, false, &added, &cut);
		ck_assert(r == 0 || r == -ENOSPC);
		ck_assert_int_eq(repair(sys, wanted, 3, false, &added, &cut),
		    0);
		text = tmp_get(LOG);
		ck_assert_ptr_nonnull(strstr(text, L1));
		ck_assert_ptr_nonnull(strstr(text, L2));
		ck_assert_ptr_nonnull(strstr(text, L3));
		ck_assert(strstr(d->before, "git\n") == NULL ||
		    strstr(text, LINE("git")) != NULL);
		free(text);
	}
}

TEST(a_whole_log_is_not_written_to)
{
	struct sys faulty = sys_kernel;
	size_t added, cut;

	faulty.pwrite = limited_pwrite;
	nr_writes = 0;
	tmp_put(LOG, L1 L2 L3);
	ck_assert_int_eq(repair(&faulty, wanted, 3, false, &added, &cut), 0);
	ck_assert_uint_eq(nr_writes, 0);
}

TEST(equal_lines_are_counted)
{
	static const char *const twice[] = { L1, L2, L1, L1 };
	size_t added, cut;
	char *text;

	tmp_put(LOG, L1 L1);
	ck_assert_int_eq(repair(sys, twice, 4, false, &added, &cut), 0);
	ck_assert_uint_eq(added, 2);
	text = tmp_get(LOG);
	ck_assert_str_eq(text, L1 L1 L2 L1);
	free(text);
}

/* The first line is of a forgotten record, and was durable. */
TEST(a_known_line_counts_and_is_not_added, .times = 3)
{
	static const struct {
		const char *before, *after;
	} logs[] = { { L1, L1 L1 }, { L1 L1, L1 L1 }, { L2, L2 L1 } };
	static const char *const lines[] = { L1, L1 };
	const struct reflog_file log = log_at(LOG);
	size_t added, cut;
	char *text;

	tmp_put(LOG, logs[_i].before);
	ck_assert_int_eq(reflog_repair(&log, lines, 2, 1, &added, &cut), 0);
	text = tmp_get(LOG);
	ck_assert_str_eq(text, logs[_i].after);
	free(text);
}

TEST(an_absent_log_is_made_only_when_asked)
{
	size_t added = 9, cut = 9;
	char *text;

	ck_assert_int_eq(repair(sys, wanted, 3, false, &added, &cut), 0);
	ck_assert_uint_eq(added, 0);
	ck_assert(!tmp_exists("logs"));
	umask(0077);
	ck_assert_int_eq(repair(sys, wanted, 3, true, &added, &cut), 0);
	ck_assert_uint_eq(added, 3);
	ck_assert_uint_eq(cut, 0);
	ck_assert_uint_eq(tmp_mode(LOG), 0640);
	text = tmp_get(LOG);
	ck_assert_str_eq(text, L1 L2 L3);
	free(text);
}

TEST(no_lines_only_cut)
{
	size_t added, cut;
	char *text;

	tmp_put_bytes(LOG, L1 NULS, sizeof(L1 NULS) - 1);
	ck_assert_int_eq(repair(sys, NULL, 0, false, &added, &cut), 0);
	ck_assert_uint_eq(cut, 8);
	tmp_run("test $(stat -c %%s " LOG ") = %zu", strlen(L1));
	text = tmp_get(LOG);
	ck_assert_str_eq(text, L1);
	free(text);
}

/* As after a power loss on ext4: git sees no line behind NULs. */
TEST(git_reads_the_repaired_log)
{
	const struct reflog_file log = log_at("r/" LOG);
	char *hex, *out, *lines[3];
	size_t added, cut;
	int i;

	tmp_run("git init -q --bare r && cd r && git update-ref refs/heads/x "
		"$(git commit-tree -m m $(git hash-object -w -t tree "
		"/dev/null)) && mkdir -p logs/refs/heads");
	hex = tmp_output("git -C r rev-parse refs/heads/x | tr -d '\\n'");
	for (i = 0; i < 3; i++)
		ck_assert_int_gt(asprintf(&lines[i],
				     "%s %s A <a@b> 170000000%d +0000\t%d\n",
				     hex, hex, i, i + 1),
		    0);
	tmp_put("1", lines[0]);
	tmp_put("3", lines[2]);
	tmp_run("{ cat 1; head -c 20 /dev/zero; cat 3; } >r/" LOG);
	out = tmp_output("git -C r reflog show --format=%%gs refs/heads/x");
	ck_assert_str_eq(out, "1\n");
	free(out);
	ck_assert_int_eq(reflog_repair(&log, (const char *const *)lines, 3, 0,
			     &added, &cut),
	    0);
	ck_assert_uint_eq(added, 1);
	out = tmp_output("git -C r reflog show --format=%%gs refs/heads/x");
	ck_assert_str_eq(out, "2\n3\n1\n");
	free(out);
	for (i = 0; i < 3; i++)
		free(lines[i]);
	free(hex);
}

TEST(many_lines_are_quick)
{
	enum { MANY = 20000 };
	char **lines = calloc(MANY, sizeof(*lines));
	size_t added, cut, i;

	for (i = 0; i < MANY; i++)
		ck_assert_int_gt(asprintf(&lines[i],
				     OID " " OID " A <a@b> %zu +0000\n", i),
		    0);
	ck_assert_int_eq(repair(sys, (const char *const *)lines, MANY, true,
			     &added, &cut),
	    0);
	ck_assert_uint_eq(added, MANY);
	ck_assert_int_eq(repair(sys, (const char *const *)lines, MANY, true,
			     &added, &cut),
	    0);
	ck_assert_uint_eq(added, 0);
	for (i = 0; i < MANY; i++)
		free(lines[i]);
	free(lines);
}

static size_t nr_bytes;

static ssize_t counting_pread(const struct sys *table, int fd, void *buf,
    size_t len, off_t offset)
{
	ssize_t n = sys_kernel.pread(table, fd, buf, len, offset);

	nr_bytes += n > 0 ? (size_t)n : 0;
	return n;
}

/* Only the end is repaired, and an added line begins on a new line. The log is
 * searched for missing lines, but a sparse log is not searched in full. */
TEST(of_a_large_log_the_end_is_repaired, .times = 2)
{
	static const char *const makes[] = {
		"yes '" OID " " OID " A <a@b> 1700000000 +0000' | "
		"head -c 8000000 >>" LOG "; printf '\\n0123' >>" LOG,
		"truncate -s 2G " LOG,
	};
	struct reflog_file log = log_at(LOG);
	struct sys table = sys_kernel;
	struct refd_oid old, last;
	size_t added = 0, cut = 0;
	bool is_found = _i == 0;
	char *text;

	table.pread = counting_pread;
	log.sys = &table;
	nr_bytes = 0;
	tmp_put(LOG, L1);
	tmp_run("%s", makes[_i]);
	ck_assert_int_eq(repair(&table, wanted, 3, false, &added, &cut), 0);
	ck_assert_uint_eq(added, is_found ? 2 : 3);
	ck_assert_uint_ge(cut, 4);
	ck_assert_uint_le(nr_bytes, REFLOG_TAIL_MAX + 4096);
	text = tmp_output("tail -n %d " LOG, is_found ? 2 : 3);
	ck_assert_str_eq(text, is_found ? L2 L3 : L1 L2 L3);
	free(text);
	nr_bytes = 0;
	ck_assert_int_eq(reflog_last(&log, &old, &last), 1);
	ck_assert_uint_le(nr_bytes, (1 << 20) + 4096);
	ck_assert_int_eq(repair(&table, wanted, 3, false, &added, &cut), 0);
	ck_assert_uint_eq(added, 0);
	ck_assert_uint_eq(cut, 0);
	ck_assert_uint_le(nr_bytes, 2 * (REFLOG_TAIL_MAX + 4096));
}

/* Foreign lines after ours are longer than a read. refd finds our lines all the
 * same, wherever a piece begins, and adds only the missing line. */
TEST(lines_before_a_long_end_are_found, .times = 4)
{
	static const char *const fills[] = {
		"yes '" OID " " OID " A <a@b> 1700000000 +0000' | "
		"head -n 90000",
		/* One line without its end, then the end. */
		"head -c 9000000 /dev/zero | tr '\\0' x; echo",
		"head -c 8388607 /dev/zero | tr '\\0' x; echo",
		"head -c 9000000 /dev/zero; echo",
	};
	size_t added = 9, cut = 9;
	char *text;
	int pad;

	for (pad = 0; pad < 3; pad++) {
		tmp_put(LOG, L1);
		tmp_run("{ head -c 5000000 /dev/zero; cat %s; } >big && "
			"mv big " LOG,
		    LOG);
		tmp_run("{ printf '%s'; %s; %s; } >>" LOG, L2, fills[_i],
		    pad == 0     ? "true" :
			pad == 1 ? "echo a" :
				   "echo; echo");
		ck_assert_int_eq(repair(sys, wanted, 3, false, &added, &cut),
		    0);
		ck_assert_uint_eq(added, 1);
		text = tmp_output("tail -n 1 " LOG);
		ck_assert_str_eq(text, L3);
		free(text);
		ck_assert_int_eq(repair(sys, wanted, 3, false, &added, &cut),
		    0);
		ck_assert_uint_eq(added, 0);
	}
}
