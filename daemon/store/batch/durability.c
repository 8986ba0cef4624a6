/*
 * Makes files durable without the journal, as the mode of a slice promises.
 *
 * The happy path, by the mode of the slice:
 *	none		nothing
 *	periodic	write a staged value out before it becomes the ref: a
 *			power loss may lose the record too, and must not leave
 *			an empty file in place of an old durable value
 *	journal		nothing: commit.c has flushed the record
 *	batch		write the values out, and flush once for all values
 *			before any lock is taken; at the end write the logs out,
 *			and flush once for all logs and names
 *	fsync		sync each value before any lock is taken, many in
 *			parallel; at the end sync each log and each changed
 *			directory once
 *
 * One flush covers many files: if the file system permits (fsync_covers_all()
 * in sys.h), a small file is created last and synced. Otherwise syncfs is
 * called on a descriptor that was opened before the writes. The kernel reports
 * an error once to each descriptor, and the checkpoint needs its own report, so
 * this descriptor has no other user.
 *
 * What fails:
 *	a value can't be synced		the update fails, the file is removed
 *	a flush before the commit	all updates of the flush fail
 *	a log, a directory or a flush	`unknown`: the record stays, but the
 *	after the commit		promise of the mode is broken
 *	writing out (periodic)		nothing: the syncfs of the next
 *					checkpoint reports the error
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/batch/backend.h"

/* ---- values ---- */

static enum flush_how how_of_value(enum refd_durability mode)
{
	switch (mode) {
	case REFD_DURABILITY_DEFAULT:
	case REFD_DURABILITY_NONE:
	case REFD_DURABILITY_JOURNAL:
		break;
	case REFD_DURABILITY_PERIODIC:
		return FLUSH_BEGIN;
	case REFD_DURABILITY_BATCH:
		return FLUSH_WRITE_OUT;
	case REFD_DURABILITY_FSYNC:
		return FLUSH_FSYNC;
	}
	return FLUSH_NOTHING;
}

void durability_failed(struct change *c, int err)
{
	if (c->of != NULL)
		c = c->of;
	if (c->durability_err == 0)
		c->durability_err = err;
}

/* WHAT is a change. Before the commit the update fails, because nothing has
 * happened yet. After the commit the ref is published but not durable. */
static void file_failed(void *pass, void *what, int err)
{
	struct change *c = what;

	(void)pass;
	if (c->slice->lsn == 0)
		change_fail_errno(c, err, "can't write the new value");
	else
		durability_failed(c, err);
}

void durability_init(struct pass *p)
{
	flush_init(&p->flush, p->sys, p->ap->flusher, file_failed, p);
}

int durability_begin(struct pass *p, const struct change *c)
{
	struct repo_slice *g = c->repo_slice;

	if (c->slice->mode != REFD_DURABILITY_BATCH || g->has_sync_fd ||
	    g->repo->fs->fsync_covers_all)
		return 0;
	g->sync_fd = SYS(p->sys, openat, g->repo->stage_fd, ".",
	    O_RDONLY | O_DIRECTORY, 0);
	g->has_sync_fd = g->sync_fd >= 0;
	return g->has_sync_fd ? 0 : g->sync_fd;
}

void durability_staged(struct pass *p, struct change *c, int fd)
{
	flush_add(&p->flush, fd, how_of_value(c->slice->mode), c);
}

/* ---- one flush for many files ---- */

/* The file is created last, so its sync also covers all earlier changes. */
static int sync_small_file(struct pass *p, struct repo_slice *g)
{
	char name[TOKEN_NAME_MAX];
	int fd, r, closed;

	token_value_name(name, g->token.id, UINT_MAX);
	fd = loose_stage(p->sys, g->repo->stage_fd, name, "\n", 1, 0600);
	if (fd < 0)
		return fd;
	r = SYS(p->sys, fsync, fd);
	closed = SYS(p->sys, close, fd);
	SYS(p->sys, unlinkat, g->repo->stage_fd, name);
	return r < 0 ? r : closed;
}

/* Notes a failure at once, because the checkpoint's descriptor reports the same
 * failure perhaps only after the next start. */
static int sync_fs(struct pass *p, struct repo_slice *g)
{
	struct repos *repos = p->ap->repos;
	struct fs *fs = g->repo->fs;
	int r = fs_enter(repos, fs);

	if (r < 0)
		return r;
	r = SYS(p->sys, syncfs, g->sync_fd);
	if (r < 0)
		sync_failures_add(repos->sync_failures, fs->mount);
	fs_leave(repos, fs);
	return r;
}

/* The kernel reports a failure once to a descriptor, so sync_err is kept. */
static int flush_all(struct pass *p, struct repo_slice *g)
{
	if (g->repo->fs->fsync_covers_all)
		return sync_small_file(p, g);
	if (g->sync_err == 0)
		g->sync_err = sync_fs(p, g);
	return g->sync_err;
}

