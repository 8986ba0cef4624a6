/*
 * Prepares a pass for its commit. Other writers wait for the locks, so values
 * are staged and tables are made before the locks.
 *
 * The happy path:
 *	same	check that each repository is still at its path
 *	stage	the work before any lock is taken; sync the staged files if the
 *		mode says so (durability.c)
 *	lock	for each asked change in order, then for each found change,
 *		because only a held value tells the target of a symbolic ref:
 *		hold	the first lock starts the clock of the held time; the
 *			backend reads the value
 *		HEAD	lock HEAD too if HEAD points to the ref: HEAD gets the
 *			log line
 *		follow	a symbolic ref, unless the update writes the symbolic
 *			ref: the symbolic ref keeps its lock and gets the log
 *			line; its target becomes a new change
 *	check	the backend completes the values; old values, directory/file
 *		conflicts (prepare_check.c)
 *	logs	find the log lines (prepare_check.c)
 *	make	large files, before the locks of seal
 *	seal	everything else that publishing needs
 * The steps of one format of refs are in backend.h.
 *
 * What fails:
 *	the path leads elsewhere	the changes are given back, and the
 *					repository is opened again
 *	one file under two names	both updates fail
 *	no space, a broken ref, a ref	the update fails, or its atomic
 *	reached twice by symbolic refs	transaction
 *	a lock is held			the change is given back, tried later
 *	locking takes too long		the remaining non-atomic changes go to
 *					the next batch
 * pass_release() undoes all completed steps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/batch/backend.h"
#include "proto/refname.h"

/* A commit of a session waits so long for a lock of another writer. */
#define RESUME_NS       ((int64_t)1000 * 1000 * 1000)
#define RESUME_PAUSE_NS ((int64_t)2 * 1000 * 1000)
/* The most symbolic refs that one update locks. In git, readers stop after 5
 * (SYMREF_MAXDEPTH), and writers stop only at a loop. */
#define FOLLOW_MAX 32
/* If another batch waits, locking may take this part of prepare_max_ns. */
#define AWAITED_SHARE 4

static void check_same(struct pass *p)
{
	struct repo_slice *g = NULL;
	bool same = true;
	struct change *c;
	size_t i;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (c->repo_slice != g) {
			g = c->repo_slice;
			same = repo_is_same(p->ap->repos, g->repo);
			if (!same)
				repo_doom(p->ap->repos, g->repo);
		}
		if (!same)
			change_again(c, TXN_AGAIN_REOPEN);
	}
}

/* Fails updates in a removed worktree, because they must not reach the main
 * worktree. */
static void check_places(struct pass *p)
{
	struct change *c;
	size_t i;
	int r;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		r = c->slice->git_err;
		if (r == -ENOENT)
			change_fail(c, REFD_NOREPO,
			    "'%s' is no longer a git directory of '%s'",
			    c->slice->txn->req.git_dir, c->slice->repo->path);
		else if (r < 0)
			change_fail_errno(c, r, "can't open the worktree");
		else if (c->edit.dirfd == -ENOENT)
			change_cant_lock(c, REFD_MISSING,
			    "there is no such worktree");
		else if (c->edit.dirfd < 0)
			change_fail_errno(c, c->edit.dirfd,
			    "can't open the worktree");
	}
}

/* HEAD, main-worktree/HEAD and worktrees/<id>/HEAD can be the same file. */
static void check_twice(struct pass *p)
{
	struct change *c, *before;
	size_t i;

	for (i = 1; i < p->nr_changes; i++) {
		before = p->changes[i - 1];
		c = p->changes[i];
		if (c->slice != before->slice ||
		    c->edit.dirfd != before->edit.dirfd ||
		    strcmp(c->edit.name, before->edit.name) != 0)
			continue;
		change_fail_detail(c, REFD_DUPLICATE, REFD_DETAIL_DUPLICATE,
		    c->u->ask->name, NULL, NULL);
		change_fail_detail(before, REFD_DUPLICATE,
		    REFD_DETAIL_DUPLICATE, before->u->ask->name, NULL, NULL);
	}
}

