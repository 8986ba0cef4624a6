/*
 * Defers the records of a file system that failed to sync.
 *
 * The kernel reports a failed write-back once, and marks the pages clean, so
 * from then on the memory and the disk may have different contents. So the
 * records get the recovery of a power loss, in the running daemon:
 *
 *	fail	fs_fail(): nobody gets a repository there any more; begun work
 *		ends. A crash does not hide the failure (sync_failures.c)
 *	defer	once nobody has a repository there, by the next checkpoint or
 *		admission: all records are marked as lost, durably
 *	let go	the descriptors are closed, so that the disk can be unmounted
 *	redo	before the next write there, and after every checkpoint
 *		(deferred_retry.c): the file system is opened again, by path,
 *		and must sync. The page cache is dropped, and every value is
 *		written again. Locks that came back with the disk are removed:
 *		batches that began before the new opening are over
 *
 * The same happens at the opening of a repository with records of a different
 * life of its file system. Then the file system was unmounted in between, or a
 * different file system was mounted. A record is deferred once, by the first of
 * the two.
 *
 * Records of small pushes restore their objects (redo_objects.c). For all other
 * objects suspect_store.c reads the disk.
 *
 * Failure: the journal. Then nothing is forgotten, and the next checkpoint or
 * admission tries again.
 */
#include "daemon/store/deferred/deferred_fs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/deferred/deferred_internal.h"
#include "daemon/store/recovery/recover_internal.h"
#include "daemon/store/recovery/redo.h"

static void tell(const struct deferred *d, enum store_event event,
    const char *place, const char *why)
{
	if (d->cfg->config->event != NULL)
		d->cfg->config->event(event, place, why);
}

struct deferring {
	struct deferred *deferred;
	const struct fs *fs;     /* all records on FS; or NULL */
	const struct repo *repo; /* all records of REPO on a different mount */
	bool has_skipped;        /* a repository on another subvolume */
	struct recover_rows rows;
	struct recover_notes notes;
};

static bool is_wanted(const struct deferring *p, const struct replay_row *row)
{
	/* After the redo of a row, later records that are not deferred may have
	 * changed the ref, so a row is deferred only once. */
	if (row->row.kind != JOURNAL_SLICE || row->is_aside)
		return false;
	return p->fs != NULL ? row->row.mount == p->fs->mount :
			       row->row.mount != p->repo->fs->mount;
}

static bool is_open_elsewhere(struct repos *repos, const struct repo *repo)
{
	const struct repo *other;

	mutex_lock(&repos->mutex);
	for (other = repos->open; other != NULL; other = other->next)
		if (other != repo && other->id == repo->id && other->refs > 0)
			break;
	mutex_unlock(&repos->mutex);
	return other != NULL;
}

/* Does KNOWN lie on a subvolume that is in use and is not FS? The subvolumes of
 * a btrfs are several struct fs, but have one life. */
static bool is_on_other_subvolume(struct repos *repos, const struct fs *fs,
    const struct journal_repo *known)
{
	const struct fs *other;

	for (other = fs_first(repos); other != NULL; other = other->next)
		if (other != fs && other->mount == fs->mount &&
		    other->dev == known->dev && other->state != FS_GONE)
			return true;
	return false;
}

static int defer_repo(void *arg, const struct journal_repo *known)
{
	struct deferring *p = arg;
	struct replay_row *row;
	uint64_t nr = 0;
	bool skip;
	int r = 0;

	if (p->repo != NULL && p->repo->id != known->id)
		return 0;
	/* A repository in use on another subvolume may get more records, and an
	 * earlier record must not be redone alone, so the repository is
	 * skipped. If the other subvolume fails, its records are deferred
	 * then. */
	skip = p->fs != NULL &&
	    is_on_other_subvolume(p->deferred->cfg->repos, p->fs, known);
	for (row = recover_rows_of(&p->rows, known->id); row != NULL && r == 0;
	    row = row->next)
		if (is_wanted(p, row) && skip)
			p->has_skipped = true;
		else if (is_wanted(p, row))
			r = recover_notes_defer_row(&p->notes, row,
			    JOURNAL_MOUNT_LOST, &nr);
	if (r == 0 && nr > 0)
		deferred_add(p->deferred, known, nr,
		    p->fs != NULL ?
			"its file system failed to sync; nothing is written "
			"there until its records are redone" :
			"its file system is another mount than its records "
			"were written on; they are redone first");
	return r;
}

