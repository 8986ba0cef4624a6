#include "client/deliver.h"

#include <stdlib.h>
#include <string.h>

#include "client/context.h"
#include "client/librefd/conn.h"
#include "client/parcel.h"
#include "client/reach.h"

/* All that the push may take from here on; the daemon is asked to be done a
 * little earlier, so that its answer is still heard. */
#define DEADLINE_MS REFD_HOOK_DEADLINE_MS
#define GRACE_MS    5000

/* ---- what is to be done ---- */

/* Deletions come first: they make room for names, as in git. */
static void gather(struct delivery *d, struct push *push)
{
	size_t i;
	int pass;

	d->commands = xcalloc(push->nr, sizeof(*d->commands));
	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < push->nr; i++) {
			struct push_command *c = &push->commands[i];
			bool is_late =
			    !push->atomic && !refd_oid_is_null(&c->new_oid);

			if (!c->is_chained && is_late == (pass == 1))
				d->commands[d->nr++] = c;
		}
}

/* Without those that were refused since. */
static void drop_refused(struct delivery *d)
{
	size_t i, nr = 0;

	for (i = 0; i < d->nr; i++)
		if (!d->commands[i]->ng)
			d->commands[nr++] = d->commands[i];
	d->nr = nr;
}

/* A transaction can't have them; and all of it fails, as git has it. */
static bool refuse_duplicates(struct delivery *d)
{
	const char **names = xcalloc(d->nr, sizeof(*names)), *found;
	size_t i;

	for (i = 0; i < d->nr; i++)
		names[i] = d->commands[i]->ref;
	found = find_duplicate(names, d->nr);
	free(names);
	if (!found)
		return false;
	say_error("multiple updates for ref '%s' not allowed", found);
	parcel_refuse(d->commands, d->nr,
	    d->atomic ? "atomic transaction failed" : "failed to update refs");
	return true;
}

/* ---- in one go ---- */

static void call(const struct delivery *d, struct parcel *p,
    struct refd_answer *ans)
{
	reach_call(d->daemon, &p->req, d->deadline - GRACE_MS, GRACE_MS, ans);
}

static bool put_whole(struct delivery *d)
{
	struct refd_answer ans;
	struct parcel p;
	bool done;

	parcel_pack(&p, d, REFD_VERB_TRANSACTION, 0, d->nr);
	call(d, &p, &ans);
	done = !parcel_is_unsupported(&ans);
	if (done)
		parcel_take(&p, &ans);
	refd_answer_done(&ans);
	parcel_done(&p);
	return done;
}

/* ---- in sessions ---- */

static void refuse_by_hook(const struct delivery *d, const struct parcel *p)
{
	struct text why = { 0 };

	reftx_why(&d->hook, &why);
	say_error("%s", why.data);
	text_done(&why);
	parcel_refuse(p->commands, p->req.nr_updates,
	    d->atomic ? "atomic transaction failed" : "failed to update ref");
}

/* COMMIT or ABORT. Whatever the answer, it is over. */
static void end_session(const struct delivery *d, struct parcel *p,
    enum refd_verb verb, struct refd_answer *ans)
{
	int left = (int)reach_ms_left(d->deadline);

	p->req.verb = verb;
	if (verb == REFD_VERB_ABORT)
		p->req.nr_updates = 0;
	if (refd_call(d->daemon, &p->req, left, ans) < 0 &&
	    refd_answer_unknown(&p->req, ans) < 0)
		die("out of memory");
	p->req.nr_updates = p->changes.nr;
}

static void abort_session(struct delivery *d, struct parcel *p)
{
	struct refd_answer ans;

	end_session(d, p, REFD_VERB_ABORT, &ans);
	refd_answer_done(&ans);
	reftx_aborted(&d->hook);
	refuse_by_hook(d, p);
}

static bool is_done(const struct refd_answer *ans)
{
	return ans->kind == REFD_ANSWER_RESULTS &&
	    ans->outcome != REFD_REJECTED &&
	    ans->outcome != REFD_OUTCOME_UNKNOWN;
}

/* A hook hears nothing of what nobody knows. */
static bool is_known(const struct refd_answer *ans)
{
	return ans->kind == REFD_ANSWER_RESULTS ?
	    ans->outcome != REFD_OUTCOME_UNKNOWN :
	    ans->status != REFD_UNKNOWN;
}

