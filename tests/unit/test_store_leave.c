/*
 * Proves that `refd recover --leave` can be repeated after a failing call, a
 * crash or a power loss at any step. The node has left its group for good, or
 * is in the group and all its repositories are marked: git never writes to a
 * repository of a node that is in its group. The repetition ends well, keeps
 * the words for a new group, and removes all marks. If one can't be removed,
 * the others are. And a node marks no repository whose tables are missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/group/group_internal.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"
#include "tests/lib/world.h"

#define OTHER "/srv/other.git"

#define TABLES "/srv/tables.git"

static struct replica node = { &group_replica_ops, NULL };
static const char *const marks[] = { WORLD_REPO "/refd/group",
	OTHER "/refd/group" };
#define NR_MARKS (sizeof(marks) / sizeof(*marks))

struct state {
	struct world *w;
	/* A call has returned 0, with this uuid. */
	bool has_left;
	uint8_t uuid[16];
};

/* As the daemon of a node. */
static void open_in_group(struct world *w, const char *path)
{
	struct txn *txn = world_begin_in(w, path, "x=1", false);

	ck_assert_ptr_nonnull(txn);
	world_batch(w, &txn, 1);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	world_done(w, txn);
}

static void *set_up(struct memfs *fs, void *arg)
{
	static const uint8_t group[16] = "a group";
	struct state *s = calloc(1, sizeof(*s));
	struct journal_row row = { .kind = JOURNAL_SLICE,
		.body = (const uint8_t *)"",
		.shared_lsn = 1 };

	(void)arg;
	ck_assert_ptr_nonnull(s);
	s->w = world_new(fs, true);
	memfs_mkdirs(fs, OTHER "/refs/heads");
	memfs_mkdirs(fs, OTHER "/objects/pack");
	memfs_write(fs, OTHER "/HEAD", "ref: refs/heads/main\n");
	world_write(fs, OTHER "/config",
	    "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n"
	    "[extensions]\n\tobjectFormat = @*\n");
	ck_assert_int_eq(world_start(s->w), 0);
	s->w->store.repos.replica = &node;
	journal_set_shared(s->w->store.journal, group);
	ck_assert_int_eq(journal_commit(s->w->store.journal, &row, 1, true), 0);
	open_in_group(s->w, WORLD_REPO);
	open_in_group(s->w, OTHER);
	ck_assert_int_eq(world_checkpoint(s->w), 0);
	/* The command has its own process. */
	memfs_crash(fs);
	world_crash(s->w);
	ck_assert_int_eq(world_start(s->w), 0);
	ck_assert(journal_shares_rows(s->w->store.journal));
	return s;
}

static void tear_down(void *arg)
{
	struct state *s = arg;

	world_free(s->w);
	free(s);
}

static int leave(void *arg)
{
	struct state *s = arg;
	uint8_t uuid[16];
	int r = store_leave(&s->w->store, uuid);

	if (r == 0) {
		s->has_left = true;
		memcpy(s->uuid, uuid, sizeof(uuid));
	}
	return r;
}

static int start_again(void *arg)
{
	struct state *s = arg;

	world_crash(s->w);
	return world_start(s->w);
}

static size_t nr_marked(const struct state *s)
{
	size_t i, nr = 0;

	for (i = 0; i < NR_MARKS; i++)
		nr += memfs_exists(s->w->fs, marks[i]);
	return nr;
}

static const char *look(void *arg, const struct sweep_now *now)
{
	struct state *s = arg;
	const struct state before = *s;
	struct journal *j;
	uint8_t uuid[16];
	bool is_in;

	/* A repository that cannot be opened keeps its mark. */
	if (now->when == SWEEP_ALIVE && !now->was_hit && nr_marked(s) > 0)
		return "a repository is still marked";
	if (now->when == SWEEP_ALIVE) {
		memfs_crash(s->w->fs);
		if (start_again(s) != 0)
			return "no start after a failure";
	}
	j = s->w->store.journal;
	is_in = journal_shares_rows(j);
	journal_shared_uuid(j, uuid);
	if (is_in && nr_marked(s) < NR_MARKS)
		return "the node is in the group, and git may write";
	if (before.has_left && is_in)
		return "the node is in the group again";
	if (before.has_left && memcmp(uuid, before.uuid, sizeof(uuid)) != 0)
		return "other words for a new group";
	if (leave(s) != 0)
		return "the repetition fails";
	if (!is_in && memcmp(uuid, s->uuid, sizeof(uuid)) != 0)
		return "the repetition has other words for a new group";
	if (journal_shares_rows(j) || journal_shared_lsn(j) != 1)
		return "the repetition does not leave the group";
	return nr_marked(s) == 0 ? NULL : "the repetition leaves a mark";
}

static const struct sweep sweep = { .name = "leave",
	.setup = set_up,
	.run = leave,
	.recover = start_again,
	.check = look,
	.done = tear_down,
	.choices = 6 };

CASE(.seconds = 120);

/* The owner of one repository keeps no other one from being unmarked. */
TEST(a_mark_that_stays)
{
	struct memfs *fs = memfs_new();
	struct state *s = set_up(fs, NULL);
	uint8_t uuid[16];

	ck_assert_int_eq(SYS(memfs_other(fs), unlinkat, AT_FDCWD, marks[0]), 0);
	memfs_mkdirs(fs, marks[0]);
	ck_assert_int_lt(store_leave(&s->w->store, uuid), 0);
	ck_assert(memfs_exists(fs, marks[0]));
	ck_assert(!memfs_exists(fs, marks[1]));
	tear_down(s);
}

/* Its tables may come later, with refs that no row has. */
TEST(a_repository_without_its_tables)
{
	struct memfs *fs = memfs_new();
	struct state *s = set_up(fs, NULL);

	s->w->store.repos.replica = &node;
	s->w->store.repos.configure = NULL;
	memfs_mkdirs(fs, TABLES "/refs/heads");
	memfs_mkdirs(fs, TABLES "/objects/pack");
	memfs_write(fs, TABLES "/HEAD", "ref: refs/heads/.invalid\n");
	world_write(fs, TABLES "/config",
	    "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n"
	    "[extensions]\n\trefStorage = reftable\n\tobjectFormat = @*\n");
	ck_assert_ptr_null(world_repo(s->w, TABLES));
	ck_assert(!memfs_exists(fs, TABLES "/refd/id"));
	memfs_mkdirs(fs, TABLES "/reftable");
	tear_down(s);
}

TEST(failure_anywhere)
{
	static const int errs[] = { -EIO, -ENOSPC, 0 };
	struct sweep_report report = { 0 };

	ck_assert_msg(sweep_errno(&sweep, errs, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 10);
}

TEST(crash_anywhere)
{
	struct sweep_report report = { 0 };

	ck_assert_msg(sweep_crash(&sweep, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 4);
}

TEST(power_loss_anywhere)
{
	struct sweep_report report = { 0 };

	ck_assert_msg(sweep_power_loss(&sweep, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 4);
}
