/*
 * Proves that a node never counts a row as applied that it puts off, and counts
 * the row as its own only after a flush: whichever batch ends meanwhile. The
 * leader would not take the number back, so updates would go on as if this node
 * had the row. Rows that have arrived together share the flush. If the journal
 * does not take a row, nothing waits, and the rows before it are flushed. Nor
 * does an applied row count before the rows that were put off before it. With a
 * doubt about the journal, no number of the node grows any more. Nor does one
 * after an update of a row that cannot be finished, which ends the daemon, too.
 *
 * A node with a repository that is there, and lacks refs of rows, counts no row
 * as applied, and does not take the lead. No ref of such a repository is
 * mended, because its redo has to find the old values.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/store/deferred/deferred_internal.h"
#include "tests/lib/follower_rig.h"
#include "tests/lib/suite.h"

static int link_fds[2];
static struct group_input list[GROUP_ROWS];

static void link_up(void)
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, link_fds), 0);
	flw_group->fd = link_fds[0];
}

static void link_down(void)
{
	flw_group->fd = -1;
	close(link_fds[0]);
	close(link_fds[1]);
}

static void make_row(struct group_input *in, uint64_t lsn, uint64_t repo)
{
	static const uint8_t path[] = "r.git", bytes[] = "a row";

	*in = (struct group_input){ .bytes = (uint8_t *)bytes,
		.len = sizeof(bytes) };
	in->frame.row.lsn = lsn;
	in->frame.row.row.path = (struct group_bytes){ path, sizeof(path) - 1 };
	memcpy(in->frame.row.row.repo, &repo, sizeof(repo));
}

/* Puts off the first row of a new repository, without a flush. */
static bool put_off(uint64_t lsn)
{
	struct group_input in;
	struct attempt a;

	make_row(&in, lsn, lsn);
	attempt_init(&flw, &a, &in);
	return waiting_put(&flw, &in, &a);
}

/* Takes NR rows of the repository REPO, which have arrived together. */
static void take_rows(uint64_t lsn, size_t nr, uint64_t repo)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		make_row(&list[i], lsn + i, repo);
		list[i].next = i + 1 < nr ? &list[i + 1] : NULL;
	}
	follower_take_rows(&flw, list);
}

static uint64_t nr_flushes(void)
{
	struct journal_stats stats;

	journal_stats(w->store.journal, &stats);
	return stats.flushes;
}

static uint64_t applied(void)
{
	uint64_t lsn;

	mutex_lock(&flw_group->mutex);
	lsn = group_applied_lsn(flw_group);
	mutex_unlock(&flw_group->mutex);
	return lsn;
}

/* The last row that this node has, as APPLIED says. */
static uint64_t last(void)
{
	uint64_t lsn;

	mutex_lock(&flw_group->mutex);
	lsn = flw_group->done_lsn;
	mutex_unlock(&flw_group->mutex);
	return lsn;
}

/* Nothing waits any more. */
static void apply_all(void)
{
	waiting_free(&flw);
	group_set_waiting(flw_group, &(struct group_waiting){ .lsn = 0 });
}

struct seen {
	uint64_t applied, last, stored;
};

/* A batch without a change, as of a client that this node refuses. */
static void end_other_batch(struct memfs *fs, void *arg)
{
	static struct txn txn;
	struct txn_slice slice = { .txn = &txn };
	struct seen *seen = arg;

	(void)fs;
	pipeline_apply_rows(w->store.pipeline, &slice, 1);
	*seen = (struct seen){ applied(), last(),
		journal_shared_lsn(w->store.journal) };
}

CASE(.setup = flw_setup, .teardown = flw_teardown, .seconds = 60);

