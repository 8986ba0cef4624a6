/*
 * The object barrier: no ref becomes durable before the objects it names.
 *
 * The happy path: every directory that objects are in (pack, the fan-outs, and
 * the same of alternates) last changed well before the last completed syncfs
 * of its file system, so all that is in them is on disk, and nothing needs
 * doing. Otherwise transactions wait here, before any lock is taken, and one
 * syncfs serves all that wait.
 *
 * Why it is safe to compare times: both are the file system's own clock, the
 * marker's ctime and the directories'; link, rename and create change a
 * directory's ctime; SLACK covers a tick (4 ms before multigrain timestamps)
 * and a directory touched while the marker was. With no syncfs since the
 * start, or a clock that was set back since, nothing is clean.
 *
 * What fails: a syncfs that fails refuses those that waited for it, and the
 * time does not advance. A directory that can't be looked at isn't clean.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/store_internal.h"

#define SLACK_NS         (100 * 1000 * 1000)
#define ALTERNATES_MAX   (64 * 1024)
#define ALTERNATES_DEPTH 5 /* as git's */

/* ---- clean? ---- */

/* 1: DIR/NAME is older than LIMIT, or not there. */
static int is_old(const struct sys *sys, int dirfd, const char *name,
    int64_t limit, struct sys_stat *st)
{
	int r;

	r = SYS(sys, statat, dirfd, name, st);
	if (r == -ENOENT)
		return 1;
	return r == 0 && st->ctime_ns < limit;
}

static bool fanouts_are_old(const struct sys *sys, int fd, int64_t limit,
    const uint8_t *present, uint8_t *seen)
{
	struct sys_stat st;
	char name[3];
	bool old = true;
	int i, r;

	for (i = 0; i < 256; i++) {
		if (present != NULL && !(present[i / 8] >> i % 8 & 1))
			continue;
		snprintf(name, sizeof(name), "%02x", i);
		r = SYS(sys, statat, fd, name, &st);
		if (r == 0 && seen != NULL)
			seen[i / 8] |= (uint8_t)(1 << i % 8);
		if (r == -ENOENT || (r == 0 && st.ctime_ns < limit))
			continue;
		old = false;
		if (seen == NULL)
			break;
	}
	return old;
}

static bool store_is_old(const struct sys *sys, int dirfd, const char *path,
    int64_t limit, int depth, uint64_t dev, struct repo *repo);

