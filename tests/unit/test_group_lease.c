/*
 * Proves that the lease of a leader ends, and that the lag of a follower grows,
 * while the machine is suspended: CLOCK_MONOTONIC stands still then.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/group_internal.h"
#include "daemon/store/deferred/deferred.h"
#include "tests/lib/suite.h"

#define EPOCH  7
#define SECOND INT64_C(1000000000)

static struct sys clock_sys;
static int64_t boot_ns, mono_ns;
static struct group *g;

static int64_t now_boot(const struct sys *sys)
{
	(void)sys;
	return boot_ns;
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
	boot_ns = 2000 * SECOND;
	mono_ns = 1000 * SECOND;
	clock_sys = sys_kernel;
	clock_sys.now_boot = now_boot;
	clock_sys.now_mono = now_mono;
	g = calloc(1, sizeof(*g));
	ck_assert_ptr_nonnull(g);
	host.sys = &clock_sys;
	host.deferred = deferred_new(&host);
	ck_assert_ptr_nonnull(host.deferred);
	g->base.host = &host;
	mutex_init(&g->mutex, MUTEX_JOBS);
	LIST_INIT(&g->batches);
	TAILQ_INIT(&g->holds);
}

static void teardown(void)
{
	mutex_destroy(&g->mutex);
	deferred_free(host.deferred);
	free(g);
}

static int64_t lag_ns(const char *role)
{
	struct replica_state state;

	group_look(g, &state);
	ck_assert_str_eq(state.role, role);
	return state.lag_ns;
}

CASE(.setup = setup, .teardown = teardown);

TEST(a_leader)
{
	char *why;

	g->epoch = EPOCH;
	group_set_current(g, 2006 * 1000);
	boot_ns += 6 * SECOND;
	mono_ns += 6 * SECOND;
	ck_assert_int_eq(group_epoch(g), EPOCH);
	ck_assert_ptr_null(group_refusal(g));
	ck_assert_int_eq(lag_ns("leader"), 0);
	group_set_current(g, 2012 * 1000);
	boot_ns += 6 * SECOND + 1;
	ck_assert_int_eq(group_epoch(g), 0);
	why = group_refusal(g);
	ck_assert_ptr_nonnull(why);
	free(why);
	lag_ns("waits");
}

TEST(a_follower)
{
	g->follows = true;
	group_set_current(g, 2000 * 1000);
	boot_ns += 100 * SECOND;
	ck_assert_int_eq(lag_ns("follower"), 100 * SECOND);
}

/* Others were alive before. */
TEST(near)
{
	g->epoch = EPOCH;
	g->next_lsn = 2;
	group_take_near(g, 1);
	ck_assert(group_is_near(g));
	boot_ns += 5 * SECOND;
	ck_assert(!group_is_near(g));
}

TEST(the_kernel_has_this_clock)
{
	int64_t mono = sys_kernel.now_mono(&sys_kernel);

	ck_assert_int_ge(sys_kernel.now_boot(&sys_kernel), mono);
}
