/*
 * "refd hook proc-receive": what receive-pack runs for a push.
 *
 *	greeting, all commands
 *	-> what can't be served at all is refused, or left to git, whole
 *	-> one transaction, atomic when the push is
 *	-> a verdict for each command, in order
 *
 * Once something was submitted nothing is left to git any more: whatever
 * becomes of the daemon, the answer is its own or "unknown".
 */
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/changes.h"
#include "client/cli.h"
#include "client/command.h"
#include "client/context.h"
#include "client/identity.h"
#include "client/librefd/conn.h"
#include "client/native.h"
#include "client/push.h"
#include "client/reach.h"
#include "client/words.h"
#include "proto/refname.h"

/* All that the push may take; the daemon is asked to be done a little
 * earlier, so that its answer is still heard. */
#define DEADLINE_MS REFD_HOOK_DEADLINE_MS
#define GRACE_MS    5000

enum verdict {
	VERDICT_REPORT, /* each command has its own */
	VERDICT_GIT     /* git does the push */
};

struct hook {
	struct push push;
	struct gitdir gd;
	struct gitconfig config;
	uint64_t deadline;
};

static void write_all(struct pkt_buf *out)
{
	size_t at = 0;
	ssize_t n;

	if (pkt_buf_failed(out))
		die("cannot put the report into packets");
	while (at < out->len) {
		n = write(1, out->data + at, out->len - at);
		if (n < 0 && errno != EINTR)
			die("receive-pack does not listen: %s",
			    strerror(errno));
		if (n > 0)
			at += (size_t)n;
	}
	pkt_buf_done(out);
}

static void read_push(struct push *push)
{
	struct push_reader in = { .fd = 0 };
	struct pkt_buf out = { 0 };
	const char *why;

	if (!push_read_version(&in, push, &why))
		die("%s", why);
	push_put_version(&out);
	write_all(&out);
	if (!push_read_commands(&in, push, &why))
		die("%s", why);
	push_reader_done(&in);
}

/* ---- what is wrong with it as it stands ---- */

/* Nothing of a push is applied when part of it can't be reported. */
static bool refuse_unreportable(struct push *push)
{
	size_t i;

	for (i = 0; i < push->nr; i++) {
		if (!push->commands[i].unreportable)
			continue;
		say("a refname with a space or control character can't be "
		    "reported, so nothing of this push was done");
		push_refuse(push,
		    "another ref of the push has a name that "
		    "can't be reported");
		return true;
	}
	return false;
}

static bool refuse_duplicates(struct push *push)
{
	const char *name = push_find_duplicate(push);
	char *why;

	if (!name)
		return false;
	why = xasprintf("multiple updates for ref '%s' not allowed", name);
	push_refuse(push, why);
	free(why);
	return true;
}

/* update() of receive-pack.c; a ref right below refs/ may be deleted. */
static bool is_funny(const struct push_command *c)
{
	if (refd_oid_is_null(&c->new_oid))
		return !has_prefix(c->name, "refs/") ||
		    !refd_refname_format_ok(c->name + strlen("refs/"));
	return !refd_refname_may_push(c->name);
}

/* For refd, and by far for a file's name: the one ref is refused before it is
 * the whole request that is too much. */
static bool is_too_long(const struct push_command *c)
{
	bool too_long;

	refd_refname_may_write(c->name, &too_long);
	return too_long;
}

/* True when nothing is left to be done. */
static bool refuse_names(struct push *push)
{
	size_t left = push->nr;
	size_t i;

	for (i = 0; i < push->nr; i++) {
		struct push_command *c = &push->commands[i];

		if (is_funny(c)) {
			say_error("refusing to update funny ref '%s' remotely",
			    c->name);
			c->ng = xstrdup("funny refname");
		} else if (is_too_long(c)) {
			c->ng = xstrdup("refname is too long");
		} else {
			continue;
		}
		left--;
	}
	if (left < push->nr && push->atomic) {
		push_refuse(push, "atomic push failure");
		left = 0;
	}
	return left == 0;
}

/* ---- the transaction ---- */

