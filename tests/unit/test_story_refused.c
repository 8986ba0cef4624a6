/*
 * Proves that a story fails, with a sentence, if a step has a wrong word or
 * nothing to do. Otherwise the story would pass, and prove less than it says.
 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/story.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static const struct {
	const char *steps;
	const char *sentence; /* NULL: the story passes */
} cases[] = {
	{ "git lock refs/heads/ab\ngit lock refs/heads/a\n"
	  "git unlock refs/heads/a\nlock refs/heads/ab\n"
	  "git unlock refs/heads/ab\nlock none\n",
	    NULL },
	{ "git unlock refs/heads/a\n",
	    "git does not hold the lock of refs/heads/a" },
	{ "git lock refs/heads/ab\ngit unlock refs/heads/a\n",
	    "git does not hold the lock of refs/heads/a" },
	{ "git refs/heads/a = 12\n", "git cannot do this" },
	{ "git lock refs/heads/a\nremove locks\n", NULL },
	{ "remove locks\n", "there is nothing to remove" },
	{ "remove logs/refs/heads/a\n", "there is nothing to remove" },
	{ "clock -2h\nclock +1h\n", NULL },
	{ "clock 1\n", "'1' is no number of hours" },
	{ "clock back\n", "'back' is no number of hours" },
	{ "ok refs/heads/a = 1\ntouch refs/heads/a 1h\n", NULL },
	{ "ok refs/heads/a = 1\ntouch refs/heads/a ahead\n",
	    "'ahead' is no number of hours" },
	{ "seconds-back one\n", "'one' is no number of seconds" },
	{ "commit\n", "no session is prepared" },
	{ "abort\n", "no session is prepared" },
	{ "kill\nstart\n", NULL },
	{ "kill\nkill\n", "the daemon does not run" },
};
#define NR_CASES ((int)(sizeof(cases) / sizeof(*cases)))

CASE(.setup = tmp_setup, .teardown = tmp_teardown);

TEST(a_wrong_step_fails, .times = NR_CASES)
{
	struct story_run run = { .tables = false };
	char text[512], path[4200];
	struct story *s;

	snprintf(text, sizeof(text), "repo files\n%s", cases[_i].steps);
	tmp_put("a.story", text);
	snprintf(path, sizeof(path), "%s/a.story", tmp_root);
	s = story_read(path);
	story_run(s, &run);
	story_free(s);
	if (cases[_i].sentence == NULL)
		ck_assert_str_eq(run.text, "");
	else
		ck_assert_msg(strstr(run.text, cases[_i].sentence) != NULL,
		    "%s: %s", cases[_i].steps, run.text);
}