TEST(a_row_is_never_applied_while_it_is_put_off)
{
	unsigned long n, calls = 1;
	uint64_t lsn = 0, nr_stored = 0;
	struct seen seen;

	for (n = 0; n < calls; n++) {
		seen = (struct seen){ 0 };
		memfs_between(w->fs, n, end_other_batch, &seen);
		calls = memfs_nr_calls(w->fs);
		ck_assert(put_off(++lsn));
		ck_assert_int_eq(group_flush_postponed(flw_group), 0);
		calls = memfs_nr_calls(w->fs) - calls;
		ck_assert_uint_lt(seen.applied, lsn);
		ck_assert_uint_lt(seen.last, lsn);
		nr_stored += seen.stored == lsn;
		ck_assert_uint_eq(applied(), lsn - 1);
		group_applied(flw_group, lsn);
		ck_assert_uint_eq(last(), lsn);
		ck_assert_uint_eq(applied(), lsn - 1);
		apply_all();
		ck_assert_uint_eq(applied(), lsn);
	}
	/* A batch has ended between the append and the end of the flush. */
	ck_assert_uint_gt(nr_stored, 0);
}

/* A repository waits, from row 1 on. */
static void begin_to_wait(void)
{
	ck_assert(put_off(1));
	ck_assert_int_eq(group_flush_postponed(flw_group), 0);
	group_applied(flw_group, 1);
}

TEST(rows_that_are_put_off_together_share_a_flush)
{
	uint64_t nr;

	begin_to_wait();
	link_up();
	nr = nr_flushes();
	take_rows(2, GROUP_ROWS, 1);
	nr = nr_flushes() - nr;
	ck_assert_uint_eq(last(), 1 + GROUP_ROWS);
	ck_assert_uint_eq(applied(), 0);
	/* Plus one if the WAL has begun anew. */
	ck_assert_uint_ge(nr, 1);
	ck_assert_uint_le(nr, 2);
	link_down();
}

/* The row of the second repository came later. */
TEST(the_first_row_that_waits_counts)
{
	ck_assert(put_off(1));
	ck_assert(put_off(2));
	ck_assert_int_eq(group_flush_postponed(flw_group), 0);
	group_applied(flw_group, 2);
	ck_assert_uint_eq(last(), 2);
	ck_assert_uint_eq(applied(), 0);
}

#define TOGETHER 4

TEST(rows_that_are_put_off_together_count_after_their_flush)
{
	unsigned long n, calls = 1;
	uint64_t lsn = 1, nr_stored = 0;
	struct seen seen;

	begin_to_wait();
	link_up();
	for (n = 0; n < calls; n++) {
		seen = (struct seen){ .last = lsn };
		memfs_between(w->fs, n, end_other_batch, &seen);
		calls = memfs_nr_calls(w->fs);
		take_rows(lsn + 1, TOGETHER, 1);
		calls = memfs_nr_calls(w->fs) - calls;
		ck_assert_uint_eq(seen.last, lsn);
		lsn += TOGETHER;
		nr_stored += seen.stored == lsn;
		ck_assert_uint_eq(last(), lsn);
		ck_assert_uint_eq(applied(), 0);
	}
	ck_assert_uint_gt(nr_stored, 0);
	link_down();
}

/* Without a mutex, because the caller may have any. No other thread writes the
 * number meanwhile. */
static void look(struct memfs *fs, void *seen)
{
	(void)fs;
	*(uint64_t *)seen = flw_group->done_lsn;
}

/* Takes a row of the repository 1, which waits; one of the ref a, from OLD to
 * NEW_C, which is applied; and another one of the former repository. */
static void take_three(uint64_t lsn, char old, char new_c)
{
	static const char *const a[] = { "refs/heads/a" };

	make_row(&list[0], lsn, 1);
	flw_make_row(&list[1], lsn + 1, a, 1, old, new_c);
	make_row(&list[2], lsn + 2, 1);
	list[0].next = &list[1];
	list[1].next = &list[2];
	follower_take_rows(&flw, list);
	flw_free_row(&list[1]);
}