static void collect(const struct push *push, struct changes *changes)
{
	size_t i;

	for (i = 0; i < push->nr; i++) {
		const struct push_command *c = &push->commands[i];
		struct refd_update u = { .name = c->name,
			.new_oid = c->new_oid };

		if (c->ng)
			continue;
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
}

static char *unknown_text(const struct refd_txid *txid)
{
	char id[REFD_TXID_HEX + 1];

	refd_txid_hex(txid, id);
	return xasprintf("refd: outcome unknown (transaction %s): ask with "
			 "\"refd query %s\"",
	    id, id);
}

static char *verdict_on(const struct refd_update *u,
    const struct refd_result *res, bool atomic, const struct refd_txid *txid)
{
	struct text t = { 0 };

	if (res->status == REFD_OK)
		return NULL;
	if (res->status == REFD_UNKNOWN)
		return unknown_text(txid);
	words_push(u, res, atomic, &t);
	return t.data;
}

/* It says so of a whole transaction, before it does any of it. */
static bool is_unsupported(const struct refd_answer *ans)
{
	bool any = false;
	size_t i;

	if (ans->kind == REFD_ANSWER_REFUSED)
		return ans->status == REFD_UNSUPPORTED;
	for (i = 0; i < ans->nr_results; i++) {
		switch ((int)ans->results[i].status) {
		case REFD_OK:
		case REFD_UNKNOWN:
			return false;
		case REFD_UNSUPPORTED:
			any = true;
		}
	}
	return any;
}

/* Results are of the commands that had no verdict yet, in their order. */
static void take_results(struct push *push, const struct changes *changes,
    const struct refd_answer *ans)
{
	size_t i, at = 0;

	for (i = 0; i < push->nr; i++) {
		struct push_command *c = &push->commands[i];

		if (c->ng)
			continue;
		c->ng = at < ans->nr_results ?
		    verdict_on(&changes->updates[at], &ans->results[at],
			push->atomic, &ans->txid) :
		    unknown_text(&ans->txid);
		at++;
	}
}

static void take_refusal(struct push *push, const struct refd_answer *ans)
{
	char *why;

	if (ans->kind != REFD_ANSWER_REFUSED || ans->status == REFD_UNKNOWN)
		why = unknown_text(&ans->txid);
	else
		why = xasprintf("failed to update ref: refd: %s: %s",
		    refd_status_name(ans->status),
		    ans->text && *ans->text ? ans->text :
					      refd_status_text(ans->status));
	push_refuse(push, why);
	free(why);
}

static enum verdict submit(struct hook *h, struct refd *daemon)
{
	enum verdict verdict = VERDICT_REPORT;
	struct changes changes = { 0 };
	struct refd_request req;
	struct refd_answer ans;
	char *committer = identity_committer(&h->config);

	collect(&h->push, &changes);
	context_request(&req, &h->gd, &h->config);
	req.atomic = h->push.atomic;
	req.push = true;
	req.message = "push";
	req.committer = committer;
	req.updates = changes.updates;
	req.nr_updates = changes.nr;
	if (refd_txid_make(&req.txid) < 0)
		die("cannot make a transaction id");
	reach_call(daemon, &req, h->deadline - GRACE_MS, GRACE_MS, &ans);
	if (is_unsupported(&ans))
		verdict = VERDICT_GIT;
	else if (ans.kind == REFD_ANSWER_RESULTS)
		take_results(&h->push, &changes, &ans);
	else
		take_refusal(&h->push, &ans);
	refd_answer_done(&ans);
	changes_done(&changes);
	free(committer);
	return verdict;
}

/* A mirror's push may be more than one transaction holds. Its parts must not
 * come apart, so it is git's to do. */
static bool is_too_large(const struct push *push,
    const struct refd_hello *hello)
{
	size_t i, bytes = REFD_PATH_MAX;

	for (i = 0; i < push->nr; i++)
		bytes += strlen(push->commands[i].name) + 2 * REFD_OID_HEX + 16;
	return push->nr > hello->max_updates || bytes > hello->max_bytes;
}

/* Not for git to do: see reach_daemon(). */
static void refuse(struct push *push, const char *what, const char *why)
{
	char *reason = xasprintf("failed to update ref: refd: %s%s", what, why);

	push_refuse(push, reason);
	free(reason);
}

static enum verdict put_through(struct hook *h)
{
	char *socket = reach_socket(NULL, &h->config);
	struct refd *daemon = refd_new(socket);
	enum verdict verdict = VERDICT_REPORT;
	struct text why = { 0 };

	if (!daemon)
		die("out of memory");
	switch (reach_daemon(daemon, socket,
	    reach_fallback(&h->config, FALLBACK_GIT), &h->gd,
	    h->deadline - GRACE_MS, &why)) {
	case REACHED:
		verdict = is_too_large(&h->push, refd_hello(daemon)) ?
		    VERDICT_GIT :
		    submit(h, daemon);
		break;
	case REACHED_NOBODY:
		say("%s; git updates the refs itself", why.data);
		verdict = VERDICT_GIT;
		break;
	case REACHED_NOTHING:
		say("%s", why.data);
		refuse(&h->push, "the daemon is away: ", why.data);
		break;
	case REACHED_DENIED:
		refuse(&h->push, "", why.data);
		break;
	}
	refd_free(daemon);
	text_done(&why);
	free(socket);
	return verdict;
}

static enum verdict decide(struct hook *h)
{
	struct text why = { 0 };

	if (h->push.nr == 0 || refuse_unreportable(&h->push) ||
	    refuse_duplicates(&h->push))
		return VERDICT_REPORT;
	if (!gitdir_find(&h->gd, getenv("GIT_DIR"), &why))
		die("%s", why.data);
	gitconfig_load(&h->config, &h->gd);
	if (native_reason(&h->push, &h->config, &h->gd))
		return VERDICT_GIT;
	if (refuse_names(&h->push))
		return VERDICT_REPORT;
	return put_through(h);
}

int command_proc_receive(int argc, char **argv)
{
	struct hook h = { .deadline = refd_deadline_ms(DEADLINE_MS) };
	struct pkt_buf out = { 0 };

	(void)argc;
	(void)argv;
	read_push(&h.push);
	switch (decide(&h)) {
	case VERDICT_REPORT:
		push_put_report(&h.push, &out);
		break;
	case VERDICT_GIT:
		push_put_fall_through(&h.push, &out);
		break;
	}
	write_all(&out);
	push_done(&h.push);
	gitconfig_done(&h.config);
	gitdir_done(&h.gd);
	return EXIT_DONE;
}

int command_hook(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "proc-receive"))
		return command_proc_receive(argc, argv);
	fputs("usage: refd hook proc-receive\n", stderr);
	return EXIT_USAGE;
}
