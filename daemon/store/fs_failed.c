/*
 * What becomes of records whose file system failed to sync.
 *
 * The kernel tells of a failed write-back once, and calls the pages clean: from
 * then on memory says one thing and the disk perhaps another. So those records
 * get the recovery of a cut, in the running daemon:
 *
 *	fail	fs_fail(): nobody gets a repository there any more; what is
 *		under way ends. A kill does not hide it (doubts.c)
 *	defer	once nobody has one, by the next checkpoint or admission: all
 *		its records, marked as lost, durably
 *	go	its descriptors are closed, so that it can be unmounted
 *	redo	before the next write there, and after every checkpoint
 *		(deferred_retry.c): the file system is opened anew, by path,
 *		and must sync. The page cache is dropped, and every value is
 *		written again. Locks that came back with the disk are removed:
 *		windows that began before the new opening are over
 *
 * The same where a repository is opened that has records of another life of
 * its file system: it was unmounted in between, or somebody mounted another.
 * Each record is deferred once, whichever of the two comes first.
 *
 * Objects are another matter: no record has them, doubted.c looks for them.
 *
 * What fails: the journal. Then nothing is forgotten, and it is tried again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/recovery/recover_internal.h"
#include "daemon/store/store_internal.h"

struct deferring {
	struct store *store;
	const struct fs *fs;     /* that its records are on; or */
	const struct repo *repo; /* whose are on any but its own */
	struct rows rows;
	struct notes notes;
};

static bool is_wanted(const struct deferring *p, const struct replay_row *row)
{
	/* Once is enough: what was redone may have been changed since by
	 * records that are not deferred. */
	if (row->row.kind != JOURNAL_PART || row->is_aside)
		return false;
	return p->fs != NULL ? row->row.mount == p->fs->mount :
			       row->row.mount != p->repo->fs->mount;
}

static int defer_repo(void *arg, const struct journal_repo *known)
{
	struct deferring *p = arg;
	struct replay_row *row;
	uint64_t nr = 0;
	int r = 0;

	if (p->repo != NULL && p->repo->id != known->id)
		return 0;
	for (row = rows_of(&p->rows, known->id); row != NULL && r == 0;
	    row = row->next)
		if (is_wanted(p, row))
			r = notes_defer_row(&p->notes, row, JOURNAL_MOUNT_LOST,
			    &nr);
	if (r == 0 && nr > 0)
		deferred_add(p->store->deferred, known, nr,
		    p->fs != NULL ?
			"its file system failed to sync; nothing is written "
			"there until its records are redone" :
			"its file system is another mount than its records "
			"were written on; they are redone first");
	return r;
}

/* Nobody writes the records that are wanted any more. So all of them are
 * durable after the wait, and stay, also when the log is opened again. */
static int defer(struct deferring *p)
{
	struct store *s = p->store;
	uint64_t last_lsn;
	int r;

	r = commit_log_wait(s->log, NULL, COMMIT_LOG_DURABLE);
	if (r == 0)
		r = rows_read(s->log, &p->rows, &last_lsn);
	if (r == 0)
		r = journal_each_repo(s->journal, defer_repo, p);
	if (r == 0)
		r = notes_write(&p->notes, s->log);
	notes_done(&p->notes);
	rows_done(&p->rows);
	if (r == 0)
		deferred_publish(s->deferred);
	return r > 0 ? -EIO : r;
}

static bool is_open_elsewhere(struct store *s, const struct repo *repo)
{
	const struct repo *other;

	pthread_mutex_lock(&s->repos.mutex);
	for (other = s->repos.open; other != NULL; other = other->next)
		if (other != repo && other->id == repo->id && other->refs > 0)
			break;
	pthread_mutex_unlock(&s->repos.mutex);
	return other != NULL;
}

/* Before anybody gets a repository on a file system its number is taken, so
 * that all windows which are given one have later ones. */
uint64_t failed_live(void *store, struct repo *repo)
{
	struct store *s = store;
	uint64_t first;

	pthread_mutex_lock(&s->repos.mutex);
	if (repo->fs->first_window == 0)
		repo->fs->first_window = pipeline_next_token(s->pipeline);
	first = repo->fs->first_window;
	pthread_mutex_unlock(&s->repos.mutex);
	/* By another path, where mounts are all that tells file systems
	 * apart: those windows may be at work in these very directories. */
	return is_open_elsewhere(s, repo) ? 0 : first;
}

/* Locks that came back with the disk, of windows that left no record. */
static int look_for_locks(struct store *s, struct repo *repo)
{
	struct journal_repo known = { .id = repo->id, .path = repo->path };
	struct live_batches live = { .from = failed_live(s, repo) };
	int r;

	if (live.from == 0 || deferred_is_endless(s->deferred, repo->id))
		return 0;
	r = leftover_locks_any(s->sys, repo, live);
	if (r == 0 || (r < 0 && r != -EUSERS))
		return r;
	memcpy(known.uuid, repo->uuid, sizeof(known.uuid));
	deferred_note(s->deferred, &known, 0, r < 0 ? r : 0);
	if (r < 0)
		store_tell(s, STORE_REPO_WAITS, repo->path,
		    leftover_locks_why(r));
	return 0;
}

int failed_look(struct store *s, struct repo *repo)
{
	struct deferring p = { .store = s, .repo = repo };
	bool is_elsewhere;
	int r;

	if (repo->is_looked_at)
		return 0;
	deferred_lock_rows(s->deferred);
	r = journal_is_elsewhere(s->journal, repo->id, repo->fs->mount,
	    &is_elsewhere);
	if (r == 0 && is_elsewhere)
		r = is_open_elsewhere(s, repo) ? -EAGAIN : defer(&p);
	deferred_unlock_rows(s->deferred);
	if (r == 0 && is_elsewhere &&
	    deferred_blocks_writes(s->deferred, repo->id))
		store_tell(s, STORE_FS_OTHER, repo->path, "");
	if (r == 0)
		r = look_for_locks(s, repo);
	repo->is_looked_at = r == 0;
	return r > 0 ? -EIO : r;
}

void failed_park(struct store *s)
{
	struct deferring p = { .store = s };
	char path[REFD_PATH_MAX];
	struct fs *fs;

	deferred_lock_rows(s->deferred);
	for (fs = fs_first(&s->repos); fs != NULL; fs = fs->next) {
		p.fs = fs;
		if (!atomic_load(&fs->failed) || fs->gone ||
		    fs_is_in_use(&s->repos, fs) || defer(&p) < 0)
			continue;
		fs_path(&s->repos, fs, path);
		doubts_parked(s->repos.doubts, fs->mount);
		fs_let_go(&s->repos, fs);
		store_tell(s, STORE_FS_LET_GO, path, "");
	}
	deferred_unlock_rows(s->deferred);
}
