/*
 * Proves that an open journal has room in its WAL. Commits write into the room,
 * a larger commit makes the WAL grow, and a new WAL has room again. A full disk
 * stops no work, nor the opening of a journal with room. On a disk with little
 * free space, the journal keeps its room. A file system that has stopped, but
 * whose fdatasync succeeds, is noticed when the WAL has grown and after
 * SQLite's checkpoint. A WAL that is shorter than its room is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/journal_world.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"
#include "tests/lib/tmp.h"

static off_t wal_size(void)
{
	struct stat st;

	ck_assert_int_eq(fstatat(tmp_fd, "journal.db-wal", &st, 0), 0);
	return st.st_size;
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 120);

TEST(the_wal_has_room)
{
	struct journal *j = help_open_here();

	ck_assert_int_eq(wal_size(), HELP_WAL_ROOM);
	ck_assert_int_eq(help_commit(j, 0, 1, 16), 0);
	ck_assert_int_eq(wal_size(), HELP_WAL_ROOM);
	ck_assert_int_eq(help_commit(j, 1, 1, 2 * HELP_WAL_ROOM), 0);
	ck_assert_int_gt(wal_size(), HELP_WAL_ROOM);
	/* A new WAL. */
	help_reopen(j);
	ck_assert_int_eq(wal_size(), HELP_WAL_ROOM);
	help_close(j);
	ck_assert_int_eq(wal_size(), 0);
	j = help_open_here();
	ck_assert_int_eq(wal_size(), HELP_WAL_ROOM);
	ck_assert_uint_eq(help_scan(j, NULL, 0), 2);
	help_close(j);
}

/* SQLite itself does not write through this call. */
static ssize_t write_half(const struct sys *sys, int fd, const void *buf,
    size_t len, off_t offset)
{
	(void)sys;
	if (offset > 0)
		return -ENOSPC;
	return sys_kernel.pwrite(&sys_kernel, fd, buf, len / 2, offset);
}

static ssize_t write_nothing(const struct sys *sys, int fd, const void *buf,
    size_t len, off_t offset)
{
	(void)sys;
	(void)fd;
	(void)buf;
	(void)len;
	(void)offset;
	return -EDQUOT;
}

TEST(a_full_disk_gives_no_room, .times = 2)
{
	struct sys full = sys_kernel;
	struct journal *j;

	full.pwrite = _i == 0 ? write_half : write_nothing;
	j = help_open(&full, tmp_root, NULL);
	ck_assert_int_lt(wal_size(), HELP_WAL_ROOM / 2);
	ck_assert_int_eq(help_commit(j, 0, 1, 2 * HELP_WAL_ROOM), 0);
	ck_assert_int_gt(wal_size(), HELP_WAL_ROOM);
	help_close(j);
	j = help_open_here();
	ck_assert_uint_eq(help_scan(j, NULL, 0), 1);
	help_close(j);
}

#define ROOM (INT64_C(1) << 20)
#define ROWS 30

static struct journal_config with_room(struct journal_world *w)
{
	return (struct journal_config){ .sys = &w->sys,
		.dir = WORLD_DIR,
		.vfs = WORLD_VFS,
		.boot_id = HELP_BOOT,
		.wal_room = ROOM };
}

static void open_with_room(struct journal_world *w)
{
	const struct journal_config cfg = with_room(w);
	char *why = NULL;
	int r = help_start(&cfg, &w->j, &why);

	ck_assert_msg(r == 0, "%d: %s", r, why);
}

/* The WAL has the rows that will make the database grow. */
TEST(a_full_disk_when_it_is_opened, .times = 3)
{
	struct journal_world *w = journal_world_new();
	unsigned i;

	open_with_room(w);
	memfs_set_room(w->fs, 0, 0, -1);
	for (i = 0; i < ROWS; i++)
		ck_assert_int_eq(world_add(w, 1, 3000), 0);
	if (_i == 0)
		help_reopen(w->j);
	else if (_i == 1)
		world_power_loss(w, MEMFS_DATA_NONE);
	else
		world_end_process(w);
	if (_i > 0)
		open_with_room(w);
	ck_assert_uint_eq(help_scan(w->j, NULL, 0), ROWS);
	ck_assert_int_eq(world_add(w, 1, 3000), 0);
	journal_world_free(w);
}

/* ---- a WAL that was cut short ---- */

#define WAL       WORLD_DIR "/journal.db-wal"
#define FRAME     4120
#define WAL_START 32

#define GONE SIZE_MAX

static const size_t cuts[] = { 0, WAL_START, WAL_START + FRAME,
	WAL_START + 10 * FRAME, ROOM - 1, GONE };

static void cut_wal(struct journal_world *w, size_t left)
{
	char *bytes;
	size_t len;

	if (left == GONE) {
		ck_assert_int_eq(
		    SYS(memfs_other(w->fs), unlinkat, AT_FDCWD, WAL), 0);
		return;
	}
	bytes = memfs_read(w->fs, WAL, &len);
	ck_assert_uint_eq(len, ROOM);
	memfs_write_bytes(w->fs, WAL, bytes, left);
	free(bytes);
}

static int try_open_with_room(struct journal_world *w, char **why)
{
	const struct journal_config cfg = with_room(w);
	struct journal *j;
	char *why_not = NULL;
	int r = help_start(&cfg, &j, why);

	if (r == 0)
		journal_close(j);
	else if (journal_view(&cfg, &j, &why_not) == 0)
		ck_abort_msg("a view believes the journal");
	free(why_not);
	return r;
}

