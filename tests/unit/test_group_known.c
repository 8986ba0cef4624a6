/*
 * Proves which values count as values that other nodes have: never one of a
 * different repository, of an earlier epoch, or from before a value was left
 * behind. Proves when other nodes are near. The lease of a leader ends, and the
 * lag of a follower grows, while the machine is suspended: CLOCK_MONOTONIC
 * stands still then.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/group_internal.h"
#include "daemon/store/deferred/deferred.h"
#include "tests/lib/suite.h"

#define EPOCH  7
#define SECOND INT64_C(1000000000)

static struct sys clock_sys;
static int64_t now_ns, mono_ns;
static struct group *g;

/* Repositories; the low bits of the eighth byte choose the place. */
static const uint8_t one[GROUP_UUID_BYTES] = { 1, [8] = 1 };
static const uint8_t two[GROUP_UUID_BYTES] = { 2, [8] = 2 };
static const uint8_t like_one[GROUP_UUID_BYTES] = { 3, [8] = 1 };
static const struct refd_oid null;

static int64_t now_boot(const struct sys *sys)
{
	(void)sys;
	return now_ns;
}

static int64_t now_mono(const struct sys *sys)
{
	(void)sys;
	return mono_ns;
}

static struct store_parts host;

/* As group_new() makes it, without a journal. */
static void setup(void)
{
	now_ns = 2000 * SECOND;
	mono_ns = 1000 * SECOND;
	clock_sys = sys_kernel;
	clock_sys.now_boot = now_boot;
	clock_sys.now_mono = now_mono;
	g = calloc(1, sizeof(*g));
	ck_assert_ptr_nonnull(g);
	g->known = calloc(GROUP_KNOWN, sizeof(*g->known));
	ck_assert_ptr_nonnull(g->known);
	host.sys = &clock_sys;
	host.deferred = deferred_new(&host);
	ck_assert_ptr_nonnull(host.deferred);
	g->base.host = &host;
	LIST_INIT(&g->batches);
	TAILQ_INIT(&g->holds);
	mutex_init(&g->mutex, MUTEX_JOBS);
	mutex_init(&g->known_mutex, MUTEX_INNER);
	g->epoch = EPOCH;
	group_begin_known(g, EPOCH);
}

static void teardown(void)
{
	mutex_destroy(&g->known_mutex);
	mutex_destroy(&g->mutex);
	deferred_free(host.deferred);
	free(g->known);
	free(g);
}

/* The PLACE is xored with the one of the repository. */
static struct refd_oid value(uint16_t place, uint8_t last)
{
	struct refd_oid oid = { .bytes = { 0 } };

	memcpy(oid.bytes, &place, sizeof(place));
	oid.bytes[19] = last;
	return oid;
}

static void know(const uint8_t *repo, struct refd_oid oid)
{
	group_know(g, EPOCH, repo, &oid);
}

static bool knows(const uint8_t *repo, struct refd_oid oid)
{
	return group_knows(g, repo, &oid);
}

/* ---- values ---- */

CASE(.setup = setup, .teardown = teardown);

TEST(values)
{
	ck_assert(!knows(one, null));
	ck_assert(!knows(one, value(5, 1)));
	know(one, value(5, 1));
	ck_assert(knows(one, value(5, 1)));
	ck_assert(knows(one, null));
	ck_assert(!knows(one, value(5, 2)));
	ck_assert(!knows(one, value(6, 1)));
	ck_assert(!knows(two, value(5, 1)));
	ck_assert(!knows(two, null));
	know(one, value(6, 1));
	ck_assert(knows(one, value(5, 1)));
	ck_assert(knows(one, value(6, 1)));
	know(two, null);
	ck_assert(knows(two, null));
	ck_assert(!knows(two, value(5, 1)));
	/* The uuids differ only in a part that does not choose the place. */
	ck_assert(!knows(like_one, value(5, 1)));
	ck_assert(!knows(like_one, null));
}

TEST(one_repository_forgets)
{
	know(one, value(5, 1));
	know(one, value(6, 1));
	know(two, value(5, 1));
	group_forget(g, one);
	ck_assert(!knows(one, value(5, 1)));
	ck_assert(!knows(one, value(6, 1)));
	ck_assert(knows(two, value(5, 1)));
	know(one, value(6, 1));
	ck_assert(knows(one, value(6, 1)));
	ck_assert(!knows(one, value(5, 1)));
	group_forget(g, one);
	ck_assert(!knows(one, value(6, 1)));
}

TEST(all_repositories_forget)
{
	know(one, value(5, 1));
	know(two, value(5, 1));
	group_begin_known(g, EPOCH);
	ck_assert(!knows(one, value(5, 1)));
	ck_assert(!knows(two, value(5, 1)));
	ck_assert(!knows(one, null));
	know(one, value(6, 1));
	ck_assert(knows(one, value(6, 1)));
	ck_assert(knows(one, null));
	ck_assert(!knows(one, value(5, 1)));
	ck_assert(!knows(two, null));
}

