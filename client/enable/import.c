#include "client/enable/import.h"

#include <stdlib.h>
#include <unistd.h>

#include "client/enable/enable_report.h"
#include "client/git/gitconfig.h"
#include "client/git/identity.h"
#include "client/git/owner.h"
#include "client/git/refs_now.h"
#include "client/git/symref.h"
#include "client/request/changes.h"
#include "client/request/connect.h"
#include "client/request/context.h"
#include "client/request/git_messages.h"
#include "proto/lib/clock.h"
#include "proto/refname.h"

#define IMPORT_MS  (10 * 60 * 1000)
#define CONNECT_MS 10000
#define GRACE_MS   5000
/* For git, which lists the refs. */
#define LIST_S 30

/* One repository. */
struct import {
	struct gitdir gd;
	struct gitconfig config;
	enum refd_object_format format;
	struct changes changes;
	size_t nr_refs; /* without HEAD */
	struct refd *daemon;
};

/* ---- which repositories ---- */

static struct {
	char **dirs;
	size_t nr, size;
} due;

bool import_is_due(const struct gitdir *gd)
{
	char *mark = xasprintf("%s/refd/import", gd->common);
	bool is_due = access(mark, F_OK) == 0;

	free(mark);
	return is_due;
}

void import_later(const char *dir)
{
	due.dirs = xroom(due.dirs, due.nr, &due.size, sizeof(*due.dirs));
	due.dirs[due.nr++] = xstrdup(dir);
}

/* ---- the refs ---- */

/* Kept values, and refs of a worktree, are of this node alone. */
static bool is_shared(const char *name)
{
	const char *id, *bare;
	size_t id_len;

	return !refd_refname_is_kept(name) &&
	    refd_refname_place(name, &id, &id_len, &bare) == REFD_PLACE_COMMON;
}

/* The daemon compares the target under the lock. */
static void add_symref(struct import *im, const char *name)
{
	char *target = symref_target(&im->gd, name);
	const struct refd_update u = { .action = REFD_SYMREF_UPDATE,
		.no_deref = true,
		.name = name,
		.has_old = true,
		.target = target,
		.old_target = target };

	if (target)
		changes_add(&im->changes, &u);
	free(target);
}

static void add_value(struct import *im, const struct ref_now *ref)
{
	const struct refd_update u = { .action = REFD_UPDATE,
		.no_deref = true,
		.name = ref->name,
		.has_old = true,
		.new_oid = ref->oid,
		.old_oid = ref->oid };

	changes_add(&im->changes, &u);
}

/* A HEAD with a value of its own stays on this node. */
static void add_refs(struct import *im)
{
	struct refs_now now = { .object_format = im->format };
	const struct ref_now *ref;
	size_t nr_heads;

	refs_now_load(&now, &im->gd);
	add_symref(im, "HEAD");
	nr_heads = im->changes.nr;
	for (ref = now.refs; ref < now.refs + now.nr; ref++)
		if (!is_shared(ref->name))
			continue;
		else if (ref->is_symbolic)
			add_symref(im, ref->name);
		else
			add_value(im, ref);
	im->nr_refs = im->changes.nr - nr_heads;
	refs_now_done(&now);
}

/* ---- the transaction ---- */

static void fail(const struct import *im, enum refd_status status,
    const char *text)
{
	struct text why = { 0 };

	git_messages_text(status, text, &why);
	say_error("%s: the other nodes did not get the refs: %s%s",
	    im->gd.common, why.data,
	    git_messages_is_busy(status) || status == REFD_UNKNOWN ?
		"; run \"refd enable\" again" :
		"");
	text_done(&why);
}

/* *TEXT, borrowed, says why. The other refs of a failed transaction were only
 * aborted, so they do not count. */
static enum refd_status outcome(const struct refd_answer *ans,
    const char **text)
{
	enum refd_status status = ans->status;
	size_t i;

	*text = ans->text;
	if (ans->kind != REFD_ANSWER_RESULTS)
		return status;
	for (status = REFD_OK, i = 0; i < ans->nr_results; i++)
		if (ans->results[i].status != REFD_OK &&
		    (status == REFD_OK || status == REFD_ABORTED)) {
			status = ans->results[i].status;
			*text = ans->results[i].text;
		}
	return status;
}

