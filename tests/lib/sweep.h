/*
 * Runs one piece of work on memfs again and again, each time with the next call
 * failing, the process killed at the next change, or the power loss there,
 * until a run meets nothing; and asks each time whether all is well.
 *
 * The fault, kill or cut moves on by one from run to run, so the work must do
 * the same calls each time as far as that goes; that it does not (threads) is
 * no error, but some points are then missed.
 *
 * With SWEEP_FEW in the environment, a sweep visits every fifth point, and
 * tries few of the outcomes of a power loss there, by turns. scripts/check sets
 * SWEEP_FEW for the sanitizers: the release build has shown what becomes of the
 * data, and the sanitizer wants the code to run. scripts/check-long does
 * without.
 */
#ifndef TESTS_LIB_SWEEP_H
#define TESTS_LIB_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/lib/memfs.h"

enum sweep_kind {
	SWEEP_ERRNO, /* one call failed */
	SWEEP_DEAD,  /* that call and all after it */
	SWEEP_KILL,
	SWEEP_CUT
};

enum sweep_when {
	SWEEP_ALIVE,      /* the process goes on */
	SWEEP_AFTER_KILL, /* recovered after a crash */
	SWEEP_AFTER_CUT   /* recovered after a power loss */
};

/* What check() is asked about. */
struct sweep_now {
	enum sweep_kind kind;
	enum sweep_when when;
	enum memfs_mode mode;
	unsigned long n; /* where it struck, counted from 0 */
	int err;         /* ERRNO and DEAD: which, negative */
	bool was_hit;    /* false: the run was over before */
	int result;      /* run()'s */
	const char *at;  /* the call, as memfs_hit() names it */
	unsigned long
	    again; /* the second power loss, in recovery; ULONG_MAX: none */
	struct memfs_choice choice; /* the last power loss's */
};

struct sweep {
	const char *name;
	void *arg;
	/* What the work needs; returns the state that the others get. FS is
	 * new, and the state's from now on. */
	void *(*setup)(struct memfs *fs, void *arg);
	/* The work. What it returns means something to check() alone. */
	int (*run)(void *state);
	/* The next start after a crash or a power loss: memory is to be forgotten.
	 * Anything but 0 is a finding. NULL: only sweep_errno() works, and it
	 * looks at the living process alone. */
	int (*recover)(void *state);
	/* NULL, or what is wrong; the text is read before the next call. */
	const char *(*check)(void *state, const struct sweep_now *now);
	/* Frees the state, its memfs too. */
	void (*done)(void *state);
	/* How many outcomes of a power loss are tried at each point; all of them
	 * where there are no more than that. 0: 24. */
	unsigned choices;
	/* For how many of these recovery is cut too: at each of its changes,
	 * or at a dozen of them where there are more. */
	unsigned second_cuts;
	/* Syncing again after a failed sync is a finding, unless: */
	bool may_sync_again;
};

struct sweep_report {
	unsigned long runs, points;
	/* The first finding, and how to come back to it; empty when all is
	 * well. Fits a message of libcheck. */
	char text[7000];
};

/* All return true when every run was well. REPORT is added to. */

/* ERRS ends with 0. After each run that check() liked, the power is cut as
 * well, where there is a recover(): what was answered must last. */
bool sweep_errno(const struct sweep *s, const int *errs,
    struct sweep_report *report);
/* The disk is gone from the n-th call on; then a crash, the disk comes back,
 * recovery. And the same with a power loss. */
bool sweep_dead(const struct sweep *s, int err, struct sweep_report *report);
/* kill -9 at each change; recovery; then a power loss, and recovery again: what
 * the first recovery has shown must last. */
bool sweep_crash(const struct sweep *s, struct sweep_report *report);
/* A power loss at each change and after the last, in both modes of memfs. */
bool sweep_power_loss(const struct sweep *s, struct sweep_report *report);

/* The distance between the points of a sweep: 1, or 5 with SWEEP_FEW. */
unsigned long sweep_step(void);

#endif