/* Two values can have the same place in the table, and so can a value and a
 * repository. */
TEST(places)
{
	know(one, value(5, 1));
	know(one, value(5, 2));
	ck_assert(knows(one, value(5, 2)));
	ck_assert(!knows(one, value(5, 1)));
	know(one, value(6, 1));
	/* This is the place of one: 2 ^ 3. */
	know(two, value(3, 1));
	ck_assert(knows(two, value(3, 1)));
	ck_assert(!knows(one, null));
	ck_assert(!knows(one, value(6, 1)));
	/* The old values do not come back. */
	know(one, value(7, 1));
	ck_assert(knows(one, value(7, 1)));
	ck_assert(!knows(one, value(6, 1)));
	ck_assert(!knows(one, value(5, 2)));
	ck_assert(!knows(two, value(3, 1)));
	/* The place of its own repository. */
	know(one, value(0, 1));
	ck_assert(!knows(one, value(0, 1)));
	ck_assert(!knows(one, value(7, 1)));
	/* Repositories of one place. */
	know(one, value(7, 1));
	know(like_one, value(8, 1));
	ck_assert(!knows(one, value(7, 1)));
	ck_assert(knows(like_one, value(8, 1)));
}

static void know_in(uint64_t epoch, struct refd_oid oid)
{
	group_know(g, epoch, one, &oid);
}

/* A worker comes late with a row, after the loss of the role or the link. */
TEST(an_earlier_epoch)
{
	const struct refd_oid oid = value(5, 1);

	group_begin_known(g, 0);
	know_in(EPOCH, oid);
	group_begin_known(g, EPOCH + 1);
	ck_assert(!knows(one, oid));
	know_in(EPOCH, oid);
	ck_assert(!knows(one, oid));
	ck_assert(!knows(one, null));
	know_in(EPOCH + 1, value(6, 1));
	know_in(EPOCH, oid);
	ck_assert(knows(one, value(6, 1)));
	ck_assert(!knows(one, oid));
	know_in(EPOCH + 1, oid);
	ck_assert(knows(one, oid));
}

/* ---- other nodes ---- */

TEST(near)
{
	g->next_lsn = 30001;
	ck_assert(!group_is_near(g));
	group_take_near(g, 30000);
	ck_assert(group_is_near(g));
	now_ns += 5 * SECOND - 1;
	ck_assert(group_is_near(g));
	now_ns++;
	ck_assert(!group_is_near(g));
	group_take_near(g, 30000);
	ck_assert(group_is_near(g));
	group_take_near(g, 10000);
	ck_assert(group_is_near(g));
	group_take_near(g, 9999);
	ck_assert(!group_is_near(g));
	group_take_near(g, INT64_MAX);
	ck_assert(group_is_near(g));
	g->epoch = 0;
	ck_assert(!group_is_near(g));
	g->epoch = EPOCH;
	ck_assert(group_is_near(g));
	group_begin_known(g, EPOCH);
	ck_assert(!group_is_near(g));
}

/* A row whose objects are not in the log must be applied within a minute. */
TEST(near_after_held)
{
	int i;

	g->next_lsn = 101;
	group_take_near(g, 100);
	g->next_lsn++;
	group_note_held(g);
	for (i = 0; i < 60; i++) {
		group_take_near(g, 100);
		ck_assert(group_is_near(g));
		now_ns += SECOND;
	}
	group_take_near(g, 100);
	ck_assert(!group_is_near(g));
	group_take_near(g, 101);
	ck_assert(group_is_near(g));
	now_ns += 100 * SECOND;
	group_take_near(g, 101);
	ck_assert(group_is_near(g));
}

/* ---- a suspended machine ---- */

static int64_t lag_ns(const char *role)
{
	struct replica_state state;

	group_look(g, &state);
	ck_assert_str_eq(state.role, role);
	return state.lag_ns;
}

TEST(a_leader)
{
	char *why;

	g->epoch = EPOCH;
	group_set_current(g, 2006 * 1000);
	now_ns += 6 * SECOND;
	mono_ns += 6 * SECOND;
	ck_assert_int_eq(group_epoch(g), EPOCH);
	ck_assert_ptr_null(group_refusal(g));
	ck_assert_int_eq(lag_ns("leader"), 0);
	group_set_current(g, 2012 * 1000);
	now_ns += 6 * SECOND + 1;
	ck_assert_int_eq(group_epoch(g), 0);
	why = group_refusal(g);
	ck_assert_ptr_nonnull(why);
	free(why);
	lag_ns("waits");
}

TEST(a_follower)
{
	g->epoch = 0;
	g->follows = true;
	group_set_current(g, 2000 * 1000);
	now_ns += 100 * SECOND;
	ck_assert_int_eq(lag_ns("follower"), 100 * SECOND);
}

TEST(the_kernel_has_this_clock)
{
	int64_t mono = sys_kernel.now_mono(&sys_kernel);

	ck_assert_int_ge(sys_kernel.now_boot(&sys_kernel), mono);
}
