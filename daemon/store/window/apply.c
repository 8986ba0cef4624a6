/*
 * Applying a window.
 *
 * The happy path runs once for loose refs and once more for transactions that
 * rewrite packed-refs (deletions, and many new refs). In this way a loose ref
 * is not locked during the rewrite of a large file:
 *
 *	prepare	stage new values; lock; read; check; log files; packed-refs
 *	commit	one journal record for all of it, one flush
 *	publish	log lines, rename, unlock
 *	release	remove the remaining locks and staged files
 *	durability	in the stronger modes: make files, names and logs durable
 *		without the journal (durability.c)
 *
 * A failure before the commit costs its own update, or its atomic transaction.
 * A commit that definitely failed is tried again for each transaction alone
 * (commit.c). A committed change that can't be published is aborted by a
 * second record (publish.c).
 *
 * A session stops between prepare and commit and keeps its locks until the
 * client decides. Meanwhile the transaction holds the batch.
 */
#include "daemon/store/window/apply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/window/batch.h"

static void fail_all(struct window *w, enum parts parts)
{
	size_t i, k;

	for (i = 0; i < w->nr_parts; i++) {
		if (!batch_takes(&w->parts[i], parts))
			continue;
		for (k = 0; k < w->parts[i].nr; k++)
			if (w->parts[i].updates[k]->status == REFD_PENDING)
				txn_decide(w->parts[i].updates[k],
				    BUSY(MEMORY));
	}
}

static void tell_times(const struct batch *b, struct window *w)
{
	if (b->locked_ns != 0 && w->locked_ns == 0)
		w->locked_ns = b->locked_ns;
	if (b->unlocked_ns > w->unlocked_ns)
		w->unlocked_ns = b->unlocked_ns;
}

/* After the first round of W the store may prepare the next window. */
void apply_is_prepared(struct applier *ap, struct window *w)
{
	if (ap->prepared == NULL || w->is_prepared)
		return;
	w->is_prepared = true;
	ap->prepared(ap->arg, w);
}

/* Adds the time since *FROM to *SPENT and sets *FROM to the present. */
static void spend(const struct batch *b, int64_t *from, int64_t *spent)
{
	int64_t now = SYS(b->sys, now_mono);

	*spent += now - *from;
	*from = now;
}

static void apply_some(struct applier *ap, struct window *w, enum parts parts)
{
	struct batch b;
	int64_t from;

	if (!batch_init(&b, ap, w, parts)) {
		batch_done(&b);
		fail_all(w, parts);
		return;
	}
	if (b.nr_shares > 0) {
		from = SYS(b.sys, now_mono);
		batch_prepare(&b);
		apply_is_prepared(ap, w);
		spend(&b, &from, &w->lock_ns);
		batch_commit(&b);
		spend(&b, &from, &w->flush_ns);
		batch_publish(&b);
		batch_release(&b);
		durability_finish(&b);
		spend(&b, &from, &w->publish_ns);
	}
	tell_times(&b, w);
	batch_done(&b);
}

static void apply_whole(struct applier *ap, struct window *w)
{
	bool any_packed = false;
	size_t i;

	for (i = 0; i < w->nr_parts; i++) {
		w->parts[i].to_packed = part_goes_packed(ap, &w->parts[i]);
		any_packed =
		    any_packed || batch_takes(&w->parts[i], PARTS_PACKED);
	}
	apply_some(ap, w, PARTS_LOOSE);
	if (any_packed)
		apply_some(ap, w, PARTS_PACKED);
}

/* ---- sessions ---- */

/* If one update is given back, gives all of them back. A session needs all of
 * its locks. */
static bool give_back_together(struct txn_part *part)
{
	enum txn_again again = TXN_AGAIN_NO;
	struct txn_update *u;
	size_t i;

	for (i = 0; i < part->nr; i++) {
		u = part->updates[i];
		if (u->status == REFD_PENDING && u->again > again)
			again = u->again;
	}
	for (i = 0; i < part->nr && again != TXN_AGAIN_NO; i++)
		if (part->updates[i]->status == REFD_PENDING)
			part->updates[i]->again = again;
	return again != TXN_AGAIN_NO;
}

