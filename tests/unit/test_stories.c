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

/* All places of all stories take an hour. */
#define STRIDE 11

static glob_t paths;

/* The distance between the places. */
static unsigned long stride(void)
{
	const bool is_set = getenv("SWEEP_STEP") != NULL;

	return is_set && sweep_step() == 1 ? 1 : STRIDE * sweep_step();
}

/* A git "beside" a step acts once before each of its calls. */
static void run_plainly(const struct story *s, bool tables)
{
	struct story_run run = { .tables = tables };

	do {
		ck_assert_msg(story_run(s, &run), "%s", run.text);
		run.between += sweep_step() > 1 ? STRIDE : 1;
	} while (run.was_beside);
}

/* Beside a fault, git acts at some place. */
static void run_beside(const struct story *s, bool tables, enum sweep_kind kind,
    unsigned long first)
{
	static const int errs[] = { -EIO, -ENOSPC, -EACCES, -EMFILE, -EDQUOT,
		-ENOMEM };
	const size_t nr_errs = sizeof(errs) / sizeof(errs[0]);
	const char *place = getenv("STORY_PLACE");
	const unsigned long step = stride();
	struct story_fault fault = { .kind = kind, .n = first % step };
	struct story_run run = { .tables = tables, .fault = &fault };
	size_t i, nr = kind == SWEEP_ERRNO ? nr_errs : 1;

	if (place != NULL)
		fault.n = strtoul(place, NULL, 10);
	else if (step > 1)
		nr = 1;
	do {
		for (i = 0; i < nr; i++) {
			fault.err = errs[(fault.n / step + i) % nr_errs];
			run.between = fault.n * 7 % 97;
			ck_assert_msg(story_run(s, &run), "%s", run.text);
		}
		fault.n += step;
	} while (run.was_hit && place == NULL);
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
	int kind, tables;

	for (kind = 0; kind < 4; kind++) {
		tables = kind / 2;
		if (!story_is_of(s, tables))
			continue;
		setenv("REFD_TEST_FORMAT", formats[kind % 2], 1);
		run_plainly(s, tables);
		/* A selection of places has one of the two formats. */
		if (stride() > 1 && getenv("STORY") == NULL &&
		    (_i + kind) % 2 == 1)
			continue;
		run_beside(s, tables, SWEEP_KILL, (unsigned)(_i * 4 + kind));
		run_beside(s, tables, SWEEP_CUT, (unsigned)(_i * 4 + kind));
		run_beside(s, tables, SWEEP_ERRNO, (unsigned)(_i * 4 + kind));
	}
	story_free(s);
}
