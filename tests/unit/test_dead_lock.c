/*
 * Proves that refd removes no lock of a living process (dead_lock.h), by random
 * schedules in a model of a directory and of /proc. Between any two system
 * calls of refd, processes begin, become zombies and end, their numbers come
 * again at once, they take and release the lock, name themselves in
 * "x~pid.lock" if no such file is in the way, and the clock jumps. A person
 * removes locks and "x~pid.lock" of ended processes, so another process can
 * take the lock at any moment, with the same inode number. Among the processes
 * are some that write no such file, some with several user ids, in user
 * namespaces of root, of a user or of a stranger, file servers, processes that
 * refd cannot read, and a refd-daemon.
 *
 * The model has one rule that a real machine may break (docs/limits.md): while
 * a lock that refd renamed by mistake is not yet back, nobody uses its name.
 *
 * REFD_TEST_LONG: 1,000,000 schedules.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/store/refs/dead_lock.h"
#include "tests/lib/lock_model.h"
#include "tests/lib/suite.h"

/* The holder of the lock ended, and the lock is dead. */
static bool prove(struct model *m, const struct dead_lock *l)
{
	struct processes running = { 0 }, now = { 0 };
	unsigned looks;
	size_t nr;
	bool dead;

	ck_assert_int_eq(processes_find(&m->sys, 99, lock_model_ask, &running),
	    0);
	for (looks = lock_model_any(m, 6); looks > 0; looks--) {
		if (dead_lock_holder(l, &running, &nr) == NULL)
			break;
		ck_assert_int_eq(
		    processes_find(&m->sys, 99, lock_model_ask, &now), 0);
		processes_keep(&running, &now);
		processes_done(&now);
	}
	dead = dead_lock_holder(l, &running, &nr) == NULL;
	ck_assert_int_eq(dead, nr == 0);
	processes_done(&running);
	return dead;
}

static void one_schedule(struct model *m, uint64_t seed)
{
	struct dead_lock l;
	unsigned fd;
	int r;

	lock_model_start(m, seed);
	r = dead_lock_open(&l, &m->sys, 0, "x.lock");
	if (r == 0) {
		r = prove(m, &l) ? dead_lock_remove(&l, &m->sys, 0) : 1;
		dead_lock_close(&l, &m->sys);
	}
	m->removed += r == 0;
	m->kept += r == 1;
	m->changed += r == -ESTALE;
	ck_assert_msg(r == 0 || r == 1 || r == -ESTALE || r == -ENOENT ||
		r == -EMLINK || r == -EBUSY,
	    "schedule %llu: %d", (unsigned long long)seed, r);
	ck_assert_msg(m->lost == 0 && !lock_model_is_moved(m),
	    "schedule %llu: a lock of a living process is gone",
	    (unsigned long long)seed);
	/* -EBUSY: the next holder died too, and another process took the
	 * lock. */
	ck_assert(m->aside == 0 || r == -EBUSY);
	for (fd = 0; fd < FDS; fd++)
		ck_assert_uint_eq(m->fds[fd], 0);
}

CASE(.seconds = getenv("REFD_TEST_LONG") != NULL ? 3600 : 120);

TEST(schedules)
{
	uint64_t nr = getenv("REFD_TEST_LONG") != NULL ? 1000000 : 50000, i;
	struct model *m = calloc(1, sizeof(*m));

	for (i = 1; i <= nr; i++)
		one_schedule(m, i);
	printf("# %llu schedules: %llu locks removed, %llu kept, %llu changed "
	       "hands, %llu of these put back; of living processes removed: "
	       "%llu\n",
	    (unsigned long long)nr, (unsigned long long)m->removed,
	    (unsigned long long)m->kept, (unsigned long long)m->changed,
	    (unsigned long long)m->moved, (unsigned long long)m->lost);
	ck_assert_uint_gt(m->removed, nr / 20);
	ck_assert_uint_gt(m->kept, nr / 20);
	ck_assert_uint_gt(m->changed, nr / 100);
	ck_assert_uint_gt(m->moved, nr / 2000);
	free(m);
}
