#include "client/push/push_send.h"

#include <stdlib.h>
#include <string.h>

#include "client/git/gitversion.h"
#include "client/librefd/conn.h"
#include "client/push/push_progress.h"
#include "client/push/push_request.h"
#include "client/request/context.h"
#include "client/request/connect.h"
#include "client/request/unserved.h"

/* The time limit of the push. The daemon's limit is shorter, so that its answer
 * arrives in time. */
#define DEADLINE_MS REFD_HOOK_DEADLINE_MS
#define GRACE_MS    5000

/* ---- the order of the commands ---- */

static bool deletes(const struct push_command *c)
{
	return refd_oid_is_null(&c->new_oid);
}

/* Collects the commands: first all for which FIRST is true, then the rest. */
static void gather(struct push_send *d, struct push *push,
    bool (*first)(const struct push_command *c))
{
	size_t i;
	int pass;

	d->commands = xcalloc(push->nr, sizeof(*d->commands));
	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < push->nr; i++) {
			struct push_command *c = &push->commands[i];

			if (!c->is_chained && first(c) == (pass == 0))
				d->commands[d->nr++] = c;
		}
}

static bool any(const struct push_command *c)
{
	(void)c;
	return true;
}

/* Does the push have deletions and other commands? */
static bool is_mixed(const struct push *push)
{
	size_t i, nr = 0, gone = 0;

	for (i = 0; i < push->nr; i++)
		if (!push->commands[i].is_chained) {
			nr++;
			gone += deletes(&push->commands[i]);
		}
	return gone > 0 && gone < nr;
}

/*
 * git 2.51 and later do deletions first, since they make room for names. Older
 * versions follow the order of the commands. Only hooks can see the difference.
 */
static void arrange(struct push_send *d, struct push *push, bool has_rules)
{
	bool is_told = reftx_exists(&d->hook);
	bool is_seen = is_told || (has_rules && is_mixed(push));
	bool is_old = !d->atomic && is_seen && gitversion_before(2, 51);

	gather(d, push, d->atomic || is_old ? any : deletes);
	if (d->atomic || !is_told)
		d->way = PUSH_SEND_WHOLE;
	else
		d->way = is_old ? PUSH_SEND_ONE_BY_ONE : PUSH_SEND_BY_KIND;
}

bool push_send_next(struct push_send *d)
{
	struct push_command **batch;

	d->at += d->nr_batch;
	d->nr_batch = 0;
	if (d->at == d->nr)
		return false;
	batch = d->commands + d->at;
	switch (d->way) {
	case PUSH_SEND_WHOLE:
		d->nr_batch = d->nr;
		break;
	case PUSH_SEND_BY_KIND:
		while (d->at + d->nr_batch < d->nr &&
		    deletes(batch[d->nr_batch]) == deletes(batch[0]))
			d->nr_batch++;
		break;
	case PUSH_SEND_ONE_BY_ONE:
		d->nr_batch = 1;
		break;
	}
	return true;
}

/* Moves commands with a verdict to the end. Returns the number of commands
 * without a verdict. */
static size_t sort_out(struct push_command **commands, size_t nr)
{
	size_t i, left = 0;

	for (i = 0; i < nr; i++)
		if (!commands[i]->ng) {
			struct push_command *c = commands[i];

			commands[i] = commands[left];
			commands[left++] = c;
		}
	return left;
}

/* A transaction cannot have duplicates. As in git, the whole push fails. */
static bool refuse_duplicates(struct push_send *d)
{
	const char **names = xcalloc(d->nr, sizeof(*names)), *found;
	size_t i, nr = 0;

	for (i = 0; i < d->nr; i++)
		if (!d->commands[i]->ng)
			names[nr++] = d->commands[i]->ref;
	found = find_duplicate(names, nr);
	free(names);
	if (!found)
		return false;
	say_error("multiple updates for ref '%s' not allowed", found);
	for (i = 0; i < d->nr; i++)
		if (!d->commands[i]->ng)
			d->commands[i]->ng =
			    xstrdup(d->atomic ? "atomic transaction failed" :
						"failed to update refs");
	return true;
}

/* ---- a single transaction ---- */

