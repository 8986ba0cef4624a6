/*
 * Syncs a file system, completely or only for published refs.
 *
 * The happy path: the sync is marked as begun (sync_failures.h). The marker
 * file gives the time by the clock of the file system. Then syncfs runs, and
 * everything that changed before that time is durable.
 *
 * Failures: a failed sync is noted before another thread may sync, because the
 * kernel reports a lost write only once, and then counts the data as written.
 */
#include <errno.h>

#include "daemon/store/repos/repo.h"

#define ROUNDED_NS 1000000000

/* Writes made while the clock was back look older than they are, also once the
 * clock is right again, so the time of the last sync no longer counts. */
void fs_sync_watch_clock(struct repos *repos)
{
	int64_t offset = fs_clock_offset(repos->sys);
	struct fs *fs;

	mutex_lock(&repos->mutex);
	for (fs = repos->fs; fs != NULL; fs = fs->next)
		if (offset < fs->synced_offset_ns - FS_SLACK_NS / 2)
			fs->synced_ns = 0;
	mutex_unlock(&repos->mutex);
}

/* The time by the clock of the file system, which is the ctime of the marker. A
 * file system with objects only has no marker, so the kernel's clock counts,
 * less a second, because times may be rounded down to whole seconds. 0 if such
 * a file system may have a clock of its own. */
static int clock_of(const struct sys *sys, const struct fs *fs, int64_t *ns)
{
	struct sys_stat st;
	uint64_t type;
	int r;

	if (fs->marker_fd < 0) {
		r = SYS(sys, fs_type, fs->fd, &type);
		*ns = r == 0 && fs_type_has_our_clock(type) ?
		    SYS(sys, now_wall) - ROUNDED_NS :
		    0;
		return r;
	}
	r = SYS(sys, futimens_now, fs->marker_fd);
	if (r == 0)
		r = SYS(sys, fstat, fs->marker_fd, &st);
	if (r == 0)
		*ns = st.ctime_ns;
	return r;
}

static int sync_entered(struct repos *repos, struct fs *fs, int fd)
{
	const struct sys *sys = repos->sys;
	int64_t offset = fs_clock_offset(sys), ns = 0;
	int64_t began_ns, took_ns;
	int r;

	r = clock_of(sys, fs, &ns);
	began_ns = SYS(sys, now_mono);
	if (r == 0)
		r = SYS(sys, syncfs, fd);
	/* Before Linux 5.17 syncfs() of a file system that was shut down
	 * succeeds and drops the data, but a change of times fails. */
	if (r == 0 && fs->marker_fd >= 0)
		r = SYS(sys, futimens_now, fs->marker_fd);
	if (r < 0) {
		fs_fail(repos, fs, r);
		return r;
	}
	took_ns = SYS(sys, now_mono) - began_ns;
	mutex_lock(&repos->mutex);
	fs->syncfs_took_ns = took_ns;
	fs->synced_ns = ns;
	fs->synced_offset_ns = offset;
	mutex_unlock(&repos->mutex);
	return 0;
}

int fs_sync(struct repos *repos, struct fs *fs, int fd)
{
	int r = fs_enter(repos, fs);

	if (r < 0)
		return r;
	r = sync_entered(repos, fs, fd);
	fs_leave(repos, fs);
	return r;
}

/* ---- published refs ---- */

/* With older kernels, syncfs succeeds on a file system that became read-only.
 * An fsync of the marker fails there, so the marker is written and synced,
 * too. */
static int sync_marked(struct repos *repos, struct fs *fs)
{
	static const char byte[] = "refd\n";
	const struct sys *sys = repos->sys;
	ssize_t n;
	int r;

	r = fs_sync(repos, fs, fs->fd);
	if (r < 0)
		return r;
	n = SYS(sys, pwrite, fs->marker_fd, byte, sizeof(byte) - 1, 0);
	/* The owner may have emptied the marker, and have no room left. */
	if (n == -ENOSPC || n == -EDQUOT)
		r = SYS(sys, futimens_now, fs->marker_fd);
	else
		r = n == (ssize_t)sizeof(byte) - 1 ? 0 : -EIO;
	if (r == 0)
		r = SYS(sys, fsync, fs->marker_fd);
	if (r < 0)
		fs_fail(repos, fs, r);
	return r;
}

/* Both the checkpoint and a retry of deferred redo forget records after this
 * call. So a thread that finds nothing to sync must still wait until the sync
 * of the other thread ends. */
int fs_sync_published(struct repos *repos, struct fs *fs)
{
	bool promised;
	int r = 0;

	mutex_lock(&fs->checkpoint);
	promised = atomic_exchange(&fs->promised, false);
	if (atomic_exchange(&fs->touched, false)) {
		r = fs_enter(repos, fs);
		if (r == 0) {
			r = sync_marked(repos, fs);
			fs_leave(repos, fs);
		}
	}
	if (r < 0) {
		atomic_store(&fs->touched, true);
		if (promised)
			atomic_store(&fs->promised, true);
	}
	mutex_unlock(&fs->checkpoint);
	return r;
}

/* While syncs cannot be marked, refd syncs nothing and forgets no record, so
 * the begin and the end of this state are reported. */
void fs_sync_tell_unmarked(struct repos *repos)
{
	int err;

	if (repos->report.unmarked != NULL &&
	    sync_failures_unmarked_changed(repos->sync_failures, &err))
		repos->report.unmarked(repos->report.arg, err);
}
