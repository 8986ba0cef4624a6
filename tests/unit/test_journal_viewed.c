/*
 * Proves that the journal survives a viewer such as refd verify. First, a sync
 * fails and the journal is opened again while it is viewed: the index of the
 * WAL stays, and lists frames that the disk never got. Second, a viewer has
 * just begun to open the journal and holds the lock for opening.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/journal_world.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

START_TEST(a_failed_sync_while_it_is_viewed)
{
	struct journal_world *w = journal_world_new();
	struct journal_config cfg = { .sys = &w->sys,
		.dir = WORLD_DIR,
		.vfs = WORLD_VFS,
		.boot_id = "",
		.adopt = true };
	struct journal *view;
	unsigned row, later;
	char *why = NULL;
	size_t bytes;
	bool was_there;
	int r;

	world_prepare(w, _i == 0 ? APPENDS : LARGE, &bytes);
	ck_assert_int_eq(journal_view(&cfg, &view, &why), 0);
	row = w->next;
	world_arm(w, SYNC_FAILS, 0, -EIO);
	r = world_add(w, 2, bytes);
	ck_assert(world_disarm(w));
	ck_assert_int_eq(r, JOURNAL_UNKNOWN);
	r = journal_reopen(w->j, &why);
	ck_assert_msg(r == 0, "%d: %s", r, why != NULL ? why : "");
	was_there = world_check(w, row, 2, JOURNAL_UNKNOWN, "reopened");
	later = w->next;
	ck_assert_int_eq(world_add(w, 3, bytes), 0);
	ck_assert(help_has(w->j, later) && help_has(w->j, later + 2));
	journal_view_close(view);
	world_power_loss(w, MEMFS_DATA_NONE);
	world_open(w);
	ck_assert(world_check(w, row, 2, JOURNAL_UNKNOWN, "cut") == was_there);
	ck_assert(help_has(w->j, later) && help_has(w->j, later + 2));
	journal_world_free(w);
}
END_TEST

#define DMS_BYTE 128 /* os_unix.c: UNIX_SHM_DMS */
#define HOLD_US  200000

/* In a separate process, because all locks of a process are shared. */
static void hold_lock(int told)
{
	struct flock lock = { .l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = DMS_BYTE,
		.l_len = 1 };
	int fd = openat(tmp_fd, "journal.db-shm", O_RDWR | O_CREAT | O_CLOEXEC,
	    0600);

	if (fd < 0 || fcntl(fd, F_SETLK, &lock) != 0 || write(told, "", 1) != 1)
		_exit(1);
	usleep(HOLD_US);
	_exit(0);
}

START_TEST(opened_while_a_viewer_opens_it)
{
	int tell[2], status;
	pid_t pid;
	char c;

	help_close(help_open_here());
	ck_assert_int_eq(pipe(tell), 0);
	pid = fork();
	if (pid == 0)
		hold_lock(tell[1]);
	ck_assert_int_eq(read(tell[0], &c, 1), 1);
	help_close(help_open_here());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	close(tell[0]);
	close(tell[1]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("journal_viewed");
	TCase *tc = tcase_create("viewed");

	tcase_add_loop_test(tc, a_failed_sync_while_it_is_viewed, 0, 2);
	suite_add_tcase(s, tc);
	tc = tcase_create("opening");
	tcase_add_checked_fixture(tc, tmp_setup, tmp_teardown);
	tcase_add_test(tc, opened_while_a_viewer_opens_it);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