TEST(an_applied_row_counts_no_row_that_was_put_off_before)
{
	unsigned long n, calls = 1;
	uint64_t seen, lsn = 1;
	char old = '0', new_c = '1';

	begin_to_wait();
	for (n = 0; n < calls; n++) {
		link_up();
		seen = lsn;
		memfs_between(w->fs, n, look, &seen);
		calls = memfs_nr_calls(w->fs);
		take_three(lsn + 1, old, new_c);
		calls = memfs_nr_calls(w->fs) - calls;
		ck_assert_uint_eq(seen, lsn);
		lsn += 3;
		ck_assert_uint_eq(last(), lsn);
		ck_assert_uint_eq(applied(), 0);
		ck_assert_int_eq(world_ref(w, "a"), new_c);
		old = new_c;
		new_c = old == '1' ? '2' : '1';
		link_down();
	}
}

TEST(nothing_waits_if_the_journal_takes_no_row)
{
	memfs_set_room(w->fs, 0, 0, 0);
	ck_assert(!put_off(1));
	ck_assert_uint_eq(journal_shared_lsn(w->store.journal), 0);
	ck_assert_uint_eq(flw_group->waiting.lsn, 0);
	memfs_set_room(w->fs, 0, -1, -1);
	ck_assert(put_off(1));
	ck_assert_uint_eq(flw_group->waiting.lsn, 1);
}

TEST(rows_before_a_failure_are_flushed)
{
	uint64_t nr;

	ck_assert(put_off(1));
	group_applied(flw_group, 1);
	ck_assert_uint_eq(last(), 0);
	nr = nr_flushes();
	memfs_set_room(w->fs, 0, 0, 0);
	ck_assert(!put_off(2));
	memfs_set_room(w->fs, 0, -1, -1);
	ck_assert_uint_gt(nr_flushes(), nr);
	ck_assert_uint_eq(flw_group->waiting.lsn, 1);
	group_applied(flw_group, 1);
	ck_assert_uint_eq(last(), 1);
	ck_assert_uint_eq(applied(), 0);
}

/* The journal may have the row then, and the daemon ends. */
TEST(a_doubtful_row_never_counts, .times = 20)
{
	struct seen seen;
	bool is_put;

	memfs_die(w->fs, (unsigned long)_i, -EIO);
	is_put = put_off(1) && group_flush_postponed(flw_group) == 0;
	if (!memfs_was_hit(w->fs)) {
		ck_assert_int_gt(_i, 0);
		return;
	}
	ck_assert(!is_put);
	end_other_batch(w->fs, &seen);
	ck_assert_uint_eq(seen.last, 0);
	ck_assert_uint_eq(seen.applied, 0);
}

/* Its journal may count rows whose flush has failed. */
TEST(a_node_that_ends_counts_no_row)
{
	begin_to_wait();
	ck_assert_uint_eq(last(), 1);
	group_fail(flw_group, "a flush has failed");
	group_applied(flw_group, 2);
	apply_all();
	ck_assert_uint_eq(last(), 1);
	ck_assert_uint_eq(applied(), 0);
}

/* The journal has row LSN. */
static void append_row(uint64_t lsn)
{
	struct journal_row row = { .kind = JOURNAL_SLICE,
		.body = (const uint8_t *)"",
		.shared_lsn = lsn };

	ck_assert_int_eq(journal_commit(w->store.journal, &row, 1, true), 0);
}

