/*
 * Proves that refs which another program has written hold up the rows of all
 * repositories for a moment only: an attempt at a row, or at a single ref,
 * mends a part, and the next attempt goes on there. A row that needs long
 * before it is mended is mended for as long, without the time of a search. The
 * next attempt at a row that waits comes soon, and the log says that the row
 * waits. In the end all refs have the values of the group, and all other values
 * are kept. A single ref that has its value is not looked at again.
 *
 * Each mending takes 10 ms.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/base/time.h"
#include "proto/refname.h"
#include "tests/lib/follower_rig.h"
#include "tests/lib/suite.h"

#define NR           50
#define MENDING_NS   (10 * NS_PER_MS)
#define READ_NS      (3 * NS_PER_MS)
#define ATTEMPTS_MAX 10

static struct group_input row;
static char foreign[NR][32];
static const char *names[NR]; /* of FOREIGN */

static void setup(void)
{
	flw_setup();
	flw_node_ns = MENDING_NS;
}

static void teardown(void)
{
	flw_free_row(&row);
	flw_teardown();
}

/* ---- the row, and the refs of another program ---- */

/* The row LSN, from OLD to NEW_C, is of the ref a; or of all foreign refs. */
static void make_row_of_a(uint64_t lsn, char old, char new_c)
{
	static const char *const a[] = { "refs/heads/a" };

	flw_free_row(&row);
	flw_make_row(&row, lsn, a, 1, old, new_c);
}

static void make_row_of_all(void)
{
	flw_make_row(&row, 1, names, NR, '0', '1');
}

/* Gives NR refs with names below PREFIX the value 2. */
static void write_beside(const char *prefix)
{
	char path[128];
	size_t i;

	for (i = 0; i < NR; i++) {
		snprintf(foreign[i], sizeof(foreign[i]), "%s%02zu", prefix, i);
		names[i] = foreign[i];
		snprintf(path, sizeof(path), WORLD_REPO "/%s", foreign[i]);
		world_write(w->fs, path, "@2\n");
	}
}

static char value_of(const char *name)
{
	char at[2048];

	snprintf(at, sizeof(at), "@%s", name);
	return world_ref(w, at);
}

static void expect_value_of_all(char value)
{
	size_t i;

	for (i = 0; i < NR; i++)
		ck_assert_int_eq(value_of(foreign[i]), value);
}

/* The number of values that have a second name, for the row LSN. */
static unsigned nr_kept(unsigned lsn)
{
	char name[128];
	unsigned nr = 0;
	size_t i;

	for (i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), REFD_DIVERGED "%u/%s", lsn,
		    foreign[i] + strlen("refs/"));
		nr += value_of(name) == '2';
	}
	return nr;
}

static void expect_some_kept(unsigned lsn)
{
	ck_assert_uint_gt(nr_kept(lsn), 0);
	ck_assert_uint_lt(nr_kept(lsn), NR);
}

/* ---- a row ---- */

/* The first attempt at the row LSN mends a part, and later ones apply the
 * row. */
static void apply_in_parts(unsigned lsn)
{
	enum result result;
	struct attempt a;
	unsigned nr;

	attempt_init(&flw, &a, &row);
	result = attempt_try(&flw, &a);
	ck_assert_int_eq(result, RESULT_AGAIN);
	expect_some_kept(lsn);
	for (nr = 1; nr < ATTEMPTS_MAX && result == RESULT_AGAIN; nr++)
		result = attempt_try(&flw, &a);
	ck_assert_int_eq(result, RESULT_DONE);
	ck_assert_uint_gt(nr, 2);
	ck_assert_uint_eq(nr_kept(lsn), NR);
}

/* Applies row 1, which makes the ref a. */
static void apply_a(void)
{
	struct attempt a;

	make_row_of_a(1, '0', '1');
	attempt_init(&flw, &a, &row);
	ck_assert_int_eq(attempt_try(&flw, &a), RESULT_DONE);
}

/* Begins with row 1, which is of all foreign refs. */
static void begin_with_all(struct attempt *a)
{
	write_beside("refs/heads/m");
	make_row_of_all();
	attempt_init(&flw, a, &row);
}

CASE(.setup = setup, .teardown = teardown, .seconds = 60);

TEST(a_row_with_many_foreign_refs_is_mended_in_parts)
{
	write_beside("refs/heads/m");
	make_row_of_all();
	apply_in_parts(1);
	expect_value_of_all('1');
}

TEST(many_refs_in_the_way_go_in_parts)
{
	write_beside("refs/heads/a/m");
	make_row_of_a(1, '0', '1');
	apply_in_parts(1);
	ck_assert_int_eq(value_of("refs/heads/a"), '1');
}

/* The old value of the row has no room before all of them are gone. */
TEST(many_refs_in_the_way_of_an_old_value_go_in_parts)
{
	apply_a();
	wr_unlink(WORLD_REPO "/refs/heads/a");
	write_beside("refs/heads/a/m");
	make_row_of_a(2, '1', '3');
	apply_in_parts(2);
	ck_assert_int_eq(value_of("refs/heads/a"), '3');
}