static bool is_late(const struct refd_answer *ans)
{
	size_t i;

	if (ans->kind == REFD_ANSWER_REFUSED)
		return ans->status == REFD_DEADLINE;
	for (i = 0; i < ans->nr_results; i++)
		if (ans->results[i].status == REFD_DEADLINE)
			return true;
	return false;
}

static void call(const struct push_send *d, struct push_request *p,
    struct refd_answer *ans)
{
	const bool is_in_group = connect_is_in_group(d->gd);

	push_progress_begin(is_in_group);
	connect_call(d->daemon, &p->req, d->deadline - GRACE_MS, GRACE_MS, ans);
	if (push_progress_end() && is_in_group && is_late(ans))
		say("push again: the other nodes go on fetching the objects");
}

/* True if the daemon does not serve the transaction. Nothing of it is done. */
static bool is_unserved(struct push_send *d, const struct refd_answer *ans)
{
	const bool may =
	    connect_fallback(d->config, FALLBACK_GIT) == FALLBACK_GIT;
	const char *why =
	    may ? unserved_push(ans, d->gd) : unserved_answer(ans);

	if (!why)
		return false;
	free(d->unserved);
	d->unserved = xstrdup(why);
	return true;
}

static bool put_whole(struct push_send *d, size_t nr)
{
	struct refd_answer ans;
	struct push_request p;
	bool done;

	push_request_pack(&p, d, REFD_VERB_TRANSACTION, d->at, nr);
	call(d, &p, &ans);
	done = !is_unserved(d, &ans);
	if (done)
		push_request_take(&p, &ans);
	refd_answer_done(&ans);
	push_request_done(&p);
	return done;
}

/* ---- in sessions ---- */

static const char *hooks_reason(const struct push_send *d)
{
	if (d->atomic)
		return "atomic transaction failed";
	return d->way == PUSH_SEND_BY_KIND ? "failed to update refs" :
					     "failed to update ref";
}

static void refuse_by_hook(const struct push_send *d,
    const struct push_request *p)
{
	struct text why = { 0 };

	reftx_why(&d->hook, &why);
	say_error("%s", why.data);
	text_done(&why);
	push_request_refuse(p->commands, p->req.nr_updates, hooks_reason(d));
}

static void end_session(const struct push_send *d, const struct push_request *p,
    enum refd_verb verb, struct refd_answer *ans)
{
	connect_end_session(d->daemon, &p->req, verb,
	    (int)connect_ms_left(d->deadline), ans);
}

static void abort_session(struct push_send *d, struct push_request *p)
{
	struct refd_answer ans;

	end_session(d, p, REFD_VERB_ABORT, &ans);
	refd_answer_done(&ans);
	reftx_aborted(&d->hook);
	refuse_by_hook(d, p);
}

static void commit_session(struct push_send *d, struct push_request *p)
{
	struct refd_answer ans;

	end_session(d, p, REFD_VERB_COMMIT, &ans);
	reftx_ended(&d->hook, &ans, true);
	push_request_take(p, &ans);
	refd_answer_done(&ans);
}

/* Every update failed separately. To the hook, the transaction continues. */
static void tell_of_nothing(struct push_send *d, const struct push_request *p,
    const struct refd_answer *ans)
{
	if (reftx_prepared(&d->hook, &p->changes, ans)) {
		reftx_committed(&d->hook);
		push_request_take(p, ans);
	} else {
		reftx_aborted(&d->hook);
		refuse_by_hook(d, p);
	}
}

/* The hook accepted "preparing". Asks the daemon for a session. */
static bool hold(struct push_send *d, struct push_request *p)
{
	struct refd_answer ans;
	bool done = true;

	call(d, p, &ans);
	if (ans.kind == REFD_ANSWER_PREPARED &&
	    reftx_prepared(&d->hook, &p->changes, &ans))
		commit_session(d, p);
	else if (ans.kind == REFD_ANSWER_PREPARED)
		abort_session(d, p);
	else if (is_unserved(d, &ans))
		done = false;
	else if (ans.kind == REFD_ANSWER_RESULTS && !d->atomic &&
	    d->way == PUSH_SEND_BY_KIND)
		tell_of_nothing(d, p, &ans);
	else
		push_request_take(p, &ans);
	refd_answer_done(&ans);
	return done;
}

