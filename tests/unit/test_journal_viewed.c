/*
 * Proves that a view of the journal in another process, such as refd verify,
 * sees whole and consistent rows while the daemon commits, checkpoints and
 * begins its WAL anew all the time. A view that is stopped in the middle costs
 * the daemon only its checkpoints, and no commit, until the WAL is too large:
 * then the view must read again. A view changes no file and makes none.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/time.h"
#include "tests/lib/journal_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct journal *view_on(const struct sys *sys)
{
	const struct journal_config cfg = { .sys = sys,
		.dir = tmp_root,
		.boot_id = "",
		.adopt = true };
	struct journal *view;
	char *why = NULL;
	int r = journal_view(&cfg, &view, &why);

	ck_assert_msg(r == 0, "%d: %s", r, why != NULL ? why : "");
	return view;
}

static struct journal *view_here(void)
{
	return view_on(&sys_kernel);
}

/* ---- beside a daemon ---- */

#define SECONDS      3
#define BEYOND       1000000 /* bytes of a WAL */
#define CHECKPOINTED 3       /* commits for each checkpoint */

/* Some pages for each row, so that a commit overwrites many old frames. */
#define ROW_BYTES 9000

/* A separate process, as a daemon is. Ends with the pipe of the parent. */
static void commit_for_ever(int ready, int end)
{
	struct journal *j = help_open_here();
	unsigned row;
	char c;
	int r;

	fcntl(end, F_SETFL, O_NONBLOCK);
	for (row = 0; read(end, &c, 1) < 0; row++) {
		if (help_commit(j, row, 1, ROW_BYTES) != 0)
			_exit(1);
		if (row % CHECKPOINTED == 0 &&
		    (r = journal_checkpoint(j, 0)) != 0 && r != -EBUSY)
			_exit(2);
		if (row == 0 && write(ready, "", 1) != 1)
			_exit(3);
	}
	_exit(journal_close(j) != 0);
}

struct seen {
	size_t rows;
	uint64_t last;
};

/* From the first row on, without a gap. */
static int next_row(void *arg, const struct journal_row *row)
{
	struct seen *seen = arg;

	ck_assert_uint_eq(row->lsn, seen->last + 1);
	ck_assert_uint_eq(row->len, ROW_BYTES);
	seen->last = row->lsn;
	seen->rows++;
	return 0;
}

/* Downwards, a few rows at a time, as a fold reads. */
static int row_before(void *arg, const struct journal_row *row)
{
	uint64_t *before = arg;

	ck_assert_uint_eq(row->lsn, *before - 1);
	*before = row->lsn;
	return 0;
}

static void read_down(struct journal *view, uint64_t from)
{
	struct journal_reader *reader;
	uint64_t before = from + 1, last;

	ck_assert_int_eq(journal_reader_open(view, &reader), 0);
	do {
		last = before;
		ck_assert_int_eq(journal_read(reader, 0, before, true, 256,
				     row_before, &before),
		    0);
	} while (before != last);
	ck_assert_uint_eq(before, 1);
	for (before = from + 1; before > from / 2 + 1;)
		ck_assert_int_eq(journal_read(reader, before - 2, before, false,
				     1, row_before, &before),
		    0);
	journal_reader_close(reader);
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 60);

