/*
 * Proves the effects of a note of deferred redo on a repository: the states
 * that block writes, the order of retries, and the list for clients. A note
 * never lowers the state. The end of a retry keeps notes that came during the
 * retry. For updates, the lowest LSN stays, and an end removes only its own
 * update. A repository lacks refs until a retry has ended, and retries that
 * fail there leave most of the time to others.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/deferred/deferred_internal.h"
#include "tests/lib/suite.h"

#define SECOND INT64_C(1000000000)

static struct sys sys;
static int64_t now_ns;
static struct store_config outside;
static struct deferred *d;
static unsigned nr_found, nr_fatal;
static char told[200];

static char path_1[] = "/srv/1.git", path_2[] = "/srv/2.git";
static const struct journal_repo one = { .id = 1,
	.uuid = { 0x11 },
	.path = path_1 };
static const struct journal_repo two = { .id = 2,
	.uuid = { 0x22 },
	.path = path_2 };
/* ONE, as opened by a committer. */
static struct repo open_one = { .id = 1, .path = path_1 };

static int64_t fake_now_mono(const struct sys *unused)
{
	(void)unused;
	return now_ns;
}

static void found(void *arg, const struct store_found *f)
{
	(void)arg;
	ck_assert_int_eq(f->finding, STORE_DEFERRED);
	nr_found++;
}

static void awaiting(void *arg, const char *list)
{
	(void)arg;
	ck_assert_uint_lt(strlen(list), sizeof(told));
	strcpy(told, list);
}

static void fatal(void *store, const char *why)
{
	(void)store;
	(void)why;
	nr_fatal++;
}

static void setup(void)
{
	static const struct store_parts parts = { .sys = &sys,
		.config = &outside,
		.fatal = fatal };

	sys = sys_kernel;
	sys.now_mono = fake_now_mono;
	outside = (struct store_config){ .found = found, .awaiting = awaiting };
	now_ns = 1000 * SECOND;
	nr_found = nr_fatal = 0;
	d = deferred_new(&parts);
	ck_assert_ptr_nonnull(d);
}

static void teardown(void)
{
	deferred_free(d);
	ck_assert_uint_eq(nr_fatal, 0);
}

/* A retry in REPO that meets LEFT members at its end, and no lock. */
static bool retry(uint64_t repo, uint64_t left)
{
	uint64_t members, *tokens;
	size_t nr;

	ck_assert_int_eq(deferred_begin_retry(d, repo, &members, &tokens, &nr),
	    0);
	deferred_unlocked(d, repo, tokens, nr);
	free(tokens);
	return deferred_end_retry(d, repo, members, left);
}

static uint64_t members_of_all(uint64_t repos)
{
	uint64_t nr, members;

	deferred_count(d, &nr, &members);
	ck_assert_uint_eq(nr, repos);
	return members;
}

static size_t nr_next(void)
{
	struct journal_repo next[4];
	size_t i, nr = deferred_next(d, next, 4);

	for (i = 0; i < nr; i++)
		free(next[i].path);
	return nr;
}

/* ---- states ---- */

CASE(.setup = setup, .teardown = teardown);

TEST(locks_hold_up_no_write)
{
	deferred_add_locks(d, &open_one, 7);
	ck_assert(!deferred_blocks_writes(d, 1));
	ck_assert_uint_eq(nr_next(), 1);
	ck_assert_uint_eq(members_of_all(0), 0);
	ck_assert(retry(1, 0));
	ck_assert_uint_eq(nr_next(), 0);
}

TEST(a_search_holds_up_writes)
{
	deferred_note(d, &one, 0, 0);
	ck_assert(deferred_blocks_writes(d, 1));
	ck_assert(!deferred_blocks_writes(d, 2));
	ck_assert_uint_eq(members_of_all(0), 0);
	/* A lower note. */
	deferred_add_locks(d, &open_one, 7);
	ck_assert(deferred_blocks_writes(d, 1));
	ck_assert(retry(1, 0));
	ck_assert(!deferred_blocks_writes(d, 1));
}

TEST(members_hold_up_writes)
{
	deferred_note(d, &one, 2, 0);
	deferred_note(d, &one, 0, 0);
	ck_assert_uint_eq(members_of_all(1), 2);
	ck_assert(deferred_blocks_writes(d, 1));
	ck_assert(!retry(1, 1));
	ck_assert_uint_eq(members_of_all(1), 1);
	ck_assert(deferred_blocks_writes(d, 1));
	ck_assert(retry(1, 0));
	ck_assert(!deferred_blocks_writes(d, 1));
	ck_assert_uint_eq(nr_next(), 0);
}

