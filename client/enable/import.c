#include "client/enable/import.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/enable/enable_report.h"
#include "client/enable/owner.h"
#include "client/git/identity.h"
#include "client/git/refs_now.h"
#include "client/librefd/conn.h"
#include "client/request/changes.h"
#include "client/request/connect.h"
#include "client/request/context.h"
#include "client/request/git_messages.h"
#include "proto/refname.h"

#define IMPORT_MS  (10 * 60 * 1000)
#define CONNECT_MS 10000
#define GRACE_MS   5000
#define LIST_S     600
#define LIST_MAX   ((size_t)256 << 20)

bool import_is_due(const struct gitdir *gd)
{
	char *mark = xasprintf("%s/refd/import", gd->common);
	bool is_due = access(mark, F_OK) == 0;

	free(mark);
	return is_due;
}

/* ---- the refs ---- */

/* Kept values, and refs of a worktree, are of this node alone. */
static bool is_shared(const char *name)
{
	const char *id, *bare;
	size_t id_len;

	return strncmp(name, REFD_DIVERGED, strlen(REFD_DIVERGED)) != 0 &&
	    refd_refname_place(name, &id, &id_len, &bare) == REFD_PLACE_COMMON;
}

static void add_symref(struct changes *changes, const char *name,
    const char *target)
{
	const struct refd_update u = { .action = REFD_SYMREF_UPDATE,
		.no_deref = true,
		.name = name,
		.has_old = true,
		.target = target,
		.old_target = target };

	changes_add(changes, &u);
}

static void add_value(struct changes *changes, const struct ref_now *ref)
{
	const struct refd_update u = { .action = REFD_UPDATE,
		.no_deref = true,
		.name = ref->name,
		.has_old = true,
		.new_oid = ref->oid,
		.old_oid = ref->oid };

	changes_add(changes, &u);
}

static void add_refs(struct changes *changes, const struct refs_now *now)
{
	const struct ref_now *ref;

	for (ref = now->refs; ref < now->refs + now->nr; ref++)
		if (!is_shared(ref->name))
			continue;
		else if (ref->target)
			add_symref(changes, ref->name, ref->target);
		else
			add_value(changes, ref);
}

/* A HEAD with a value of its own stays on this node. */
static void add_head(struct changes *changes, const char *dir)
{
	const char *argv[] = { "git", dir, "symbolic-ref", "-q", "HEAD", NULL };
	struct text head = { 0 };

	if (child_capture_within(argv, &head, LIST_S, REFD_REFNAME_MAX + 2) ==
		0 &&
	    head.len > 1) {
		head.data[--head.len] = '\0';
		add_symref(changes, "HEAD", head.data);
	}
	text_done(&head);
}

/* The repository is hostile: git gets some time, and no terminal. */
static bool list(const struct gitdir *gd, enum refd_object_format format,
    struct changes *changes)
{
	struct refs_now now = { .object_format = format };
	char *dir = xasprintf("--git-dir=%s", gd->path);
	const char *argv[] = { "git", dir, "for-each-ref",
		"--format=%(objectname) %(refname) %(symref)", NULL };
	struct text text = { 0 };
	bool ok = child_capture_within(argv, &text, LIST_S, LIST_MAX) == 0 &&
	    refs_now_parse(&now, &text);

	if (ok) {
		add_head(changes, dir);
		add_refs(changes, &now);
	}
	refs_now_done(&now);
	text_done(&text);
	free(dir);
	return ok ||
	    (say_error("%s: git could not list the refs", gd->common), false);
}

/* ---- the transaction ---- */

static bool fail(const struct gitdir *gd, enum refd_status status,
    const char *text)
{
	struct text why = { 0 };

	git_messages_text(status, text, &why);
	say_error("%s: the other nodes do not have its refs yet: %s; run "
		  "\"refd enable\" again",
	    gd->common, why.data);
	text_done(&why);
	return false;
}

static bool take_answer(const struct gitdir *gd, const struct refd_answer *ans)
{
	size_t i;

	if (ans->kind != REFD_ANSWER_RESULTS)
		return fail(gd, ans->status, ans->text);
	for (i = 0; i < ans->nr_results; i++)
		if (ans->results[i].status != REFD_OK &&
		    ans->results[i].status != REFD_ABORTED)
			return fail(gd, ans->results[i].status,
			    ans->results[i].text);
	enable_report("imported", gd->common,
	    "the other nodes have its %zu refs", ans->nr_results);
	return true;
}

static bool call(const struct gitdir *gd, struct refd *r,
    struct refd_request *req)
{
	struct refd_answer ans;
	bool ok;

	connect_call(r, req, refd_deadline_ms(IMPORT_MS), GRACE_MS, &ans);
	ok = take_answer(gd, &ans);
	refd_answer_done(&ans);
	return ok;
}

static bool send(const struct gitdir *gd, struct refd_request *req,
    const char *socket)
{
	struct refd *r = refd_new(socket);
	bool ok = false;

	if (!r)
		die("out of memory");
	if (refd_connect(r, CONNECT_MS) < 0)
		say_error("%s: the other nodes do not have its refs yet: %s",
		    gd->common, refd_error(r));
	else if (req->nr_updates > refd_hello(r)->max_updates)
		say_error("%s: %zu refs are too many for a transaction of at "
			  "most %u, so the other nodes can't get them: make an "
			  "empty repository, and push the refs there with "
			  "\"git push --mirror\"",
		    gd->common, req->nr_updates, refd_hello(r)->max_updates);
	else
		ok = call(gd, r, req);
	refd_free(r);
	return ok;
}

bool import_refs(const struct gitdir *gd, const struct stat *st,
    const struct gitconfig *config, const char *socket)
{
	const enum refd_object_format format =
	    gitconfig_object_format(config, gd);
	char *committer = identity_committer(config);
	struct changes changes = { 0 };
	struct refd_request req;
	bool ok;

	context_request(&req, gd, config);
	owner_enter(st);
	ok = list(gd, format, &changes);
	owner_leave();
	req.verb = REFD_VERB_TRANSACTION;
	req.object_format = format;
	req.atomic = true;
	req.message = "refd enable: import";
	req.committer = committer;
	req.updates = changes.updates;
	req.nr_updates = changes.nr;
	if (refd_txid_make(&req.txid) < 0)
		die("cannot make a transaction id");
	ok = ok && send(gd, &req, socket);
	free(committer);
	changes_done(&changes);
	return ok;
}
