#include "tests/lib/journal_world.h"

#include <check.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static struct journal_world *world_of(const struct sys *sys)
{
	/* sys is embedded in struct journal_world. */
	return (struct journal_world *)(uintptr_t)((const char *)sys -
	    offsetof(struct journal_world, sys));
}

static ssize_t torn_pwrite(const struct sys *sys, int fd, const void *buf,
    size_t len, off_t offset)
{
	struct journal_world *w = world_of(sys);
	size_t part = len / 2;

	if (w->is_torn) {
		w->is_torn = false;
		return w->tear_err;
	}
	if (w->tear_at-- == 0) {
		if (w->tear_at_page)
			part = 4096 - (size_t)offset % 4096;
		if (part >= len)
			part = len - 1;
		w->is_torn = w->was_torn = true;
		len = part;
		if (len == 0) {
			w->is_torn = false;
			return w->tear_err;
		}
	}
	return SYS(memfs_sys(w->fs), pwrite, fd, buf, len, offset);
}

struct journal_world *journal_world_new(void)
{
	struct journal_world *w = calloc(1, sizeof(*w));

	w->fs = memfs_new();
	memfs_mkdirs(w->fs, WORLD_DIR);
	w->sys = *memfs_sys(w->fs);
	w->sys.pwrite = torn_pwrite;
	w->tear_at = -1;
	w->vfs = sysvfs_new(WORLD_VFS, &w->sys);
	return w;
}

void world_open(struct journal_world *w)
{
	w->j = help_open(&w->sys, WORLD_DIR, WORLD_VFS);
}

void journal_world_free(struct journal_world *w)
{
	ck_assert_uint_eq(memfs_bad_fds(w->fs), 0);
	/* A journal that fails during its creation is thrown away, so SQLite
	 * may do anything there. */
	if (!w->was_made_under_fault)
		ck_assert_uint_eq(memfs_bad_syncs(w->fs), 0);
	journal_close(w->j);
	ck_assert_uint_eq(memfs_open_fds(w->fs), 0);
	sysvfs_free(w->vfs);
	memfs_free(w->fs);
	free(w);
}

int world_add(struct journal_world *w, unsigned nr, size_t bytes)
{
	int r = help_commit(w->j, w->next, nr, bytes);

	w->next += nr;
	return r;
}

void world_end_process(struct journal_world *w)
{
	memfs_die(w->fs, 0, -EIO);
	journal_close(w->j);
	w->j = NULL;
	memfs_fail_none(w->fs);
	w->tear_at = -1;
	w->is_torn = false;
	memfs_crash(w->fs);
}

void world_power_loss(struct journal_world *w, enum memfs_data data)
{
	struct memfs_choice choice = memfs_choose(1);
	unsigned i;

	world_end_process(w);
	choice.data = data;
	for (i = 0; i < MEMFS_MOUNTS_MAX; i++)
		choice.keep[i] = data == MEMFS_DATA_NONE ? 0 : -1;
	memfs_power_loss(w->fs, &choice);
}

void world_arm(struct journal_world *w, enum fault fault, unsigned long n,
    int err)
{
	w->was_torn = false;
	switch (fault) {
	case WRITE_FAILS:
		memfs_fail_call(w->fs, MEMFS_PWRITE, n, err);
		return;
	case WRITE_TEARS:
	case WRITE_TEARS_AT_PAGE:
		w->tear_at = (long)n;
		w->tear_err = err;
		w->tear_at_page = fault == WRITE_TEARS_AT_PAGE;
		return;
	case SYNC_FAILS:
		memfs_fail_call(w->fs, MEMFS_FDATASYNC, n, err);
		return;
	case ANY:
		memfs_fail(w->fs, n, err);
		return;
	case NR_FAULTS:
		break;
	}
	ck_abort();
}

bool world_disarm(struct journal_world *w)
{
	bool was_hit = memfs_was_hit(w->fs) || w->was_torn;

	memfs_fail_none(w->fs);
	w->tear_at = -1;
	return was_hit;
}

void world_prepare(struct journal_world *w, enum before before, size_t *bytes)
{
	bool begins_anew = before == BEGINS_ANEW || before == FORGETS_TOO;
	unsigned i;

	*bytes = before == LARGE ? 9000 : 200;
	world_open(w);
	/* If the WAL begins anew, an index page needs equal tails in both
	 * WALs. */
	for (i = 0; i < (begins_anew ? 12 : WORLD_FEW); i++) {
		ck_assert_int_eq(world_add(w, 1, 20), 0);
		if (begins_anew)
			ck_assert_int_eq(journal_checkpoint(w->j, 0), 0);
	}
	if (before == FORGETS_TOO)
		ck_assert_int_eq(journal_forget(w->j, 9, false), 0);
}

void world_go_on(struct journal_world *w, enum after after, int r)
{
	switch (after) {
	case CARRY_ON:
		/* Without reopening, if that is allowed. */
		if (r != JOURNAL_UNKNOWN)
			return;
		help_reopen(w->j);
		return;
	case REOPEN:
	case REOPEN_THEN_CUT:
		help_reopen(w->j);
		return;
	case KILL:
	case KILL_THEN_CUT:
		world_end_process(w);
		break;
	case CUT_NONE:
		world_power_loss(w, MEMFS_DATA_NONE);
		break;
	case CUT_ALL:
		world_power_loss(w, MEMFS_DATA_ALL);
		break;
	case NR_AFTER:
		ck_abort();
	}
	world_open(w);
}

/* Checks that R and the earlier observation allow the presence or absence of
 * ROW. */
bool world_check(struct journal_world *w, unsigned row, unsigned nr, int r,
    const char *when)
{
	bool seen[WORLD_ROWS], is_there;
	unsigned i;

	help_scan(w->j, seen, WORLD_ROWS);
	for (i = 0; i < row; i++)
		ck_assert_msg(seen[i], "%s: row %u was acknowledged", when, i);
	is_there = seen[row];
	for (i = row; i < row + nr; i++)
		ck_assert_msg(seen[i] == is_there, "%s: half of it", when);
	ck_assert_msg(r != 0 || is_there, "%s: 0, and not there", when);
	ck_assert_msg(r >= 0 || !is_there, "%s: %d, and there", when, r);
	return is_there;
}
