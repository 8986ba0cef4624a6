/*
 * Proves every story of tests/stories, in each kind of repository that the
 * story names: first its expectations, then the rules that hold after a kill or
 * a power loss before each change of the disk, and after a failing call, at
 * places that sweep_step() chooses. STORY=NAME runs tests/stories/NAME.story
 * alone, and STORY_PLACE=N with faults at place N only. tests/stories/README.md
 * has the rules.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/story.h"
#include "tests/lib/suite.h"

/* All places of all stories take more than an hour. */
#define STRIDE 11

static glob_t paths;

/* The distance between the places. */
static unsigned long stride(void)
{
	const bool is_set = getenv("SWEEP_STEP") != NULL;

	return is_set && sweep_step() == 1 ? 1 : STRIDE * sweep_step();
}

/* A git "beside" a step acts once before each of its calls, unless a lock is in
 * the way. Returns whether it acted there at all. */
static bool run_plainly(const struct story *s, bool tables)
{
	struct story_run run = { .tables = tables };
	bool has_waited = true;

	do {
		ck_assert_msg(story_run(s, &run), "%s", run.text);
		has_waited &= run.has_waited;
		run.between += sweep_step() > 1 ? STRIDE : 1;
	} while (run.was_beside);
	return !has_waited;
}

/* One round has a fault at place N. What a failing call has cost, a kill may
 * show, or only a power loss, so the call is tried with both ends. Returns
 * whether a round met its fault. */
static bool run_at(const struct story *s, bool tables, enum sweep_kind kind,
    unsigned long n, bool all_errs)
{
	static const int errs[] = { -EIO, -ENOSPC, -EACCES, -EMFILE, -EDQUOT,
		-ENOMEM };
	const size_t nr_errs = sizeof(errs) / sizeof(errs[0]);
	const size_t nr = kind != SWEEP_ERRNO ? 1 : all_errs ? 2 * nr_errs : 2;
	struct story_fault fault = { .kind = kind, .n = n };
	struct story_run run = { .tables = tables,
		.fault = &fault,
		.between = n * 7 % 97 };
	size_t i;

	for (i = 0; i < nr; i++) {
		fault.err = errs[(n / stride() + i / 2) % nr_errs];
		fault.ends_in_loss = (n + i) % 2 == 1;
		ck_assert_msg(story_run(s, &run), "%s", run.text);
	}
	return run.was_hit;
}

/* Beside a fault, git acts at some place. The first place lies early, because
 * a sweep behind the end of the story would prove nothing. */
static void run_beside(const struct story *s, bool tables, enum sweep_kind kind,
    unsigned long first)
{
	const unsigned long step = stride();
	unsigned long n = first % (step < STRIDE ? step : STRIDE);

	if (!run_at(s, tables, kind, n, step == 1)) {
		n = 0;
		ck_assert_msg(run_at(s, tables, kind, n, step == 1),
		    "the story has no place for a fault");
	}
	do
		n += step;
	while (run_at(s, tables, kind, n, step == 1));
}

/* Returns whether a fault came there. */
static bool run_place(const struct story *s, bool tables, const char *place)
{
	const unsigned long n = strtoul(place, NULL, 10);
	int kinds[] = { SWEEP_KILL, SWEEP_CUT, SWEEP_ERRNO };
	bool was_hit = false;
	size_t i;

	for (i = 0; i < 3; i++)
		was_hit |=
		    run_at(s, tables, (enum sweep_kind)kinds[i], n, true);
	return was_hit;
}

/* Finds the stories, and returns their number. */
static int find(void)
{
	const char *name = getenv("STORY");
	char pattern[256];

	snprintf(pattern, sizeof(pattern), "tests/stories/%s.story",
	    name != NULL ? name : "*");
	if (glob(pattern, 0, NULL, &paths) != 0) {
		fprintf(stderr, "%s: no such story\n", pattern);
		exit(EXIT_FAILURE);
	}
	return (int)paths.gl_pathc;
}

CASE(.seconds = 600);

TEST(story, .times = find())
{
	static const char *const formats[] = { "sha1", "sha256" };
	struct story *s = story_read(paths.gl_pathv[_i]);
	const char *place = getenv("STORY_PLACE");
	bool was_hit = place == NULL;
	int kind, tables;

	for (kind = 0; kind < 4; kind++) {
		tables = kind / 2;
		if (!story_is_of(s, tables))
			continue;
		setenv("REFD_TEST_FORMAT", formats[kind % 2], 1);
		ck_assert_msg(run_plainly(s, tables),
		    "%s: no git acted beside its step", paths.gl_pathv[_i]);
		if (place != NULL) {
			was_hit |= run_place(s, tables, place);
			continue;
		}
		/* A selection of places has one of the two formats. */
		if (stride() > 1 && getenv("STORY") == NULL &&
		    (_i + kind) % 2 == 1)
			continue;
		run_beside(s, tables, SWEEP_KILL, (unsigned)(_i * 4 + kind));
		run_beside(s, tables, SWEEP_CUT, (unsigned)(_i * 4 + kind));
		run_beside(s, tables, SWEEP_ERRNO, (unsigned)(_i * 4 + kind));
	}
	story_free(s);
	ck_assert_msg(was_hit, "the story ends before place %s", place);
}
