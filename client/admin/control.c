/* refd pause, resume, drain. */
#include <inttypes.h>
#include <stdio.h>

#include "client/admin/admin.h"
#include "client/admin/rows.h"
#include "client/base/cli.h"
#include "client/request/question.h"

static int change(const struct command *c, int argc, char **argv,
    enum refd_verb verb, const char *done)
{
	struct question q = { 0 };
	struct refd_answer ans;

	cli_parse(c, &q, argc, &argv);
	question_ask(question_connect_admin(q.socket), verb, QUESTION_MS, &ans);
	printf("%s; %" PRIu64 " waiting, %" PRIu64 " in batches\n", done,
	    rows_number(&ans, "waiting"), rows_number(&ans, "in_store"));
	refd_answer_done(&ans);
	return EXIT_DONE;
}

static int run_pause(const struct command *c, int argc, char **argv)
{
	return change(c, argc, argv, REFD_VERB_PAUSE, "paused");
}

const struct command pause_command =
    COMMAND("pause", "let all updates wait", question_socket, run_pause);

static int run_resume(const struct command *c, int argc, char **argv)
{
	return change(c, argc, argv, REFD_VERB_RESUME, "resumed");
}

const struct command resume_command = COMMAND("resume",
    "continue after pause or drain", question_socket, run_resume);

/* Every waiting update has a deadline, so drain ends without a timeout. */
static int run_drain(const struct command *c, int argc, char **argv)
{
	struct question q = { .timeout_s = -1 };
	struct refd_answer ans;

	cli_parse(c, &q, argc, &argv);
	question_ask(question_connect_admin(q.socket), REFD_VERB_DRAIN,
	    q.timeout_s < 0 ? -1 : q.timeout_s * 1000, &ans);
	puts("drained");
	refd_answer_done(&ans);
	return EXIT_DONE;
}

static const struct command_option drain_options[] = {
	{ OPTION_NUMBER("timeout", 0, "SECONDS", "give up then",
	    struct question, timeout_s, 1, 24 * 3600) },
	QUESTION_SOCKET, { 0 }
};

const struct command drain_command = COMMAND("drain",
    "finish waiting updates, accept no new ones", drain_options, run_drain);