static bool is_of_batch(const struct change *c, const struct repo_slice *g)
{
	if (c->repo_slice != g || c->slice->mode != REFD_DURABILITY_BATCH ||
	    change_only_looks(c) || g->backend->has_rounds)
		return false;
	return c->slice->lsn == 0 ? c->edit.has_value && change_is_live(c) :
				    change_is_committed(c);
}

static bool repo_wants_flush(const struct pass *p, const struct repo_slice *g)
{
	size_t i;

	for (i = 0; i < p->nr_changes; i++)
		if (is_of_batch(p->changes[i], g))
			return true;
	return false;
}

/* Repositories on one file system share one flush. */
static int flush_repo(struct pass *p, struct repo_slice *g)
{
	struct repo_slice *other;

	for (other = p->repo_slices; other < g; other++)
		if (other->flushed && other->repo->fs == g->repo->fs)
			return other->flush_err;
	g->flushed = true;
	g->flush_err = flush_all(p, g);
	return g->flush_err;
}

static void flush_repos(struct pass *p)
{
	struct repo_slice *g;
	size_t i, k;
	int r;

	if (p->strongest < REFD_DURABILITY_BATCH)
		return;
	for (i = 0; i < p->nr_repo_slices; i++)
		p->repo_slices[i].flushed = false;
	for (i = 0; i < p->nr_repo_slices; i++) {
		g = &p->repo_slices[i];
		if (!repo_wants_flush(p, g) || (r = flush_repo(p, g)) == 0)
			continue;
		for (k = 0; k < p->nr_changes; k++)
			if (is_of_batch(p->changes[k], g))
				file_failed(p, p->changes[k], r);
	}
}

void durability_values(struct pass *p)
{
	flush_end(&p->flush);
	flush_repos(p);
}

/* ---- publishing ---- */

void durability_placing(struct pass *p, const struct change *c)
{
	char value[TOKEN_NAME_MAX];
	int fd;

	if (how_of_value(c->slice->mode) != FLUSH_BEGIN)
		return;
	token_value_name(value, c->repo_slice->token.id, c->edit.value_nr);
	fd = SYS(p->sys, openat, c->repo_slice->repo->stage_fd, value, O_RDONLY,
	    0);
	if (fd < 0)
		return;
	SYS(p->sys, write_out_wait, fd);
	SYS(p->sys, close, fd);
}

static enum flush_how how_of_log(const struct change *c)
{
	if (c->slice->mode == REFD_DURABILITY_FSYNC)
		return FLUSH_FSYNC;
	return c->slice->mode == REFD_DURABILITY_BATCH ? FLUSH_WRITE_OUT :
							 FLUSH_NOTHING;
}

bool durability_wants_log(const struct change *c)
{
	return how_of_log(c) != FLUSH_NOTHING;
}

void durability_log(struct pass *p, struct change *c, int fd)
{
	flush_add(&p->flush, fd, how_of_log(c), c);
}

/* The writer of the confirmed value may not have synced the file, so the
 * stronger modes sync the file here. */
void durability_confirmed(struct pass *p, struct change *c)
{
	int fd;

	if (how_of_log(c) == FLUSH_NOTHING || change_only_looks(c))
		return;
	if (c->is_loose)
		fd = SYS(p->sys, openat, c->edit.dirfd, c->edit.name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	else if (c->had_packed)
		fd = SYS(p->sys, openat, c->repo_slice->repo->fd, "packed-refs",
		    O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	else
		return;
	if (fd < 0)
		file_failed(p, c, fd);
	else
		flush_add(&p->flush, fd, how_of_log(c), c);
}

/* ---- the end ---- */

/* Decides C: `ok` if the promise of the mode is kept, `unknown` otherwise. */
static void acknowledge(struct pass *p, struct change *c)
{
	struct fs *fs = c->slice->repo->fs;

	atomic_store(&c->slice->repo->touched, true);
	atomic_store(&fs->touched, true);
	if (c->slice->mode > REFD_DURABILITY_NONE)
		atomic_store(&fs->promised, true);
	if (c->durability_err == 0) {
		txn_acknowledge(c->u);
		return;
	}
	change_defer(p, c);
	change_fail(c, REFD_UNKNOWN,
	    "the update is recorded, but '%s' could not be made to last "
	    "without the journal: %s",
	    c->edit.name, strerror(-c->durability_err));
}

void durability_finish(struct pass *p)
{
	size_t i;

	flush_end(&p->flush);
	durability_dirs(p);
	flush_repos(p);
	for (i = 0; i < p->nr_changes; i++)
		if (p->changes[i]->is_end && change_is_committed(p->changes[i]))
			acknowledge(p, p->changes[i]);
}
