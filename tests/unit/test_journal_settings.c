/*
 * Proves how the journal uses SQLite, on a real file system with SQLite's own
 * VFS. A commit never checkpoints in its path, however long the WAL. No file is
 * mapped, so a full or dying disk means an error and no SIGBUS. SQLite's
 * locks on the database survive all work of the journal with the file beside
 * SQLite. (Closing any descriptor of a file releases all POSIX locks of the
 * process on this file.)
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/journal_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct journal *j;
static char path[4200];

static void setup(void)
{
	tmp_setup();
	j = help_open_here();
	snprintf(path, sizeof(path), "%s/journal.db", tmp_root);
}

static void teardown(void)
{
	ck_assert_int_eq(journal_close(j), 0);
	tmp_teardown();
}

CASE(.setup = setup, .teardown = teardown, .seconds = 30);

/* By default, SQLite would checkpoint at 1000 pages. */
TEST(no_commit_checkpoints)
{
	struct journal_stats stats;
	char *before, *after;
	unsigned i;

	before = tmp_output("sha1sum journal.db");
	for (i = 0; i < 60; i++)
		ck_assert_int_eq(help_commit(j, i, 1, 200000), 0);
	after = tmp_output("sha1sum journal.db");
	ck_assert_str_eq(before, after);
	journal_stats(j, &stats);
	ck_assert_uint_gt(stats.wal_bytes, 2000 * 4096);
	free(before);
	free(after);
}

TEST(nothing_is_mapped)
{
	char line[4400];
	FILE *f;

	ck_assert_int_eq(help_commit(j, 0, 3, 100000), 0);
	ck_assert_int_eq(journal_checkpoint(j, 0), 0);
	ck_assert_uint_eq(help_scan(j, NULL, 0), 3);
	ck_assert(!tmp_exists("journal.db-shm"));
	f = fopen("/proc/self/maps", "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f) != NULL)
		ck_assert_ptr_null(strstr(line, path));
	fclose(f);
}

/* A second process asks, because a process does not conflict with its own
 * locks. */
static bool is_locked(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd, status;
	pid_t pid = fork();

	if (pid == 0) {
		fd = open(path, O_RDWR);
		if (fd < 0 || fcntl(fd, F_GETLK, &lock) < 0)
			_exit(2);
		_exit(lock.l_type != F_UNLCK);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 1;
}

TEST(its_locks_stand)
{
	struct journal_reader *reader;

	ck_assert(is_locked());
	ck_assert_int_eq(help_commit(j, 0, 3, 1000), 0);
	ck_assert_int_eq(journal_reader_open(j, &reader), 0);
	journal_reader_close(reader);
	ck_assert_int_eq(journal_checkpoint(j, 0), 0);
	ck_assert(is_locked());
	help_reopen(j);
	ck_assert(is_locked());
}
