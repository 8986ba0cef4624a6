/*
 * Applying a batch.
 *
 * No loose ref should be locked while a large file is rewritten. So the happy
 * path runs once for loose refs, and once more for transactions that rewrite
 * packed-refs (deletions, and many new refs):
 *
 *	prepare	stage new values; lock; read; check; log files; packed-refs
 *	commit	one journal record for all of it, one flush
 *	publish	log lines, rename, unlock
 *	release	remove the remaining locks and staged files
 *	durability	give the `ok`, in every mode. Before it, in the
 *			stronger modes, make names and logs durable without the
 *			journal (durability.c)
 *
 * A transaction that can't share its table with others gets a pass of its own
 * (pass_go_apart()). Several transactions of the store's own, which are rows of
 * other machines, have one pass, because the log takes them in their order.
 *
 * A failure before the commit costs its own update, or its atomic transaction.
 * A commit that definitely failed is tried again for each transaction alone,
 * since a large one may be the cause (commit.c). A committed change that can't
 * be published is aborted by a second record (publish.c).
 *
 * A session stops between prepare and commit and keeps its locks until the
 * client decides. Meanwhile the transaction holds the pass.
 */
#include "daemon/store/batch/apply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/base/probe.h"
#include "daemon/store/batch/backend.h"

static void fail_all(struct batch *b, enum slices slices)
{
	size_t i, k;

	for (i = 0; i < b->nr_slices; i++) {
		if (!pass_takes(&b->slices[i], slices))
			continue;
		for (k = 0; k < b->slices[i].nr; k++)
			if (b->slices[i].updates[k]->status == REFD_PENDING)
				txn_decide(b->slices[i].updates[k],
				    BUSY(MEMORY));
	}
}

/* Leaves the time in the shared log out of the time of the locks, by a later
 * begin. If other machines share the rows, the ref has no other writer. So
 * nobody waits for the ref while the log takes the batch. */
static void tell_times(const struct pass *p, struct batch *b)
{
	if (p->locked_ns != 0 && b->locked_ns == 0)
		b->locked_ns = p->locked_ns;
	if (b->locked_ns != 0)
		b->locked_ns += p->in_log_ns;
	if (p->unlocked_ns > b->unlocked_ns)
		b->unlocked_ns = p->unlocked_ns;
}

/* Once per batch: by its first pass, even if other passes follow. */
void apply_is_prepared(struct applier *ap, struct batch *b)
{
	if (ap->prepared == NULL || b->is_prepared)
		return;
	b->is_prepared = true;
	ap->prepared(ap->arg, b);
}

/* ---- much work ---- */

/*
 * The files of one repository may be much work: a rewrite of a large
 * packed-refs, or reftables of which much must be read. Such work may take
 * seconds, so others must not wait for it, and it needs one of a few slots.
 */

/* Is G the only repository of the batch? Rejections without a repository do
 * not count. */
static bool is_alone(const struct pass *p, const struct repo_slice *g)
{
	const struct batch *b = p->batch;
	size_t i;

	for (i = 0; i < b->nr_slices; i++)
		if (b->slices[i].txn->repo != NULL &&
		    b->slices[i].txn->repo != g->repo)
			return false;
	return true;
}

/* There are only a few slots, so a user gets one slot at most. */
static bool take_slot(const struct pass *p, struct repo_slice *g, uint32_t uid)
{
	atomic_uint_fast64_t *users = p->ap->large_users;
	uint_fast64_t nobody = 0, user = (uint_fast64_t)uid + 1;
	size_t i, mine = APPLY_LARGE_MAX;

	for (i = 0; i < APPLY_LARGE_MAX && mine == APPLY_LARGE_MAX; i++) {
		nobody = 0;
		if (atomic_compare_exchange_strong(&users[i], &nobody, user))
			mine = i;
	}
	if (mine == APPLY_LARGE_MAX)
		return false;
	g->large_user = &users[mine];
	for (i = 0; i < APPLY_LARGE_MAX; i++)
		if (i != mine && atomic_load(&users[i]) == user) {
			apply_give_large(g);
			return false;
		}
	return true;
}

bool apply_take_large(struct pass *p, struct repo_slice *g)
{
	if (!is_alone(p, g) ||
	    !take_slot(p, g, g->changes->slice->txn->peer.uid))
		return false;
	apply_is_prepared(p->ap, p->batch);
	return true;
}

void apply_give_large(struct repo_slice *g)
{
	if (g->large_user != NULL)
		atomic_store(g->large_user, 0);
	g->large_user = NULL;
}

