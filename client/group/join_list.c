#include "client/group/join_list.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "client/group/console_session.h"
#include "client/group/lister.h"
#include "client/librefd/conn.h"
#include "proto/group_frame.h"

#define AGAIN_MS  5000
#define SILENT_MS 60000
#define POLL_MS   500

struct asking {
	struct join_list *list;
	struct session *s;
	const char *node;
	char request[LISTER_REQUEST + 1];
	uint64_t heard_ms, asked_ms;
	bool has_heard, has_ended;
};

static void ask(struct asking *a)
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
	a->asked_ms = refd_now_ms();
}

/* Decodes HEX in place. False: it is no path below a root. */
static bool read_path(char *hex)
{
	struct group_bytes path = { (const uint8_t *)hex, 0 };
	char *to = hex;
	unsigned byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2) {
		*to++ = (char)byte;
		path.len++;
	}
	*to = '\0';
	return *hex == '\0' && group_frame_is_path(path);
}

static const char *fault_of(const char *state)
{
	if (!strcmp(state, "shown"))
		return NULL;
	if (!strcmp(state, "hidden"))
		return "the leader hides refs from fetches, so they would be "
		       "missing here: run git config --unset-all there for "
		       "transfer.hideRefs and uploadpack.hideRefs, and set "
		       "them again later";
	if (!strcmp(state, "importing"))
		return "the group does not have its refs yet: run refd enable "
		       "for it on the leader";
	return "git cannot read its configuration on the leader: the log of "
	       "refd-group there has the reason";
}

static bool add(struct asking *a, const char *line)
{
	struct join_repo repo = { .path = xstrdup(line) };
	struct join_list *list = a->list;
	char format[8], state[16];

	if (sscanf(line, "%32[0-9a-f] %7s %15s %s", repo.hex, format, state,
		repo.path) != 4 ||
	    strlen(repo.hex) != FETCH_ID_HEX || !read_path(repo.path)) {
		free(repo.path);
		return false;
	}
	repo.format =
	    strcmp(format, "sha256") ? REFD_FORMAT_SHA1 : REFD_FORMAT_SHA256;
	repo.fault = fault_of(state);
	list->repos =
	    xroom(list->repos, list->nr, &list->size, sizeof(*list->repos));
	list->repos[list->nr++] = repo;
	return true;
}

static void hear(struct asking *a, const char *payload)
{
	const char *line = payload + LISTER_REQUEST + 1;

	if (!has_prefix(payload, a->request))
		return;
	a->has_heard = true;
	a->heard_ms = refd_now_ms();
	a->has_ended = !strcmp(line, "end");
	if (!strcmp(line, "failed"))
		die("the node '%s' cannot list its repositories: the log of "
		    "refd-group there has the reason",
		    a->node);
	if (!a->has_ended && !add(a, line))
		die("the node '%s' has named a repository in a form that this "
		    "version of refd does not know: install the same version",
		    a->node);
}

static void await(struct asking *a)
{
	struct pollfd fd = { .fd = PQsocket(a->s->conn), .events = POLLIN };
	PGnotify *notice;

	poll(&fd, 1, POLL_MS);
	if (!PQconsumeInput(a->s->conn)) {
		session_fail(a->s, NULL, "no connection");
		console_session_die(a->s, SESSION_AWAY);
	}
	while ((notice = PQnotifies(a->s->conn))) {
		hear(a, notice->extra);
		PQfreemem(notice);
	}
}

static int by_uuid(const void *va, const void *vb)
{
	const struct join_repo *a = va, *b = vb;

	return strcmp(a->hex, b->hex);
}

/* The request can get lost: refd-group is between two connections, or answers
 * an earlier request. */
void join_list_ask(struct join_list *list, struct session *s, const char *node)
{
	struct asking a = { .list = list,
		.s = s,
		.node = node,
		.heard_ms = refd_now_ms() };

	snprintf(a.request, sizeof(a.request), "%016llx",
	    (unsigned long long)a.heard_ms << 20 ^
		(unsigned)PQbackendPID(s->conn));
	if (!session_do(s, "LISTEN refd_listed"))
		console_session_die(s, SESSION_AWAY);
	while (!a.has_ended) {
		if (!a.has_heard &&
		    (!a.asked_ms || refd_now_ms() - a.asked_ms > AGAIN_MS))
			ask(&a);
		await(&a);
		if (refd_now_ms() - a.heard_ms > SILENT_MS)
			die_with(EXIT_AWAY,
			    "the leader '%s' does not name its repositories: "
			    "does refd-group run there, in this version?",
			    node);
	}
	if (list->nr)
		qsort(list->repos, list->nr, sizeof(*list->repos), by_uuid);
}

struct join_repo *join_list_find(const struct join_list *list, const char *hex)
{
	struct join_repo key;

	strcpy(key.hex, hex);
	return list->nr ? bsearch(&key, list->repos, list->nr,
			      sizeof(*list->repos), by_uuid) :
			  NULL;
}

void join_list_done(struct join_list *list)
{
	size_t i;

	for (i = 0; i < list->nr; i++)
		free(list->repos[i].path);
	free(list->repos);
	*list = (struct join_list){ .nr = 0 };
}
