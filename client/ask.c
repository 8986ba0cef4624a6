/*
 * The questions: ping, query, status, stats, checkpoint. Each is one request to
 * the daemon. The exit status is 75 if the daemon is away, and 128 if it denies
 * the user.
 */
#include "client/ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/admin/rows.h"
#include "client/admin/show.h"
#include "client/base/cli.h"
#include "client/request/output.h"
#include "client/request/question.h"

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
	printf("%s pid %" PRIu64 " %s", hello->software, hello->pid,
	    refd_server_state_name(hello->state));
	if (hello->total > 0)
		printf(" %" PRIu64 " of %" PRIu64, hello->done, hello->total);
	printf("\n");
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
	{ OPTION_NUMBER("wait", 0, "SECONDS", "wait until the daemon serves",
	    struct question, wait_s, 0, 24 * 3600) },
	QUESTION_SOCKET, { 0 }
};

const struct command ping_command =
    COMMAND("ping", "ask whether the daemon serves", ping_options, run_ping);

static int print_found(const struct refd_answer *ans, const char *id, bool json)
{
	const char *word = NULL;

	switch (ans->kind) {
	case REFD_ANSWER_RESULTS:
		if (json)
			output_json(ans);
		else
			output_porcelain(ans);
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
	if (json)
		printf("{\"txn\":\"%s\",\"outcome\":\"%s\"}\n", id, word);
	else
		printf("txn %s %s\n", id, word);
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
	.least = 1,
	.options = question_json,
	.run = run_query,
};

static void print_pairs(const struct refd_answer *ans)
{
	struct text t = { 0 };
	size_t i;

	for (i = 0; i < ans->nr_pairs; i++) {
		if (strchr(ans->pairs[i].key, '.'))
			continue;
		text_addf(&t, "%s: ", ans->pairs[i].key);
		text_add_visible(&t, ans->pairs[i].value);
		text_addc(&t, '\n');
	}
	text_print(&t);
}

/* One line for each stalled stage. */
static void print_stalls(const struct refd_answer *ans)
{
	struct text t = { 0 };
	struct row row = { 0 };

	while (row_next(ans, "stall", &row)) {
		text_adds(&t, "stall: ");
		text_add_visible(&t, row_value(&row, "text"));
		text_addc(&t, '\n');
	}
	text_print(&t);
}

/* The last errors and warnings of the daemon's log, oldest first. */
static void print_log(const struct refd_answer *ans)
{
	struct row rows[32], row = { 0 };
	struct text t = { 0 };
	size_t nr = 0;

	while (
	    nr < sizeof(rows) / sizeof(rows[0]) && row_next(ans, "log", &row))
		rows[nr++] = row;
	while (nr-- > 0) {
		text_adds(&t, "log: ");
		show_moment(&t, row_number(&rows[nr], "time_ms"));
		text_addf(&t, " %s: ", row_value(&rows[nr], "level"));
		text_add_visible(&t, row_value(&rows[nr], "text"));
		text_addc(&t, '\n');
	}
	text_print(&t);
}

static int run_status(const struct command *c, int argc, char **argv)
{
	struct question q = { 0 };
	struct refd_answer ans;
	bool serves;

	cli_parse(c, &q, argc, &argv);
	question_ask(question_connect(q.socket, 0), REFD_VERB_STATUS,
	    QUESTION_MS, &ans);
	if (q.json) {
		output_json_pairs(ans.pairs, ans.nr_pairs);
	} else {
		print_pairs(&ans);
		print_stalls(&ans);
		print_log(&ans);
	}
	serves = !strcmp(rows_value(&ans, "state"),
		     refd_server_state_name(REFD_SERVING)) &&
	    strcmp(rows_value(&ans, "paused"), "yes") != 0;
	refd_answer_done(&ans);
	return serves ? EXIT_DONE : EXIT_AWAY;
}

const struct command status_command = COMMAND("status",
    "print the state of the daemon", question_json, run_status);

static int run_stats(const struct command *c, int argc, char **argv)
{
	struct question q = { 0 };
	struct refd_answer ans;
	size_t i;

	cli_parse(c, &q, argc, &argv);
	question_ask(question_connect(q.socket, 0),
	    q.prometheus ? REFD_VERB_METRICS : REFD_VERB_STATS, QUESTION_MS,
	    &ans);
	if (q.json)
		output_json_pairs(ans.pairs, ans.nr_pairs);
	else if (!q.prometheus)
		print_pairs(&ans);
	for (i = 0; q.prometheus && i < ans.nr_pairs; i++)
		fputs(ans.pairs[i].value, stdout);
	refd_answer_done(&ans);
	return EXIT_DONE;
}

static const struct command_option stats_options[] = { QUESTION_JSON,
	{ OPTION_FLAG("prometheus", 0, "print Prometheus metrics",
	      struct question, prometheus),
	    .excludes = 'f' },
	QUESTION_SOCKET, { 0 } };

const struct command stats_command =
    COMMAND("stats", "print the daemon's counters", stats_options, run_stats);

/* Waits for as long as the disks take. */
static int run_checkpoint(const struct command *c, int argc, char **argv)
{
	struct question q = { 0 };
	struct refd_answer ans;

	cli_parse(c, &q, argc, &argv);
	question_ask(question_connect(q.socket, 0), REFD_VERB_CHECKPOINT, -1,
	    &ans);
	refd_answer_done(&ans);
	return EXIT_DONE;
}

const struct command checkpoint_command = COMMAND("checkpoint",
    "write all refs to disk, before a copy", question_socket, run_checkpoint);
