/*
 * Proves that the sweeps find mistakes. Twelve mistakes are planted in a small
 * routine that updates a ref durably. Exactly the expected sweeps find every
 * mistake, and no sweep complains about the correct routine. Failing calls
 * alone miss six mistakes of durability. Power losses alone miss four mistakes
 * of cleaning up after an error. Together they miss no mistake. A further
 * mistake, in recovery, shows only after a second power loss.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/sys.h"
#include "tests/lib/memfs.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

#define HEADS "/r/refs/heads"
#define OLD   "1111111111111111111111111111111111111111\n"
#define NEW   "2222222222222222222222222222222222222222\n"

enum bug {
	NO_BUG,
	FILE_NOT_SYNCED,
	DIR_NOT_SYNCED,
	WRONG_DIR_SYNCED,
	NEW_DIR_NOT_SYNCED,
	FILE_SYNCED_AFTER_RENAME,
	RENAMED_BEFORE_WRITE,
	WRITTEN_IN_PLACE,
	OLD_UNLINKED_FIRST,
	SYNC_ERROR_IGNORED,
	SYNC_TRIED_AGAIN,
	LOCK_LEFT_BEHIND,
	DESCRIPTOR_LEFT_OPEN
};

/* ---- the routine ---- */

static int sync_file(const struct sys *sys, int fd, enum bug bug)
{
	int r;

	if (bug == FILE_NOT_SYNCED)
		return 0;
	r = SYS(sys, fsync, fd);
	if (r < 0 && bug == SYNC_TRIED_AGAIN)
		r = SYS(sys, fsync, fd);
	return bug == SYNC_ERROR_IGNORED ? 0 : r;
}

