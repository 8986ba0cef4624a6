/* refd pause, resume, drain. */
#include <inttypes.h>
#include <stdio.h>

#include "client/commands.h"
#include "client/request/output.h"
#include "client/request/question.h"
#include "client/request/rows.h"
#include "proto/lib/cli.h"

static int change(const struct command *c, int argc, char **argv,
    enum refd_verb verb, const char *done)
{
	struct question q = { 0 };
	struct refd_answer ans;

	cli_parse(c, &q, argc, &argv);
	question_ask(q.socket, verb, QUESTION_MS, &ans);
	if (q.json)
		output_json_pairs(ans.pairs, ans.nr_pairs);
	else
		print_line(stdout,
		    "%s; %" PRIu64 " waiting, %" PRIu64 " in batches", done,
		    rows_number(&ans, "waiting"),
		    rows_number(&ans, "in_store"));
	refd_answer_done(&ans);
	return EXIT_DONE;
}

static int run_pause(const struct command *c, int argc, char **argv)
{
	return change(c, argc, argv, REFD_VERB_PAUSE, "paused");
}

const struct command pause_command = {
	.name = "pause",
	.summary = "let all updates wait",
	.purpose =
	    "Lets all updates wait until 'refd resume', for example before "
	    "a snapshot. A client whose deadline passes gets the answer busy.",
	.example = "refd pause",
	.manual = "refd-pause(1)",
	.options = question_json,
	.run = run_pause,
};

static int run_resume(const struct command *c, int argc, char **argv)
{
	return change(c, argc, argv, REFD_VERB_RESUME, "resumed");
}

const struct command resume_command = {
	.name = "resume",
	.summary = "continue after pause or drain",
	.purpose = "Lets the daemon accept updates again after 'refd pause' or "
		   "'refd drain'.",
	.example = "refd resume",
	.manual = "refd-resume(1)",
	.options = question_json,
	.run = run_resume,
};

/* Every waiting update has a deadline, so drain ends without a timeout. */
static int run_drain(const struct command *c, int argc, char **argv)
{
	struct question q = { .timeout_s = -1 };
	struct refd_answer ans;

	cli_parse(c, &q, argc, &argv);
	question_ask(q.socket, REFD_VERB_DRAIN,
	    q.timeout_s < 0 ? -1 : q.timeout_s * 1000, &ans);
	if (q.json)
		output_json_pairs(ans.pairs, ans.nr_pairs);
	else
		print_line(stdout, "drained");
	refd_answer_done(&ans);
	return EXIT_DONE;
}

static const struct command_option drain_options[] = {
	{ OPTION_NUMBER("timeout", 0, "SECONDS",
	    "give up if updates still wait after SECONDS", struct question,
	    timeout_s, 1, 24 * 3600) },
	QUESTION_JSON, QUESTION_SOCKET, { 0 }
};

const struct command drain_command = {
	.name = "drain",
	.summary = "finish waiting updates, accept no new ones",
	.purpose =
	    "Finishes all waiting updates and accepts no new update until "
	    "'refd resume'.",
	.example = "refd drain --timeout 60",
	.outcome = "Gives up if updates still wait after 60 seconds.",
	.manual = "refd-drain(1)",
	.options = drain_options,
	.run = run_drain,
};
