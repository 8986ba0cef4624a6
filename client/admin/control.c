/* refd pause, resume, drain. */
#include <inttypes.h>
#include <stdio.h>

#include "client/admin/admin.h"
#include "client/admin/ask_admin.h"
#include "client/admin/rows.h"
#include "client/base/cli.h"
#include "client/request/question.h"

static int change(int argc, char **argv, const char *usage, enum refd_verb verb,
    const char *done)
{
	struct ask_admin q = { .usage = usage };
	struct refd_answer ans;

	ask_admin_parse(&q, argc, argv, "");
	ask_admin_once(&q, verb, QUESTION_MS, &ans);
	printf("%s; %" PRIu64 " waiting, %" PRIu64 " in batches\n", done,
	    rows_number(&ans, "waiting"), rows_number(&ans, "in_store"));
	refd_answer_done(&ans);
	return EXIT_DONE;
}

int command_pause(int argc, char **argv)
{
	return change(argc, argv, "refd pause [--socket PATH]", REFD_VERB_PAUSE,
	    "paused");
}

int command_resume(int argc, char **argv)
{
	return change(argc, argv, "refd resume [--socket PATH]",
	    REFD_VERB_RESUME, "resumed");
}

/* Whatever waits has a deadline, so it ends by itself. */
int command_drain(int argc, char **argv)
{
	struct ask_admin q = {
		.usage = "refd drain [--timeout SECONDS] [--socket PATH]",
		.timeout_s = -1
	};
	struct refd_answer ans;

	ask_admin_parse(&q, argc, argv, "t");
	ask_admin_once(&q, REFD_VERB_DRAIN,
	    q.timeout_s < 0 ? -1 : q.timeout_s * 1000, &ans);
	puts("drained");
	refd_answer_done(&ans);
	return EXIT_DONE;
}
