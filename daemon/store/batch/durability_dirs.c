/*
 * Syncs the directories that slices of mode fsync changed.
 *
 * The happy path: sync the directory of each created or removed file, and the
 * new directories above, up to the first old one. Each directory is synced
 * once, many in parallel. New directories of a failed change count too, because
 * published files of other changes may be below them.
 *
 * An old directory is taken for durable, even if its creator did not sync the
 * directory, because the logs of ext4, XFS and btrfs write its name together
 * with the synced entries.
 *
 * What fails:
 *	a directory was pruned		its parent is synced
 *	a directory can't be synced	no change in the directory counts as
 *					durable
 *	memory				no change counts as durable
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/batch/backend.h"

struct dir {
	int dirfd;
	int err;
	char *path; /* owned; "" for DIRFD itself */
};

struct dirs {
	struct pass *p;
	struct dir *dirs;
	size_t nr, size;
	int err; /* the list is incomplete */
};

static void add(struct dirs *d, int dirfd, const char *path)
{
	size_t size = 2 * d->size + 16;
	struct dir *more;

	if (d->nr == d->size) {
		more = realloc(d->dirs, size * sizeof(*more));
		if (more == NULL) {
			d->err = -ENOMEM;
			return;
		}
		d->dirs = more;
		d->size = size;
	}
	d->dirs[d->nr] = (struct dir){ .dirfd = dirfd, .path = strdup(path) };
	if (d->dirs[d->nr].path == NULL)
		d->err = -ENOMEM;
	else
		d->nr++;
}

/* false: PATH has no parent. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (path[0] == '\0')
		return false;
	*(slash != NULL ? slash : path) = '\0';
	return true;
}

/* Adds the directory of FILE and the parents of MADE new directories. */
static void add_parents(struct dirs *d, const struct change *c,
    const char *file, unsigned made)
{
	char path[REFD_PATH_MAX];

	strcpy(path, file);
	while (go_up(path)) {
		add(d, c->edit.dirfd, path);
		if (made-- == 0)
			break;
	}
}

/* ---- selecting the directories ---- */

static bool is_synced(const struct change *c)
{
	return c->slice->mode == REFD_DURABILITY_FSYNC &&
	    change_is_committed(c);
}

static void add_log(struct dirs *d, const struct change *c)
{
	char path[REFD_PATH_MAX];

	edit_log(&c->edit, path);
	add_parents(d, c, path, c->log_made_dirs);
}

static void add_published(struct dirs *d, const struct change *c)
{
	/* At least the lock was created and removed there. */
	add_parents(d, c, c->edit.name, c->made_dirs);
	switch (c->action) {
	case CHANGE_WRITE:
		if (c->to_packed)
			add(d, c->repo_slice->repo->fd, "");
		break;
	case CHANGE_DELETE:
		add_log(d, c);
		/* The directory of packed-refs and of its lock. */
		add(d, c->repo_slice->repo->fd, "");
		break;
	case CHANGE_NOTHING:
		if (!c->is_loose && c->had_packed)
			add(d, c->repo_slice->repo->fd, "");
		break;
	case CHANGE_LOG:
		break;
	}
	if (c->log_made)
		add_log(d, c);
}

static bool repo_is_synced(const struct pass *p, const struct repo_slice *g)
{
	size_t i;

	if (g->backend->has_rounds)
		return false;
	for (i = 0; i < p->nr_changes; i++)
		if (p->changes[i]->repo_slice == g && is_synced(p->changes[i]))
			return true;
	return false;
}

static void add_all(struct dirs *d, const struct repo_slice *g)
{
	struct change *c;
	size_t i;

	for (i = 0; i < d->p->nr_changes; i++) {
		c = d->p->changes[i];
		if (c->repo_slice != g)
			continue;
		if (is_synced(c) && !change_only_looks(c)) {
			add_published(d, c);
			continue;
		}
		if (c->made_dirs > 0)
			add_parents(d, c, c->edit.name, c->made_dirs);
		if (c->log_made_dirs > 0)
			add_log(d, c);
	}
}

/* ---- syncing ---- */

