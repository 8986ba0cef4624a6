/*
 * Paths: the rules of path_resolution(7), including mounts and symbolic links.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/memfs_internal.h"

struct walker {
	struct memfs *fs;
	enum walk_how how;
	bool is_beneath; /* no link is followed */
	unsigned nr_links;
};

static struct inode *top_mount(struct inode *node)
{
	while (node->covered != NULL)
		node = node->covered->root;
	return node;
}

static struct inode *dotdot(struct inode *dir)
{
	while (dir == dir->mnt->root && dir->mnt->point != NULL)
		dir = dir->mnt->point;
	return dir == dir->mnt->root ? dir : top_mount(dir->parent);
}

/* Looks up one component in DIR. */
static int look(struct inode *dir, const char *name, size_t len,
    struct where *w)
{
	struct dentry *d;

	if (!S_ISDIR(dir->mode))
		return -ENOTDIR;
	if (dir->mnt->dead != 0)
		return dir->mnt->dead;
	*w = (struct where){ .name = name, .len = len };
	if (len == 1 && name[0] == '.') {
		w->kind = WHERE_DOT;
		w->node = dir;
		return 0;
	}
	if (len == 2 && name[0] == '.' && name[1] == '.') {
		w->kind = WHERE_DOTDOT;
		w->node = dotdot(dir);
		return 0;
	}
	if (len > MEMFS_NAME_MAX)
		return -ENAMETOOLONG;
	w->dir = dir;
	d = dir_find(dir, name, len);
	if (d != NULL)
		w->node = top_mount(d->node);
	return 0;
}

/* IS_FINAL: the end of PATH is the end of the caller's path. */
static int walk_from(struct walker *wk, struct inode *dir, const char *path,
    bool follows, bool is_final, struct where *w)
{
	bool is_last, is_slashed, follows_this;
	size_t len;
	int r;

	if (*path == '/') {
		dir = top_mount(wk->fs->mounts[0]->root);
		path += strspn(path, "/");
		if (*path == '\0') {
			*w = (struct where){ .node = dir, .kind = WHERE_ROOT };
			return 0;
		}
	}
	for (;;) {
		len = strcspn(path, "/");
		r = look(dir, path, len, w);
		if (r < 0)
			return r;
		path += len;
		is_slashed = *path == '/';
		path += strspn(path, "/");
		is_last = *path == '\0';
		w->is_slashed = is_last && is_slashed;
		if (w->is_slashed && is_final && wk->how == WALK_CREATE &&
		    w->kind == WHERE_NAME)
			return -EISDIR;
		follows_this = !is_last || follows ||
		    (is_slashed && wk->how != WALK_PARENT);
		if (w->node != NULL && S_ISLNK(w->node->mode) && follows_this) {
			if (wk->is_beneath || ++wk->nr_links > MEMFS_SYMLOOPS)
				return -ELOOP;
			r = walk_from(wk, w->dir, w->node->target, true,
			    is_final && is_last, w);
			if (r < 0)
				return r;
			w->is_slashed = w->is_slashed || is_slashed;
		}
		if (is_last)
			return 0;
		if (w->node == NULL)
			return -ENOENT;
		dir = w->node;
	}
}

static int walk_with(struct walker *wk, int dirfd, const char *path,
    struct where *w)
{
	struct memfs *fs = wk->fs;
	struct inode *start = fs->mounts[0]->root;
	struct memfs_open *open;
	int r;

	if (*path == '\0')
		return -ENOENT;
	if (strlen(path) >= MEMFS_PATH_MAX)
		return -ENAMETOOLONG;
	if (*path != '/' && dirfd != AT_FDCWD) {
		r = memfs_fd_get(fs, dirfd, &open);
		if (r < 0)
			return r;
		start = open->node;
	}
	return walk_from(wk, start, path,
	    wk->how == WALK_FOLLOW || wk->how == WALK_CREATE, true, w);
}

int walk(struct memfs *fs, int dirfd, const char *path, enum walk_how how,
    struct where *w)
{
	struct walker wk = { .fs = fs,
		.how = how,
		.is_beneath = dirfd != SYS_TRUSTED };
	int r = wk.is_beneath ? sys_path_check(path) : 0;

	return r < 0 ? r : walk_with(&wk, dirfd, path, w);
}

int walk_freely(struct memfs *fs, int dirfd, const char *path, struct where *w)
{
	struct walker wk = { .fs = fs, .how = WALK_FOLLOW };

	return walk_with(&wk, dirfd, path, w);
}

int walk_parent(struct memfs *fs, int dirfd, const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[MEMFS_PATH_MAX];
	struct inode *node;
	int r;

	r = dirfd == SYS_TRUSTED ? 0 : sys_path_check(path);
	if (r < 0 || slash == NULL || dirfd == SYS_TRUSTED)
		return r;
	if ((size_t)(slash - path) >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(dir, path, (size_t)(slash - path));
	dir[slash - path] = '\0';
	r = walk_to(fs, dirfd, dir, WALK_FOLLOW, &node);
	return r == 0 && !S_ISDIR(node->mode) ? -ENOTDIR : r;
}

int walk_to(struct memfs *fs, int dirfd, const char *path, enum walk_how how,
    struct inode **node)
{
	struct where w;
	int r;

	r = walk(fs, dirfd, path, how, &w);
	if (r < 0)
		return r;
	if (w.node == NULL)
		return -ENOENT;
	if (w.is_slashed && !S_ISDIR(w.node->mode))
		return -ENOTDIR;
	if (w.node->mnt->dead != 0)
		return w.node->mnt->dead;
	*node = w.node;
	return 0;
}

static const struct dentry *name_in(const struct inode *dir,
    const struct inode *node)
{
	const struct dentry *d = NULL;
	size_t i;

	for (i = 0; i < dir->nr_slots; i++) {
		for (d = dir->slots[i]; d != NULL; d = d->next) {
			if (d->node == node)
				return d;
		}
	}
	return d;
}

int inode_path(struct inode *node, char *buf, size_t size)
{
	char path[MEMFS_PATH_MAX];
	size_t at = sizeof(path) - 1;
	const struct dentry *d;

	if (!S_ISDIR(node->mode))
		return -ENOTDIR;
	path[at] = '\0';
	for (;;) {
		while (node == node->mnt->root && node->mnt->point != NULL)
			node = node->mnt->point;
		if (node == node->mnt->root)
			break;
		d = node->links > 0 ? name_in(node->parent, node) : NULL;
		if (d == NULL)
			return -ENOENT;
		if (at < d->len + 1)
			return -ENAMETOOLONG;
		at -= d->len;
		memcpy(path + at, d->name, d->len);
		path[--at] = '/';
		node = node->parent;
	}
	if (path[at] == '\0')
		path[--at] = '/';
	if (sizeof(path) - at > size)
		return -ENAMETOOLONG;
	memcpy(buf, path + at, sizeof(path) - at);
	return 0;
}
