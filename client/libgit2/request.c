/*
 * Sends a write to the daemon, and makes a code of libgit2 from the answer.
 *
 * The happy path: connect, one transaction, "ok". A daemon that is busy, starts
 * or stops has done nothing, so the request is sent again until the deadline.
 *
 * What fails:
 *	no daemon, or the daemon denies this peer	nothing was sent
 *	a status of the daemon				nothing was done
 *	the connection, after the request was sent	librefd asks for the
 *							outcome by the id
 *	no outcome in time				REFD_GIT2_EUNKNOWN
 * Whatever is not understood is unknown, too.
 */
#include "client/libgit2/request.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/libgit2/refd_git2.h"
#include "proto/lib/clock.h"
#include "proto/lib/query_command.h"

/* The daemon must begin the commit before the deadline, but the answer may come
 * later, so the client waits a little longer. */
#define DEADLINE_MS REFD_UPDATE_DEADLINE_MS
#define GRACE_MS    10000
#define NAP_MS      50

/* ---- time ---- */

static uint32_t ms_left(const struct request *r)
{
	uint64_t now = clock_now_ms();

	return now < r->deadline_ms ? (uint32_t)(r->deadline_ms - now) : 1;
}

/* Waits for a short time. False if the deadline has passed. */
static bool nap(const struct request *r)
{
	clock_nap(NAP_MS, r->deadline_ms);
	return clock_now_ms() < r->deadline_ms;
}

/* ---- the context of the request ---- */

/* umask(2) would change the umask of all threads for a moment, so the umask is
 * read from /proc. */
static int read_umask(uint32_t *mask)
{
	FILE *f = fopen("/proc/self/status", "re");
	bool found = false;
	char line[256];

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "Umask: %o", mask) == 1;
	if (f)
		fclose(f);
	return found ? 0 :
		       backend_fail(GIT_ERROR,
			   "refd: cannot read the umask in /proc/self/status");
}

static const char *get(const git_config *config, const char *key)
{
	const char *value;

	return git_config_get_string(&value, config, key) == 0 ? value : NULL;
}

/* Returns one of three spellings. */
static const char *log_all_ref_updates(const git_config *config,
    git_repository *repo)
{
	const char *value = get(config, "core.logallrefupdates");
	int on;

	if (value && strcasecmp(value, "always") == 0)
		return "always";
	if (!value || git_config_parse_bool(&on, value) < 0)
		on = !git_repository_is_bare(repo);
	return on ? "true" : "false";
}

/* The time to wait for a foreign lock, up to the deadline if negative. */
static bool lock_timeout(const git_config *config, const char *key,
    uint32_t *ms)
{
	int64_t n;

	if (git_config_get_int64(&n, config, key) < 0)
		return false;
	*ms = n < 0 || n > REFD_DEADLINE_MAX_MS ? REFD_DEADLINE_MAX_MS :
						  (uint32_t)n;
	return true;
}

/* An unreadable level must not become a weaker level, so the write fails. */
static int read_durability(struct request *r)
{
	const char *value = get(r->config, "refd.durability");

	if (value && refd_durability_from_name(value, &r->req.durability) < 0)
		return backend_fail(GIT_ERROR, "refd: refd.durability is '%s'",
		    value);
	return 0;
}

static int read_config(struct request *r, git_repository *repo)
{
	struct refd_request *req = &r->req;
	int err = git_repository_config_snapshot(&r->config, repo);

	if (err < 0)
		return err;
	req->log_all_ref_updates = log_all_ref_updates(r->config, repo);
	req->shared_repository = get(r->config, "core.sharedrepository");
	if (!req->shared_repository)
		req->shared_repository = "umask";
	req->has_ref_lock_timeout = lock_timeout(r->config,
	    "core.filesreflocktimeout", &req->ref_lock_timeout_ms);
	req->has_packed_refs_timeout = lock_timeout(r->config,
	    "core.packedrefstimeout", &req->packed_refs_timeout_ms);
	return read_durability(r);
}

/* As libgit2 for the log: the identity of the repository, the configuration, or
 * nobody. */
static int own_signature(git_signature **who, git_repository *repo)
{
	const char *name = NULL, *mail = NULL;

	if (git_repository_ident(&name, &mail, repo) == 0 && name && mail)
		return git_signature_now(who, name, mail);
	if (git_signature_default(who, repo) == 0)
		return 0;
	return git_signature_now(who, "unknown", "unknown");
}