TEST(what_comes_during_a_retry_stays)
{
	uint64_t members, *tokens;
	size_t nr;

	deferred_note(d, &one, 2, 0);
	deferred_add_locks(d, &open_one, 9);
	deferred_add_locks(d, &open_one, 7);
	ck_assert_int_eq(deferred_begin_retry(d, 1, &members, &tokens, &nr), 0);
	ck_assert_uint_eq(members, 2);
	ck_assert_uint_eq(nr, 2);
	ck_assert(tokens[0] == 7 && tokens[1] == 9);
	deferred_add_line(d, &open_one);
	deferred_add_locks(d, &open_one, 8);
	deferred_unlocked(d, 1, tokens, nr);
	free(tokens);
	ck_assert(!deferred_end_retry(d, 1, members, 0));
	ck_assert_uint_eq(members_of_all(1), 1);
	ck_assert(deferred_blocks_writes(d, 1));
	ck_assert_int_eq(deferred_begin_retry(d, 1, &members, &tokens, &nr), 0);
	ck_assert_uint_eq(members, 1);
	ck_assert_uint_eq(nr, 1);
	ck_assert_uint_eq(tokens[0], 8);
	free(tokens);
	/* The lock stays and blocks no write. */
	ck_assert(deferred_end_retry(d, 1, members, 0));
	ck_assert(!deferred_blocks_writes(d, 1));
	ck_assert_uint_eq(nr_next(), 1);
}

TEST(a_failed_retry_changes_no_state)
{
	deferred_note(d, &one, 2, 0);
	ck_assert(deferred_fail_retry(d, 1, -EIO));
	ck_assert(!deferred_fail_retry(d, 1, -EIO));
	ck_assert(deferred_fail_retry(d, 1, -ENOSPC));
	ck_assert(deferred_blocks_writes(d, 1));
	ck_assert_uint_eq(members_of_all(1), 2);
	ck_assert_uint_eq(nr_next(), 1);
}

/* ---- turns ---- */

TEST(an_endless_search_is_not_repeated_soon)
{
	deferred_note(d, &one, 0, -EUSERS);
	ck_assert(deferred_is_endless(d, 1));
	ck_assert_uint_eq(nr_next(), 0);
	now_ns += 60 * SECOND;
	ck_assert(deferred_is_endless(d, 1));
	ck_assert_uint_eq(nr_next(), 1);
	now_ns += 540 * SECOND;
	ck_assert(!deferred_is_endless(d, 1));
	ck_assert(deferred_fail_retry(d, 1, -EIO));
	ck_assert(!deferred_is_endless(d, 1));
}

/* For both, retries after a checkpoint and retries of an admission. */
TEST(a_failed_retry_leaves_time_to_others)
{
	deferred_note(d, &one, 1, 0);
	deferred_set_pause(d, 1, SECOND);
	ck_assert_int_eq(deferred_paused(d, 1), 0);
	ck_assert(deferred_fail_retry(d, 1, -EPERM));
	now_ns += 9 * SECOND;
	ck_assert_int_eq(deferred_paused(d, 1), -EPERM);
	ck_assert_int_eq(deferred_paused(d, 2), 0);
	ck_assert_uint_eq(nr_next(), 0);
	now_ns += SECOND;
	ck_assert_int_eq(deferred_paused(d, 1), 0);
	ck_assert_uint_eq(nr_next(), 1);
	deferred_fail_retry(d, 1, -EPERM);
	ck_assert_uint_eq(nr_next(), 0);
	ck_assert(!retry(1, 1));
	ck_assert_int_eq(deferred_paused(d, 1), 0);
	ck_assert_uint_eq(nr_next(), 1);
}

TEST(each_has_its_turn)
{
	struct journal_repo next;
	uint64_t first;

	deferred_note(d, &one, 1, 0);
	deferred_note(d, &two, 1, 0);
	ck_assert_uint_eq(deferred_next(d, &next, 1), 1);
	first = next.id;
	free(next.path);
	ck_assert_uint_eq(deferred_next(d, &next, 1), 1);
	ck_assert_uint_ne(next.id, first);
	ck_assert_str_eq(next.path, next.id == 1 ? path_1 : path_2);
	free(next.path);
}

