/*
 * refd status: the state of the daemon in a sentence, its problems and its
 * load. With -v, also all values, and all kept lines of the log.
 */
#include <string.h>
#include <time.h>

#include "client/admin/page.h"
#include "client/admin/show.h"
#include "client/admin/summary.h"
#include "client/commands.h"
#include "client/request/daemons.h"
#include "client/request/output.h"
#include "client/request/question.h"
#include "client/request/rows.h"
#include "proto/lib/cli.h"
#include "proto/lib/colour.h"
#include "proto/lib/json.h"

static void add_stalls(struct text *t, const struct refd_answer *ans)
{
	struct row row = { 0 };

	while (row_next(ans, "stall", &row)) {
		text_adds(t, "stall: ");
		text_add_visible(t, row_value(&row, "text"));
		text_addc(t, '\n');
	}
}

static void add_failed(struct text *t, const struct refd_answer *ans)
{
	struct row row = { 0 };

	while (row_next(ans, "failed", &row)) {
		text_adds(t, "failed: ");
		text_add_visible(t, row_value(&row, "repo"));
		text_adds(t, ": ");
		text_add_visible(t, row_value(&row, "ref"));
		text_adds(t, ": ");
		text_add_visible(t, row_value(&row, "error"));
		text_addc(t, '\n');
	}
}

static void add_roots(struct text *t, const struct refd_answer *ans)
{
	struct row row = { 0 };

	while (row_next(ans, "root", &row)) {
		text_adds(t, "root: ");
		text_add_visible(t, row_value(&row, "path"));
		text_addc(t, '\n');
	}
}

/* The last errors and warnings of the daemon's log, oldest first. */
static void add_log(struct text *t, const struct refd_answer *ans)
{
	struct row rows[32], row = { 0 };
	size_t nr = 0;

	while (
	    nr < sizeof(rows) / sizeof(rows[0]) && row_next(ans, "log", &row))
		rows[nr++] = row;
	while (nr-- > 0) {
		text_adds(t, "log: ");
		show_moment(t, row_number(&rows[nr], "time_ms"));
		text_addf(t, " %s: ", row_value(&rows[nr], "level"));
		text_add_visible(t, row_value(&rows[nr], "text"));
		text_addc(t, '\n');
	}
}

/* A paused daemon is there, but takes no update, so it does not serve. */
static bool serves(const char *state, bool is_paused)
{
	return !strcmp(state, refd_server_state_name(REFD_SERVING)) &&
	    !is_paused;
}

/* ---- all daemons ---- */

static void put_daemon(const struct known_daemon *known)
{
	struct json j = { .to = stdout };
	size_t i;

	json_begin(&j, NULL, '{');
	json_text(&j, "socket", known->socket);
	json_text(&j, "unit", known->unit);
	json_text(&j, "account", known->account);
	json_text(&j, "state", known->state);
	json_flag(&j, "listens", known->listens);
	json_flag(&j, "paused", known->is_paused);
	json_begin(&j, "roots", '[');
	for (i = 0; i < known->nr_roots; i++)
		json_text(&j, NULL, known->roots[i]);
	json_end(&j, ']');
	json_finish(&j, '}');
}

static void add_daemon(struct text *t, const struct known_daemon *known)
{
	daemons_describe(known, t);
	text_adds(t, ": ");
	text_add_visible(t, known->state);
	text_adds(t, known->is_paused ? ", paused\n" : "\n");
}

static int show_all(bool as_json)
{
	struct text t = { .is_shown = true };
	struct daemons all = { 0 };
	bool serve = true;
	size_t i;

	daemons_find(&all, NULL);
	daemons_find_users(&all);
	serve = all.nr > 0;
	for (i = 0; i < all.nr; i++) {
		if (as_json)
			put_daemon(&all.list[i]);
		else
			add_daemon(&t, &all.list[i]);
		serve =
		    serve && serves(all.list[i].state, all.list[i].is_paused);
	}
	if (!all.nr)
		say("no daemon of this machine is known");
	daemons_done(&all);
	if (t.len)
		text_print(&t);
	return serve ? EXIT_DONE : EXIT_AWAY;
}

static int exit_status(const struct refd_answer *ans)
{
	return serves(rows_value(ans, "state"),
		   !strcmp(rows_value(ans, "paused"), "yes")) ?
	    EXIT_DONE :
	    EXIT_AWAY;
}

static int show_page(const char *socket)
{
	struct text t = { 0 };
	struct page p;
	int rc;

	page_ask(&p, socket);
	page_render(&p, &t);
	text_print(&t);
	rc = exit_status(&p.parts[PAGE_STATUS]);
	page_done(&p);
	return rc;
}

static int run_status(const struct command *c, int argc, char **argv)
{
	struct question q = { 0 };
	struct refd_answer ans;
	struct text t = { .is_shown = true };
	int rc;

	cli_parse(c, &q, argc, &argv);
	if (q.html && (q.all || q.verbose))
		cli_usage(c, "--html prints one page of one daemon");
	if (q.html)
		return show_page(q.socket);
	if (q.all)
		return show_all(q.json);
	question_ask(q.socket, REFD_VERB_STATUS, QUESTION_MS, &ans);
	if (q.json)
		output_json_pairs(ans.pairs, ans.nr_pairs);
	else
		summary_render(&ans, (uint64_t)time(NULL) * 1000,
		    show_columns(), &t);
	if (!q.json && q.verbose) {
		text_addc(&t, '\n');
		show_pairs(&t, &ans);
		add_roots(&t, &ans);
		add_stalls(&t, &ans);
		add_failed(&t, &ans);
		add_log(&t, &ans);
	}
	text_print(&t);
	rc = exit_status(&ans);
	refd_answer_done(&ans);
	return rc;
}

static const struct command_option status_options[] = {
	{ OPTION_FLAG("verbose", 'v', "print all values", struct question,
	    verbose) },
	{ OPTION_FLAG("all", 0, "print a line for each daemon of this machine",
	    struct question, all) },
	QUESTION_JSON,
	{ OPTION_FLAG("html", 0, "print a page for a browser", struct question,
	      html),
	    .excludes = 'f' },
	COLOUR_OPTION, QUESTION_SOCKET, { 0 }
};

const struct command status_command = {
	.name = "status",
	.summary = "print the state of the daemon",
	.purpose = "Prints the state of the daemon, problems with their "
		   "remedies, and the load. The exit status is 0 if the daemon "
		   "serves. With --all, names each daemon of this machine, "
		   "with its unit, its account and its roots. With --html, "
		   "prints a page without scripts, also if the daemon is away.",
	.example = "refd status",
	.manual = "refd-status(1)",
	.options = status_options,
	.run = run_status,
};