/* objects/info/alternates: a path per line, relative to objects/. */
static bool alternates_are_old(const struct sys *sys, int fd, int64_t limit,
    int depth, uint64_t dev)
{
	char *buf, *line, *rest;
	bool old = true;
	size_t len;
	int r;

	r = sys_read_file(sys, fd, "info/alternates", ALTERNATES_MAX, &buf,
	    &len);
	if (r == -ENOENT)
		return true;
	if (r < 0 || depth >= ALTERNATES_DEPTH)
		return false;
	rest = buf;
	while (old && (line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0' && line[0] != '#')
			old = store_is_old(sys, fd, line, limit, depth + 1, dev,
			    NULL);
	free(buf);
	return old;
}

/* LIMIT is by the clock of DEV, so a store elsewhere is never known to be
 * clean. REPO: whose fan-outs are remembered; NULL for an alternate. */
static bool store_is_old(const struct sys *sys, int dirfd, const char *path,
    int64_t limit, int depth, uint64_t dev, struct repo *repo)
{
	struct sys_stat st, pack;
	const uint8_t *present = NULL;
	uint8_t seen[32] = { 0 };
	bool old;
	int fd;

	fd = SYS(sys, openat, dirfd, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return false;
	if (SYS(sys, fstat, fd, &st) < 0 || st.dev != dev) {
		SYS(sys, close, fd);
		return false;
	}
	/* objects/ changes with every push: its quarantine comes and goes
	 * there. All that is looked for in it is a fan-out that is new, and
	 * that has a ctime of its own. */
	if (repo != NULL && repo->fanout_ctime_ns == st.ctime_ns)
		present = repo->fanout;
	old = is_old(sys, fd, "pack", limit, &pack) > 0;
	if (old)
		old = fanouts_are_old(sys, fd, limit, present,
		    present == NULL && repo != NULL ? seen : NULL);
	/* Not of this very tick, in which another may still be made. */
	if (old && repo != NULL && present == NULL && st.ctime_ns < limit) {
		memcpy(repo->fanout, seen, sizeof(seen));
		repo->fanout_ctime_ns = st.ctime_ns;
	}
	if (old)
		old = alternates_are_old(sys, fd, limit, depth, dev);
	SYS(sys, close, fd);
	return old;
}

/* By how much the wall clock, which is the file systems', is ahead of the
 * one that is never set. */
static int64_t clock_offset(const struct sys *sys)
{
	return SYS(sys, now_wall) - SYS(sys, now_mono);
}

bool barrier_is_clean(struct store *s, struct repo *repo)
{
	int64_t synced, offset;

	pthread_mutex_lock(&s->repos.mutex);
	synced = repo->fs->synced_ns;
	offset = repo->fs->synced_offset_ns;
	pthread_mutex_unlock(&s->repos.mutex);
	if (synced == 0 || clock_offset(s->sys) < offset - SLACK_NS / 2)
		return false;
	return store_is_old(s->sys, repo->fd, "objects", synced - SLACK_NS, 0,
	    repo->fs->dev, repo);
}

/* ---- sync ---- */

int barrier_sync(struct store *s, struct fs *fs)
{
	int64_t offset = clock_offset(s->sys);
	struct sys_stat st;
	int r;

	if (atomic_load(&fs->failed))
		return -EIO;
	r = SYS(s->sys, futimens_now, fs->marker_fd);
	if (r == 0)
		r = SYS(s->sys, fstat, fs->marker_fd, &st);
	if (r == 0)
		r = SYS(s->sys, syncfs, fs->fd);
	/* The kernel tells it once, and counts as written what is not. */
	if (r < 0) {
		fs_fail(&s->repos, fs);
		return r;
	}
	pthread_mutex_lock(&s->repos.mutex);
	fs->synced_ns = st.ctime_ns;
	fs->synced_offset_ns = offset;
	pthread_mutex_unlock(&s->repos.mutex);
	return 0;
}

static int sync_elsewhere(const struct sys *sys, int dirfd, const char *path,
    int depth, uint64_t dev);

static int sync_alternates(const struct sys *sys, int fd, int depth,
    uint64_t dev)
{
	char *buf, *line, *rest;
	size_t len;
	int r;

	r = sys_read_file(sys, fd, "info/alternates", ALTERNATES_MAX, &buf,
	    &len);
	if (r < 0 || depth >= ALTERNATES_DEPTH)
		return r == -ENOENT ? 0 : r < 0 ? r : -ELOOP;
	rest = buf;
	while (r == 0 && (line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0' && line[0] != '#')
			r = sync_elsewhere(sys, fd, line, depth + 1, dev);
	free(buf);
	return r;
}

/* Object stores that lie on another file system than DEV, which has been
 * synced: each of them, every time. One that is not there holds nothing. */
static int sync_elsewhere(const struct sys *sys, int dirfd, const char *path,
    int depth, uint64_t dev)
{
	struct sys_stat st;
	int fd, r;

	fd = SYS(sys, openat, dirfd, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = SYS(sys, fstat, fd, &st);
	if (r == 0 && st.dev != dev)
		r = SYS(sys, syncfs, fd);
	if (r == 0)
		r = sync_alternates(sys, fd, depth, dev);
	SYS(sys, close, fd);
	return r;
}

static void refuse(struct txn *txn, int err)
{
	size_t i;

	for (i = 0; i < txn->nr_updates; i++)
		if (txn->updates[i].status == REFD_PENDING)
			txn_decidef(&txn->updates[i],
			    err == -ENOSPC ? REFD_NOSPACE : REFD_IO,
			    "its objects could not be made durable: %s",
			    strerror(-err));
}

/* One sync for each file system among TXNS, and all go on. */
static void serve(struct store *s, struct txn *txns)
{
	struct txn *txn, *next, *others;
	struct fs *fs;
	int r, err;

	while (txns != NULL) {
		fs = txns->repo->fs;
		r = barrier_sync(s, fs);
		others = NULL;
		for (txn = txns; txn != NULL; txn = next) {
			next = txn->next;
			if (txn->repo->fs != fs) {
				txn->next = others;
				others = txn;
				continue;
			}
			err = r < 0 ? r :
				      sync_elsewhere(s->sys, txn->repo->fd,
					  "objects", 0, fs->dev);
			if (err < 0)
				refuse(txn, err);
			pthread_mutex_lock(&s->repos.mutex);
			txn->repo->waiting_barrier--;
			pthread_mutex_unlock(&s->repos.mutex);
			store_admitted(s, txn);
		}
		txns = others;
		pthread_mutex_lock(&s->mutex);
		s->stats.barriers++;
		pthread_mutex_unlock(&s->mutex);
	}
}

void *barrier_main(void *arg)
{
	struct store *s = arg;
	struct txn *txns;

	pthread_mutex_lock(&s->mutex);
	for (;;) {
		txns = s->to_barrier.head;
		s->to_barrier.head = NULL;
		if (txns == NULL && s->stopping)
			break;
		if (txns == NULL) {
			pthread_cond_wait(&s->barrier_cond, &s->mutex);
			continue;
		}
		pthread_mutex_unlock(&s->mutex);
		serve(s, txns);
		pthread_mutex_lock(&s->mutex);
	}
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}