TEST(one_thread_has_the_turn)
{
	ck_assert(!deferred_begin_turn(d));
	ck_assert(!deferred_take_turn(d));
	deferred_note(d, &one, 1, 0);
	ck_assert(!deferred_take_turn(d));
	ck_assert(deferred_begin_turn(d));
	ck_assert(deferred_take_turn(d));
	ck_assert(deferred_begin_turn(d));
	ck_assert(!deferred_take_turn(d));
	deferred_end_turn(d);
	ck_assert(deferred_take_turn(d));
	deferred_end_turn(d);
	ck_assert(!deferred_take_turn(d));
}

/* ---- refs that other machines have ---- */

TEST(refs_are_lacking_until_a_retry_ends)
{
	int64_t since_ns;

	deferred_note_lacking(d, 1);
	ck_assert_uint_eq(deferred_lacking(d, NULL), 0);
	deferred_note(d, &one, 2, 0);
	deferred_note(d, &two, 1, 0);
	ck_assert_uint_eq(deferred_lacking(d, NULL), 0);
	deferred_note_lacking(d, 1);
	deferred_note_lacking(d, 1);
	ck_assert_uint_eq(deferred_lacking(d, NULL), 1);
	now_ns += SECOND;
	deferred_note_lacking(d, 2);
	ck_assert_uint_eq(deferred_lacking(d, &since_ns), 2);
	ck_assert_int_eq(since_ns, 1000 * SECOND);
	deferred_fail_retry(d, 1, -EIO);
	ck_assert(deferred_is_lacking(d, 1));
	/* A log line is left. */
	ck_assert(!retry(1, 1));
	ck_assert(!deferred_is_lacking(d, 1));
	ck_assert(deferred_is_lacking(d, 2));
	ck_assert(retry(2, 0));
	ck_assert_uint_eq(deferred_lacking(d, NULL), 0);
}

/* ---- clients outside ---- */

TEST(it_is_told_once_until_it_is_over)
{
	deferred_add(d, &one, 1, "a test");
	deferred_add(d, &one, 1, "a test");
	ck_assert_uint_eq(nr_found, 1);
	deferred_publish(d);
	ck_assert_str_eq(told, "awaits 11000000000000000000000000000000\n");
	ck_assert(retry(1, 0));
	deferred_publish(d);
	ck_assert_str_eq(told, "");
	deferred_add_line(d, &open_one);
	ck_assert_uint_eq(nr_found, 2);
}

TEST(who_may_be_written_is_not_on_the_list)
{
	deferred_note(d, &one, 0, 0);
	deferred_add_locks(d, &open_one, 7);
	deferred_publish(d);
	ck_assert_str_eq(told, "");
}

/* ---- updates ---- */

TEST(an_update_is_unknown_until_it_ends)
{
	const struct journal_row row = { .kind = JOURNAL_SLICE, .lsn = 5 };
	const struct journal_row copy = { .kind = JOURNAL_DEFERRED,
		.lsn = 8,
		.refers_to = 5 };

	deferred_add_update(d, 5, 1);
	deferred_add_update(d, 5, 1);
	deferred_add_update(d, 5, 2);
	ck_assert(deferred_has_update(d, &row, 1));
	ck_assert(deferred_has_update(d, &copy, 1));
	ck_assert(!deferred_has_update(d, &row, 0));
	deferred_end_update(d, 5, 1);
	ck_assert(!deferred_has_update(d, &row, 1));
	ck_assert(!deferred_has_update(d, &copy, 1));
	ck_assert(deferred_has_update(d, &row, 2));
}

TEST(unfinished_rows_are_kept)
{
	ck_assert_uint_eq(deferred_lowest_lsn(d), 0);
	deferred_add_update(d, 7, 0);
	deferred_add_update(d, 5, 0);
	deferred_add_update(d, 6, 0);
	ck_assert_uint_eq(deferred_lowest_lsn(d), 5);
	deferred_add_update(d, 5, 3);
	deferred_end_update(d, 5, 0);
	ck_assert_uint_eq(deferred_lowest_lsn(d), 5);
	deferred_end_update(d, 6, 0);
	deferred_end_update(d, 5, 3);
	ck_assert_uint_eq(deferred_lowest_lsn(d), 7);
	deferred_end_update(d, 7, 0);
	ck_assert_uint_eq(deferred_lowest_lsn(d), 0);
}
