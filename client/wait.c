/*
 * refd wait: asks the daemon how far its refs are in the log of the token,
 * until they have the transaction. The daemon keeps nothing for the caller, so
 * any number of clients may wait.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/commands.h"
#include "client/request/question.h"
#include "client/request/rows.h"
#include "proto/lib/cli.h"
#include "proto/lib/clock.h"

#define PAUSE_MS      50
#define PAUSE_MOST_MS 400
#define TIMEOUT_S     30

struct log_token {
	char log[2 * REFD_JOURNAL_ID_BYTES + 1];
	uint64_t lsn;
};

static struct log_token parse_token(const char *s)
{
	const size_t len = 2 * REFD_JOURNAL_ID_BYTES;
	struct log_token token = { .lsn = 0 };

	if (strspn(s, "0123456789abcdef") != len || s[len] != ':' ||
	    !cli_number(s + len + 1, UINT64_MAX, &token.lsn) || token.lsn == 0)
		die("'%s' is no token: 32 hexadecimal digits, ':' and a "
		    "number, as in the JSON of refd update and refd query",
		    s);
	memcpy(token.log, s, len);
	return token;
}

/* *APPLIED tells how far the refs are, or is 0 if this is not known yet. */
static bool has_token(struct refd *r, const struct log_token *token,
    uint64_t *applied)
{
	struct refd_request req = { .verb = REFD_VERB_STATUS };
	struct refd_answer ans;
	const char *log;

	question_call(r, &req, QUESTION_MS, &ans);
	log = rows_value(&ans, "token_log");
	if (*log && strcmp(log, token->log) != 0)
		die("the token is of the log %s, and this node has the log %s: "
		    "wait at a node of the group that has answered the update",
		    token->log, log);
	*applied = rows_number(&ans, "applied_lsn");
	refd_answer_done(&ans);
	return *applied >= token->lsn;
}

static int run_wait(const struct command *c, int argc, char **argv)
{
	struct question q = { .timeout_s = TIMEOUT_S };
	uint64_t until, now, applied;
	unsigned pause_ms = PAUSE_MS;
	struct log_token token;
	struct refd *r;

	cli_parse(c, &q, argc, &argv);
	token = parse_token(argv[0]);
	until = clock_now_ms() + (uint64_t)q.timeout_s * 1000;
	r = question_connect(q.socket, q.timeout_s * 1000);
	while (!has_token(r, &token, &applied)) {
		now = clock_now_ms();
		if (now >= until) {
			say_error("this node is at LSN %" PRIu64
				  " and does not have LSN %" PRIu64
				  " after %d s; refd role -v prints its lag",
			    applied, token.lsn, q.timeout_s);
			refd_free(r);
			return EXIT_FAILED;
		}
		if (pause_ms > until - now)
			pause_ms = (unsigned)(until - now);
		usleep(pause_ms * 1000);
		if (pause_ms < PAUSE_MOST_MS)
			pause_ms *= 2;
	}
	refd_free(r);
	return EXIT_DONE;
}

static const struct command_option wait_options[] = {
	{ OPTION_NUMBER("timeout", 0, "SECONDS", "give up after SECONDS (30)",
	    struct question, timeout_s, 0, 24 * 3600) },
	QUESTION_SOCKET, { 0 }
};

const struct command wait_command = {
	.name = "wait",
	.summary = "wait until this node has an update",
	.arguments = "<token>",
	.purpose = "Waits until the refs of this node have the transaction of "
		   "the token. In a group, the token is valid on every node.",
	.example = "refd wait --timeout 10 "
		   "0123456789abcdef0123456789abcdef:42",
	.manual = "refd(1)",
	.least = 1,
	.options = wait_options,
	.run = run_wait,
};
