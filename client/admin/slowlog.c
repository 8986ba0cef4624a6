/* refd slowlog: the latest slow transactions, and the cause of each delay. */
#include <inttypes.h>
#include <stdio.h>

#include "client/admin/admin.h"
#include "client/admin/rows.h"
#include "client/admin/show.h"
#include "client/base/cli.h"
#include "client/request/output.h"
#include "client/request/question.h"

static void add_split(struct text *t, const struct row *row)
{
	static const char *const parts[] = { "admit", "barrier", "queue",
		"lock", "flush", "publish", "reply" };
	char key[32];
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(key, sizeof(key), "%s_us", parts[i]);
		text_addf(t, "%s%s ", i ? ", " : "    ", parts[i]);
		show_time(t, row_number(row, key));
	}
	text_addc(t, '\n');
}

static void print_slow(const struct row *row)
{
	uint64_t refs = row_number(row, "refs");
	struct text t = { 0 };

	show_moment(&t, row_number(row, "time_ms"));
	text_addc(&t, ' ');
	show_time(&t, row_number(row, "total_us"));
	text_addc(&t, ' ');
	text_add_visible(&t, row_value(row, "outcome"));
	text_addf(&t, " %" PRIu64 " ref%s ", refs, refs == 1 ? "" : "s");
	text_add_visible(&t, row_value(row, "repo"));
	text_addc(&t, ' ');
	text_add_visible(&t, row_value(row, "ref"));
	text_adds(&t, refs > 1 ? " ...\n" : "\n");
	add_split(&t, row);
	text_adds(&t, "    txn ");
	text_add_visible(&t, row_value(row, "txn"));
	text_adds(&t, " user ");
	show_user(&t, row_number(row, "uid"));
	text_addf(&t, " pid %" PRIu64, row_number(row, "pid"));
	if (*row_value(row, "sid")) {
		text_adds(&t, " sid ");
		text_add_visible(&t, row_value(row, "sid"));
	}
	text_addc(&t, '\n');
	text_print(&t);
}

static int run_slowlog(const struct command *c, int argc, char **argv)
{
	struct question q = { 0 };
	struct row row = { 0 };
	struct refd_answer ans;

	cli_parse(c, &q, argc, &argv);
	question_ask(question_connect_admin(q.socket), REFD_VERB_SLOW,
	    QUESTION_MS, &ans);
	if (q.json)
		output_json_pairs(ans.pairs, ans.nr_pairs);
	while (!q.json && row_next(&ans, "slow", &row))
		print_slow(&row);
	refd_answer_done(&ans);
	return EXIT_DONE;
}

const struct command slowlog_command = COMMAND("slowlog",
    "list slow transactions and their delays", question_json, run_slowlog);
