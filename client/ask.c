/*
 * The questions: ping, query, stats, checkpoint. Each is one request to
 * the daemon. The exit status is 75 if the daemon is away, and 128 if it denies
 * the user.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/admin/show.h"
#include "client/commands.h"
#include "client/request/output.h"
#include "client/request/question.h"
#include "client/request/rows.h"
#include "proto/lib/cli.h"
#include "proto/lib/json.h"

static void print_hello(const struct refd_hello *hello, bool as_json)
{
	const char *state = refd_server_state_name(hello->state);
	struct json j = { .to = stdout };

	if (as_json) {
		json_begin(&j, NULL, '{');
		json_text(&j, "software", hello->software);
		json_count(&j, "pid", hello->pid);
		json_text(&j, "state", state);
		if (hello->total > 0) {
			json_count(&j, "done", hello->done);
			json_count(&j, "total", hello->total);
		}
		json_finish(&j, '}');
	} else {
		print_part(stdout, "%s pid %" PRIu64 " %s", hello->software,
		    hello->pid, state);
		if (hello->total > 0)
			print_part(stdout, " %" PRIu64 " of %" PRIu64,
			    hello->done, hello->total);
		print_lines(stdout, "\n");
	}
}

static int run_ping(const struct command *c, int argc, char **argv)
{
	struct question q = { 0 };
	struct refd_request req = { .verb = REFD_VERB_PING };
	const struct refd_hello *hello;
	struct refd_answer ans;
	struct refd *r;
	int rc = EXIT_DONE;

	cli_parse(c, &q, argc, &argv);
	r = question_connect(q.socket, q.wait_s * 1000);
	hello = refd_hello(r);
	print_hello(hello, q.json);
	if (hello->state == REFD_SERVING) {
		question_call(r, &req, QUESTION_MS, &ans);
		refd_answer_done(&ans);
	} else {
		rc = EXIT_AWAY;
	}
	refd_free(r);
	return rc;
}

static const struct command_option ping_options[] = {
	{ OPTION_NUMBER("wait", 0, "SECONDS",
	    "wait until the daemon serves, for at most SECONDS",
	    struct question, wait_s, 0, 24 * 3600) },
	QUESTION_JSON, QUESTION_SOCKET, { 0 }
};

const struct command ping_command = {
	.name = "ping",
	.summary = "ask whether the daemon serves",
	.purpose =
	    "Prints the name, process id and state of the daemon. The exit "
	    "status is 0 if the daemon serves.",
	.example = "refd ping --wait 30",
	.outcome = "Waits for at most 30 seconds until the daemon serves.",
	.manual = "refd(1)",
	.options = ping_options,
	.run = run_ping,
};

static int print_found(const struct refd_answer *ans, const char *id, bool json)
{
	struct json j = { .to = stdout };
	const char *word = NULL;

	switch (ans->kind) {
	case REFD_ANSWER_RESULTS:
		if (json)
			output_json(ans);
		else
			output_results(ans, true);
		return ans->outcome == REFD_COMMITTED ? EXIT_DONE : EXIT_FAILED;
	case REFD_ANSWER_PENDING:
		word = "pending";
		break;
	case REFD_ANSWER_NEVER_SEEN:
		word = "never-seen";
		break;
	case REFD_ANSWER_EXPIRED:
		word = "expired";
		break;
	case REFD_ANSWER_PREPARED:
		word = "prepared";
		break;
	case REFD_ANSWER_REFUSED:
	case REFD_ANSWER_PONG:
	case REFD_ANSWER_PAIRS:
	case REFD_ANSWER_RECORDS:
		die("the daemon's answer is not one to this question");
	}
	if (!json) {
		print_line(stdout, "txn %s %s", id, word);
		return EXIT_FAILED;
	}
	json_begin(&j, NULL, '{');
	json_text(&j, "txn", id);
	json_text(&j, "outcome", word);
	json_finish(&j, '}');
	return EXIT_FAILED;
}

static int run_query(const struct command *c, int argc, char **argv)
{
	struct question q = { 0 };
	struct refd_request req = { .verb = REFD_VERB_QUERY };
	struct refd_answer ans;
	struct refd *r;
	int rc;

	cli_parse(c, &q, argc, &argv);
	if (refd_txid_parse(argv[0], &req.txid) < 0)
		die("'%s' is no transaction id: 32 hexadecimal digits",
		    argv[0]);
	r = question_connect(q.socket, 0);
	question_call(r, &req, QUESTION_MS, &ans);
	rc = print_found(&ans, argv[0], q.json);
	refd_answer_done(&ans);
	refd_free(r);
	return rc;
}

const struct command query_command = {
	.name = "query",
	.summary = "print the outcome of a transaction",
	.arguments = "<transaction id>",
	.purpose = "Prints the outcome of a transaction, also after a lost "
		   "connection or a restart of the daemon.",
	.example = "refd query 0123456789abcdef0123456789abcdef",
	.manual = "refd(1)",
	.least = 1,
	.options = question_json,
	.run = run_query,
};

static int run_stats(const struct command *c, int argc, char **argv)
{
	struct question q = { 0 };
	struct text t = { 0 };
	struct refd_answer ans;
	size_t i;

	cli_parse(c, &q, argc, &argv);
	question_ask(q.socket,
	    q.prometheus ? REFD_VERB_METRICS : REFD_VERB_STATS, QUESTION_MS,
	    &ans);
	if (q.json)
		output_json_pairs(ans.pairs, ans.nr_pairs);
	else if (!q.prometheus)
		show_pairs(&t, &ans);
	text_print(&t);
	for (i = 0; q.prometheus && i < ans.nr_pairs; i++)
		print_lines(stdout, "%s", ans.pairs[i].value);
	refd_answer_done(&ans);
	return EXIT_DONE;
}

static const struct command_option stats_options[] = { QUESTION_JSON,
	{ OPTION_FLAG("prometheus", 0,
	      "print the counters as Prometheus metrics", struct question,
	      prometheus),
	    .excludes = 'f' },
	QUESTION_SOCKET, { 0 } };

const struct command stats_command = {
	.name = "stats",
	.summary = "print the daemon's counters",
	.purpose =
	    "Prints the counters of the daemon since its start: updates, "
	    "refusals, flushes and delays.",
	.example = "refd stats --prometheus",
	.outcome = "Prints the counters for a monitoring system.",
	.manual = "refd-stats(1)",
	.options = stats_options,
	.run = run_stats,
};

/* Waits for as long as the disks take. */
static int run_checkpoint(const struct command *c, int argc, char **argv)
{
	struct question q = { 0 };
	struct refd_answer ans;

	cli_parse(c, &q, argc, &argv);
	question_ask(q.socket, REFD_VERB_CHECKPOINT, -1, &ans);
	if (q.json)
		output_json_pairs(ans.pairs, ans.nr_pairs);
	refd_answer_done(&ans);
	return EXIT_DONE;
}

const struct command checkpoint_command = {
	.name = "checkpoint",
	.summary = "write all refs to disk, before a copy",
	.purpose = "Writes all acknowledged refs to the disks of their "
		   "repositories, so that a copy of the repositories needs no "
		   "replay of the journal.",
	.example = "refd checkpoint",
	.manual = "refd(1)",
	.options = question_json,
	.run = run_checkpoint,
};
