/*
 * Stories: cases of recovery in words (tests/stories/README.md). Each run of a
 * story acts it out on a new world (world.h). Without a fault the run checks
 * the expectations of the story. With a fault it checks the rules that always
 * hold, because the expectations cannot.
 *
 * A kind of repository has files or reftables, and SHA-1 or SHA-256, as
 * world_format() says.
 */
#ifndef TESTS_LIB_STORY_H
#define TESTS_LIB_STORY_H

#include <stdbool.h>

#include "tests/lib/sweep.h"

struct story;

/* Ends the process if there is no such file, or no line "repo": such a story
 * would have no run that could fail. Other faults of a story fail its runs. */
struct story *story_read(const char *path);
void story_free(struct story *s);
bool story_is_of(const struct story *s, bool tables);

/* The fault before call N, or change N of the disk, of the steps: for
 * SWEEP_ERRNO, SWEEP_KILL and SWEEP_CUT. */
struct story_fault {
	enum sweep_kind kind;
	unsigned long n;
	int err;
	/* At the end the machine loses power, and not only the process. */
	bool ends_in_loss;
};

struct story_run {
	bool tables;
	const struct story_fault *fault; /* or NULL */
	/* A git "beside" a step acts before this call of the step. */
	unsigned long between;
	/* Output. */
	bool was_hit;    /* the fault came */
	bool was_beside; /* some git had its turn between two calls */
	bool has_waited; /* some git acted after its step only */
	char text[4000]; /* the first finding; "": none */
};

/* Returns true if there is no finding. */
bool story_run(const struct story *s, struct story_run *run);

#endif
