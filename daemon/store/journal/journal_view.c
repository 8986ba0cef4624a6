/*
 * A view: another process, such as refd verify, reads the journal while the
 * daemon may write.
 *
 * The daemon has the index of the WAL in its own memory. So SQLite's locks
 * cannot keep a view and the daemon apart, and the view takes none of them. The
 * daemon changes files in three ways, and each has an answer:
 *	a checkpoint changes the database	the lock of the WAL's file
 *		excludes checkpoints while a slice of rows is read
 *	a commit adds frames			a view sees the frames up to
 *		the last whole commit
 *	a commit begins the WAL anew		a view reads a copy of the WAL,
 *		and copies again if the WAL began anew during the copying. All
 *		frames of the old WAL are in the database then
 * The file of the WAL is never removed, because a lock on a removed file would
 * exclude nobody.
 *
 * Happy path: lock the file of the WAL, copy its frames into memory, connect
 * without locks, read the rows, unlock. The next read goes on with the
 * connection if the times of both files show that nothing was written since.
 *
 * Failure modes:
 *	the view is stopped while it has the lock, or hangs	the daemon does
 *		without its checkpoint, and the WAL grows. A daemon that cannot
 *		do without the checkpoint waits for some seconds, and goes on
 *		without the lock. A database that was not written for so long
 *		gets a new time. So the view notices: -EAGAIN, and all that was
 *		read must be read again
 *	a checkpoint takes long, or hangs	-EBUSY
 *	there is no file of a WAL	no daemon runs; the copy is empty
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/base/fs_type.h"
#include "daemon/store/journal/journal_internal.h"

#define WAIT_NS 10000000000 /* for a checkpoint */
#define POLL_NS 1000000
/* A daemon that waits for the lock polls more often, so the daemon gets the
 * lock in this pause. */
#define PAUSE_NS 3000000

/* https://www.sqlite.org/fileformat2.html, 4.1. The salts of the header and of
 * a frame are the same, as long as the WAL is. */
#define WAL_HEADER   32
#define HEADER_SALTS 16
#define FRAME_SALTS  8
#define SALTS        8

/* ---- the lock ---- */

int journal_lock_wal(struct journal *j, int64_t wait_ns, int *fd)
{
	int r = SYS(j->sys, openat, SYS_TRUSTED, j->cfg.wal,
	    O_RDONLY | O_NOFOLLOW, 0);

	*fd = -1;
	if (r < 0)
		return r;
	*fd = r;
	while ((r = SYS(j->sys, flock_try, *fd)) == -EAGAIN && wait_ns > 0) {
		SYS(j->sys, sleep_ns, POLL_NS);
		wait_ns -= POLL_NS;
	}
	if (r == 0)
		return 0;
	SYS(j->sys, close, *fd);
	*fd = -1;
	return r == -EAGAIN ? -EBUSY : r;
}

/* ---- the copy ---- */

/* -EAGAIN: the WAL began anew meanwhile. */
static int copy_frames(struct journal *j, int copy)
{
	uint8_t header[WAL_HEADER], again[WAL_HEADER],
	    frame[JOURNAL_FRAME_BYTES];
	off_t at = WAL_HEADER;
	ssize_t n;
	int r;

	n = SYS(j->sys, pread, j->view.lock, header, sizeof(header), 0);
	if (n < WAL_HEADER)
		return n < 0 ? (int)n : 0;
	r = SYS(&sys_kernel, write_all, copy, header, sizeof(header));
	while (r == 0) {
		n = SYS(j->sys, pread, j->view.lock, frame, sizeof(frame), at);
		if (n < JOURNAL_FRAME_BYTES ||
		    memcmp(frame + FRAME_SALTS, header + HEADER_SALTS, SALTS) !=
			0)
			break;
		r = SYS(&sys_kernel, write_all, copy, frame, sizeof(frame));
		at += n;
	}
	if (r == 0 && n >= 0)
		n = SYS(j->sys, pread, j->view.lock, again, sizeof(again), 0);
	if (r < 0 || n < 0)
		return r < 0 ? r : (int)n;
	return n == WAL_HEADER && memcmp(header, again, sizeof(header)) == 0 ?
	    0 :
	    -EAGAIN;
}