/* ---- a pass ---- */

/* Adds the time since *FROM to *SPENT and sets *FROM to the present. Returns
 * the time. */
static int64_t spend(const struct pass *p, int64_t *from, int64_t *spent)
{
	int64_t now = SYS(p->sys, now_mono), ns = now - *from;

	*spent += ns;
	*from = now;
	return ns;
}

static void spend_lock(const struct pass *p, int64_t *from, struct batch *b)
{
	const struct txn *txn = p->slices[0].txn;
	int64_t ns = spend(p, from, &b->lock_ns);

	PROBE_LOCK(&txn->req.txid, txn->repo_id, p->nr_slices, p->nr_changes,
	    ns);
}

static void spend_commit(struct pass *p, int64_t *from, struct batch *b)
{
	int64_t ns = spend(p, from, &b->flush_ns);

	if (p->ap->replica->ops->shares_rows)
		p->in_log_ns = ns;
}

static void spend_publish(const struct pass *p, int64_t *from, struct batch *b)
{
	const struct txn *txn = p->slices[0].txn;
	int64_t ns = spend(p, from, &b->publish_ns);

	PROBE_PUBLISH(&txn->req.txid, txn->repo_id, p->nr_slices, p->nr_changes,
	    ns);
}

static void apply_some(struct applier *ap, struct batch *b, enum slices slices)
{
	struct pass p;
	int64_t from;

	if (!pass_init(&p, ap, b, slices)) {
		pass_done(&p);
		fail_all(b, slices);
		return;
	}
	if (p.nr_slices > 0) {
		from = SYS(p.sys, now_mono);
		pass_prepare(&p);
		apply_is_prepared(ap, b);
		spend_lock(&p, &from, b);
		pass_commit(&p);
		spend_commit(&p, &from, b);
		pass_publish(&p);
		spend_publish(&p, &from, b);
	}
	tell_times(&p, b);
	pass_done(&p);
}

static void apply_whole(struct applier *ap, struct batch *b)
{
	bool any_packed = false;
	size_t i;

	/* Rows of other machines have one pass, because the log takes them in
	 * their order, and all or none. */
	if (b->nr_slices > 1 && b->slices[0].txn->is_own) {
		apply_some(ap, b, SLICES_ALL);
		return;
	}
	for (i = 0; i < b->nr_slices; i++) {
		b->slices[i].to_packed = files_prefer_packed(ap, &b->slices[i]);
		any_packed =
		    any_packed || pass_takes(&b->slices[i], SLICES_PACKED);
	}
	apply_some(ap, b, SLICES_LOOSE);
	if (any_packed)
		apply_some(ap, b, SLICES_PACKED);
	for (i = 0; i < b->nr_slices; i++) {
		if (b->slices[i].apart != TXN_APART_NEEDED)
			continue;
		b->slices[i].apart = TXN_APART_NOW;
		apply_some(ap, b, SLICES_APART);
		b->slices[i].apart = TXN_APART_NO;
	}
}

/* ---- sessions ---- */

/* If one update is given back, gives all updates back, because a session needs
 * all locks. */
static bool give_back_together(struct txn_slice *txn_slice)
{
	enum txn_again again = TXN_AGAIN_NO;
	struct txn_update *u;
	size_t i;

	for (i = 0; i < txn_slice->nr; i++) {
		u = txn_slice->updates[i];
		if (u->status == REFD_PENDING && u->again > again)
			again = u->again;
	}
	for (i = 0; i < txn_slice->nr && again != TXN_AGAIN_NO; i++)
		if (txn_slice->updates[i]->status == REFD_PENDING)
			txn_slice->updates[i]->again = again;
	return again != TXN_AGAIN_NO;
}

static bool has_undecided(const struct txn_slice *txn_slice)
{
	size_t i;

	for (i = 0; i < txn_slice->nr; i++)
		if (txn_slice->updates[i]->status == REFD_PENDING)
			return true;
	return false;
}

/* Tells the client the final names, and whether packed-refs changes. */
static void tell_prepared(struct pass *p)
{
	struct change *c;
	size_t i;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (change_is_live(c) && c->is_end && !c->is_asked) {
			free(c->u->final_name);
			c->u->final_name = strdup(c->own_name);
		}
	}
	p->slices[0].txn->rewrites_packed =
	    p->repo_slices[0].files.packed_changed;
}