static bool put_session(struct push_send *d, size_t nr)
{
	struct push_request p;
	bool done = true;

	push_request_pack(&p, d, REFD_VERB_SESSION, d->at, nr);
	if (reftx_preparing(&d->hook, &p.changes))
		done = hold(d, &p);
	else
		refuse_by_hook(d, &p);
	push_request_done(&p);
	return done;
}

/* ---- */

/* A push of a mirror may exceed the limits of a transaction. The parts must
 * stay together, so git does the push. */
static bool is_too_large(const struct push_send *d,
    const struct refd_hello *hello)
{
	size_t i, bytes = REFD_PATH_MAX;

	for (i = 0; i < d->nr; i++)
		bytes +=
		    strlen(d->commands[i]->ref) + 2 * REFD_OID_MAX_HEX + 16;
	return d->nr > hello->max_updates || bytes > hello->max_bytes;
}

/* Git must not do it: see connect_daemon(). */
static void refuse_unserved(struct push_send *d, const char *what,
    const char *why)
{
	char *reason = xasprintf("failed to update ref: refd: %s%s", what, why);

	push_request_refuse(d->commands, d->nr, reason);
	free(reason);
}

static enum push_writer connect_and_choose(struct push_send *d,
    const char **gits)
{
	struct daemon_socket socket;
	enum push_writer by = PUSH_BY_NOBODY;
	struct text why = { 0 };

	connect_choose(&socket, NULL, d->config, d->gd);
	d->daemon = connect_new(&socket);
	switch (connect_daemon(d->daemon, socket.path,
	    connect_fallback(d->config, FALLBACK_GIT), d->gd,
	    refd_deadline_ms(DEADLINE_MS - GRACE_MS), &why)) {
	case CONNECT_SERVED:
		by = PUSH_BY_DAEMON;
		if (is_too_large(d, refd_hello(d->daemon))) {
			*gits = "the push is more than one transaction holds";
			by = PUSH_BY_GIT;
		}
		break;
	case CONNECT_USE_GIT:
		say("%s; git updates the refs itself", why.data);
		by = PUSH_BY_GIT;
		break;
	case CONNECT_FAILED:
		say("%s", why.data);
		refuse_unserved(d, "the daemon is away: ", why.data);
		break;
	case CONNECT_DENIED:
		refuse_unserved(d, "", why.data);
		break;
	}
	text_done(&why);
	free(socket.path);
	return by;
}

enum push_writer push_send_open(struct push_send *d, struct push *push,
    const struct gitdir *gd, const struct gitconfig *config, bool has_rules,
    const char **why)
{
	memset(d, 0, sizeof(*d));
	d->atomic = push->atomic;
	d->gd = gd;
	d->config = config;
	d->left_ms = DEADLINE_MS;
	reftx_find_here(&d->hook, gd, config);
	arrange(d, push, has_rules);
	return connect_and_choose(d, why);
}

static bool put(struct push_send *d, size_t nr)
{
	bool is_first = d->at == 0, done;

	if (is_first) {
		d->committer = context_committer(d->config, d->gd);
		reftx_warn(&d->hook);
	}
	d->deadline = refd_deadline_ms((int)d->left_ms);
	done = reftx_exists(&d->hook) ? put_session(d, nr) : put_whole(d, nr);
	d->left_ms = connect_ms_left(d->deadline);
	if (done || is_first)
		return done;
	push_request_refuse(d->commands + d->at, nr, "failed to update ref");
	return true;
}

bool push_send_put(struct push_send *d)
{
	size_t nr;

	if (d->at == 0 && refuse_duplicates(d))
		return true;
	nr = sort_out(d->commands + d->at, d->nr_batch);
	return !nr || put(d, nr);
}

void push_send_close(struct push_send *d)
{
	reftx_done(&d->hook);
	refd_free(d->daemon);
	free(d->commands);
	free(d->committer);
	free(d->unserved);
	memset(d, 0, sizeof(*d));
}
