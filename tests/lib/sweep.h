/*
 * Runs the same work on memfs again and again. In each run the next call fails,
 * or the process crashes at the next change, or power is lost there. The sweep
 * ends when a run meets no fault. After each run, check() inspects the result.
 *
 * The fault moves on by one from run to run, so the work must make the same
 * calls up to this point. Work with threads may not; this is no error, but the
 * sweep then misses some points.
 *
 * With SWEEP_STEP=N in the environment, a sweep visits every N-th point, and
 * tries few outcomes of a power loss, in turns. N is a prime above 3, so that
 * the outcomes and the points do not move in step. scripts/check sets
 * SWEEP_STEP, and uses a greater N for the sanitizers: the release build checks
 * the data, and the sanitizers only need to run the code. scripts/check-long
 * visits all points under the address sanitizer.
 */
#ifndef TESTS_LIB_SWEEP_H
#define TESTS_LIB_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/lib/memfs.h"

enum sweep_kind {
	SWEEP_ERRNO, /* a single call failed */
	SWEEP_DEAD,  /* a call and all later calls failed */
	SWEEP_KILL,
	SWEEP_CUT
};

enum sweep_when {
	SWEEP_ALIVE,      /* the process continues */
	SWEEP_AFTER_KILL, /* recovered after a crash */
	SWEEP_AFTER_CUT   /* recovered after a power loss */
};

/* The situation for check(). */
struct sweep_now {
	enum sweep_kind kind;
	enum sweep_when when;
	enum memfs_mode mode;
	unsigned long n; /* position of the fault, from 0 */
	int err;         /* ERRNO and DEAD: negative errno */
	bool was_hit;    /* false: the run ended earlier */
	int result;      /* result of run() */
	const char *at;  /* the call, from memfs_hit() */
	unsigned long
	    again; /* the second power loss, in recovery; ULONG_MAX: none */
	struct memfs_choice choice; /* of the last power loss */
};

struct sweep {
	const char *name;
	void *arg;
	/* Prepares the work, and returns the state for the other functions. FS
	 * is new and belongs to the state. */
	void *(*setup)(struct memfs *fs, void *arg);
	/* The work. Only check() uses the result. */
	int (*run)(void *state);
	/* The next start after a crash or a power loss: must forget all memory.
	 * A result other than 0 is a finding. If NULL, only sweep_errno()
	 * works, and checks only the living process. */
	int (*recover)(void *state);
	/* Returns NULL, or a description of the error, which is read before the
	 * next call. */
	const char *(*check)(void *state, const struct sweep_now *now);
	/* Frees the state and its memfs. */
	void (*done)(void *state);
	/* Number of outcomes of a power loss to try at each point (all, if
	 * there are fewer). 0: 24. */
	unsigned choices;
	/* For this number of outcomes, recovery is also interrupted by a power
	 * loss: at each of its changes, or at a dozen if there are more. */
	unsigned second_cuts;
	/* A second sync after a failed sync is a finding, unless this is
	 * set. */
	bool may_sync_again;
};

struct sweep_report {
	unsigned long runs, points;
	/* The first finding, and how to reproduce it; empty if there is none.
	 * Fits into a message of libcheck. */
	char text[7000];
};

/* All sweeps return true if there was no finding, and add to REPORT. */

/* ERRS ends with 0. After each successful run, there is also a power loss, if
 * recover() is set: acknowledged results must survive. */
bool sweep_errno(const struct sweep *s, const int *errs,
    struct sweep_report *report);
/* The disk fails from the n-th call on. Then a crash, the disk comes back, and
 * recovery. The same with a power loss. */
bool sweep_dead(const struct sweep *s, int err, struct sweep_report *report);
/* A crash at each change, and recovery; then a power loss, and recovery again:
 * the results of the first recovery must survive. */
bool sweep_crash(const struct sweep *s, struct sweep_report *report);
/* A power loss at each change and after the last, in both modes of memfs. */
bool sweep_power_loss(const struct sweep *s, struct sweep_report *report);

/* The distance between the points of a sweep: SWEEP_STEP, or 1 without it. */
unsigned long sweep_step(void);

#endif
