/*
 * Proves that a power loss before the record of a creation leaves no empty log,
 * whatever the power loss made of packed-refs. The log of a packed ref stays.
 */
#include <fcntl.h>

#include "daemon/store/refs/token.h"
#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define LOG  WORLD_REPO "/logs/refs/heads/n"
#define ONES "3131313131313131313131313131313131313131"

/* The number of a batch of an earlier start. */
#define BATCH 1

static const struct {
	const char *packed_refs; /* NULL: none */
	bool keeps_log;
} cases[] = {
	{ NULL, false },
	{ "", false },
	{ "garbage\n", false },
	{ "# pack-refs with: peeled fully-peeled sorted \n" ONES
	  " refs/heads/n\n",
	    true },
};
#define NR_CASES ((int)(sizeof(cases) / sizeof(*cases)))

static int open_dir(const char *path)
{
	int fd = SYS(memfs_other(w->fs), openat, AT_FDCWD, path,
	    O_RDONLY | O_DIRECTORY, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* What a batch does before its record. */
static void begin_creation(void)
{
	const struct sys *sys = memfs_other(w->fs);
	int repo_fd = open_dir(WORLD_REPO);
	int stage_fd = open_dir(WORLD_REPO "/refd/stage");
	struct token token;

	ck_assert_int_eq(token_init(&token, sys, stage_fd, BATCH), 0);
	ck_assert_int_eq(token_lock(&token, repo_fd, "refs/heads/n", 0777), 0);
	memfs_mkdirs(w->fs, WORLD_REPO "/logs/refs/heads");
	memfs_write(w->fs, LOG, "");
	SYS(sys, close, stage_fd);
	SYS(sys, close, repo_fd);
}

CASE(.setup = wr_setup_apart, .teardown = wr_teardown);

TEST(a_creation_without_a_record_leaves_no_log, .times = NR_CASES)
{
	wr_ok("x=1");
	begin_creation();
	if (cases[_i].packed_refs != NULL)
		memfs_write(w->fs, WORLD_REPO "/packed-refs",
		    cases[_i].packed_refs);
	scripted_sync(w);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert(!memfs_exists(w->fs, WORLD_REPO "/refs/heads/n.lock"));
	ck_assert_int_eq(memfs_exists(w->fs, LOG), cases[_i].keeps_log);
}