int pass_need_token(struct pass *p, struct repo_slice *g)
{
	int r;

	if (g->has_token)
		return 0;
	r = token_init(&g->token, p->sys, g->repo->stage_fd,
	    atomic_fetch_add(&p->ap->next_token, 1));
	g->has_token = r == 0;
	return r;
}

/* ---- locking: time ---- */

/* May C be given back alone? Not if C belongs to an atomic transaction, a
 * session or a transaction of the store itself, because they need all their
 * locks. */
static bool may_go_later(const struct change *c)
{
	const struct refd_request *req = &c->slice->txn->req;

	return !req->atomic && req->verb != REFD_VERB_SESSION && c->is_asked &&
	    !c->slice->txn->is_own;
}

/* The remaining changes cost another flush, so a batch stops early only if
 * another batch waits. */
static bool is_late(const struct pass *p, int64_t now)
{
	const struct applier *ap = p->ap;
	int64_t took_ns = now - p->locked_ns;

	return took_ns > ap->prepare_max_ns ||
	    (took_ns > ap->prepare_max_ns / AWAITED_SHARE &&
		ap->is_awaited(ap->arg));
}

/* true: C was given back. */
static bool goes_later(struct pass *p, struct change *c, int64_t now)
{
	if (!may_go_later(c) || !is_late(p, now))
		return false;
	change_again(c, TXN_AGAIN_LATER);
	return true;
}

/* The first lock starts the clock of the held time. */
static void start_clock(struct pass *p, int64_t now)
{
	if (p->locked_ns == 0)
		p->locked_ns = now;
}

/* ---- following ---- */

static unsigned depth_of(const struct change *c)
{
	unsigned depth = 0;

	for (; c->from != NULL; c = c->from)
		depth++;
	return depth;
}

/* Did a change of C's update come before a change of OTHER's in the request? */
static bool came_before(const struct change *c, const struct change *other)
{
	return c->u < other->u;
}

/* C was reached from the symbolic ref VIA, and OTHER is the same file. */
static void fail_twice(struct change *c, struct change *via,
    struct change *other)
{
	const struct change *later = via;

	/* git works in the order of the request, and also adds HEAD if HEAD
	 * points to a branch. */
	if (!other->is_asked && !other->is_head && came_before(c, other))
		later = other->from;
	if (strcmp(via->edit.name, "HEAD") == 0 && other->is_asked &&
	    came_before(other, c))
		change_fail_detail(other, REFD_CONFLICT,
		    REFD_DETAIL_DUPLICATE_HEAD, c->edit.name, NULL, NULL);
	else
		change_fail_detail(c, REFD_CONFLICT,
		    REFD_DETAIL_DUPLICATE_SYMREF, c->edit.name,
		    later->edit.name, NULL);
}

/* D becomes the end of the chain. C and the changes before C get D's log
 * line. */
static void extend_chain(struct change *c, struct change *d)
{
	struct change *l;

	d->from = c;
	d->is_end = true;
	d->action = c->action;
	edit_hand_over(&c->edit, &d->edit);
	c->is_end = false;
	if (!change_only_looks(c))
		c->action = CHANGE_LOG;
	c->next_line = c->lines;
	c->lines = NULL;
	d->lines = c;
	for (l = c; l != NULL; l = l->next_line)
		l->of = d;
}

/* A ref with a name that git would not create can still be deleted. */
static bool may_follow(const struct change *c)
{
	if (c->action == CHANGE_DELETE)
		return refd_refname_may_delete(c->target);
	return refd_refname_may_write(c->target);
}

