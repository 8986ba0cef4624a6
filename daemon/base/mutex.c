/*
 * The ranks of the mutexes that this thread has, in debug builds only.
 *
 * A mutex need not be given back in the order of taking, so the ranks are
 * counted, not stacked.
 *
 * Failure: a wait against the order is an error in the program, and ends it.
 */
#include "daemon/base/mutex.h"

#ifdef REFD_RANKS

#include <assert.h>

static _Thread_local unsigned held[MUTEX_LAST + 1];

void mutex_rank_wait(enum mutex_rank rank)
{
	unsigned later;

	for (later = rank; later <= MUTEX_LAST; later++)
		assert(held[later] == 0);
}

void mutex_rank_take(enum mutex_rank rank)
{
	held[rank]++;
}

void mutex_rank_give(enum mutex_rank rank)
{
	assert(held[rank] > 0);
	held[rank]--;
}

#endif
