/*
 * SQLite's checkpoint: frames of the WAL into the database file.
 *
 * Happy path:
 *	on request a PASSIVE checkpoint, beside the commits, on a separate
 *	connection. After a complete checkpoint, the next commit begins the WAL
 *	anew. Under a constant load no checkpoint is complete. When the WAL has
 *	outgrown its bound: PASSIVE again, for the frames since, and a sync of
 *	the database file, until few frames are left; only then, with the
 *	committer waiting, a last PASSIVE with little to copy and to sync.
 *
 * No checkpoint starts between a complete checkpoint and the end of the next
 * commit ("WAL-reset bug", https://www.sqlite.org/wal.html), because a
 * checkpoint can read the old header just before a commit begins the WAL anew.
 * Before 3.51.3 such a checkpoint counts frames as copied that never were. So
 * an idle journal is left alone until the next commit.
 *
 * Failure modes:
 *	a reader, or a view of another process, blocks the copying
 *					the rest is copied next time. A view
 *					that blocks a start, or a WAL beyond
 *					its bound, has a time limit
 *	no room in the database file	-ENOSPC; nothing is lost, the WAL
 *					grows until there is room
 *	any other I/O error		JOURNAL_UNKNOWN, and no new attempt:
 *					SQLite counts frames of a partial
 *					checkpoint as copied before they are
 *					synced, so a swallowed error would
 *					lose pages. journal_reopen() copies
 *					the whole WAL once more
 */
#include <errno.h>

#include "daemon/store/journal/journal_internal.h"

/* Few enough frames to make the committer wait. Commits may add frames as fast
 * as a checkpoint copies frames, so the number of attempts is bounded. */
#define FEW_FRAMES 500
#define ROUNDS_MAX 5

/* The wait for a view that reads a slice of rows, or was stopped there. */
#define VIEW_NS         100000000
#define STOPPED_VIEW_NS 10000000000

static int failed(struct journal *j, int rc)
{
	if ((rc & 0xff) == SQLITE_BUSY)
		return 0;
	if ((rc & 0xff) != SQLITE_IOERR)
		return journal_errno(rc);
	journal_break(j);
	return JOURNAL_UNKNOWN;
}

/*
 * Were all frames copied, so that the next commit may begin the WAL anew, or
 * has a commit done so already? False if a commit has added frames meanwhile. A
 * commit that begins anew sets the count of copied frames to 0, so 0 is no
 * evidence. An error here is on the safe side, and the next commit corrects the
 * result. hand_lock held.
 */
static bool has_caught_up(const struct journal *j, int copied)
{
	return copied == 0 || (uint64_t)copied >= j->wal_frames;
}

/* 0, -EAGAIN (none may start before the next commit), or a failure. */
static int passive(struct journal *j)
{
	int rc, log = -1, copied = -1;
	bool may_start;

	mutex_lock(&j->hand_lock);
	may_start = !j->is_caught_up;
	rc = j->is_broken;
	mutex_unlock(&j->hand_lock);
	if (rc)
		return JOURNAL_UNKNOWN;
	if (!may_start)
		return -EAGAIN;
	rc = sqlite3_wal_checkpoint_v2(j->ckpt, "main",
	    SQLITE_CHECKPOINT_PASSIVE, &log, &copied);
	if (rc != SQLITE_OK)
		return failed(j, rc);
	/* On a connection that never read, SQLite does nothing and returns OK,
	 * and only a negative LOG tells. */
	if (log < 0)
		return -EIO;
	if (!journal_fs_lives(j))
		return failed(j, SQLITE_IOERR);
	mutex_lock(&j->hand_lock);
	j->is_caught_up = has_caught_up(j, copied);
	j->frames_left = j->is_caught_up ? 0 : j->wal_frames - (uint64_t)copied;
	j->stats.checkpoints++;
	mutex_unlock(&j->hand_lock);
	return 0;
}

static int sync_database(struct journal *j)
{
	sqlite3_file *file = NULL;
	int rc;

	rc = sqlite3_file_control(j->ckpt, "main", SQLITE_FCNTL_FILE_POINTER,
	    &file);
	if (rc == SQLITE_OK)
		rc = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
	return rc == SQLITE_OK ? 0 : failed(j, rc);
}

/* Must the WAL be made to begin anew? After a complete checkpoint the next
 * commit does so without help. */
static bool is_beyond(struct journal *j, uint64_t wal_max_bytes)
{
	bool is_beyond;

	mutex_lock(&j->hand_lock);
	is_beyond = !j->is_caught_up &&
	    j->wal_frames * JOURNAL_FRAME_BYTES > wal_max_bytes;
	mutex_unlock(&j->hand_lock);
	return is_beyond;
}

static int catch_up(struct journal *j)
{
	int i, r = sync_database(j);

	for (i = 0; i < ROUNDS_MAX && r == 0 &&
	    journal_guarded(j, &j->frames_left) > FEW_FRAMES;
	    i++) {
		r = passive(j);
		if (r == 0)
			r = sync_database(j);
	}
	if (r == 0) {
		mutex_lock(&j->commit_lock);
		r = passive(j);
		mutex_unlock(&j->commit_lock);
	}
	return r;
}

/* Keeps views out. A start, and a WAL that has outgrown its bound, cannot do
 * without a checkpoint, so MUST goes on without the lock. A view that was
 * stopped in the middle, or hangs, then notices the checkpoint, and uses
 * nothing that was read (journal_view.c). */
static int lock_wal(struct journal *j, bool must, int *fd)
{
	int r = journal_lock_wal(j, must ? STOPPED_VIEW_NS : VIEW_NS, fd);

	return must && r == -EBUSY ? 0 : r;
}

int journal_checkpoint(struct journal *j, uint64_t wal_max_bytes)
{
	int r, fd;

	mutex_lock(&j->ckpt_lock);
	r = lock_wal(j, is_beyond(j, wal_max_bytes), &fd);
	if (r == 0)
		r = passive(j);
	if (r == 0 && is_beyond(j, wal_max_bytes))
		r = catch_up(j);
	if (fd >= 0)
		SYS(j->sys, close, fd);
	mutex_unlock(&j->ckpt_lock);
	return r == -EAGAIN ? 0 : r;
}

int journal_truncate_wal(struct journal *j)
{
	int rc, fd, log = -1, copied = -1;

	if (journal_forget_room(j) < 0)
		return SQLITE_IOERR;
	/* Without a WAL there is nothing to copy, so no lock is needed. */
	rc = lock_wal(j, true, &fd);
	if (rc < 0 && rc != -ENOENT)
		return SQLITE_IOERR;
	rc = sqlite3_wal_checkpoint_v2(j->db, "main",
	    SQLITE_CHECKPOINT_TRUNCATE, &log, &copied);
	if (fd >= 0)
		SYS(j->sys, close, fd);
	if (rc == SQLITE_OK && log < 0)
		rc = SQLITE_IOERR;
	if (rc == SQLITE_OK) {
		j->frames = 0;
		mutex_lock(&j->hand_lock);
		j->wal_frames = 0;
		j->is_caught_up = true;
		mutex_unlock(&j->hand_lock);
	}
	return rc;
}