TEST(a_view_beside_a_daemon)
{
	int64_t until = time_now_ns(CLOCK_MONOTONIC) + SECONDS * 1000000000LL;
	int ready[2], end[2], status;
	struct seen seen, before = { 0 };
	struct journal *view;
	unsigned views = 0;
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe(ready), 0);
	ck_assert_int_eq(pipe(end), 0);
	pid = fork();
	if (pid == 0) {
		close(end[1]);
		commit_for_ever(ready[1], end[0]);
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	while (time_now_ns(CLOCK_MONOTONIC) < until) {
		view = view_here();
		seen = (struct seen){ 0 };
		ck_assert_int_eq(journal_scan(view, 0, next_row, &seen), 0);
		ck_assert_uint_ge(seen.rows, before.rows);
		ck_assert_uint_ge(seen.last, journal_last_lsn(view));
		read_down(view, seen.last);
		journal_view_close(view);
		before = seen;
		views++;
	}
	close(end[1]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_gt(views, 1);
	ck_assert_uint_gt(before.rows, CHECKPOINTED * 5);
}

/* ---- a WAL that begins anew ---- */

#define ROWS 40

static struct journal *writer;
static unsigned reads, restart_at;

/* The next commit overwrites the frames from the first on. */
static void fill_and_copy(size_t bytes)
{
	unsigned i;

	writer = help_open_here();
	for (i = 0; i < ROWS; i++)
		ck_assert_int_eq(help_commit(writer, i, 1, bytes), 0);
	ck_assert_int_eq(journal_checkpoint(writer, 0), 0);
}

static ssize_t pread_and_commit(const struct sys *sys, int fd, void *buf,
    size_t len, off_t offset)
{
	if (reads++ == restart_at)
		ck_assert_int_eq(help_commit(writer, ROWS, 1, 300000), 0);
	return sys_kernel.pread(sys, fd, buf, len, offset);
}

/* In each place of the copying. */
TEST(it_begins_anew_while_it_is_copied, .times = ROWS + 2)
{
	struct sys sys = sys_kernel;
	struct journal *view;

	fill_and_copy(16);
	restart_at = UINT_MAX;
	sys.pread = pread_and_commit;
	view = view_on(&sys);
	reads = 0;
	restart_at = (unsigned)_i;
	ck_assert_uint_ge(help_scan(view, NULL, 0), ROWS);
	ck_assert_uint_gt(reads, restart_at);
	journal_view_close(view);
	ck_assert_uint_eq(help_scan(writer, NULL, 0), ROWS + 1);
	help_close(writer);
}

static int commit_at_the_first(void *arg, const struct journal_row *row)
{
	uint64_t *last = arg;

	ck_assert_uint_eq(row->lsn, *last + 1);
	if (*last == 0)
		ck_assert_int_eq(help_commit(writer, ROWS, 1, ROW_BYTES * ROWS),
		    0);
	*last = row->lsn;
	return 0;
}

TEST(it_begins_anew_while_rows_are_read)
{
	struct journal *view;
	uint64_t last = 0;

	fill_and_copy(ROW_BYTES);
	view = view_here();
	ck_assert_int_eq(journal_scan(view, 0, commit_at_the_first, &last), 0);
	ck_assert_uint_eq(last, ROWS);
	journal_view_close(view);
	help_close(writer);
}

/* ---- a view that is stopped ---- */

static int lock_as_a_view(void)
{
	int fd = openat(tmp_fd, "journal.db-wal", O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	return fd;
}

static void do_not_wait(const struct sys *sys, int64_t ns)
{
	(void)sys;
	(void)ns;
}

/* The daemon does without its checkpoint at first, and goes on when the WAL has
 * outgrown its bound. So does its end, and the next start. */
TEST(a_view_that_is_stopped)
{
	struct sys impatient = sys_kernel;
	struct journal_stats before, after;
	struct journal *j;
	int fd;

	impatient.sleep_ns = do_not_wait;
	j = help_open(&impatient, tmp_root, NULL);
	ck_assert_int_eq(help_commit(j, 0, 1, 16), 0);
	journal_stats(j, &before);
	fd = lock_as_a_view();
	ck_assert_int_eq(journal_checkpoint(j, BEYOND), -EBUSY);
	ck_assert_int_eq(help_commit(j, 1, 1, 16), 0);
	journal_stats(j, &after);
	ck_assert_uint_eq(after.checkpoints, before.checkpoints);
	ck_assert_int_eq(journal_checkpoint(j, 0), 0);
	journal_stats(j, &after);
	ck_assert_uint_gt(after.checkpoints, before.checkpoints);
	ck_assert_int_eq(help_commit(j, 2, 1, 16), 0);
	help_close(j);
	j = help_open(&impatient, tmp_root, NULL);
	ck_assert_uint_eq(help_scan(j, NULL, 0), 3);
	help_close(j);
	close(fd);
}

/* In the daemon. Its last checkpoint was longer ago than a tick of the clock.
 */
static void go_on(void)
{
	usleep(50000);
	ck_assert_int_eq(help_commit(writer, ROWS, 1, 300000), 0);
	ck_assert_int_eq(journal_checkpoint(writer, 0), 0);
}

/* The view is stopped with its lock, and the daemon goes on. */
static int stop_at_the_first(void *arg, const struct journal_row *row)
{
	if (*(uint64_t *)arg == ROWS + 1)
		go_on();
	*(uint64_t *)arg = row->lsn;
	return 0;
}

static int stop(void *arg, const struct journal_start *start)
{
	(void)arg;
	(void)start;
	go_on();
	return 0;
}

TEST(what_it_read_is_unknown)
{
	struct sys impatient = sys_kernel;
	struct journal_reader *reader;
	struct journal *view;
	uint64_t before = ROWS + 1;
	unsigned i;

	impatient.sleep_ns = do_not_wait;
	writer = help_open(&impatient, tmp_root, NULL);
	for (i = 0; i < ROWS; i++)
		ck_assert_int_eq(help_commit(writer, i, 1, ROW_BYTES), 0);
	view = view_here();
	ck_assert_int_eq(journal_reader_open(view, &reader), 0);
	ck_assert_int_eq(journal_read(reader, 0, before, true, ROWS,
			     stop_at_the_first, &before),
	    -EAGAIN);
	ck_assert_ptr_null(journal_damage(view));
	before = ROWS + 1;
	ck_assert_int_eq(journal_read(reader, 0, before, true, ROWS, row_before,
			     &before),
	    0);
	ck_assert_uint_eq(before, 1);
	ck_assert_int_eq(journal_each_start(view, stop, NULL), -EAGAIN);
	journal_reader_close(reader);
	journal_view_close(view);
	help_close(writer);
}

/* ---- without a daemon ---- */

static void view_two_rows(void)
{
	struct journal *view = view_here();

	ck_assert_uint_eq(journal_last_lsn(view), 2);
	ck_assert_uint_eq(help_scan(view, NULL, 0), 2);
	journal_view_close(view);
}

/* With frames in the WAL; with an empty WAL; without a WAL. */
TEST(a_view_changes_nothing, .times = 3)
{
	struct journal *j = help_open_here();
	char *before, *after;

	ck_assert_int_eq(help_commit(j, 0, 2, 16), 0);
	if (_i > 0)
		help_close(j);
	if (_i == 2)
		tmp_run("rm journal.db-wal");
	before = tmp_output("ls -l --time-style=full-iso; sha1sum journal.db*");
	view_two_rows();
	after = tmp_output("ls -l --time-style=full-iso; sha1sum journal.db*");
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
	if (_i == 0)
		help_close(j);
}

TEST(opened_again_while_it_is_viewed)
{
	struct journal *j = help_open_here(), *view;

	ck_assert_int_eq(help_commit(j, 0, 1, 16), 0);
	view = view_here();
	help_reopen(j);
	ck_assert_int_eq(help_commit(j, 1, 1, 16), 0);
	ck_assert_uint_eq(help_scan(view, NULL, 0), 2);
	journal_view_close(view);
	help_close(j);
}

/* A commit right after a read is seen by the next one. */
TEST(a_reader_sees_what_came)
{
	struct journal *j = help_open_here(), *view = view_here();
	struct journal_reader *reader;
	uint64_t before, last;
	unsigned i;

	ck_assert_int_eq(journal_reader_open(view, &reader), 0);
	for (i = 1; i <= 100; i++) {
		ck_assert_int_eq(help_commit(j, i, 1, 16), 0);
		if (i % 10 == 0)
			ck_assert_int_eq(journal_checkpoint(j, 0), 0);
		before = i + 1;
		do {
			last = before;
			ck_assert_int_eq(journal_read(reader, 0, before, true,
					     64, row_before, &before),
			    0);
		} while (before != last);
		ck_assert_uint_eq(before, 1);
	}
	journal_reader_close(reader);
	journal_view_close(view);
	help_close(j);
}

static ssize_t count_preads(const struct sys *sys, int fd, void *buf,
    size_t len, off_t offset)
{
	reads++;
	return sys_kernel.pread(sys, fd, buf, len, offset);
}

/* Of a journal at rest, the WAL is copied once. */
TEST(a_reader_keeps_its_connection)
{
	struct sys sys = sys_kernel;
	struct journal *j = help_open_here(), *view;
	struct journal_reader *reader;
	uint64_t before;
	unsigned i, copied = 0;

	ck_assert_int_eq(help_commit(j, 0, 2, 16), 0);
	usleep(100000);
	sys.pread = count_preads;
	view = view_on(&sys);
	ck_assert_int_eq(journal_reader_open(view, &reader), 0);
	for (i = 0; i < 10; i++) {
		before = 3;
		ck_assert_int_eq(journal_read(reader, 0, before, true, 64,
				     row_before, &before),
		    0);
		ck_assert_uint_eq(before, 1);
		if (i == 0)
			copied = reads;
	}
	ck_assert_uint_gt(copied, 0);
	ck_assert_uint_eq(reads, copied);
	journal_reader_close(reader);
	journal_view_close(view);
	help_close(j);
}