static int openat_slowly(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	(void)sys;
	memfs_advance(w->fs, READ_NS);
	return SYS(w->sys, openat, dirfd, path, flags, mode);
}

/* All refs together take longer to read than an attempt may mend. Once a part
 * of the row is mended, all its updates fail, so nothing else tells which refs
 * have their values. */
TEST(the_next_attempt_goes_on_where_the_last_one_has_ended)
{
	struct sys slow = *w->sys;
	struct store_parts host = w->store.parts;
	unsigned before, nr = 0, rounds = 0;
	enum result result;
	struct attempt a;

	slow.openat = openat_slowly;
	host.sys = &slow;
	flw.host = &host;
	begin_with_all(&a);
	while ((result = attempt_try(&flw, &a)) == RESULT_AGAIN) {
		rounds++;
		before = nr;
		nr = nr_kept(1);
		ck_assert(nr >= before + 2 || nr == NR);
	}
	ck_assert_uint_gt(rounds, 1);
	ck_assert_int_eq(result, RESULT_DONE);
	expect_value_of_all('1');
}

TEST(a_slow_attempt_mends_for_as_long)
{
	struct attempt a;

	flw_row_ns = NS_PER_S;
	begin_with_all(&a);
	ck_assert_int_eq(attempt_try(&flw, &a), RESULT_AGAIN);
	ck_assert_uint_eq(nr_kept(1), NR);
	ck_assert_int_eq(attempt_try(&flw, &a), RESULT_DONE);
}

static void let_a_second_pass(struct memfs *fs, void *arg)
{
	(void)arg;
	memfs_advance(fs, NS_PER_S);
}

TEST(a_slow_search_gives_no_time_to_mend)
{
	struct attempt a;

	begin_with_all(&a);
	memfs_between(w->fs, 0, let_a_second_pass, NULL);
	ck_assert_int_eq(attempt_try(&flw, &a), RESULT_AGAIN);
	expect_some_kept(1);
}

static unsigned nr_reports;

/* store_config.event */
static void note_report(enum store_event event, const char *place,
    const char *why)
{
	if (event != STORE_ROW_WAITS)
		return;
	ck_assert_str_eq(place, WORLD_REPO);
	ck_assert_ptr_nonnull(strstr(why, "get the group's values back"));
	nr_reports++;
}

TEST(the_log_tells_that_a_row_is_mended_in_parts)
{
	struct attempt a;

	nr_reports = 0;
	w->store.cfg.event = note_report;
	begin_with_all(&a);
	ck_assert_int_eq(attempt_try(&flw, &a), RESULT_AGAIN);
	ck_assert_uint_eq(nr_reports, 1);
}

/* The pause after an attempt in vain is more than ten times as long. */
TEST(the_next_part_of_a_row_that_waits_comes_soon)
{
	int64_t began_ns, pause_ns;
	struct attempt a;
	unsigned nr;

	begin_with_all(&a);
	ck_assert(waiting_put(&flw, &row, &a));
	ck_assert_int_eq(group_flush_postponed(flw_group), 0);
	began_ns = SYS(w->sys, now_mono);
	pause_ns = waiting_try(&flw);
	expect_some_kept(1);
	ck_assert_int_gt(pause_ns, 0);
	ck_assert_int_lt(pause_ns, 6 * (SYS(w->sys, now_mono) - began_ns));
	for (nr = 0; nr < ATTEMPTS_MAX && !LIST_EMPTY(&flw.waiting); nr++) {
		memfs_advance(w->fs, pause_ns);
		pause_ns = waiting_try(&flw);
	}
	ck_assert(LIST_EMPTY(&flw.waiting));
	ck_assert_uint_eq(nr_kept(1), NR);
	expect_value_of_all('1');
}

/* ---- a single ref, as on the leader, without a row ---- */

static void mend_a(void)
{
	struct repo *repo = world_repo(w, WORLD_REPO);

	ck_assert_ptr_nonnull(repo);
	follower_mend(&flw, repo, "refs/heads/a");
	repo_put(&w->store.repos, repo);
	mends_try(&flw);
}

TEST(a_ref_is_mended_in_parts)
{
	unsigned nr;

	apply_a();
	wr_unlink(WORLD_REPO "/refs/heads/a");
	write_beside("refs/heads/a/m");
	mend_a();
	expect_some_kept(1);
	for (nr = 0; nr < 2 * ATTEMPTS_MAX && !LIST_EMPTY(&flw.mends); nr++)
		memfs_advance(w->fs, mends_try(&flw));
	ck_assert(LIST_EMPTY(&flw.mends));
	ck_assert_uint_eq(nr_kept(1), NR);
	ck_assert_int_eq(value_of("refs/heads/a"), '1');
}

/* Otherwise a program that writes the ref again and again is answered without a
 * pause. */
TEST(a_mended_ref_is_not_looked_at_again)
{
	apply_a();
	world_write(w->fs, WORLD_REPO "/refs/heads/a", "@2\n");
	mend_a();
	ck_assert(LIST_EMPTY(&flw.mends));
	ck_assert_int_eq(value_of("refs/heads/a"), '1');
}
