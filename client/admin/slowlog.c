/* refd slowlog: the latest slow transactions, and the cause of each delay. */
#include "client/admin/slowlog.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "client/admin/show.h"
#include "client/base/pager.h"
#include "client/commands.h"
#include "client/request/output.h"
#include "client/request/question.h"
#include "proto/lib/cli.h"

#define STAGES        7
#define DETAIL_INDENT 4

static const char *const stages[STAGES] = { "admit", "barrier", "queue", "lock",
	"flush", "publish", "reply" };

static uint64_t stage_us(const struct row *row, size_t stage)
{
	char key[32];

	snprintf(key, sizeof(key), "%s_us", stages[stage]);
	return row_number(row, key);
}

void slowlog_add_slowest(struct text *t, const struct row *row)
{
	size_t i, slowest = 0;

	for (i = 1; i < STAGES; i++)
		if (stage_us(row, i) > stage_us(row, slowest))
			slowest = i;
	text_addf(t, "%s ", stages[slowest]);
	show_time(t, stage_us(row, slowest));
}

static void add_heading(struct text *t)
{
	text_addf(t, "%-*s  %-8s  %-16s  %-9s  %6s  %s", show_when_width(),
	    "WHEN", "TIME", "SLOWEST STAGE", "RESULT", "REFS", "USER");
	show_cut(t, 0, show_columns(), COLOUR_HEADING);
}

static void add_row(struct text *t, const struct row *row, uint64_t now_ms)
{
	struct text when = { 0 }, total = { 0 }, slowest = { 0 };
	size_t begin = t->len;

	show_when(&when, row_number(row, "time_ms"), now_ms);
	show_time(&total, row_number(row, "total_us"));
	slowlog_add_slowest(&slowest, row);
	text_addf(t, "%-*s  %-8s  %-16s  %-9s  %6" PRIu64 "  ",
	    show_when_width(), when.data, total.data, slowest.data,
	    row_value(row, "outcome"), row_number(row, "refs"));
	show_user(t, row_number(row, "uid"));
	show_cut(t, begin, show_columns(), COLOUR_PLAIN);
	text_done(&when);
	text_done(&total);
	text_done(&slowest);
}

/* The refs, the other stages and the ids, below the row. */
static void add_details(struct text *t, const struct row *row)
{
	size_t i, columns = show_columns();
	struct text line = { 0 };

	text_addf(&line, "%s %s%s", row_value(row, "repo"),
	    row_value(row, "ref"), row_number(row, "refs") > 1 ? " ..." : "");
	show_lines(t, COLOUR_PLAIN, line.data, DETAIL_INDENT, columns);
	text_clear(&line);
	for (i = 0; i < STAGES; i++) {
		text_addf(&line, "%s%s ", i ? ", " : "", stages[i]);
		show_time(&line, stage_us(row, i));
	}
	show_lines(t, COLOUR_DIM, line.data, DETAIL_INDENT, columns);
	text_clear(&line);
	text_addf(&line, "txn %s pid %" PRIu64, row_value(row, "txn"),
	    row_number(row, "pid"));
	if (*row_value(row, "sid"))
		text_addf(&line, " sid %s", row_value(row, "sid"));
	show_lines(t, COLOUR_DIM, line.data, DETAIL_INDENT, columns);
	text_done(&line);
}

/* The width is the terminal's, so all is formatted before a pager takes the
 * terminal's place. */
static void print_slow(const struct refd_answer *ans)
{
	struct text t = { .is_shown = true };
	struct row row = { 0 };

	while (row_next(ans, "slow", &row)) {
		if (!t.len)
			add_heading(&t);
		add_row(&t, &row, (uint64_t)time(NULL) * 1000);
		add_details(&t, &row);
	}
	if (t.len && isatty(STDOUT_FILENO))
		pager_start();
	text_print(&t);
}

static int run_slowlog(const struct command *c, int argc, char **argv)
{
	struct question q = { 0 };
	struct refd_answer ans;

	cli_parse(c, &q, argc, &argv);
	question_ask(q.socket, REFD_VERB_SLOW, QUESTION_MS, &ans);
	if (q.json)
		output_json_pairs(ans.pairs, ans.nr_pairs);
	else
		print_slow(&ans);
	refd_answer_done(&ans);
	return EXIT_DONE;
}

const struct command slowlog_command = {
	.name = "slowlog",
	.summary = "list slow transactions and their delays",
	.purpose =
	    "Lists the last transactions that took longer than daemon.slowLog, "
	    "with the time of each stage.",
	.example = "refd slowlog",
	.manual = "refd-slowlog(1)",
	.options = question_shown,
	.run = run_slowlog,
};