/* Nobody appends more of the wanted records. After the wait all of them are
 * durable, so they stay even if the log is opened again. */
static int defer(struct deferring *p)
{
	struct deferred *d = p->deferred;
	uint64_t last_lsn;
	int r;

	r = commit_log_wait(d->cfg->log, NULL, COMMIT_LOG_DURABLE);
	if (r == 0)
		r = recover_rows_read(d->cfg->log, &p->rows, &last_lsn);
	if (r == 0)
		r = journal_each_repo(commit_log_journal(d->cfg->log),
		    defer_repo, p);
	if (r == 0)
		r = recover_notes_write(&p->notes, d->cfg->log);
	recover_notes_done(&p->notes);
	recover_rows_done(&p->rows);
	if (r == 0)
		deferred_publish(d);
	return r > 0 ? -EIO : r;
}

uint64_t deferred_fs_first_batch(struct deferred *d, struct repo *repo)
{
	struct repos *repos = d->cfg->repos;
	uint64_t first;

	mutex_lock(&repos->mutex);
	if (repo->fs->first_batch == 0)
		repo->fs->first_batch = d->cfg->next_token(d->cfg->store);
	first = repo->fs->first_batch;
	mutex_unlock(&repos->mutex);
	/* Some file systems are told apart only by their mounts. So another
	 * open path may lead to the same directories, where older batches may
	 * still work. Then FIRST is unknown. */
	return is_open_elsewhere(repos, repo) ? 0 : first;
}

/* Searches for the locks of batches without a record, and for tables without a
 * footer. Both come back with a disk. */
static int look_for_leftovers(struct deferred *d, struct repo *repo)
{
	struct journal_repo known = { .id = repo->id, .path = repo->path };
	struct live_batches live = { .from = deferred_fs_first_batch(d, repo) };
	int r;

	if (live.from == 0 || deferred_is_endless(d, repo->id))
		return 0;
	r = leftover_locks_any(d->cfg->sys, repo, live);
	if (r == 0)
		r = replay_stacks_any_damaged(d->cfg->sys, repo);
	if (r == 0 || (r < 0 && r != -EUSERS))
		return r;
	memcpy(known.uuid, repo->uuid, sizeof(known.uuid));
	deferred_note(d, &known, 0, r < 0 ? r : 0);
	if (r < 0)
		tell(d, STORE_REPO_WAITS, repo->path, leftover_locks_why(r));
	return 0;
}

int deferred_fs_check(struct deferred *d, struct repo *repo)
{
	struct deferring p = { .deferred = d, .repo = repo };
	bool is_elsewhere;
	int r;

	if (repo->is_looked_at)
		return 0;
	mutex_lock(&d->rows);
	r = journal_is_elsewhere(commit_log_journal(d->cfg->log), repo->id,
	    repo->fs->mount, &is_elsewhere);
	if (r == 0 && is_elsewhere)
		r = is_open_elsewhere(d->cfg->repos, repo) ? -EAGAIN :
							     defer(&p);
	mutex_unlock(&d->rows);
	if (r == 0 && is_elsewhere && deferred_blocks_writes(d, repo->id))
		tell(d, STORE_FS_OTHER, repo->path, "");
	if (r == 0)
		r = look_for_leftovers(d, repo);
	repo->is_looked_at = r == 0;
	return r > 0 ? -EIO : r;
}

void deferred_fs_let_go(struct deferred *d)
{
	struct deferring p = { .deferred = d };
	struct repos *repos = d->cfg->repos;
	char path[REFD_PATH_MAX];
	struct fs *fs;

	mutex_lock(&d->rows);
	for (fs = fs_first(repos); fs != NULL; fs = fs->next) {
		p.fs = fs;
		p.has_skipped = false;
		if (fs->state != FS_FAILED || fs_is_in_use(repos, fs) ||
		    defer(&p) < 0)
			continue;
		fs_path(repos, fs, path);
		/* The records of a skipped repository are not deferred. After a
		 * kill the next start must doubt these records, so the failure
		 * stays noted. */
		if (!p.has_skipped)
			sync_failures_deferred(repos->sync_failures, fs->mount);
		fs_let_go(repos, fs);
		tell(d, STORE_FS_LET_GO, path, "");
	}
	mutex_unlock(&d->rows);
}
