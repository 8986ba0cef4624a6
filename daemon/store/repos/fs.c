/*
 * The file systems of open repositories.
 *
 * The happy path: a file system is opened for its first repository, or for the
 * first objects that a repository elsewhere borrows, and stays open until the
 * store closes. The kernel reports a failed write-back once per descriptor, and
 * the next thread that syncs must find the failure noted, so one mounted file
 * system has one open struct fs. The first repository makes the marker file.
 *
 * Failures: after a failed sync, memory and disk may have different contents,
 * so refd does not trust the file system again, and nobody gets another
 * repository there. After the last repository was released, and the records
 * were deferred (deferred_fs.c), the descriptors are closed, so that the file
 * system can be unmounted. The next repository there opens the file system
 * again, and must sync it first.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/store/repos/repo_internal.h"

static void fs_close(const struct repos *repos, struct fs *fs)
{
	const int fds[] = { fs->marker_fd, fs->objects_fd, fs->fd };
	size_t i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			SYS(repos->sys, close, fds[i]);
	fs->fd = fs->objects_fd = -1;
	fs->marker_fd = -1;
}

/* Opens the directories of FS, on which DIRFD lies, for its syncs. */
static int fs_open_dirs(const struct sys *sys, int dirfd, struct fs *fs)
{
	fs->objects_fd = -1;
	fs->marker_fd = -1;
	fs->fd = SYS(sys, openat, dirfd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (fs->fd < 0)
		return fs->fd;
	fs->objects_fd =
	    SYS(sys, openat, dirfd, ".", O_RDONLY | O_DIRECTORY, 0);
	return fs->objects_fd < 0 ? fs->objects_fd : 0;
}

static int fs_open(const struct repos *repos, const struct repo *repo,
    struct fs *fs)
{
	const struct sys *sys = repos->sys;
	int r = fs_open_dirs(sys, repo->refd_fd, fs);

	if (r < 0)
		return r;
	fs->fsync_covers_all = SYS(sys, fsync_covers_all, fs->fd) > 0;
	/* An old entry of this name need not be a file, so it is removed. */
	r = SYS(sys, unlinkat, repo->refd_fd, "marker");
	if (r == 0 || r == -ENOENT) {
		fs->marker_fd = SYS(sys, openat, repo->refd_fd, "marker",
		    O_RDWR | O_CREAT | O_EXCL, 0600);
		if (fs->marker_fd >= 0)
			return 0;
		r = fs->marker_fd;
	}
	return r;
}

static int fs_try_sync(const struct repos *repos, const struct fs *fs)
{
	const struct sys *sys = repos->sys;
	bool has_marker = fs->marker_fd >= 0;
	int r = 0;

	if (has_marker)
		r = SYS(sys, futimens_now, fs->marker_fd);
	if (r == 0)
		r = SYS(sys, syncfs, fs->fd);
	return r == 0 && has_marker ? SYS(sys, fsync, fs->marker_fd) : r;
}

/* After a failure of any file system, FS must prove that a sync works. */
static int fs_try(const struct repos *repos, const struct fs *fs)
{
	int r;

	if (!repos->has_failed)
		return 0;
	r = sync_failures_begin(repos->sync_failures, fs->mount, 0);
	if (r < 0)
		return r;
	r = fs_try_sync(repos, fs);
	if (r < 0)
		sync_failures_add(repos->sync_failures, fs->mount);
	sync_failures_end(repos->sync_failures, fs->mount);
	return r;
}

/* Under MUTEX. */
static struct fs *find_fs(const struct repos *repos, uint64_t dev,
    uint64_t mount)
{
	struct fs *fs;

	for (fs = repos->fs; fs != NULL; fs = fs->next)
		if (fs->dev == dev && fs->mount == mount &&
		    fs->state != FS_GONE)
			break;
	return fs;
}

/* KNOWN may have been opened for objects only, so it takes over the marker of
 * FS. Under MUTEX. */
static void take_marker(struct fs *known, struct fs *fs)
{
	if (known->marker_fd >= 0 || fs->marker_fd < 0)
		return;
	known->fsync_covers_all = fs->fsync_covers_all;
	known->marker_fd = fs->marker_fd;
	fs->marker_fd = -1;
}

/* Takes FS over, whose directories were opened with the result R. */
static int fs_add(struct repos *repos, struct fs *fs, int r, struct fs **out)
{
	struct fs *other;

	if (r == 0)
		r = fs_try(repos, fs);
	if (r < 0) {
		fs_close(repos, fs);
		free(fs);
		return r;
	}
	mutex_init(&fs->checkpoint, MUTEX_FS);
	mutex_init(&fs->objects_sync, MUTEX_FS);
	mutex_lock(&repos->mutex);
	other = find_fs(repos, fs->dev, fs->mount);
	if (other != NULL) {
		take_marker(other, fs);
	} else {
		fs->next = repos->fs;
		repos->fs = fs;
	}
	mutex_unlock(&repos->mutex);
	*out = fs;
	if (other == NULL)
		return 0;
	/* Another thread opened the file system first. */
	mutex_destroy(&fs->checkpoint);
	mutex_destroy(&fs->objects_sync);
	fs_close(repos, fs);
	free(fs);
	*out = other;
	return other->state == FS_OPEN ? 0 : -EIO;
}

static int fs_new(struct repos *repos, const struct repo *repo, uint64_t mount,
    struct fs **out)
{
	struct fs *fs = calloc(1, sizeof(*fs));
	int r;

	if (fs == NULL)
		return -ENOMEM;
	fs->dev = repo->dev;
	fs->mount = mount;
	r = fs_open(repos, repo, fs);
	return fs_add(repos, fs, r, out);
}

int fs_attach(struct repos *repos, struct repo *repo)
{
	uint64_t mount;
	struct fs *fs;
	int r;

	r = SYS(repos->sys, mount_id, repo->fd, &mount);
	if (r < 0)
		return r;
	mutex_lock(&repos->mutex);
	fs = find_fs(repos, repo->dev, mount);
	mutex_unlock(&repos->mutex);
	if (fs != NULL && fs->state != FS_OPEN)
		return -EIO;
	if ((fs == NULL || fs->marker_fd < 0) &&
	    (r = fs_new(repos, repo, mount, &fs)) < 0)
		return r;
	repo->fs = fs;
	return 0;
}

/* Opens a file system for objects only. */
static int fs_new_plain(struct repos *repos, int fd, uint64_t dev,
    uint64_t mount, struct fs **out)
{
	struct fs *fs = calloc(1, sizeof(*fs));

	if (fs == NULL)
		return -ENOMEM;
	fs->dev = dev;
	fs->mount = mount;
	return fs_add(repos, fs, fs_open_dirs(repos->sys, fd, fs), out);
}

int fs_of(struct repos *repos, int fd, struct fs **out)
{
	struct sys_stat st;
	struct fs *found;
	uint64_t mount;
	int r;

	r = SYS(repos->sys, fstat, fd, &st);
	if (r == 0)
		r = SYS(repos->sys, mount_id, fd, &mount);
	if (r < 0)
		return r;
	mutex_lock(&repos->mutex);
	found = find_fs(repos, st.dev, mount);
	mutex_unlock(&repos->mutex);
	if (found == NULL)
		return fs_new_plain(repos, fd, st.dev, mount, out);
	if (found->state != FS_OPEN)
		return -EIO;
	*out = found;
	return 0;
}

struct fs *fs_first(struct repos *repos)
{
	struct fs *fs;

	mutex_lock(&repos->mutex);
	fs = repos->fs;
	mutex_unlock(&repos->mutex);
	return fs;
}

/* The descriptor may be closed as soon as the file system is gone, so the state
 * is looked at under MUTEX. The kernel knows the path without asking the disk,
 * so the mutex is held only shortly. */
void fs_path(struct repos *repos, const struct fs *fs, char path[REFD_PATH_MAX])
{
	const struct repo *repo;

	mutex_lock(&repos->mutex);
	for (repo = repos->open; repo != NULL; repo = repo->next)
		if (repo->fs == fs)
			break;
	if (repo != NULL)
		snprintf(path, REFD_PATH_MAX, "%s", repo->path);
	else if (fs->state == FS_GONE ||
	    SYS(repos->sys, fd_path, fs->fd, path, REFD_PATH_MAX) < 0)
		path[0] = '\0';
	mutex_unlock(&repos->mutex);
}

/* The table is in fs.h. Under MUTEX. */
static void set_state(struct fs *fs, enum fs_state state)
{
	assert(fs->state == (state == FS_GONE ? FS_FAILED : FS_OPEN));
	fs->state = state;
}

void fs_fail(struct repos *repos, struct fs *fs, int err)
{
	char path[REFD_PATH_MAX];
	struct repo *repo;
	bool is_first;

	mutex_lock(&repos->mutex);
	repos->has_failed = true;
	is_first = fs->state == FS_OPEN;
	if (is_first)
		set_state(fs, FS_FAILED);
	for (repo = repos->open; repo != NULL; repo = repo->next)
		if (repo->fs == fs)
			repo->doomed = true;
	mutex_unlock(&repos->mutex);
	sync_failures_add(repos->sync_failures, fs->mount);
	if (!is_first || repos->report.fs_failed == NULL)
		return;
	fs_path(repos, fs, path);
	repos->report.fs_failed(repos->report.arg, path, err);
}

bool fs_is_in_use(struct repos *repos, const struct fs *fs)
{
	const struct repo *repo;
	bool is_syncing;

	mutex_lock(&repos->mutex);
	is_syncing = fs->nr_syncing > 0;
	for (repo = repos->open; repo != NULL; repo = repo->next)
		if (repo->fs == fs && repo->refs > 0)
			break;
	mutex_unlock(&repos->mutex);
	return repo != NULL || is_syncing;
}

int64_t fs_clock_offset(const struct sys *sys)
{
	return SYS(sys, now_wall) - SYS(sys, now_mono);
}

/* While the clock is back, nothing is known to be older. */
static int64_t synced_ns(const struct fs *fs, int64_t offset)
{
	return offset >= fs->synced_offset_ns - FS_SLACK_NS / 2 ?
	    fs->synced_ns :
	    0;
}

int64_t fs_synced_ns(struct repos *repos, uint64_t dev)
{
	int64_t offset = fs_clock_offset(repos->sys), ns, synced = 0;
	const struct fs *fs;

	mutex_lock(&repos->mutex);
	for (fs = repos->fs; fs != NULL; fs = fs->next) {
		if (fs->dev != dev || fs->state != FS_OPEN)
			continue;
		ns = synced_ns(fs, offset);
		synced = ns > synced ? ns : synced;
	}
	mutex_unlock(&repos->mutex);
	return synced;
}

int fs_enter(struct repos *repos, struct fs *fs)
{
	int64_t offset = fs_clock_offset(repos->sys), since = 0;
	int r = 0;

	mutex_lock(&repos->mutex);
	if (fs->state != FS_OPEN) {
		r = -EIO;
	} else {
		fs->nr_syncing++;
		since = synced_ns(fs, offset);
	}
	mutex_unlock(&repos->mutex);
	if (r == 0 &&
	    (r = sync_failures_begin(repos->sync_failures, fs->mount, since)) <
		0) {
		mutex_lock(&repos->mutex);
		fs->nr_syncing--;
		mutex_unlock(&repos->mutex);
	}
	return r;
}

void fs_leave(struct repos *repos, struct fs *fs)
{
	sync_failures_end(repos->sync_failures, fs->mount);
	mutex_lock(&repos->mutex);
	fs->nr_syncing--;
	mutex_unlock(&repos->mutex);
}

void fs_let_go(struct repos *repos, struct fs *fs)
{
	mutex_lock(&repos->mutex);
	set_state(fs, FS_GONE);
	mutex_unlock(&repos->mutex);
	fs_close(repos, fs);
}

void fs_free_all(struct repos *repos)
{
	struct fs *fs;

	while ((fs = repos->fs) != NULL) {
		repos->fs = fs->next;
		if (fs->state != FS_GONE)
			fs_close(repos, fs);
		mutex_destroy(&fs->checkpoint);
		mutex_destroy(&fs->objects_sync);
		free(fs);
	}
}