/* refd-group has got frames from the node since the last call. */
static bool is_told(void)
{
	uint8_t bytes[256];

	return recv(link_fds[1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0;
}

/* Its batch ends, too, after it has ended the daemon. */
TEST(a_row_that_cannot_be_finished_never_counts)
{
	struct seen seen;

	link_up();
	append_row(1);
	end_other_batch(w->fs, &seen);
	ck_assert_uint_eq(seen.last, 1);
	ck_assert(is_told());
	append_row(2);
	REPLICA(&flw_group->base, unfinished);
	end_other_batch(w->fs, &seen);
	ck_assert_uint_eq(seen.stored, 2);
	ck_assert_uint_eq(seen.last, 1);
	ck_assert_uint_eq(seen.applied, 1);
	ck_assert(!is_told());
	link_down();
}

/* Recovery could not redo a record of the repository. */
static void lack_refs(void)
{
	static char path[] = "/srv/stuck.git";
	const struct journal_repo stuck = { .id = 7, .path = path };

	deferred_note(w->store.deferred, &stuck, 1, 0);
	deferred_note_lacking(w->store.deferred, stuck.id);
}

TEST(a_node_that_lacks_refs_counts_no_row)
{
	struct replica_state state;

	group_applied(flw_group, 1);
	ck_assert_uint_eq(applied(), 1);
	lack_refs();
	memfs_advance(w->fs, 1);
	ck_assert_uint_eq(applied(), 0);
	group_look(flw_group, &state);
	ck_assert_uint_eq(state.lsn, 0);
	ck_assert_uint_eq(state.waiting_repos, 1);
	ck_assert_int_gt(state.row_ns, 0);
	/* It has led before. */
	flw_group->epoch = 1;
	ck_assert_uint_eq(applied(), 1);
	flw_group->epoch = 0;
	ck_assert_uint_eq(applied(), 0);
	deferred_end_retry(w->store.deferred, 7, 1, 0);
	ck_assert_uint_eq(applied(), 1);
	group_look(flw_group, &state);
	ck_assert_uint_eq(state.waiting_repos, 0);
}

/* A row of the group has given refs/heads/a a value in REPO. */
static void give_value(const struct repo *repo)
{
	struct record_member m = { .name = "refs/heads/a",
		.worktree = "",
		.action = RECORD_WRITE,
		.new_oid = world_oid('1') };
	const struct record rec = { .members = &m, .nr_members = 1 };
	struct journal_row row = { .kind = JOURNAL_SLICE,
		.repo = repo->id,
		.body = (const uint8_t *)"",
		.shared_lsn = 1,
		.record = &rec };

	ck_assert_int_eq(journal_commit(w->store.journal, &row, 1, true), 0);
}

/* Another program has damaged refs/heads/a, so mending has to wait. */
static bool waits_for_mending(const struct repo *repo)
{
	bool waits;

	follower_mend(&flw, repo, "refs/heads/a");
	mends_try(&flw);
	waits = !LIST_EMPTY(&flw.mends);
	mends_free(&flw);
	return waits;
}

TEST(no_ref_is_mended_before_its_redo)
{
	struct repo *repo = world_repo(w, WORLD_REPO);
	struct journal_repo known = { .path = NULL };

	ck_assert_ptr_nonnull(repo);
	give_value(repo);
	memfs_write(w->fs, WORLD_REPO "/refs/heads/a", "damaged\n");
	ck_assert(waits_for_mending(repo));
	known.id = repo->id;
	known.path = repo->path;
	deferred_note(w->store.deferred, &known, 1, 0);
	deferred_note_lacking(w->store.deferred, known.id);
	ck_assert(!waits_for_mending(repo));
	repo_put(&w->store.repos, repo);
}

/* The values of these rows are newer. */
TEST(no_ref_is_mended_before_rows_that_wait)
{
	struct repo *repo = world_repo(w, WORLD_REPO);
	struct group_input in;
	struct attempt a;

	ck_assert_ptr_nonnull(repo);
	make_row(&in, 1, 0);
	memcpy(in.frame.row.row.repo, repo->uuid, sizeof(repo->uuid));
	attempt_init(&flw, &a, &in);
	ck_assert(waiting_put(&flw, &in, &a));
	ck_assert_int_eq(group_flush_postponed(flw_group), 0);
	give_value(repo);
	memfs_write(w->fs, WORLD_REPO "/refs/heads/a", "damaged\n");
	ck_assert(!waits_for_mending(repo));
	apply_all();
	ck_assert(waits_for_mending(repo));
	repo_put(&w->store.repos, repo);
}

TEST(a_node_that_lacks_refs_takes_no_lead)
{
	const struct group_frame role = { .type = GROUP_ROLE,
		.role = { .is_leader = true, .epoch = 1 } };

	lack_refs();
	flw_group->may_lead = true;
	flw_group->fd = dup(0);
	group_take_role(flw_group, &role);
	ck_assert(flw_group->is_dead);
	ck_assert_uint_eq(flw_group->epoch, 0);
	close(flw_group->fd);
	flw_group->fd = -1;
}