static int set_committer(struct request *r, git_repository *repo,
    const git_signature *who)
{
	git_signature *own = NULL;
	int err = who ? 0 : own_signature(&own, repo), zone, len;

	if (err < 0)
		return err;
	if (!who)
		who = own;
	zone = abs(who->when.offset);
	len = asprintf(&r->committer, "%s <%s> %lld %c%02d%02d", who->name,
	    who->email, (long long)who->when.time,
	    who->when.offset < 0 ? '-' : '+', zone / 60, zone % 60);
	git_signature_free(own);
	if (len < 0)
		r->committer = NULL;
	if (len < 0)
		return backend_fail(GIT_ERROR, "out of memory");
	r->req.committer = r->committer;
	return 0;
}

/* ---- the connection ---- */

static int connect_daemon(struct request *r)
{
	int err;

	do {
		err = refd_connect(r->daemon, (int)ms_left(r));
		if (err == 0 && refd_hello(r->daemon)->state == REFD_SERVING)
			return 0;
		if (err < 0 && err != -EBUSY)
			return backend_fail(GIT_ERROR,
			    "refd: nothing was written: %s",
			    refd_error(r->daemon));
	} while (nap(r));
	return backend_fail(GIT_ELOCKED,
	    "refd: nothing was written: the daemon is %s",
	    err < 0 ? "busy" :
		      refd_server_state_name(refd_hello(r->daemon)->state));
}

int request_open(struct request *r, const struct backend *be,
    const git_signature *who, const char *message)
{
	int err;

	memset(r, 0, sizeof(*r));
	r->deadline_ms = clock_now_ms() + DEADLINE_MS;
	r->req.git_dir = be->git_dir;
	r->req.common_dev = be->common_dev;
	r->req.common_ino = be->common_ino;
	r->req.atomic = true;
	r->req.updates = r->updates;
	r->socket = be->socket;
	r->daemon = refd_new(r->socket);
	/* libgit2 has no limit for messages, but the protocol has one, so a
	 * long message is cut. */
	r->message = message ? strndup(message, REFD_MESSAGE_MAX) : NULL;
	r->req.message = r->message;
	if (!r->daemon || (message && !r->message))
		return backend_fail(GIT_ERROR, "out of memory");
	if (be->is_guarded)
		refd_accept_only(r->daemon, be->owner);
	err = read_umask(&r->req.umask);
	if (err == 0)
		err = read_config(r, be->repo);
	if (err == 0)
		err = set_committer(r, be->repo, who);
	return err < 0 ? err : connect_daemon(r);
}

struct refd_update *request_add(struct request *r, enum refd_action action,
    const char *name)
{
	struct refd_update *u = &r->updates[r->req.nr_updates++];

	u->action = action;
	u->name = name;
	u->no_deref = true;
	return u;
}

void request_set_oid(struct refd_oid *oid, const git_oid *from)
{
	memset(oid, 0, sizeof(*oid));
	memcpy(oid->bytes, from->id, REFD_SHA1_BYTES);
}

/* ---- answers ---- */

/* The status of the whole request, which is OK only if every update has this
 * status. *WHY is the result with this status, or NULL. */
static enum refd_status status_of(const struct refd_answer *ans,
    enum refd_answer_kind done, size_t nr, const struct refd_result **why)
{
	enum refd_status status = REFD_OK;
	size_t i;

	*why = NULL;
	if (ans->kind == REFD_ANSWER_REFUSED)
		return ans->status;
	if (ans->kind != REFD_ANSWER_RESULTS &&
	    ans->kind != REFD_ANSWER_PREPARED)
		return REFD_UNKNOWN;
	for (i = 0; i < ans->nr_results; i++) {
		enum refd_status one = ans->results[i].status;

		if (one == REFD_UNKNOWN)
			return REFD_UNKNOWN;
		/* The update that failed, not its siblings. */
		if (one != REFD_OK &&
		    (status == REFD_OK || status == REFD_ABORTED)) {
			status = one;
			*why = &ans->results[i];
		}
	}
	if (status == REFD_OK && (ans->kind != done || ans->nr_results != nr))
		return REFD_UNKNOWN;
	if (ans->kind == REFD_ANSWER_RESULTS &&
	    ans->outcome !=
		(status == REFD_OK ? REFD_COMMITTED : REFD_REJECTED))
		return REFD_UNKNOWN;
	return status;
}