static int by_path(const void *va, const void *vb)
{
	const struct dir *a = va, *p = vb;

	if (a->dirfd != p->dirfd)
		return a->dirfd < p->dirfd ? -1 : 1;
	return strcmp(a->path, p->path);
}

static void sort_out_twins(struct dirs *d)
{
	size_t i, nr = 0;

	if (d->nr == 0)
		return;
	qsort(d->dirs, d->nr, sizeof(*d->dirs), by_path);
	for (i = 1; i < d->nr; i++) {
		if (by_path(&d->dirs[i], &d->dirs[nr]) == 0)
			free(d->dirs[i].path);
		else
			d->dirs[++nr] = d->dirs[i];
	}
	d->nr = nr + 1;
}

/* If DIR was pruned, replaces DIR by its nearest existing parent. */
static void find_standing(const struct sys *sys, struct dir *dir)
{
	struct sys_stat st;
	int r;

	while (dir->path[0] != '\0') {
		r = SYS(sys, lstatat, dir->dirfd, dir->path, &st);
		if (r != -ENOENT && r != -ENOTDIR)
			break;
		go_up(dir->path);
	}
}

/* Another thread may prune the directory at this moment, so its parent is tried
 * then. */
static int open_standing(const struct sys *sys, struct dir *dir)
{
	int fd;

	do
		fd = SYS(sys, openat, dir->dirfd,
		    dir->path[0] != '\0' ? dir->path : ".",
		    O_RDONLY | O_DIRECTORY, 0);
	while ((fd == -ENOENT || fd == -ENOTDIR) && go_up(dir->path));
	return fd;
}

static void dir_failed(void *arg, void *what, int err)
{
	(void)arg;
	((struct dir *)what)->err = err;
}

static void sync_all(struct dirs *d)
{
	struct pass *p = d->p;
	struct flush flush;
	struct dir *dir;
	size_t i;
	int fd;

	sort_out_twins(d);
	for (i = 0; i < d->nr; i++)
		find_standing(p->sys, &d->dirs[i]);
	sort_out_twins(d);
	flush_init(&flush, p->sys, p->ap->flusher, dir_failed, NULL);
	for (i = 0; i < d->nr; i++) {
		dir = &d->dirs[i];
		fd = open_standing(p->sys, dir);
		if (fd < 0)
			dir->err = fd;
		else
			flush_add(&flush, fd, FLUSH_FSYNC, dir);
	}
	flush_end(&flush);
}

static bool is_below(const char *file, const char *dir)
{
	size_t len = strlen(dir);

	return len == 0 || (strncmp(file, dir, len) == 0 && file[len] == '/');
}

static bool went_through(const struct change *c, const struct dir *dir)
{
	char log[REFD_PATH_MAX];

	if (dir->path[0] == '\0' && dir->dirfd == c->repo_slice->repo->fd)
		return true;
	edit_log(&c->edit, log);
	return c->edit.dirfd == dir->dirfd &&
	    (is_below(c->edit.name, dir->path) || is_below(log, dir->path));
}

static void mark(struct dirs *d)
{
	struct change *c;
	size_t i, k;

	for (i = 0; i < d->p->nr_changes; i++) {
		c = d->p->changes[i];
		if (!is_synced(c))
			continue;
		for (k = 0; k < d->nr; k++)
			if (d->dirs[k].err < 0 && went_through(c, &d->dirs[k]))
				durability_failed(c, d->dirs[k].err);
		if (d->err < 0)
			durability_failed(c, d->err);
	}
}

void durability_dirs(struct pass *p)
{
	struct dirs d = { .p = p };
	bool failed = false;
	size_t i;

	if (p->strongest < REFD_DURABILITY_FSYNC)
		return;
	for (i = 0; i < p->nr_repo_slices; i++)
		if (repo_is_synced(p, &p->repo_slices[i]))
			add_all(&d, &p->repo_slices[i]);
	sync_all(&d);
	for (i = 0; i < d.nr; i++)
		failed = failed || d.dirs[i].err < 0;
	if (failed || d.err < 0)
		mark(&d);
	for (i = 0; i < d.nr; i++)
		free(d.dirs[i].path);
	free(d.dirs);
}
