#include "client/admin/ask_admin.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/cli.h"
#include "client/request/question.h"

static void __attribute__((noreturn)) usage(const struct ask_admin *q, FILE *to,
    int rc)
{
	fprintf(to, "usage: %s\n", q->usage);
	exit(rc);
}

static int seconds(const struct ask_admin *q, const char *s)
{
	uint64_t number;

	if (!parse_number(s, 24 * 3600, &number) || number == 0)
		usage(q, stderr, EXIT_USAGE);
	return (int)number;
}

void ask_admin_parse(struct ask_admin *q, int argc, char **argv,
    const char *options)
{
	static const struct option long_options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },
		{ "once", no_argument, NULL, 'o' },
		{ "timeout", required_argument, NULL, 't' },
		{ "interval", required_argument, NULL, 'i' },
		{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 }
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", long_options, NULL)) >= 0) {
		if (c == 'h')
			usage(q, stdout, 0);
		if (c != 's' && (c == '?' || !strchr(options, c)))
			usage(q, stderr, EXIT_USAGE);
		if (c == 's')
			q->socket = optarg;
		if (c == 'j')
			q->json = true;
		if (c == 'o')
			q->once = true;
		if (c == 't')
			q->timeout_s = seconds(q, optarg);
		if (c == 'i')
			q->every_s = seconds(q, optarg);
	}
	if (argc != optind)
		usage(q, stderr, EXIT_USAGE);
}

void ask_admin_once(const struct ask_admin *q, enum refd_verb verb,
    int timeout_ms, struct refd_answer *ans)
{
	struct refd_request req = { .verb = verb };
	struct refd *r = question_connect_admin(q->socket);

	question_call(r, &req, timeout_ms, ans);
	if (ans->kind != REFD_ANSWER_PAIRS)
		die("the daemon's answer is not one to this question");
	refd_free(r);
}