static int copy_wal(struct journal *j)
{
	int copy, r = 0;

	do {
		copy = memfd_create("journal.db-wal", MFD_CLOEXEC);
		if (copy < 0)
			return -errno;
		if (j->view.lock >= 0)
			r = copy_frames(j, copy);
		if (r < 0)
			SYS(&sys_kernel, close, copy);
	} while (r == -EAGAIN);
	if (r == 0)
		journal_give_wal(copy);
	return r;
}

static int look(struct journal *j, struct journal_sight *sight)
{
	int r;

	memset(sight, 0, sizeof(*sight));
	r = SYS(j->sys, lstatat, SYS_TRUSTED, j->cfg.path, &sight->db);
	if (r == 0 && j->view.lock >= 0)
		r = SYS(j->sys, fstat, j->view.lock, &sight->wal);
	return r;
}

int journal_view_copy(struct journal *j)
{
	int r = look(j, &j->view.sight);

	j->view.sight.at_ns = SYS(j->sys, now_wall);
	return r < 0 ? r : copy_wal(j);
}

/* A later write in the same tick of the clock would leave the same time, so a
 * time of the present tick proves nothing. */
static bool is_same(const struct sys_stat *was, const struct sys_stat *is,
    int64_t at_ns)
{
	return was->ino == is->ino && was->size == is->size &&
	    was->mtime_ns == is->mtime_ns &&
	    !fs_time_may_repeat(was->mtime_ns, at_ns);
}

bool journal_view_stands(struct journal *j, const struct journal_sight *sight,
    bool old_row)
{
	struct journal_sight now;

	return look(j, &now) == 0 &&
	    is_same(&sight->db, &now.db, sight->at_ns) &&
	    (old_row || is_same(&sight->wal, &now.wal, sight->at_ns));
}

int journal_view_lock(struct journal *j)
{
	int r;

	if (j->view.users++ > 0)
		return 0;
	r = journal_lock_wal(j, WAIT_NS, &j->view.lock);
	j->view.locked_ns = SYS(j->sys, now_mono);
	look(j, &j->view.locked);
	return r == -ENOENT ? 0 : r;
}

int journal_view_unlock(struct journal *j, int r)
{
	struct journal_sight now;
	int copy = journal_give_wal(-1);

	if (copy >= 0)
		SYS(&sys_kernel, close, copy);
	if (--j->view.users > 0)
		return r;
	look(j, &now);
	if (!is_same(&j->view.locked.db, &now.db, INT64_MAX)) {
		r = -EAGAIN;
		/* The daemon may have changed the pages meanwhile, so perhaps
		 * no row is damaged. */
		j->lsn.damaged = 0;
	}
	if (j->view.lock >= 0)
		SYS(j->sys, close, j->view.lock);
	j->view.lock = -1;
	if (SYS(j->sys, now_mono) - j->view.locked_ns > POLL_NS)
		SYS(j->sys, sleep_ns, PAUSE_NS);
	return r;
}

/* ---- opening ---- */

int journal_view(const struct journal_config *cfg, struct journal **journal,
    char **why)
{
	struct journal *j;
	int r;

	*why = NULL;
	j = journal_new(cfg, "unix-none");
	if (j == NULL)
		return -ENOMEM;
	j->view.is_view = true;
	r = journal_view_lock(j);
	if (r == 0)
		r = journal_connect_to_read(j, why);
	j->lsn.forget_wanted = j->meta.forgotten;
	journal_disconnect(&j->db);
	r = journal_view_unlock(j, r);
	if (r == 0)
		*journal = j;
	else
		journal_free(j);
	return r;
}

void journal_view_close(struct journal *j)
{
	if (j != NULL)
		journal_free(j);
}