static void follow(struct pass *p, struct change *c)
{
	struct change *d, *other;
	int r;

	if (refd_refname_is_too_long(c->target)) {
		change_cant_lock(c, REFD_UNSUPPORTED,
		    "the symbolic reference '%s' points to a refname that is "
		    "too long for refd",
		    c->edit.name);
		return;
	}
	if (!may_follow(c)) {
		change_cant_lock(c, REFD_BROKEN,
		    "the symbolic reference '%s' points to '%s', which is no "
		    "reference's name",
		    c->edit.name, c->target);
		return;
	}
	if (depth_of(c) >= FOLLOW_MAX) {
		change_cant_lock(c, REFD_BROKEN,
		    "too many symbolic references lead to '%s'", c->edit.name);
		return;
	}
	d = pass_found(p, c, c->target);
	if (d == NULL) {
		change_fail_errno(c, -ENOMEM, "can't follow a reference");
		return;
	}
	r = pass_place(p, c->slice, d->own_name, d);
	if (r < 0) {
		change_cant_lock(c, REFD_BROKEN, "there is no worktree of '%s'",
		    d->own_name);
		return;
	}
	if (!pass_enlist(p, d)) {
		change_fail_errno(c, -ENOMEM, "can't follow a reference");
		return;
	}
	other = pass_find_same(p, d);
	extend_chain(c, d);
	if (other != NULL)
		fail_twice(d, c, other);
}

/* ---- HEAD ---- */

/* The place of HEAD in the client's worktree. */
static struct change head_of(const struct change *c)
{
	return (struct change){ .slice = c->slice,
		.repo_slice = c->repo_slice,
		.worktree = c->slice->worktree,
		.edit = { .dirfd = c->slice->git_fd, .name = "HEAD" } };
}

/* The target of HEAD in the client's worktree, or "". As in git, HEAD is read
 * once and without a lock. */
static const char *head_target(struct pass *p, const struct change *c)
{
	struct slice *s = c->slice;
	struct head *head =
	    s->git_fd == s->repo->fd ? &c->repo_slice->head : &s->head;
	struct change at;
	struct loose_value value;

	if (!head->is_known) {
		head->is_known = true;
		at = head_of(c);
		if (c->repo_slice->backend->look(p, &at, &value) == 0) {
			head->target = value.target;
			value.target = NULL;
			loose_value_done(&value);
		}
	}
	return head->target != NULL ? head->target : "";
}

static bool is_reached_by_head(const struct change *c)
{
	for (; c != NULL; c = c->from)
		if (strcmp(c->edit.name, "HEAD") == 0 &&
		    c->edit.dirfd == c->slice->git_fd)
			return true;
	return false;
}

/* Does the log of HEAD get a line? Yes if the log exists or is to be created.
 * 1, 0, or negative errno. */
static int wants_head_log(struct pass *p, const struct change *c)
{
	struct change at = head_of(c);

	if (change_forces_log(c) ||
	    reflog_policy_creates(c->slice->log_policy, "HEAD"))
		return 1;
	return c->repo_slice->backend->has_log(p, &at);
}

/*
 * If a branch is updated by its own name, and HEAD points to the branch, HEAD
 * has moved too, so its log needs the line. The same holds for any symbolic ref
 * to C. But a search for all of them would read every ref of the repository for
 * each update. So git and refd ask only HEAD, of the client's worktree. An
 * update that has come through HEAD has locked HEAD already.
 */
static void find_head(struct pass *p, struct change *c)
{
	struct slice *s = c->slice;
	struct change *h, *other;
	int r;

	if (change_only_looks(c) || change_is_gated(c) ||
	    strcmp(head_target(p, c), c->edit.name) != 0 ||
	    (c->edit.dirfd != s->repo->fd && c->edit.dirfd != s->git_fd) ||
	    is_reached_by_head(c))
		return;
	r = wants_head_log(p, c);
	if (r == 0)
		return;
	h = r > 0 ? pass_found(p, c, "HEAD") : NULL;
	if (h == NULL) {
		change_fail_errno(c, r < 0 ? r : -ENOMEM, "can't log to HEAD");
		return;
	}
	h->edit.name = h->own_name;
	h->edit.dirfd = s->git_fd;
	h->worktree = s->worktree;
	h->action = CHANGE_LOG;
	h->is_head = true;
	h->from = c;
	h->of = c;
	h->next_line = c->lines;
	c->lines = h;
	if (!pass_enlist(p, h))
		change_fail_errno(c, -ENOMEM, "can't log to HEAD");
	other = pass_find_same(p, h);
	/* In a row of another machine, a second change of HEAD is no conflict,
	 * because that machine has looked at its own logs. */
	if (other != NULL && s->txn->is_own)
		h->action = CHANGE_NOTHING;
	else if (other != NULL)
		change_fail_detail(c, REFD_CONFLICT, REFD_DETAIL_DUPLICATE_HEAD,
		    c->edit.name, NULL, NULL);
}