/* The other nodes fetch the objects, or are away. */
static bool call(struct import *im, struct refd_request *req)
{
	enum refd_status status;
	struct refd_answer ans;
	const char *text;

	connect_call(im->daemon, req, clock_deadline_ms(IMPORT_MS), GRACE_MS,
	    &ans);
	status = outcome(&ans, &text);
	if (git_messages_is_busy(status) || status == REFD_UNKNOWN)
		worker_held_up();
	if (status == REFD_OK)
		enable_report(im->gd.common, "its %zu refs are in the group",
		    im->nr_refs);
	else
		fail(im, status, text);
	refd_answer_done(&ans);
	return status == REFD_OK;
}

static bool send(struct import *im)
{
	char *committer = identity_committer(&im->config);
	struct refd_request req;
	bool ok;

	context_request(&req, &im->gd, &im->config);
	req.verb = REFD_VERB_TRANSACTION;
	req.object_format = im->format;
	req.atomic = true;
	req.message = "refd enable: import";
	req.committer = committer;
	req.updates = im->changes.updates;
	req.nr_updates = im->changes.nr;
	if (refd_txid_make(&req.txid) < 0)
		die("cannot make a transaction id");
	ok = call(im, &req);
	free(committer);
	return ok;
}

/* ---- the daemon ---- */

static bool give(struct import *im)
{
	const uint32_t max = refd_hello(im->daemon)->max_updates;
	char *leader = connect_leader(im->daemon, CONNECT_MS);

	if (leader) {
		say_warning("%s: the other nodes do not get the refs from "
			    "here, because this node follows '%s': run "
			    "\"refd enable\" on '%s', which gives its refs to "
			    "all nodes",
		    im->gd.common, leader, leader);
		free(leader);
		return true;
	}
	if (im->changes.nr > max) {
		say_error("%s: %zu refs are too many for a transaction of at "
			  "most %u, so the other nodes can't get them: make an "
			  "empty repository, and push the refs there with "
			  "\"git push --mirror\"",
		    im->gd.common, im->nr_refs, max);
		return false;
	}
	return send(im);
}

struct import_job {
	struct owned at;
	const char *socket; /* --socket */
};

/* A failure ends the process, which is this work's own. */
static int import(void *arg)
{
	const struct import_job *o = arg;
	struct import im = { 0 };
	struct daemon_socket socket;
	struct text why = { 0 };
	bool ok;

	if (!owner_gitdir(&im.gd, &o->at, &why))
		die("%s", why.data);
	gitconfig_load(&im.config, &im.gd);
	im.format = gitconfig_object_format(&im.config, &im.gd);
	im.gd.is_reftable = gitconfig_is_reftable(&im.config);
	add_refs(&im);
	connect_choose(&socket, o->socket, &im.config, &im.gd);
	im.daemon = connect_new(&socket);
	free(socket.path);
	if (refd_connect(im.daemon, CONNECT_MS) != 0)
		die("%s: the other nodes did not get the refs: %s", o->at.path,
		    refd_error(im.daemon));
	ok = give(&im);
	refd_free(im.daemon);
	changes_done(&im.changes);
	gitconfig_done(&im.config);
	gitdir_done(&im.gd);
	return ok ? 0 : 1;
}

static bool import_as_owner(const char *dir, const char *socket)
{
	struct import_job o = { .socket = socket };
	const int seconds = (IMPORT_MS + GRACE_MS + CONNECT_MS) / 1000 + LIST_S;
	/* The other nodes need the time, and not the owner, so all of the time
	 * is free. */
	const struct work work = { .run = import,
		.arg = &o,
		.always_forks = true,
		.seconds = seconds,
		.free_seconds = seconds };
	struct text why = { 0 };
	int r = owner_work(&o.at, dir, work, &why);

	if (why.len)
		say_error("%s", why.data);
	text_done(&why);
	return r == 0;
}

bool import_due(const char *socket)
{
	bool ok = true;
	size_t i;

	for (i = 0; i < due.nr; i++) {
		ok &= import_as_owner(due.dirs[i], socket);
		free(due.dirs[i]);
	}
	free(due.dirs);
	due.dirs = NULL;
	due.nr = due.size = 0;
	return ok;
}
