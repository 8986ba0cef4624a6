/*
 * Flushes of the WAL beside the commits, at most eight at a time.
 *
 * Happy path: for durability the caller waits for a flush begun after the
 * commit. A waiting caller flushes for all waiting callers. Up to seven further
 * flushes may begin during the first, for late callers. Each further flush
 * waits until an eighth of the time of a flush has passed since the last begin,
 * so that callers gather for the flush. The block layer of Linux joins flushes
 * that wait for a flush of the same device. So a disk that does one flush after
 * the other gets fewer flushes.
 *
 * The kernel reports a failed write once for each open file, so each flush has
 * a handle of its own. With a common handle, a second flush would report
 * success.
 *
 * A later flush covers all commits of an earlier flush, which may have failed.
 * So no commit counts as durable until the earlier flush has succeeded.
 *
 * On ext4 a flush may succeed although its data is lost. If the journal of ext4
 * has aborted since the write, the transaction with the size and the blocks of
 * the WAL is gone, so fdatasync finds nothing left to wait for (Linux 6.18:
 * fdatasync returned 0, and after a mount the file had its old size). Blocks
 * made durable by an earlier flush are safe. So journal_fs_lives() follows each
 * flush of a grown WAL, and each checkpoint of SQLite.
 *
 * Failure modes:
 *	a flush fails, or the file system has stopped since
 *			the journal is broken: JOURNAL_UNKNOWN to each caller
 *			whose flush was not over, until journal_reopen() has
 *			read the disk
 *	the journal was reopened meanwhile
 *			earlier commits may be gone: JOURNAL_UNKNOWN too
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/base/probe.h"
#include "daemon/base/time.h"
#include "daemon/store/journal/journal_internal.h"

/* ---- handles ---- */

static int open_one(struct journal *j, sqlite3_vfs *vfs,
    struct journal_flusher *f)
{
	const char *db = sqlite3_db_filename(j->db, "main");
	int rc, flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_WAL;

	f->wal = calloc(1, (size_t)vfs->szOsFile);
	if (f->wal == NULL)
		return SQLITE_NOMEM;
	rc = vfs->xOpen(vfs, sqlite3_filename_wal(db), f->wal, flags, &flags);
	if (rc == SQLITE_OK || f->wal->pMethods != NULL)
		return rc;
	free(f->wal);
	f->wal = NULL;
	return rc;
}

int journal_flush_open(struct journal *j)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(j->cfg.vfs);
	const char *path =
	    sqlite3_filename_wal(sqlite3_db_filename(j->db, "main"));
	int i, rc = vfs != NULL ? SQLITE_OK : SQLITE_ERROR;

	for (i = 0; i < JOURNAL_FLUSHERS && rc == SQLITE_OK; i++)
		rc = open_one(j, vfs, &j->flush.flushers[i]);
	j->wal_durable_bytes = 0;
	if (rc == SQLITE_OK)
		j->wal_fd = SYS(j->sys, openat, SYS_TRUSTED, path,
		    O_RDWR | O_NOFOLLOW, 0);
	return rc == SQLITE_OK && j->wal_fd < 0 ? SQLITE_CANTOPEN : rc;
}

void journal_flush_close(struct journal *j)
{
	struct journal_flusher *f;
	int i;

	for (i = 0; i < JOURNAL_FLUSHERS; i++) {
		f = &j->flush.flushers[i];
		if (f->wal == NULL)
			continue;
		f->wal->pMethods->xClose(f->wal);
		free(f->wal);
		f->wal = NULL;
	}
	if (j->wal_fd >= 0)
		SYS(j->sys, close, j->wal_fd);
	j->wal_fd = -1;
}

/* The first call makes ext4 notice the abort of its journal, but may still
 * return 0. So there is a second call, which ext4 refuses. */
bool journal_fs_lives(struct journal *j)
{
	int i, r = 0;

	for (i = 0; i < 2 && r == 0; i++)
		r = SYS(j->sys, futimens_now, j->wal_fd);
	return r == 0 || r == -ENOSPC || r == -EDQUOT;
}

/* ---- flushing; hand_lock is held ---- */

/* A flusher free to begin for MARK. NULL: *UNTIL_NS is the time when a flush
 * may begin, or 0. A flush under way may cover MARK. */
static struct journal_flusher *may_begin(struct journal *j,
    const struct journal_mark *mark, int64_t *until_ns)
{
	uint64_t under_way = j->flush.begun - j->flush.over;
	int i;

	*until_ns = 0;
	if (under_way == JOURNAL_FLUSHERS)
		return NULL;
	if (under_way > 0 && j->flush.commits >= mark->written)
		return NULL;
	if (under_way > 0)
		*until_ns =
		    j->flush.began_ns + j->flush.took_ns / JOURNAL_FLUSHERS;
	if (time_now_ns(CLOCK_MONOTONIC) < *until_ns)
		return NULL;
	for (i = 0; j->flush.flushers[i].is_busy; i++)
		;
	return &j->flush.flushers[i];
}

static void wait_until(struct journal *j, int64_t until_ns)
{
	const struct timespec until = time_spec(until_ns);

	j->flush.waiting++;
	if (until_ns == 0)
		mutex_wait(&j->flush.cond, &j->hand_lock);
	else
		mutex_wait_until(&j->flush.cond, &j->hand_lock, &until);
	j->flush.waiting--;
}

/* Syncs a WAL whose frames end at byte END. *LASTS: the number of bytes of the
 * file with durable blocks. */