/* ---- reading ---- */

static void read_symref(struct pass *p, struct change *c, char *target)
{
	c->target = target;
	if (c->is_head) {
		/* HEAD may have changed before refd had the lock, and then the
		 * branch's line would be wrong there. */
		if (strcmp(target, c->from->edit.name) != 0)
			c->action = CHANGE_NOTHING;
	} else if (!c->u->ask->no_deref && !change_is_gated(c)) {
		follow(p, c);
	} else {
		c->exists = true;
	}
}

static void read_value(struct pass *p, struct change *c,
    struct loose_value *value)
{
	switch (value->kind) {
	case LOOSE_ABSENT:
	case LOOSE_DIR:
		break;
	case LOOSE_OID:
		c->exists = true;
		c->old_oid = value->oid;
		break;
	case LOOSE_SYMREF:
		read_symref(p, c, value->target);
		value->target = NULL;
		break;
	case LOOSE_BROKEN:
		change_fail_detail(c, REFD_BROKEN, REFD_DETAIL_BROKEN,
		    c->u->ask->name, change_shown_name(c), NULL);
		break;
	}
	if (c->is_head && value->kind != LOOSE_SYMREF)
		c->action = CHANGE_NOTHING;
}

static void lock_refs(struct pass *p, struct repo_slice *g)
{
	struct loose_value value;
	struct change *c;
	int64_t now;

	/* The loop appends found changes. */
	for (c = g->changes; c != NULL; c = c->next_in_repo) {
		if (!change_is_live(c))
			continue;
		now = SYS(p->sys, now_mono);
		start_clock(p, now);
		if (goes_later(p, c, now) || !g->backend->hold(p, c, &value))
			continue;
		if (!c->is_head)
			find_head(p, c);
		if (change_is_live(c))
			read_value(p, c, &value);
		loose_value_done(&value);
	}
}

/* ---- the steps ---- */

typedef void repo_slice_fn(struct pass *p, struct repo_slice *g);

static void stage(struct pass *p)
{
	size_t i;

	for (i = 0; i < p->nr_repo_slices; i++)
		p->repo_slices[i].backend->stage(p, &p->repo_slices[i]);
	pass_settle(p);
}

/* All refs of G are held, so no value can change unnoticed. */
static void check_refs(struct pass *p, struct repo_slice *g)
{
	g->backend->held(p, g);
	pass_check(p, g);
}

/* A step of the repositories with tables, if HAS_ROUNDS, or of those with
 * files. */
static void each_of(struct pass *p, bool has_rounds, repo_slice_fn *step)
{
	size_t i;

	for (i = 0; i < p->nr_repo_slices; i++)
		if (p->repo_slices[i].backend->has_rounds == has_rounds)
			step(p, &p->repo_slices[i]);
	pass_settle(p);
}

/* ---- rounds ---- */

static void one(struct pass *p, struct repo_slice *g, repo_slice_fn *step)
{
	step(p, g);
	pass_settle(p);
}

/* A new round of G, up to make(). */
static void begin_round(struct pass *p, struct repo_slice *g)
{
	pass_begin_again(p, g);
	one(p, g, lock_refs);
	one(p, g, check_refs);
	one(p, g, pass_prepare_logs);
}

