/*
 * Proves when a stall ends the daemon: only if all threads of a stage that
 * every update passes are stuck. A single free thread still serves clients.
 */
#include <string.h>

#include "daemon/service/stall.h"
#include "tests/lib/suite.h"

/* The answer of store_progress() for stages of three threads, with no thread
 * stuck. */
static void no_stall(struct store_progress progress[STORE_STAGES])
{
	size_t i;

	memset(progress, 0, STORE_STAGES * sizeof(*progress));
	for (i = 0; i < STORE_STAGES; i++)
		progress[i].nr_threads = 3;
}

TEST(nothing_stuck_stops_nobody)
{
	struct store_progress progress[STORE_STAGES];

	no_stall(progress);
	ck_assert(!stall_stops_all(progress));
}

TEST(one_thread_left_serves_others)
{
	struct store_progress progress[STORE_STAGES];
	size_t i;

	no_stall(progress);
	for (i = 0; i < STORE_STAGES; i++)
		progress[i].nr_stuck = 2;
	ck_assert(!stall_stops_all(progress));
}

TEST(a_stage_without_a_thread_stops_those_who_pass_it)
{
	struct store_progress progress[STORE_STAGES];
	bool is_passed_by_all;
	size_t i;

	for (i = 0; i < STORE_STAGES; i++) {
		no_stall(progress);
		progress[i].nr_stuck = 3;
		is_passed_by_all = i != STORE_STAGE_BARRIER &&
		    i != STORE_STAGE_CHECKPOINT && i != STORE_STAGE_PACK &&
		    i != STORE_STAGE_LOOK && i != STORE_STAGE_HISTORY;
		ck_assert(stall_stops_all(progress) == is_passed_by_all);
	}
}
