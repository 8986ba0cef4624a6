/*
 * Proves that a turn is not late by the tick of a coarse clock, by the rounding
 * to whole milliseconds, or by the time of the turn before; and that every
 * wake-up arrives.
 *
 * A busy machine delays turns. So each test looks at the fastest of many.
 */
#include "daemon/base/sys.h"
#include "daemon/server/loop.h"
#include "tests/lib/suite.h"

#define MS    1000000LL
#define TRIES 200

static struct loop loop;
static int64_t work_ns, delay_ns, limit_ns; /* of the running test */
static int64_t began_ns, fastest_ns;
static size_t nr_turns;

static int64_t now(void)
{
	return SYS(&sys_kernel, now_mono);
}

/* Works, and asks for a turn DELAY_NS after its own beginning. */
static int64_t take_turn(void *arg, int64_t now_ns)
{
	(void)arg;
	if (nr_turns > 0 && now_ns < began_ns + delay_ns)
		return began_ns + delay_ns;
	if (nr_turns > 0 && now_ns - began_ns < fastest_ns)
		fastest_ns = now_ns - began_ns;
	if (fastest_ns < limit_ns || ++nr_turns > TRIES) {
		loop_stop(&loop);
		return INT64_MAX;
	}
	began_ns = now_ns;
	while (now() < began_ns + work_ns)
		;
	return began_ns + delay_ns;
}

static void run_loop(void)
{
	const struct loop_calls calls = { .turn = take_turn };

	nr_turns = 0;
	fastest_ns = INT64_MAX;
	ck_assert(loop_init(&loop, &sys_kernel, &calls));
	loop_want_turn(&loop);
	loop_run(&loop);
	loop_done(&loop);
	ck_assert_int_lt(fastest_ns, limit_ns);
}

TEST(a_delay_is_not_rounded_to_milliseconds)
{
	work_ns = 0;
	delay_ns = MS / 10;
	limit_ns = MS;
	run_loop();
}

TEST(a_delay_begins_with_the_turn)
{
	work_ns = 2 * MS;
	delay_ns = 3 * MS;
	limit_ns = work_ns + delay_ns;
	run_loop();
}

static void woken(void *arg)
{
	(void)arg;
	if (++nr_turns == TRIES)
		loop_stop(&loop);
	else
		loop_wake(&loop);
}

static int64_t rest(void *arg, int64_t now_ns)
{
	(void)arg;
	(void)now_ns;
	return INT64_MAX;
}

TEST(every_wake_up_arrives)
{
	const struct loop_calls calls = { .turn = rest, .woken = woken };

	nr_turns = 0;
	ck_assert(loop_init(&loop, &sys_kernel, &calls));
	loop_wake(&loop);
	loop_run(&loop);
	loop_done(&loop);
	ck_assert_uint_eq(nr_turns, TRIES);
}