static void make(struct pass *p, struct repo_slice *g)
{
	while (g->backend->make(p, g))
		begin_round(p, g);
}

static void seal(struct pass *p, struct repo_slice *g)
{
	while (g->backend->seal(p, g)) {
		begin_round(p, g);
		make(p, g);
	}
}

/* The steps before make(), of the same repositories. */
static void prepare(struct pass *p, bool has_rounds)
{
	each_of(p, has_rounds, lock_refs);
	each_of(p, has_rounds, check_refs);
	each_of(p, has_rounds, pass_prepare_logs);
}

void pass_prepare(struct pass *p)
{
	check_same(p);
	check_places(p);
	check_twice(p);
	pass_settle(p);
	stage(p);
	durability_values(p);
	pass_settle(p);
	/* Tables (true) come first, and without files, so that no lock is held
	 * while tables are flushed. */
	prepare(p, true);
	each_of(p, true, make);
	/* Hold() of tables has taken no lock, so the time of the locks begins
	 * with the first ref file, or with the list (tables_seal.c). */
	p->locked_ns = 0;
	prepare(p, false);
	/* Seal() of packed-refs may take long, so the lists of tables are
	 * locked later. */
	each_of(p, false, seal);
	each_of(p, true, seal);
	if (p->has_staged)
		durability_values(p);
	pass_settle(p);
}

/* ---- sessions ---- */

/* Nobody can give an update of a session back at its commit, so pass_resume()
 * tries again. */
static bool is_again(struct pass *p, enum txn_again why)
{
	size_t i;

	for (i = 0; i < p->nr_asked; i++)
		if (p->asked[i].u->status == REFD_PENDING &&
		    p->asked[i].u->again >= why)
			return true;
	return false;
}

static void try_again(struct pass *p)
{
	size_t i;

	for (i = 0; i < p->nr_asked; i++)
		p->asked[i].u->again = TXN_AGAIN_NO;
	p->slices[0].broken = false;
}

static void fail_again(struct change *c)
{
	const enum txn_again why = c->u->again;

	if (why == TXN_AGAIN_NO)
		return;
	c->u->again = TXN_AGAIN_NO;
	if (why == TXN_AGAIN_ALONE)
		change_fail(c, REFD_LOCKED,
		    "cannot update ref '%s': much of the repository must be "
		    "read, and too many such updates run; try again",
		    c->u->ask->name);
	else if (why == TXN_AGAIN_LOCKED)
		change_fail(c, REFD_LOCKED,
		    "cannot update ref '%s': another writer holds the lock of "
		    "'%s'",
		    c->u->ask->name,
		    c->u->locked_path != NULL ? c->u->locked_path :
						c->edit.name);
	else if (why == TXN_AGAIN_DIVERGED)
		change_fail(c, busy_cause_count(BUSY_GROUP), "%s",
		    busy_cause_text(BUSY_GROUP));
	else
		change_fail(c, REFD_NOREPO,
		    "cannot update ref '%s': the repository '%s' was moved or "
		    "replaced meanwhile",
		    c->u->ask->name, c->slice->repo->path);
}

void pass_resume(struct pass *p)
{
	const int64_t until = SYS(p->sys, now_mono) + RESUME_NS;
	struct repo_slice *g = &p->repo_slices[0];
	size_t i;

	while (p->nr_repo_slices > 0 && g->backend->resume(p, g)) {
		if (!is_again(p, TXN_AGAIN_LATER)) {
			begin_round(p, g);
			make(p, g);
			seal(p, g);
		}
		pass_settle(p);
		if (!is_again(p, TXN_AGAIN_ALONE) ||
		    SYS(p->sys, now_mono) > until)
			break;
		try_again(p);
		SYS(p->sys, sleep_ns, RESUME_PAUSE_NS);
	}
	for (i = 0; i < p->nr_asked; i++)
		fail_again(&p->asked[i]);
	pass_settle(p);
}
