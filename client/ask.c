/*
 * The questions: ping, query, status, stats, checkpoint. Each is one request to the
 * daemon; when it is away they say so and end with 75, when it denies us, with
 * 128.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/admin/rows.h"
#include "client/admin/show.h"
#include "client/base/cli.h"
#include "client/command.h"
#include "client/request/output.h"
#include "client/request/question.h"

struct question {
	const char *usage;
	const char *socket;
	bool json, prometheus;
	int wait_ms; /* until the daemon serves */
	char **args;
	int nr_args;
};

static void __attribute__((noreturn)) usage(const struct question *q, FILE *to,
    int rc)
{
	fprintf(to, "usage: %s\n", q->usage);
	exit(rc);
}

static int parse_wait(const struct question *q, const char *s)
{
	uint64_t seconds;

	if (!parse_number(s, 24 * 3600, &seconds))
		usage(q, stderr, EXIT_USAGE);
	return (int)seconds * 1000;
}

/* SHORT_OPTIONS says which of the long ones the command takes: j, p, w. */
static void parse(struct question *q, int argc, char **argv,
    const char *short_options, int nr_args)
{
	static const struct option long_options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },
		{ "prometheus", no_argument, NULL, 'p' },
		{ "wait", required_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 }
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", long_options, NULL)) >= 0) {
		if (c == 'h')
			usage(q, stdout, 0);
		if (c != 's' && (c == '?' || !strchr(short_options, c)))
			usage(q, stderr, EXIT_USAGE);
		if (c == 's')
			q->socket = optarg;
		if (c == 'j')
			q->json = true;
		if (c == 'p')
			q->prometheus = true;
		if (c == 'w')
			q->wait_ms = parse_wait(q, optarg);
	}
	q->args = argv + optind;
	q->nr_args = argc - optind;
	if (q->nr_args != nr_args || (q->json && q->prometheus))
		usage(q, stderr, EXIT_USAGE);
}

int command_ping(int argc, char **argv)
{
	struct question q = {
		.usage = "refd ping [--wait SECONDS] [--socket PATH]"
	};
	struct refd_request req = { .verb = REFD_VERB_PING };
	const struct refd_hello *hello;
	struct refd_answer ans;
	struct refd *r;
	int rc = EXIT_DONE;

	parse(&q, argc, argv, "w", 0);
	r = question_connect(q.socket, q.wait_ms);
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

int command_query(int argc, char **argv)
{
	struct question q = {
		.usage = "refd query [--json] [--socket PATH] <transaction id>"
	};
	struct refd_request req = { .verb = REFD_VERB_QUERY };
	struct refd_answer ans;
	struct refd *r;
	int rc;

	parse(&q, argc, argv, "j", 1);
	if (refd_txid_parse(q.args[0], &req.txid) < 0)
		die("'%s' is no transaction id: 32 hexadecimal digits",
		    q.args[0]);
	r = question_connect(q.socket, q.wait_ms);
	question_call(r, &req, QUESTION_MS, &ans);
	rc = print_found(&ans, q.args[0], q.json);
	refd_answer_done(&ans);
	refd_free(r);
	return rc;
}

static void ask_pairs(const struct question *q, enum refd_verb verb,
    struct refd_answer *ans)
{
	struct refd_request req = { .verb = verb };
	struct refd *r = question_connect(q->socket, q->wait_ms);

	question_call(r, &req, QUESTION_MS, ans);
	if (ans->kind != REFD_ANSWER_PAIRS)
		die("the daemon's answer is not one to this question");
	refd_free(r);
}

static void print_pairs(const struct refd_answer *ans)
{
	struct text t = { 0 };
	size_t i;

	for (i = 0; i < ans->nr_pairs; i++) {
		if (strchr(ans->pairs[i].key, '.'))
			continue;
		text_addf(&t, "%s: ", ans->pairs[i].key);
		show_name(&t, ans->pairs[i].value);
		text_addc(&t, '\n');
	}
	fputs(t.data ? t.data : "", stdout);
	text_done(&t);
}

/* A sentence for each stage that is stalled. */
static void print_stalls(const struct refd_answer *ans)
{
	struct text t = { 0 };
	struct row row = { 0 };

	while (row_next(ans, "stall", &row)) {
		text_adds(&t, "stall: ");
		show_name(&t, row_value(&row, "text"));
		text_addc(&t, '\n');
	}
	fputs(t.data ? t.data : "", stdout);
	text_done(&t);
}

/* The last errors and warnings of its log, the oldest first. */
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
		show_name(&t, row_value(&rows[nr], "text"));
		text_addc(&t, '\n');
	}
	fputs(t.data ? t.data : "", stdout);
	text_done(&t);
}

int command_status(int argc, char **argv)
{
	struct question q = { .usage = "refd status [--json] [--socket PATH]" };
	struct refd_answer ans;
	bool serves;

	parse(&q, argc, argv, "j", 0);
	ask_pairs(&q, REFD_VERB_STATUS, &ans);
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

int command_stats(int argc, char **argv)
{
	struct question q = { .usage = "refd stats [--json | --prometheus] "
				       "[--socket PATH]" };
	struct refd_answer ans;
	size_t i;

	parse(&q, argc, argv, "jp", 0);
	ask_pairs(&q, q.prometheus ? REFD_VERB_METRICS : REFD_VERB_STATS, &ans);
	if (q.json)
		output_json_pairs(ans.pairs, ans.nr_pairs);
	else if (!q.prometheus)
		print_pairs(&ans);
	for (i = 0; q.prometheus && i < ans.nr_pairs; i++)
		fputs(ans.pairs[i].value, stdout);
	refd_answer_done(&ans);
	return EXIT_DONE;
}

/* However long the disks take: who asks has nothing better to do. */
int command_checkpoint(int argc, char **argv)
{
	struct question q = { .usage = "refd checkpoint [--socket PATH]" };
	struct refd_request req = { .verb = REFD_VERB_CHECKPOINT };
	struct refd_answer ans;
	struct refd *r;

	parse(&q, argc, argv, "", 0);
	r = question_connect(q.socket, q.wait_ms);
	question_call(r, &req, -1, &ans);
	if (ans.kind != REFD_ANSWER_PAIRS)
		die("the daemon's answer is not one to this question");
	refd_answer_done(&ans);
	refd_free(r);
	return EXIT_DONE;
}