static int sync_dir(const struct sys *sys, int heads, const char *path)
{
	int r, fd = SYS(sys, openat, heads, path, O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return fd;
	r = SYS(sys, fsync, fd);
	SYS(sys, close, fd);
	return r;
}

/* REF is a name or DIR/name. A missing DIR is made. */
static int make_dir(const struct sys *sys, int heads, const char *dir,
    enum bug bug)
{
	int r;

	if (strcmp(dir, ".") == 0)
		return 0;
	r = SYS(sys, mkdirat, heads, dir, 0777);
	if (r < 0)
		return r == -EEXIST ? 0 : r;
	return bug == NEW_DIR_NOT_SYNCED ? 0 : sync_dir(sys, heads, ".");
}

static int put_in_place(const struct sys *sys, int heads, const char *lock,
    const char *ref, enum bug bug)
{
	int r;

	if (bug == OLD_UNLINKED_FIRST) {
		r = SYS(sys, unlinkat, heads, ref);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return SYS(sys, renameat, heads, lock, heads, ref);
}

/* Through the descriptor of the lock, which is in place after. */
static int write_and_rename(const struct sys *sys, int heads, int fd,
    const char *lock, const char *ref, enum bug bug)
{
	bool early = bug == RENAMED_BEFORE_WRITE;
	bool late_sync = bug == FILE_SYNCED_AFTER_RENAME;
	int r = 0;

	if (early)
		r = put_in_place(sys, heads, lock, ref, bug);
	if (r == 0)
		r = SYS(sys, write_all, fd, NEW, strlen(NEW));
	if (r == 0 && !late_sync)
		r = sync_file(sys, fd, bug);
	if (r == 0 && !early)
		r = put_in_place(sys, heads, lock, ref, bug);
	if (r == 0 && late_sync)
		r = sync_file(sys, fd, bug);
	return r;
}

static int write_in_place(const struct sys *sys, int heads, const char *ref)
{
	int r, fd;

	fd = SYS(sys, openat, heads, ref, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd < 0)
		return fd;
	r = SYS(sys, write_all, fd, NEW, strlen(NEW));
	if (r == 0)
		r = SYS(sys, fsync, fd);
	SYS(sys, close, fd);
	return r;
}

static int lock_and_update(const struct sys *sys, int heads, const char *lock,
    const char *ref, enum bug bug)
{
	int r, fd;

	fd = SYS(sys, openat, heads, lock, O_WRONLY | O_CREAT | O_EXCL, 0666);
	if (fd < 0)
		return fd;
	r = write_and_rename(sys, heads, fd, lock, ref, bug);
	if (r == 0 || bug != DESCRIPTOR_LEFT_OPEN)
		SYS(sys, close, fd);
	if (r < 0 && bug != LOCK_LEFT_BEHIND)
		SYS(sys, unlinkat, heads, lock);
	return r;
}

static int update_ref(const struct sys *sys, const char *dir, const char *lock,
    const char *ref, enum bug bug)
{
	int r, heads;

	heads = SYS(sys, openat, AT_FDCWD, HEADS, O_RDONLY | O_DIRECTORY, 0);
	if (heads < 0)
		return heads;
	r = make_dir(sys, heads, dir, bug);
	if (r == 0 && bug == WRITTEN_IN_PLACE)
		r = write_in_place(sys, heads, ref);
	else if (r == 0)
		r = lock_and_update(sys, heads, lock, ref, bug);
	if (r == 0 && bug == WRONG_DIR_SYNCED)
		r = sync_dir(sys, AT_FDCWD, HEADS "/..");
	else if (r == 0 && bug != DIR_NOT_SYNCED)
		r = sync_dir(sys, heads, dir);
	SYS(sys, close, heads);
	return r;
}

/* ---- callbacks of the sweeps ---- */

struct model_world {
	struct memfs *fs;
	enum bug bug;
	bool x_ok, y_ok;
};

static void *world_setup(struct memfs *fs, void *arg)
{
	struct model_world *w = calloc(1, sizeof(*w));

	w->fs = fs;
	w->bug = *(enum bug *)arg;
	memfs_write(fs, HEADS "/x", OLD);
	return w;
}

static int world_run(void *state)
{
	struct model_world *w = state;
	const struct sys *sys = memfs_sys(w->fs);

	w->x_ok = update_ref(sys, ".", "x.lock", "x", w->bug) == 0;
	w->y_ok = update_ref(sys, "t", "t/y.lock", "t/y", w->bug) == 0;
	return w->x_ok + 2 * w->y_ok;
}

static int world_recover(void *state)
{
	const struct sys *sys = memfs_sys(((struct model_world *)state)->fs);
	int r;

	r = SYS(sys, unlinkat, AT_FDCWD, HEADS "/x.lock");
	if (r == 0 || r == -ENOENT)
		r = SYS(sys, unlinkat, AT_FDCWD, HEADS "/t/y.lock");
	return r == -ENOENT ? 0 : r;
}

static const char *world_check(void *state, const struct sweep_now *now)
{
	struct model_world *w = state;
	char *locks = memfs_list_locks(w->fs, HEADS);
	bool locked = locks[0] != '\0';

	free(locks);
	if (locked)
		return "a lock is left";
	if (now->when == SWEEP_ALIVE && memfs_open_fds(w->fs) > 0)
		return "a descriptor is left open";
	if (w->x_ok && !memfs_holds(w->fs, HEADS "/x", NEW))
		return "the update of x was answered and is not there";
	if (w->y_ok && !memfs_holds(w->fs, HEADS "/t/y", NEW))
		return "the creation of y was answered and is not there";
	if (!memfs_holds(w->fs, HEADS "/x", NEW) &&
	    !memfs_holds(w->fs, HEADS "/x", OLD))
		return "x has neither value";
	if (!memfs_holds(w->fs, HEADS "/t/y", NEW) &&
	    !memfs_holds(w->fs, HEADS "/t/y", NULL))
		return "y is there with another value";
	return NULL;
}

static void world_done(void *state)
{
	memfs_free(((struct model_world *)state)->fs);
	free(state);
}

/* ---- sweeps that find the mistakes ---- */

enum {
	BY_ERRNO = 1,     /* failing calls, the living process alone */
	BY_ERRNO_CUT = 2, /* with a power loss after every call */
	BY_DEAD = 4,
	BY_KILL = 8,
	BY_CUT = 16,
	BY_ALL_CUTS = BY_ERRNO_CUT | BY_DEAD | BY_KILL | BY_CUT
};

static const struct {
	enum bug bug;
	const char *name;
	unsigned by;
} cases[] = {
	{ NO_BUG, "no mistake", 0 },
	{ FILE_NOT_SYNCED, "the file is not synced", BY_ALL_CUTS },
	{ DIR_NOT_SYNCED, "the directory is not synced", BY_ALL_CUTS },
	{ WRONG_DIR_SYNCED, "another directory is synced", BY_ALL_CUTS },
	{ NEW_DIR_NOT_SYNCED, "a new directory's name is not synced",
	    BY_ALL_CUTS },
	{ FILE_SYNCED_AFTER_RENAME, "the file is synced after the rename",
	    BY_ALL_CUTS },
	{ RENAMED_BEFORE_WRITE, "the rename comes before the write",
	    BY_ERRNO | BY_ALL_CUTS },
	{ WRITTEN_IN_PLACE, "the ref is written in place",
	    BY_ERRNO | BY_ALL_CUTS },
	{ OLD_UNLINKED_FIRST, "the old ref is unlinked first",
	    BY_ERRNO | BY_ALL_CUTS },
	{ SYNC_ERROR_IGNORED, "the sync's error is ignored", BY_ERRNO_CUT },
	{ SYNC_TRIED_AGAIN, "a failed sync is tried again",
	    BY_ERRNO | BY_ERRNO_CUT | BY_DEAD },
	{ LOCK_LEFT_BEHIND, "the lock is left on an error",
	    BY_ERRNO | BY_ERRNO_CUT },
	{ DESCRIPTOR_LEFT_OPEN, "the descriptor is left open on an error",
	    BY_ERRNO | BY_ERRNO_CUT },
};

/* This test is about the full sweeps. */
static void without_steps(void)
{
	unsetenv("SWEEP_STEP");
}

CASE(.setup = without_steps, .seconds = 60);

TEST(caught, .times = sizeof(cases) / sizeof(cases[0]))
{
	static const int errs[] = { -EIO, -ENOSPC, 0 };
	enum bug bug = cases[_i].bug;
	struct sweep s = { .name = cases[_i].name,
		.arg = &bug,
		.setup = world_setup,
		.run = world_run,
		.check = world_check,
		.done = world_done,
		.second_cuts = 4 };
	struct sweep_report rep[5] = { 0 };
	unsigned by = 0, i;

	if (!sweep_errno(&s, errs, &rep[0]))
		by |= BY_ERRNO;
	s.recover = world_recover;
	if (!sweep_errno(&s, errs, &rep[1]))
		by |= BY_ERRNO_CUT;
	if (!sweep_dead(&s, -EIO, &rep[2]))
		by |= BY_DEAD;
	if (!sweep_crash(&s, &rep[3]))
		by |= BY_KILL;
	if (!sweep_power_loss(&s, &rep[4]))
		by |= BY_CUT;
	for (i = 0; i < 5; i++) {
		ck_assert_uint_gt(rep[i].runs, 0);
		ck_assert_msg(!(by & ~cases[_i].by & (1U << i)), "%s",
		    rep[i].text);
	}
	ck_assert_msg(by == cases[_i].by, "%s: caught by %#x, not by %#x",
	    s.name, by, cases[_i].by);
}

/* ---- recovery: x is written from /r/want, which then goes ---- */

static int put_durably(const struct sys *sys, const char *path, const char *tmp)
{
	int r, fd;

	SYS(sys, unlinkat, AT_FDCWD, tmp);
	fd = SYS(sys, openat, AT_FDCWD, tmp, O_WRONLY | O_CREAT | O_EXCL, 0666);
	if (fd < 0)
		return fd;
	r = SYS(sys, write_all, fd, NEW, strlen(NEW));
	if (r == 0)
		r = SYS(sys, fsync, fd);
	SYS(sys, close, fd);
	return r < 0 ? r : SYS(sys, renameat, AT_FDCWD, tmp, AT_FDCWD, path);
}

static int note_run(void *state)
{
	struct model_world *w = state;
	const struct sys *sys = memfs_sys(w->fs);

	if (put_durably(sys, "/r/want", "/r/tmp") == 0)
		w->x_ok = sync_dir(sys, AT_FDCWD, "/r") == 0;
	return w->x_ok;
}

static int forget_note(const struct sys *sys)
{
	int r = SYS(sys, unlinkat, AT_FDCWD, "/r/want");

	return r < 0 ? r : sync_dir(sys, AT_FDCWD, "/r");
}

static int note_recover(void *state)
{
	struct model_world *w = state;
	const struct sys *sys = memfs_sys(w->fs);
	bool early = w->bug == DIR_NOT_SYNCED;
	struct sys_stat st;
	int r;

	r = SYS(sys, lstatat, AT_FDCWD, "/r/want", &st);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = put_durably(sys, HEADS "/x", "/r/tmp");
	if (r == 0 && early)
		r = forget_note(sys);
	if (r == 0)
		r = sync_dir(sys, AT_FDCWD, HEADS);
	if (r == 0 && !early)
		r = forget_note(sys);
	return r;
}

static const char *note_check(void *state, const struct sweep_now *now)
{
	struct model_world *w = state;

	if (now->when != SWEEP_ALIVE && w->x_ok &&
	    !memfs_holds(w->fs, HEADS "/x", NEW))
		return "the update was answered and is not there";
	return NULL;
}

TEST(a_second_power_loss_shows_what_one_does_not, .times = 2)
{
	enum bug bug = _i == 0 ? NO_BUG : DIR_NOT_SYNCED;
	struct sweep s = { .name = "recovery",
		.arg = &bug,
		.setup = world_setup,
		.run = note_run,
		.recover = note_recover,
		.check = note_check,
		.done = world_done };
	struct sweep_report rep = { 0 };
	bool well;

	ck_assert_msg(sweep_power_loss(&s, &rep), "%s", rep.text);
	s.second_cuts = 2;
	well = sweep_power_loss(&s, &rep);
	ck_assert_msg(well == (bug == NO_BUG), "%s", rep.text);
	if (!well)
		ck_assert_ptr_nonnull(strstr(rep.text, "recovery cut at"));
}
