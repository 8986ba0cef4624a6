#include "tests/lib/world_rig.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct world *w;
unsigned wr_home;

static void setup(struct memfs *fs, unsigned home, bool state_elsewhere)
{
	wr_home = home;
	w = world_new(fs, state_elsewhere);
	wr_start();
}

void wr_setup(void)
{
	setup(memfs_new(), 0, false);
}

void wr_setup_apart(void)
{
	setup(memfs_new(), 0, true);
}

void wr_setup_mounted(void)
{
	struct memfs *fs = memfs_new();

	setup(fs, memfs_mount(fs, "/srv"), true);
}

void wr_teardown(void)
{
	world_free(w);
}

void wr_ok(const char *spec)
{
	struct txn *txn = world_apply(w, spec, false);
	size_t i;

	ck_assert_ptr_nonnull(txn);
	for (i = 0; i < txn->nr_updates; i++)
		ck_assert_int_eq(txn->updates[i].status, REFD_OK);
	world_done(w, txn);
}

void wr_expect_locks(const char *want)
{
	char *locks = memfs_list_locks(w->fs, WORLD_REPO);

	ck_assert_str_eq(locks, want);
	free(locks);
}

void wr_remove_locks(void)
{
	char *list = memfs_list_locks(w->fs, WORLD_REPO), *at = list, *lock;

	while ((lock = strsep(&at, "\n")) != NULL)
		if (lock[0] != '\0')
			wr_unlink(lock);
	free(list);
}

void wr_expect_file(const char *path, const char *text)
{
	char *have = memfs_read(w->fs, path, NULL);

	ck_assert_msg(memfs_holds(w->fs, path, text), "%s holds %s", path,
	    have != NULL ? have : "nothing");
	free(have);
}

void wr_power_loss(enum memfs_data data, long keep)
{
	struct memfs_choice choice = { .seed = 1, .data = data };

	choice.keep[wr_home] = keep;
	memfs_power_loss(w->fs, &choice);
	world_crash(w);
}

void wr_start(void)
{
	ck_assert_int_eq(world_start(w), 0);
}

void wr_know_boot(void)
{
	w->this_boot.stamp_ns = SYS(w->sys, now_wall);
}

void wr_power_loss_and_start(enum memfs_data data, long keep)
{
	wr_power_loss(data, keep);
	wr_start();
}

void wr_remount(void)
{
	struct memfs_choice nothing = { .data = MEMFS_DATA_NONE };

	memfs_remount(w->fs, wr_home, &nothing);
	repos_trim(&w->store.repos, -1);
}

bool wr_fail_write(const char *spec, bool atomic, unsigned long n, int err)
{
	struct txn *txn;
	bool hit;

	w->owed = 0;
	memfs_fail_call(w->fs, MEMFS_WRITE_ALL, n, err);
	txn = world_apply(w, spec, atomic);
	hit = memfs_was_hit(w->fs);
	memfs_fail_none(w->fs);
	if (w->owed > 0)
		ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	world_done(w, txn);
	return hit;
}

void wr_rename(const char *from, const char *to)
{
	ck_assert_int_eq(
	    SYS(memfs_other(w->fs), renameat, AT_FDCWD, from, AT_FDCWD, to), 0);
}

void wr_unlink(const char *path)
{
	ck_assert_int_eq(SYS(memfs_other(w->fs), unlinkat, AT_FDCWD, path), 0);
}