/* The journal is closed. Nothing is changed. */
static void expect_refused(struct journal_world *w, size_t left)
{
	char *why = NULL, *before, *after;
	size_t len;

	cut_wal(w, left);
	before = memfs_read(w->fs, WAL, &len);
	ck_assert_int_eq(try_open_with_room(w, &why), -EBADMSG);
	ck_assert_msg(strstr(why, "was cut off") != NULL, "%s", why);
	free(why);
	after = memfs_read(w->fs, WAL, &len);
	ck_assert((before == NULL) == (after == NULL));
	ck_assert(before == NULL || memcmp(before, after, len) == 0);
	free(before);
	free(after);
}

TEST(a_wal_that_was_cut_short, .times = sizeof(cuts) / sizeof(*cuts))
{
	struct journal_world *w = journal_world_new();
	unsigned i;

	open_with_room(w);
	for (i = 0; i < ROWS; i++)
		ck_assert_int_eq(world_add(w, 1, 16), 0);
	world_end_process(w);
	expect_refused(w, cuts[_i]);
	journal_world_free(w);
}

static uint64_t random_state;

static unsigned any(unsigned n)
{
	random_state =
	    random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(random_state >> 33) % n;
}

#define JOURNALS  400
#define ENDS      (1 + 5) /* a kill, or a power loss with any data */
#define LIVES_MAX 3

/* A journal lives for some rows, ends, and lives again. In the end its WAL is
 * cut off, within the frames or in the room, or stays whole. */
TEST(a_wal_that_was_cut_anywhere)
{
	struct journal_world *w;
	unsigned i, k, lives, end;

	for (i = 1; i <= JOURNALS; i += (unsigned)sweep_step()) {
		random_state = i * 0x9e3779b97f4a7c15ULL;
		w = journal_world_new();
		for (lives = 1 + any(LIVES_MAX); lives > 0; lives--) {
			open_with_room(w);
			for (k = any(ROWS); k > 0; k--)
				ck_assert_int_eq(world_add(w, 1, 16), 0);
			end = any(ENDS);
			if (end == 0)
				world_end_process(w);
			else
				world_power_loss(w, (enum memfs_data)(end - 1));
		}
		if (any(4) > 0) {
			expect_refused(w,
			    any(2) == 0 ? any(ROOM) :
					  WAL_START + any(ROWS) * FRAME);
		} else {
			open_with_room(w);
			ck_assert_uint_eq(help_scan(w->j, NULL, 0), w->next);
		}
		journal_world_free(w);
	}
}

/* A power loss at any point of opening and closing makes no sound WAL look
 * cut. */
TEST(no_power_loss_cuts_the_wal, .times = 5)
{
	struct journal_world *w;
	unsigned long n;
	char *why = NULL;
	bool hit = true;

	for (n = 0; hit; n++) {
		w = journal_world_new();
		open_with_room(w);
		ck_assert_int_eq(world_add(w, 1, 16), 0);
		world_end_process(w);
		memfs_power_loss_at(w->fs, n);
		try_open_with_room(w, &why);
		hit = memfs_was_hit(w->fs);
		free(why);
		why = NULL;
		world_power_loss(w, (enum memfs_data)_i);
		open_with_room(w);
		ck_assert_uint_eq(help_scan(w->j, NULL, 0), 1);
		journal_world_free(w);
	}
	ck_assert_uint_gt(n, 10);
}

/* ---- a file system that stops ---- */

static unsigned nr_asked, refused_from;

static int ask(const struct sys *sys, int fd)
{
	(void)sys;
	(void)fd;
	return ++nr_asked >= refused_from ? -EROFS : 0;
}

static struct journal *open_with_asking(void)
{
	static struct sys sys;
	const struct journal_config cfg = { .sys = &sys,
		.dir = tmp_root,
		.boot_id = HELP_BOOT,
		.wal_room = ROOM };
	struct journal *j;
	char *why;

	sys = sys_kernel;
	sys.futimens_now = ask;
	nr_asked = 0;
	refused_from = UINT_MAX;
	ck_assert_int_eq(help_start(&cfg, &j, &why), 0);
	return j;
}

/* The flush afterwards succeeds. */
TEST(the_file_system_stops_as_the_wal_grows)
{
	struct journal *j = open_with_asking();

	refused_from = nr_asked + 2;
	ck_assert_int_eq(help_commit(j, 0, 1, 2 * ROOM), JOURNAL_UNKNOWN);
	refused_from = UINT_MAX;
	help_reopen(j);
	help_close(j);
}

TEST(the_file_system_stops_in_a_checkpoint)
{
	struct journal *j = open_with_asking();

	ck_assert_int_eq(help_commit(j, 0, 1, 16), 0);
	refused_from = nr_asked + 2;
	ck_assert_int_eq(journal_checkpoint(j, 0), JOURNAL_UNKNOWN);
	refused_from = UINT_MAX;
	help_reopen(j);
	ck_assert_uint_eq(help_scan(j, NULL, 0), 1);
	help_close(j);
}

TEST(within_the_room_nobody_asks)
{
	struct journal *j = open_with_asking();
	unsigned nr = nr_asked;

	ck_assert_uint_ge(nr, 2);
	ck_assert_int_eq(help_commit(j, 0, 1, 16), 0);
	ck_assert_uint_eq(nr_asked, nr);
	help_close(j);
}
