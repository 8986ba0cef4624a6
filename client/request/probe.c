#include "client/request/probe.h"

#include <errno.h>
#include <string.h>

#include "client/request/git_messages.h"
#include "proto/lib/worker.h"

#define PROBE_MS 5000
/* Needs no new directory for its lock. */
#define NO_SUCH_REF "refs/heads/refd-doctor-was-here"

/* A daemon that the repository chose may let each repository wait, so a late
 * answer counts as a failure of the account. */
static enum probe of_errno(int err, const struct daemon_socket *socket)
{
	if (err == -ETIMEDOUT && socket->is_guarded)
		worker_held_up();
	switch (err) {
	case -EPROTO:
		return PROBE_PROTOCOL;
	case -EACCES:
		return PROBE_CLOSED;
	case -EPERM:
		return PROBE_DENIED;
	default:
		return PROBE_AWAY;
	}
}

/* Any other status means that the daemon opened the repository. */
static bool is_refusal(enum refd_status status)
{
	return status == REFD_NOREPO || status == REFD_DENIED ||
	    status == REFD_UNSUPPORTED || status == REFD_IO ||
	    status == REFD_NOSPACE;
}

static enum probe ask_for_ref(struct refd *r,
    const struct daemon_socket *socket, const struct gitdir *gd,
    enum refd_object_format format, struct text *why)
{
	struct refd_update update = { .action = REFD_VERIFY,
		.name = NO_SUCH_REF };
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.git_dir = gd->path,
		.common_dev = gd->dev,
		.common_ino = gd->ino,
		.object_format = format,
		.umask = 022,
		.deadline_ms = PROBE_MS,
		.updates = &update,
		.nr_updates = 1 };
	struct refd_answer ans;
	enum refd_status status = REFD_OK;
	const char *text = NULL;
	int err = refd_call(r, &req, 2 * PROBE_MS, &ans);

	if (err < 0) {
		text_adds(why, refd_error(r));
		return of_errno(err, socket);
	}
	if (ans.kind == REFD_ANSWER_REFUSED) {
		status = ans.status;
		text = ans.text;
	} else if (ans.kind == REFD_ANSWER_RESULTS && ans.nr_results) {
		status = ans.results[0].status;
		text = ans.results[0].text;
	}
	if (is_refusal(status))
		git_messages_text(status, text, why);
	refd_answer_done(&ans);
	return is_refusal(status) ? PROBE_REFUSED : PROBE_OK;
}

enum probe probe_daemon(const struct daemon_socket *socket,
    const struct gitdir *gd, enum refd_object_format format, struct text *why)
{
	struct refd *r = connect_new(socket);
	enum probe probe = PROBE_OK;
	int err = refd_connect(r, PROBE_MS);

	if (err < 0) {
		probe = of_errno(err, socket);
		text_adds(why, refd_error(r));
	} else if (refd_hello(r)->state != REFD_SERVING) {
		probe = PROBE_STATE;
		text_addf(why, "the daemon is %s",
		    refd_server_state_name(refd_hello(r)->state));
	} else if (gd) {
		probe = ask_for_ref(r, socket, gd, format, why);
	}
	refd_free(r);
	return probe;
}

/* ---- as another user ---- */

struct probe_question {
	struct daemon_socket socket;
	struct text *why;
};

static int ask(void *arg)
{
	const struct probe_question *a = arg;
	struct text why = { 0 };
	enum probe probe =
	    probe_daemon(&a->socket, NULL, REFD_FORMAT_SHA1, &why);

	worker_tell(why.len ? why.data : "", why.len);
	text_done(&why);
	return (int)probe;
}

static int hear(void *arg, const char *data, size_t len)
{
	const struct probe_question *a = arg;

	text_clear(a->why);
	if (len)
		text_add(a->why, data, len);
	return 0;
}

enum probe probe_as(uid_t uid, char *socket, struct text *why)
{
	struct probe_question a = { .socket = { .path = socket }, .why = why };
	const struct work work = { .run = ask,
		.hear = hear,
		.arg = &a,
		.seconds = 4 * PROBE_MS / 1000,
		.bytes = WORKER_TELL_MAX };
	const char *failed = NULL;
	struct account as;
	int r;

	if (account_find(&as, uid, (gid_t)-1) < 0)
		die("out of memory");
	r = worker_run(&as, &work, &failed);
	account_done(&as);
	if (r >= 0 && r <= PROBE_REFUSED)
		return (enum probe)r;
	text_addf(why, "the attempt %s", failed ? failed : "failed");
	return PROBE_AWAY;
}
