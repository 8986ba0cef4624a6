/*
 * refd role: what this node does among the others. The exit status tells
 * scripts whether the node takes writes, or may serve reads.
 */
#include <inttypes.h>
#include <string.h>

#include "client/admin/show.h"
#include "client/commands.h"
#include "client/request/question.h"
#include "client/request/rows.h"
#include "proto/lib/cli.h"
#include "proto/lib/json.h"

static bool is_in_group(const struct refd_answer *ans)
{
	return *rows_value(ans, "group_lag_ms") != '\0';
}

static bool serves_reads(const struct refd_answer *ans)
{
	return !strcmp(rows_value(ans, "serves_reads"), "yes");
}

static void print_json(const struct refd_answer *ans)
{
	struct json j = { .to = stdout };

	json_begin(&j, NULL, '{');
	json_text(&j, "role", rows_value(ans, "role"));
	json_flag(&j, "serves_reads", serves_reads(ans));
	if (is_in_group(ans)) {
		json_text(&j, "leader", rows_value(ans, "group_leader"));
		json_count(&j, "lsn", rows_number(ans, "group_lsn"));
		json_count(&j, "lag_ms", rows_number(ans, "group_lag_ms"));
	}
	json_finish(&j, '}');
}

static void print_details(const struct refd_answer *ans)
{
	const char *leader = rows_value(ans, "group_leader");
	struct text t = { 0 };

	text_adds(&t, "leader: ");
	text_add_visible(&t, *leader ? leader : "not known");
	text_addf(&t,
	    "\nrow: %" PRIu64 "\nlag: ", rows_number(ans, "group_lsn"));
	show_time(&t, rows_number(ans, "group_lag_ms") * 1000);
	text_addc(&t, '\n');
	text_print(&t);
}

static int run_role(const struct command *c, int argc, char **argv)
{
	struct question q = { 0 };
	struct refd_answer ans;
	const char *role;
	int rc = EXIT_AWAY;

	cli_parse(c, &q, argc, &argv);
	question_ask(q.socket, REFD_VERB_STATUS, QUESTION_MS, &ans);
	role = rows_value(&ans, "role");
	if (!strcmp(role, "leader") || !strcmp(role, "single"))
		rc = EXIT_DONE;
	else if (serves_reads(&ans))
		rc = EXIT_FAILED;
	if (q.json)
		print_json(&ans);
	else
		print_line(stdout, "%s", role);
	if (q.verbose && is_in_group(&ans))
		print_details(&ans);
	refd_answer_done(&ans);
	return rc;
}

static const struct command_option role_options[] = {
	{ OPTION_FLAG("verbose", 'v', "print the leader, the row and the lag",
	      struct question, verbose),
	    .excludes = 'f' },
	QUESTION_JSON, QUESTION_SOCKET, { 0 }
};

const struct command role_command = {
	.name = "role",
	.summary = "print the role of this node in its group",
	.purpose =
	    "Prints leader, follower, waits, or single without a group. "
	    "The exit status is 0 if the node takes writes, 1 if it is a "
	    "follower that may serve reads, and otherwise 75.",
	.example = "refd role",
	.manual = "refd(1)",
	.options = role_options,
	.run = run_role,
};