static int code_of(enum refd_status status)
{
	switch (status) {
	case REFD_OK:
		return 0;
	case REFD_STALE:
	case REFD_NOTSYMREF:
		return GIT_EMODIFIED;
	case REFD_EXISTS:
		return GIT_EEXISTS;
	case REFD_MISSING:
		return GIT_ENOTFOUND;
	case REFD_LOCKED:
	case REFD_BUSY:
	case REFD_DEADLINE:
		return GIT_ELOCKED;
	case REFD_CONFLICT:
		return GIT_EDIRECTORY;
	case REFD_BADNAME:
		return GIT_EINVALIDSPEC;
	case REFD_UNKNOWN:
	case REFD_PENDING:
		return REFD_GIT2_EUNKNOWN;
	case REFD_NOOBJECT:
	case REFD_NOTCOMMIT:
	case REFD_DENIED:
	case REFD_HOOK_DECLINED:
	case REFD_NOSPACE:
	case REFD_IO:
	case REFD_ABORTED:
	case REFD_UNSUPPORTED:
	case REFD_BROKEN:
	case REFD_DUPLICATE:
	case REFD_NOREPO:
	case REFD_BADREQUEST:
	case REFD_LIMIT:
		return GIT_ERROR;
	}
	return GIT_ERROR;
}

static int fail_unknown(const struct request *r)
{
	char txid[REFD_TXID_HEX + 1];
	char *command = query_command(r->socket, &r->req.txid);
	int code = backend_fail(REFD_GIT2_EUNKNOWN,
	    REFD_GIT2_UNKNOWN
	    "the write of '%s' may have been done, or may still be done: %s",
	    r->updates[0].name,
	    command ? command : refd_txid_hex(&r->req.txid, txid));

	free(command);
	return code;
}

static int fail_status(const struct request *r, enum refd_status status,
    const struct refd_answer *ans, const struct refd_result *why)
{
	const char *text = why ? why->text : ans->text;
	struct refd_detail detail;

	/* A detail is for git's sentences, and says the same as the status, so
	 * the text of the status replaces a detail. */
	if (!text || !*text || refd_detail_read(text, &detail))
		text = refd_status_text(status);
	return backend_fail(code_of(status), "refd: cannot write '%s': %s (%s)",
	    why ? why->name : r->updates[0].name, text,
	    refd_status_name(status));
}

/* A session ends with its connection, so a session without an answer has done
 * nothing. */
static int fail_without_answer(const struct request *r)
{
	if (r->req.verb != REFD_VERB_SESSION)
		return fail_unknown(r);
	return backend_fail(GIT_ELOCKED, "refd: nothing was written: %s",
	    refd_error(r->daemon));
}

static int call(struct request *r, enum refd_verb verb, bool *is_busy)
{
	enum refd_answer_kind done = verb == REFD_VERB_SESSION ?
	    REFD_ANSWER_PREPARED :
	    REFD_ANSWER_RESULTS;
	const struct refd_result *why;
	enum refd_status status;
	struct refd_answer ans;
	int code;

	*is_busy = false;
	r->req.verb = verb;
	r->req.deadline_ms = ms_left(r);
	if (refd_submit(r->daemon, &r->req) < 0)
		return backend_fail(GIT_ERROR, "refd: nothing was written: %s",
		    refd_error(r->daemon));
	if (refd_wait(r->daemon, &r->req, (int)r->req.deadline_ms + GRACE_MS,
		&ans) < 0)
		return fail_without_answer(r);
	status = status_of(&ans, done, r->req.nr_updates, &why);
	*is_busy = status == REFD_BUSY;
	if (status == REFD_OK)
		code = 0;
	else if (code_of(status) == REFD_GIT2_EUNKNOWN)
		code = fail_unknown(r);
	else
		code = fail_status(r, status, &ans, why);
	refd_answer_done(&ans);
	return code;
}

/* A busy daemon has done nothing, so the same request may be sent again. */
static int call_until_taken(struct request *r, enum refd_verb verb)
{
	bool is_busy;
	int code;

	do
		code = call(r, verb, &is_busy);
	while (is_busy && nap(r));
	return code;
}

int request_transact(struct request *r)
{
	return call_until_taken(r, REFD_VERB_TRANSACTION);
}

int request_prepare(struct request *r)
{
	int code = call_until_taken(r, REFD_VERB_SESSION);

	r->is_prepared = code == 0;
	return code;
}

int request_commit(struct request *r)
{
	bool is_busy;

	r->is_prepared = false;
	return call(r, REFD_VERB_COMMIT, &is_busy);
}

/* The next write may want the locks, so this waits for the answer. */
void request_release(struct request *r)
{
	struct refd_answer ans;

	if (!r->is_prepared)
		return;
	r->is_prepared = false;
	r->req.verb = REFD_VERB_ABORT;
	r->req.nr_updates = 0;
	if (refd_call(r->daemon, &r->req, GRACE_MS, &ans) == 0)
		refd_answer_done(&ans);
}

void request_close(struct request *r)
{
	request_release(r);
	refd_free(r->daemon);
	git_config_free(r->config);
	free(r->committer);
	free(r->message);
}