static bool sync_wal(struct journal *j, struct journal_flusher *f, uint64_t end,
    uint64_t *lasts)
{
	bool has_grown = end > *lasts;
	struct sys_stat st;

	if (has_grown && SYS(j->sys, fstat, j->wal_fd, &st) != 0)
		return false;
	if (f->wal->pMethods->xSync(f->wal, SQLITE_SYNC_NORMAL) != SQLITE_OK)
		return false;
	if (!has_grown)
		return true;
	*lasts = st.size;
	return journal_fs_lives(j);
}

/* Releases hand_lock while the flush is under way. */
static void flush_once(struct journal *j, struct journal_flusher *f)
{
	uint64_t nr = ++j->flush.begun;
	uint64_t written = j->counts.written, row = j->lsn.last_row;
	uint64_t lasts = j->wal_durable_bytes, forgotten = j->lsn.forgotten;
	uint64_t end = (j->wal_frames + 1) * JOURNAL_FRAME_BYTES;
	int64_t took_ns, began_ns = time_now_ns(CLOCK_MONOTONIC);
	bool is_well;

	f->is_busy = true;
	f->began_ns = SYS(j->sys, now_mono);
	j->flush.began_ns = began_ns;
	j->flush.commits = written;
	PROBE_FLUSH_BEGIN(nr, written - j->counts.flushed);
	mutex_unlock(&j->hand_lock);
	is_well = sync_wal(j, f, end, &lasts);
	took_ns = time_now_ns(CLOCK_MONOTONIC) - began_ns;
	PROBE_FLUSH_END(nr, took_ns, is_well);
	mutex_lock(&j->hand_lock);
	j->flush.took_ns += (took_ns - j->flush.took_ns) / 8;
	while (j->flush.over + 1 != nr)
		wait_until(j, 0);
	f->is_busy = false;
	j->flush.over = nr;
	if (!is_well)
		j->is_broken = true;
	if (!j->is_broken) {
		j->counts.flushed = written;
		j->lsn.durable = row;
		j->lsn.forgotten_durable = forgotten;
		if (j->wal_durable_bytes < lasts)
			j->wal_durable_bytes = lasts;
		j->stats.flushes++;
	}
	pthread_cond_broadcast(&j->flush.cond);
}

static int flush_to(struct journal *j, const struct journal_mark *mark)
{
	struct journal_flusher *f;
	int64_t until_ns;

	for (;;) {
		if (mark->epoch != j->counts.epoch)
			return JOURNAL_UNKNOWN;
		if (j->counts.flushed >= mark->written)
			return 0;
		if (j->is_broken)
			return JOURNAL_UNKNOWN;
		f = may_begin(j, mark, &until_ns);
		if (f != NULL)
			flush_once(j, f);
		else
			wait_until(j, until_ns);
	}
}

/* ---- for all ---- */

int journal_flush_to(struct journal *j, const struct journal_mark *mark)
{
	int r;

	mutex_lock(&j->hand_lock);
	r = flush_to(j, mark);
	mutex_unlock(&j->hand_lock);
	return r;
}

int journal_flush(struct journal *j)
{
	struct journal_mark mark;

	/* Marks all commits visible to readers, also those that nobody waits
	 * for. */
	mutex_lock(&j->commit_lock);
	mark = journal_mark(j);
	mutex_unlock(&j->commit_lock);
	return journal_is_broken(j) ? JOURNAL_UNKNOWN :
				      journal_flush_to(j, &mark);
}

void journal_flush_end(struct journal *j)
{
	mutex_lock(&j->hand_lock);
	j->is_broken = true;
	j->counts.epoch++;
	pthread_cond_broadcast(&j->flush.cond);
	while (j->flush.over != j->flush.begun)
		mutex_wait(&j->flush.cond, &j->hand_lock);
	mutex_unlock(&j->hand_lock);
}

bool journal_repos_are_durable(struct journal *j, uint64_t epoch)
{
	bool last;

	mutex_lock(&j->hand_lock);
	last = !j->is_broken && j->counts.flushed >= j->counts.repos_written &&
	    j->counts.epoch == epoch;
	mutex_unlock(&j->hand_lock);
	return last;
}

int journal_flush_repos(struct journal *j, uint64_t epoch)
{
	struct journal_mark mark = { .epoch = epoch };
	int r;

	mutex_lock(&j->hand_lock);
	mark.written = j->counts.repos_written;
	if (j->is_broken)
		r = JOURNAL_UNKNOWN;
	else
		r = j->counts.epoch != epoch ? -ESTALE : flush_to(j, &mark);
	mutex_unlock(&j->hand_lock);
	return r;
}

/* ---- what is on disk ---- */

bool journal_is_unflushed(struct journal *j)
{
	bool is_unflushed;

	mutex_lock(&j->hand_lock);
	is_unflushed = j->lsn.durable < j->lsn.last_row;
	mutex_unlock(&j->hand_lock);
	return is_unflushed;
}

uint64_t journal_durable_lsn(struct journal *j)
{
	return journal_guarded(j, &j->lsn.durable);
}

int64_t journal_flush_hangs_ns(struct journal *j)
{
	int64_t ns = 0, now = SYS(j->sys, now_mono);
	const struct journal_flusher *f;
	int i;

	mutex_lock(&j->hand_lock);
	for (i = 0; i < JOURNAL_FLUSHERS; i++) {
		f = &j->flush.flushers[i];
		if (f->is_busy && now - f->began_ns > ns)
			ns = now - f->began_ns;
	}
	mutex_unlock(&j->hand_lock);
	return ns;
}

int64_t journal_flush_ns(struct journal *j)
{
	int64_t ns;

	mutex_lock(&j->hand_lock);
	ns = j->flush.took_ns;
	mutex_unlock(&j->hand_lock);
	return ns;
}
