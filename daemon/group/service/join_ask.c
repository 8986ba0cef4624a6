#include "daemon/group/service/join_ask.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/group/service/console_session.h"
#include "daemon/group/service/lister.h"
#include "proto/lib/clock.h"

#define AGAIN_MS  5000
#define SILENT_MS 60000
#define WALK_MS   600000 /* between two repositories of a slow disk */
#define POLL_MS   500

struct lister_question {
	struct join_list *list;
	struct session *s;
	const char *node;
	char request[LISTER_REQUEST + 1];
	uint64_t heard_ms, asked_ms;
	int sender; /* a process of PostgreSQL, if has_heard */
	bool has_heard, has_ended;
};

static void ask(struct lister_question *a)
{
	char *text =
	    xasprintf("%s %s %s", a->s->config->name, a->node, a->request);
	struct params p = { 0 };
	PGresult *r;

	params_text(&p, text);
	r = session_run(a->s, "SELECT pg_notify('refd_list', $1)", &p);
	if (!r)
		console_session_die(a->s, SESSION_AWAY);
	PQclear(r);
	free(text);
	a->asked_ms = clock_now_ms();
}

/* Whoever may connect to the database may send notices, so only the session
 * that has answered first is heard. */
static void hear(struct lister_question *a, const PGnotify *notice)
{
	size_t len = strlen(a->request);

	if (!has_prefix(notice->extra, a->request) ||
	    notice->extra[len] != ' ' ||
	    (a->has_heard && notice->be_pid != a->sender))
		return;
	a->has_heard = true;
	a->sender = notice->be_pid;
	a->heard_ms = clock_now_ms();
	switch (join_list_take(a->list, notice->extra + len + 1)) {
	case JOIN_LIST_MORE:
		return;
	case JOIN_LIST_END:
		a->has_ended = true;
		return;
	case JOIN_LIST_FAILED:
		die("the node '%s' cannot list its repositories: the log of "
		    "refd-group there has the reason",
		    a->node);
	case JOIN_LIST_PARTIAL:
		die("the list of the node '%s' has come in part: run refd "
		    "group join again",
		    a->node);
	case JOIN_LIST_WRONG:
		die("the node '%s' has named a repository in a form that this "
		    "version of refd does not know: install the same version",
		    a->node);
	}
}

static void await(struct lister_question *a)
{
	struct pollfd fd = { .fd = PQsocket(a->s->conn), .events = POLLIN };
	PGnotify *notice;

	poll(&fd, 1, POLL_MS);
	if (!PQconsumeInput(a->s->conn)) {
		session_fail(a->s, NULL, "no connection");
		console_session_die(a->s, SESSION_AWAY);
	}
	while ((notice = PQnotifies(a->s->conn))) {
		if (!a->has_ended)
			hear(a, notice);
		PQfreemem(notice);
	}
}

/* The request can get lost, because refd-group is between two connections, or
 * answers an earlier request. So it is repeated until the first answer. */
void join_ask(struct join_list *list, struct session *s, const char *node)
{
	struct lister_question a = { .list = list,
		.s = s,
		.node = node,
		.heard_ms = clock_now_ms() };

	snprintf(a.request, sizeof(a.request), "%016llx",
	    (unsigned long long)a.heard_ms << 20 ^
		(unsigned)PQbackendPID(s->conn));
	if (!session_do(s, "LISTEN refd_listed"))
		console_session_die(s, SESSION_AWAY);
	while (!a.has_ended) {
		if (!a.has_heard &&
		    (!a.asked_ms || clock_now_ms() - a.asked_ms > AGAIN_MS))
			ask(&a);
		await(&a);
		if (clock_now_ms() - a.heard_ms >
		    (a.has_heard ? WALK_MS : SILENT_MS))
			cli_die(EXIT_AWAY,
			    "the leader '%s' does not name its repositories: "
			    "does refd-group run there, in this version?",
			    node);
	}
	if (!session_do(s, "UNLISTEN refd_listed"))
		console_session_die(s, SESSION_AWAY);
}
