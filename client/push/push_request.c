#include "client/push/push_request.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "client/request/context.h"
#include "client/request/git_messages.h"
#include "proto/detail.h"
#include "proto/lib/time_text.h"

/* ---- the request ---- */

static void add_change(struct changes *changes, const struct push_command *c)
{
	struct refd_update u = { .name = c->ref, .new_oid = c->new_oid };

	u.action = REFD_UPDATE;
	if (refd_oid_is_null(&c->new_oid))
		u.action = REFD_DELETE;
	else if (refd_oid_is_null(&c->old_oid))
		u.action = REFD_CREATE;
	if (u.action != REFD_CREATE) {
		u.has_old = true;
		u.old_oid = c->old_oid;
	}
	changes_add(changes, &u);
}

void push_request_pack(struct push_request *p, const struct push_send *d,
    enum refd_verb verb, size_t at, size_t nr)
{
	size_t i;

	memset(p, 0, sizeof(*p));
	p->commands = d->commands + at;
	for (i = 0; i < nr; i++)
		add_change(&p->changes, p->commands[i]);
	context_request(&p->req, d->gd, d->config);
	p->req.verb = verb;
	p->req.object_format = p->commands[0]->object_format;
	p->req.atomic = d->atomic;
	p->req.push = true;
	p->req.message = "push";
	p->req.committer = d->committer;
	/* receive-pack does not look for a work tree, and takes a repository
	 * without core.bare as bare. */
	if (!gitconfig_get(d->config, "core.logallrefupdates"))
		p->req.log_all_ref_updates =
		    gitconfig_bool(d->config, "core.bare", true) ? "false" :
								   "true";
	p->req.updates = p->changes.updates;
	p->req.nr_updates = p->changes.nr;
	if (refd_txid_make(&p->req.txid) < 0)
		die("cannot make a transaction id");
}

void push_request_done(struct push_request *p)
{
	changes_done(&p->changes);
}

/* ---- the answer ---- */

void push_request_refuse(struct push_command *const *commands, size_t nr,
    const char *why)
{
	size_t i;

	for (i = 0; i < nr; i++)
		commands[i]->ng = xstrdup(why);
}

static void say_failed(const struct push_request *p, size_t failed)
{
	char id[REFD_TXID_HEX + 1];

	refd_txid_hex(&p->req.txid, id);
	if (failed == p->req.nr_updates)
		say("nothing was updated by transaction %s", id);
	else
		say("%zu of %zu refs were not updated by transaction %s",
		    failed, p->req.nr_updates, id);
}

static char *unknown_text(const struct push_request *p)
{
	char id[REFD_TXID_HEX + 1];

	refd_txid_hex(&p->req.txid, id);
	return xasprintf("refd: outcome unknown (transaction %s): ask with "
			 "\"refd query %s\"",
	    id, id);
}

/* Git's sentence names the process, if known, and not the age of the lock. */
static void say_lock(const struct refd_detail_arg *lock)
{
	char *path = xasprintf("%.*s", (int)lock->len, lock->data);
	char text[TIME_TEXT_MAX];
	struct stat st;

	if (lstat(path, &st) == 0)
		say("the lock is %s old and belongs to the user id %ld; if no "
		    "process holds the lock any more, an administrator can "
		    "remove it with \"refd locks --clear-dead\"",
		    time_text_age(time(NULL) - st.st_ctime, text),
		    (long)st.st_uid);
	free(path);
}

static void say_detail(const struct push_request *p,
    const struct refd_update *u, const struct refd_result *res)
{
	char hex[REFD_OID_MAX_HEX + 1];
	struct text detail = { 0 };
	struct refd_detail why;
	const bool has_detail = refd_detail_read(res->text, &why);

	/* Any other text names an object that the value needs. */
	if (res->status == REFD_NOOBJECT && (has_detail || res->text == NULL)) {
		say_error("unpack should have generated %s, but I can't find "
			  "it!",
		    refd_oid_hex(&u->new_oid, p->req.object_format, hex));
		return;
	}
	git_messages_detail(u, res, GIT_2_55, NULL, &detail);
	say_error("%s", detail.data);
	text_done(&detail);
	if (!has_detail)
		return;
	if (why.kind == REFD_DETAIL_LOCKED)
		say_lock(&why.args[1]);
	else if (why.kind == REFD_DETAIL_PACKED_LOCKED)
		say_lock(&why.args[0]);
}

/* The update that made the transaction fail; the number of updates: none. Bad
 * values come first, since they are checked before any lock. */
static size_t find_culprit(const struct push_request *p,
    const struct refd_answer *ans)
{
	size_t i, first = p->req.nr_updates;

	for (i = ans->nr_results; i-- > 0;) {
		enum refd_status status = ans->results[i].status;

		if (status != REFD_OK && status != REFD_ABORTED &&
		    status != REFD_UNKNOWN)
			first = i;
	}
	for (i = 0; i < ans->nr_results; i++)
		if (git_messages_is_bad_value(ans->results[i].status))
			return i;
	return first;
}

/* For an atomic push, git reports one cause. */
static void take_rejection(const struct push_request *p,
    const struct refd_answer *ans)
{
	size_t culprit = find_culprit(p, ans), i;
	const char *rest = "atomic transaction failed";

	if (culprit < ans->nr_results) {
		const struct refd_result *res = &ans->results[culprit];

		say_detail(p, &p->changes.updates[culprit], res);
		if (git_messages_is_bad_value(res->status)) {
			p->commands[culprit]->ng =
			    xstrdup(git_messages_push(res->status));
			rest = "atomic push failure";
		}
	}
	for (i = 0; i < p->req.nr_updates; i++)
		if (!p->commands[i]->ng)
			p->commands[i]->ng = xstrdup(rest);
	say_failed(p, p->req.nr_updates);
}

static void take_each(const struct push_request *p,
    const struct refd_answer *ans)
{
	static const struct refd_result none = { .status = REFD_UNKNOWN };
	size_t i, failed = 0;

	for (i = 0; i < p->req.nr_updates; i++) {
		const struct refd_result *res =
		    i < ans->nr_results ? &ans->results[i] : &none;
		char **ng = &p->commands[i]->ng;

		if (res->status == REFD_OK)
			continue;
		if (res->status == REFD_UNKNOWN) {
			*ng = unknown_text(p);
			continue;
		}
		*ng = xstrdup(git_messages_push(res->status));
		say_detail(p, &p->changes.updates[i], res);
		failed++;
	}
	if (failed)
		say_failed(p, failed);
}

static void take_results(const struct push_request *p,
    const struct refd_answer *ans)
{
	if (p->req.atomic && ans->outcome == REFD_REJECTED)
		take_rejection(p, ans);
	else
		take_each(p, ans);
}

static void take_refusal(const struct push_request *p,
    const struct refd_answer *ans)
{
	char *why;

	if (ans->kind != REFD_ANSWER_REFUSED || ans->status == REFD_UNKNOWN)
		why = unknown_text(p);
	else
		why = xasprintf("failed to update ref: refd: %s: %s",
		    refd_status_name(ans->status),
		    ans->text && *ans->text ? ans->text :
					      refd_status_text(ans->status));
	if (ans->kind == REFD_ANSWER_REFUSED && ans->status != REFD_UNKNOWN)
		say_failed(p, p->changes.nr);
	push_request_refuse(p->commands, p->req.nr_updates, why);
	free(why);
}

void push_request_take(const struct push_request *p,
    const struct refd_answer *ans)
{
	if (ans->kind == REFD_ANSWER_RESULTS)
		take_results(p, ans);
	else
		take_refusal(p, ans);
}