static void commit_session(struct delivery *d, struct parcel *p)
{
	struct refd_answer ans;

	end_session(d, p, REFD_VERB_COMMIT, &ans);
	if (is_done(&ans))
		reftx_committed(&d->hook);
	else if (is_known(&ans))
		reftx_aborted(&d->hook);
	parcel_take(p, &ans);
	refd_answer_done(&ans);
}

/* The hook was asked already; what the daemon makes of it. */
static bool hold(struct delivery *d, struct parcel *p)
{
	struct refd_answer ans;
	bool done = true;

	call(d, p, &ans);
	if (ans.kind != REFD_ANSWER_PREPARED) {
		done = !parcel_is_unsupported(&ans);
		if (done)
			parcel_take(p, &ans);
	} else if (reftx_prepared(&d->hook, &p->changes, &ans)) {
		commit_session(d, p);
	} else {
		abort_session(d, p);
	}
	refd_answer_done(&ans);
	return done;
}

static bool put_session(struct delivery *d, size_t at, size_t nr)
{
	struct parcel p;
	bool done = true;

	parcel_pack(&p, d, REFD_VERB_SESSION, at, nr);
	if (reftx_preparing(&d->hook, &p.changes))
		done = hold(d, &p);
	else
		refuse_by_hook(d, &p);
	parcel_done(&p);
	return done;
}

static bool put_sessions(struct delivery *d)
{
	size_t i;

	if (d->atomic)
		return put_session(d, 0, d->nr);
	for (i = 0; i < d->nr; i++) {
		if (put_session(d, i, 1))
			continue;
		if (i == 0)
			return false;
		parcel_refuse(&d->commands[i], 1, "failed to update ref");
	}
	return true;
}

/* ---- */

/* A mirror's push may be more than one transaction holds. Its parts must not
 * come apart, so it is git's to do. */
static bool is_too_large(const struct delivery *d,
    const struct refd_hello *hello)
{
	size_t i, bytes = REFD_PATH_MAX;

	for (i = 0; i < d->nr; i++)
		bytes += strlen(d->commands[i]->ref) + 2 * REFD_OID_HEX + 16;
	return d->nr > hello->max_updates || bytes > hello->max_bytes;
}

/* Not for git to do: see reach_daemon(). */
static void refuse_unreached(struct delivery *d, const char *what,
    const char *why)
{
	char *reason = xasprintf("failed to update ref: refd: %s%s", what, why);

	parcel_refuse(d->commands, d->nr, reason);
	free(reason);
}

enum deliverer deliver_open(struct delivery *d, struct push *push,
    const struct gitdir *gd, const struct gitconfig *config)
{
	char *socket = reach_socket(NULL, config);
	enum deliverer by = DELIVER_BY_NOBODY;
	struct text why = { 0 };

	memset(d, 0, sizeof(*d));
	d->atomic = push->atomic;
	d->gd = gd;
	d->config = config;
	gather(d, push);
	d->daemon = refd_new(socket);
	if (!d->daemon)
		die("out of memory");
	switch (reach_daemon(d->daemon, socket,
	    reach_fallback(config, FALLBACK_GIT), gd,
	    refd_deadline_ms(DEADLINE_MS - GRACE_MS), &why)) {
	case REACHED:
		by = is_too_large(d, refd_hello(d->daemon)) ? DELIVER_BY_GIT :
							      DELIVER_BY_DAEMON;
		break;
	case REACHED_NOBODY:
		say("%s; git updates the refs itself", why.data);
		by = DELIVER_BY_GIT;
		break;
	case REACHED_NOTHING:
		say("%s", why.data);
		refuse_unreached(d, "the daemon is away: ", why.data);
		break;
	case REACHED_DENIED:
		refuse_unreached(d, "", why.data);
		break;
	}
	text_done(&why);
	free(socket);
	return by;
}

bool deliver_put(struct delivery *d)
{
	bool done;

	drop_refused(d);
	if (!d->nr || refuse_duplicates(d))
		return true;
	d->deadline = refd_deadline_ms(DEADLINE_MS);
	d->committer = context_committer(d->config, d->gd);
	reftx_find_here(&d->hook, d->gd, d->config);
	reftx_warn(&d->hook);
	done = reftx_exists(&d->hook) ? put_sessions(d) : put_whole(d);
	reftx_done(&d->hook);
	free(d->committer);
	d->committer = NULL;
	return done;
}

void deliver_close(struct delivery *d)
{
	refd_free(d->daemon);
	free(d->commands);
	memset(d, 0, sizeof(*d));
}