static void session_prepare(struct applier *ap, struct batch *b)
{
	struct txn *txn = b->slices[0].txn;
	struct pass *p = malloc(sizeof(*p));
	int64_t from = SYS(ap->sys, now_mono);

	if (p == NULL || !pass_init(p, ap, b, SLICES_ALL)) {
		if (p != NULL)
			pass_done(p);
		free(p);
		fail_all(b, SLICES_ALL);
		return;
	}
	pass_prepare(p);
	/* A session may wait for long, so its directories are closed. */
	sys_dirs_forget(&p->dirs);
	spend_lock(p, &from, b);
	if (!give_back_together(&b->slices[0]) &&
	    has_undecided(&b->slices[0])) {
		tell_prepared(p);
		p->repo_slices[0].backend->wait(p, &p->repo_slices[0]);
		/* The batch goes, the pass stays. */
		p->slices[0].txn_slice = NULL;
		p->batch = NULL;
		txn->prepared = p;
		return;
	}
	pass_release(p);
	tell_times(p, b);
	pass_done(p);
	free(p);
}

/* Is the repository of the session still the same? The locks are in the
 * directory that was opened, so the path of the repository may have changed.
 * The configuration may have changed, too, for example by a hook of git, but
 * the format of the refs must be the same. */
static bool is_still_there(const struct pass *p)
{
	const struct repo *repo = p->slices[0].repo;

	if (!repo_is_there(p->ap->repos, repo))
		return false;
	return repo_is_same(p->ap->repos, repo) ||
	    repo_has_reftable(p->sys, repo) == (repo->format == REPO_REFTABLE);
}

static void check_still_there(struct pass *p)
{
	size_t i;

	if (is_still_there(p))
		return;
	for (i = 0; i < p->nr_changes; i++)
		change_fail(p->changes[i], REFD_NOREPO,
		    "cannot update ref '%s': the repository '%s' was moved or "
		    "replaced meanwhile",
		    p->changes[i]->u->ask->name, p->slices[0].repo->path);
}

static void session_end(struct batch *b, bool commit)
{
	struct txn *txn = b->slices[0].txn;
	struct pass *p = txn->prepared;
	int64_t from = SYS(p->sys, now_mono);

	txn->prepared = NULL;
	p->batch = b;
	p->slices[0].txn_slice = &b->slices[0];
	if (commit) {
		check_still_there(p);
		pass_resume(p);
		pass_commit(p);
		spend(p, &from, &b->flush_ns);
		pass_publish(p);
	} else {
		pass_release(p);
	}
	spend_publish(p, &from, b);
	pass_done(p);
	free(p);
}

static void apply_session(struct applier *ap, struct batch *b)
{
	/* The session may last long, and packed-refs would stay locked. */
	b->slices[0].to_packed = false;
	if (b->session == BATCH_PREPARE)
		session_prepare(ap, b);
	else
		session_end(b, b->session == BATCH_COMMIT);
}

/* ---- a gate ---- */

/*
 * Reads the values of refs before git changes them: phase "prepared". Git holds
 * the locks, and waits, so no lock and no turn is taken. Every update gets the
 * value as `found`, and the status aborted, because the batch changes nothing.
 *
 * What fails:
 *	a value which cannot be read,	the value is not given, so history does
 *	the value of a symbolic ref	not know the value before
 *	git packs a value that it has	the transaction is refused: packed-refs
 *	read before the ref changed	would bring the value back
 */
static void pass_look(struct pass *p)
{
	struct repo_slice *g = &p->repo_slices[0];
	size_t i;

	/* Not at a different place, or in a different format. */
	if (p->nr_repo_slices > 0 && repo_is_same(p->ap->repos, g->repo)) {
		g->backend->glance(p, g);
		p->slices[0].txn->is_looked =
		    p->slices[0].txn->refused == REFD_OK;
	}
	for (i = 0; i < p->nr_asked; i++)
		txn_decide(p->changes[i]->u, REFD_ABORTED, NULL);
}

static void apply_look(struct applier *ap, struct batch *b)
{
	struct pass p;

	if (pass_init(&p, ap, b, SLICES_ALL))
		pass_look(&p);
	else
		fail_all(b, SLICES_ALL);
	pass_done(&p);
}

void apply_batch(struct applier *ap, struct batch *b)
{
	batch_lay_out(b);
	switch (b->session) {
	case BATCH_WHOLE:
		apply_whole(ap, b);
		break;
	case BATCH_PREPARE:
	case BATCH_COMMIT:
	case BATCH_ABORT:
		apply_session(ap, b);
		break;
	case BATCH_LOOK:
		apply_look(ap, b);
		break;
	}
}