static bool has_undecided(const struct txn_part *part)
{
	size_t i;

	for (i = 0; i < part->nr; i++)
		if (part->updates[i]->status == REFD_PENDING)
			return true;
	return false;
}

/* Tells the client the final names, and whether packed-refs changes. */
static void tell_prepared(struct batch *b)
{
	struct change *c;
	size_t i;

	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		if (change_is_live(c) && c->is_end && !c->is_asked) {
			free(c->u->final_name);
			c->u->final_name = strdup(c->own_name);
		}
	}
	b->shares[0].txn->rewrites_packed = b->groups[0].packed_changed;
}

static void session_prepare(struct applier *ap, struct window *w)
{
	struct txn *txn = w->parts[0].txn;
	struct batch *b = malloc(sizeof(*b));
	int64_t from = SYS(ap->sys, now_mono);

	if (b == NULL || !batch_init(b, ap, w, PARTS_ALL)) {
		if (b != NULL)
			batch_done(b);
		free(b);
		fail_all(w, PARTS_ALL);
		return;
	}
	batch_prepare(b);
	/* A session may wait for long. */
	sys_dirs_forget(&b->dirs);
	spend(b, &from, &w->lock_ns);
	if (!give_back_together(&w->parts[0]) && has_undecided(&w->parts[0])) {
		tell_prepared(b);
		/* All look-ups are done. Frees the snapshot of packed-refs,
		 * because the session may last long. */
		packed_snapshot_put(b->groups[0].snap);
		b->groups[0].snap = NULL;
		/* The session may keep packed-refs.lock for long. Other windows
		 * wait for the lock as for a foreign one. */
		batch_give_turn(&b->groups[0]);
		/* The window goes, the batch stays. */
		b->shares[0].part = NULL;
		b->window = NULL;
		txn->prepared = b;
		return;
	}
	batch_release(b);
	tell_times(b, w);
	batch_done(b);
	free(b);
}

/* The locks are in the directory that was opened, at whatever path. The
 * configuration may have changed, as during a hook of git. The repository must
 * still use the files format. */
static bool is_still_there(const struct batch *b)
{
	const struct repo *repo = b->shares[0].repo;

	if (!repo_is_there(b->ap->repos, repo))
		return false;
	return repo_is_same(b->ap->repos, repo) ||
	    !repo_has_reftable(b->sys, repo);
}

static void check_still_there(struct batch *b)
{
	size_t i;

	if (is_still_there(b))
		return;
	for (i = 0; i < b->nr_changes; i++)
		change_fail(b->changes[i], REFD_NOREPO,
		    "cannot update ref '%s': the repository '%s' was moved or "
		    "replaced meanwhile",
		    b->changes[i]->u->ask->name, b->shares[0].repo->path);
}

static void session_end(struct window *w, bool commit)
{
	struct txn *txn = w->parts[0].txn;
	struct batch *b = txn->prepared;
	int64_t from = SYS(b->sys, now_mono);

	txn->prepared = NULL;
	b->shares[0].part = &w->parts[0];
	if (commit) {
		check_still_there(b);
		batch_commit(b);
		spend(b, &from, &w->flush_ns);
		batch_publish(b);
	}
	batch_release(b);
	if (commit)
		durability_finish(b);
	spend(b, &from, &w->publish_ns);
	batch_done(b);
	free(b);
}

static void apply_session(struct applier *ap, struct window *w)
{
	/* The session may last long, and packed-refs would stay locked. */
	w->parts[0].to_packed = false;
	if (w->session == WINDOW_PREPARE)
		session_prepare(ap, w);
	else
		session_end(w, w->session == WINDOW_COMMIT);
}

void apply_window(struct applier *ap, struct window *w)
{
	switch (w->session) {
	case WINDOW_WHOLE:
		apply_whole(ap, w);
		break;
	case WINDOW_PREPARE:
	case WINDOW_COMMIT:
	case WINDOW_ABORT:
		apply_session(ap, w);
		break;
	}
}
