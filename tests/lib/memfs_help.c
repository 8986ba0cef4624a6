/*
 * Setup and inspection for tests. Changes by the setup are on disk at once.
 * Inspection also works on a stopped machine, and does not count as a call.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/memfs_internal.h"

/* ---- setup ---- */

struct marks {
	size_t first[MEMFS_MOUNTS_MAX];
};

/* The present ends of the lists of pending changes. */
static struct marks mark(struct memfs *fs)
{
	struct marks m;
	unsigned i;

	pthread_mutex_lock(&fs->lock);
	fs->cur = &fs->proc[1];
	for (i = 0; i < fs->nr_mounts; i++)
		m.first[i] = fs->mounts[i]->nr_log;
	pthread_mutex_unlock(&fs->lock);
	return m;
}

/* Makes all changes after the marks durable, and the data of PATH. */
static void make_last(struct memfs *fs, const struct marks *m, const char *path)
{
	struct inode *node;
	unsigned i;

	pthread_mutex_lock(&fs->lock);
	fs->cur = &fs->proc[1];
	for (i = 0; i < fs->nr_mounts; i++) {
		changes_mark_from(fs->mounts[i], m->first[i]);
		changes_last(fs->mounts[i]);
	}
	if (walk_to(fs, AT_FDCWD, path, WALK_FOLLOW, &node) == 0)
		data_sync(node, true);
	pthread_mutex_unlock(&fs->lock);
}

static int must(int r, const char *what, const char *path)
{
	if (r >= 0)
		return r;
	fprintf(stderr, "memfs: %s %s: %s\n", what, path, strerror(-r));
	abort();
}

/* Makes all directories on the way to PATH, and PATH itself if PATH ends with a
 * slash. */
static void make_dirs(struct memfs *fs, const char *path)
{
	const struct sys *sys = memfs_other(fs);
	char part[MEMFS_PATH_MAX];
	const char *end;
	int r;

	for (end = strchr(path + 1, '/'); end != NULL;
	    end = strchr(end + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
		r = SYS(sys, mkdirat, AT_FDCWD, part, 0777);
		must(r == -EEXIST ? 0 : r, "mkdir", part);
	}
}

void memfs_mkdirs(struct memfs *fs, const char *path)
{
	struct marks m = mark(fs);
	char dir[MEMFS_PATH_MAX];

	snprintf(dir, sizeof(dir), "%s/", path);
	make_dirs(fs, dir);
	make_last(fs, &m, path);
}

void memfs_write_bytes(struct memfs *fs, const char *path, const void *buf,
    size_t len)
{
	const struct sys *sys = memfs_other(fs);
	struct marks m = mark(fs);
	int fd;

	make_dirs(fs, path);
	fd = must(SYS(sys, openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC,
		      0666),
	    "open", path);
	must(SYS(sys, write_all, fd, buf, len), "write", path);
	SYS(sys, close, fd);
	make_last(fs, &m, path);
}

void memfs_write(struct memfs *fs, const char *path, const char *text)
{
	memfs_write_bytes(fs, path, text, strlen(text));
}

void memfs_set_owner(struct memfs *fs, const char *path, uint32_t uid,
    uint32_t gid)
{
	struct inode *node;

	pthread_mutex_lock(&fs->lock);
	must(walk_to(fs, AT_FDCWD, path, WALK_NOFOLLOW, &node), "chown", path);
	node->uid = uid;
	node->gid = gid;
	pthread_mutex_unlock(&fs->lock);
}

void memfs_chmod(struct memfs *fs, const char *path, uint32_t mode)
{
	struct inode *node;

	pthread_mutex_lock(&fs->lock);
	must(walk_to(fs, AT_FDCWD, path, WALK_NOFOLLOW, &node), "chmod", path);
	node->mode = (node->mode & S_IFMT) | mode;
	pthread_mutex_unlock(&fs->lock);
}

void memfs_set_mtime(struct memfs *fs, const char *path, int64_t ahead_ns)
{
	struct inode *node;

	pthread_mutex_lock(&fs->lock);
	must(walk_to(fs, AT_FDCWD, path, WALK_NOFOLLOW, &node), "touch", path);
	data_touch(node);
	node->mtime += ahead_ns;
	pthread_mutex_unlock(&fs->lock);
}

void memfs_symlink(struct memfs *fs, const char *target, const char *path)
{
	struct marks m = mark(fs);
	struct inode *node;
	struct where w;
	struct mem_half half;

	make_dirs(fs, path);
	pthread_mutex_lock(&fs->lock);
	must(walk(fs, AT_FDCWD, path, WALK_PARENT, &w), "symlink", path);
	must(w.node != NULL || w.dir == NULL ? -EEXIST : 0, "symlink", path);
	node = inode_new(w.dir->mnt, S_IFLNK | 0777);
	node->target = strdup(target);
	half = (struct mem_half){ .dir = w.dir,
		.new = node,
		.name = dentry_new(w.name, w.len) };
	change_names(w.dir, 1, &half);
	data_touch(w.dir);
	pthread_mutex_unlock(&fs->lock);
	make_last(fs, &m, path);
}

/* ---- inspection ---- */

static struct inode *find(struct memfs *fs, const char *path)
{
	struct inode *node;

	fs->cur = &fs->proc[1];
	if (walk_to(fs, AT_FDCWD, path, WALK_NOFOLLOW, &node) < 0)
		return NULL;
	return node;
}

void memfs_map(struct memfs *fs, const char *path, bool mapped)
{
	struct inode *node;

	pthread_mutex_lock(&fs->lock);
	node = find(fs, path);
	must(node == NULL ? -ENOENT : 0, "map", path);
	node->is_mapped = mapped;
	pthread_mutex_unlock(&fs->lock);
}

char *memfs_read(struct memfs *fs, const char *path, size_t *len)
{
	struct inode *node;
	char *text = NULL;

	pthread_mutex_lock(&fs->lock);
	node = find(fs, path);
	if (node != NULL && S_ISREG(node->mode)) {
		text = memfs_grow(NULL, NULL, 1, node->now.len + 1);
		data_read(node, text, node->now.len, 0);
		if (len != NULL)
			*len = node->now.len;
	}
	pthread_mutex_unlock(&fs->lock);
	return text;
}

bool memfs_exists(struct memfs *fs, const char *path)
{
	bool found;

	pthread_mutex_lock(&fs->lock);
	found = find(fs, path) != NULL;
	pthread_mutex_unlock(&fs->lock);
	return found;
}

bool memfs_holds(struct memfs *fs, const char *path, const char *text)
{
	size_t len;
	char *found;
	bool same;

	if (text == NULL)
		return !memfs_exists(fs, path);
	found = memfs_read(fs, path, &len);
	same = found != NULL && len == strlen(text) &&
	    memcmp(found, text, len) == 0;
	free(found);
	return same;
}

/* ---- walking the whole tree, in the order of names ---- */

static int by_name(const void *a, const void *b)
{
	const struct dentry *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

typedef void (*visitor)(FILE *out, const char *path, struct inode *node);

static void visit(FILE *out, const char *path, struct inode *dir, visitor each)
{
	const struct dentry **names, *d;
	char sub[MEMFS_PATH_MAX];
	struct inode *node;
	size_t i, nr = 0;

	names = memfs_grow(NULL, NULL, dir->nr_names + 1, sizeof(*names));
	for (i = 0; i < dir->nr_slots; i++) {
		for (d = dir->slots[i]; d != NULL; d = d->next)
			names[nr++] = d;
	}
	qsort(names, nr, sizeof(*names), by_name);
	for (i = 0; i < nr; i++) {
		snprintf(sub, sizeof(sub), "%s/%s", path, names[i]->name);
		node = names[i]->node;
		while (node->covered != NULL)
			node = node->covered->root;
		each(out, sub, node);
		if (S_ISDIR(node->mode))
			visit(out, sub, node, each);
	}
	free(names);
}

static void if_lock(FILE *out, const char *path, struct inode *node)
{
	size_t len = strlen(path);

	(void)node;
	if (len > 5 && strcmp(path + len - 5, ".lock") == 0)
		fprintf(out, "%s\n", path);
}

char *memfs_list_locks(struct memfs *fs, const char *path)
{
	struct inode *node;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	pthread_mutex_lock(&fs->lock);
	node = find(fs, path);
	if (node != NULL && S_ISDIR(node->mode))
		visit(out, strcmp(path, "/") == 0 ? "" : path, node, if_lock);
	pthread_mutex_unlock(&fs->lock);
	fclose(out);
	return text;
}

/* ---- for messages ---- */

static void print_bytes(FILE *out, const struct bytes *b)
{
	size_t i;

	fprintf(out, " %zu bytes \"", b->len);
	for (i = 0; i < b->len && i < 48; i++) {
		if (b->p[i] >= ' ' && b->p[i] < 0x7f)
			fputc(b->p[i], out);
		else
			fprintf(out, "\\%o", b->p[i]);
	}
	fprintf(out, b->len > i ? "...\"" : "\"");
}

static void print_node(FILE *out, const char *path, struct inode *node)
{
	fprintf(out, "  %s %06o ino %llu", path, node->mode,
	    (unsigned long long)node->ino);
	if (node->target != NULL)
		fprintf(out, " -> %s", node->target);
	if (S_ISREG(node->mode)) {
		fprintf(out, " links %u", node->links);
		print_bytes(out, &node->now);
	}
	if (node->data_dirty) {
		fprintf(out, "; on disk");
		print_bytes(out, &node->disk);
	}
	fputc('\n', out);
}

static void print_change(FILE *out, const struct mem_change *c)
{
	unsigned i;

	fprintf(out, "   ");
	for (i = 0; i < c->nr; i++)
		fprintf(out, " %s %s (in %llu, of %llu)",
		    c->half[i].new != NULL ? "set" : "remove",
		    c->half[i].name->name,
		    (unsigned long long)c->half[i].dir->ino,
		    (unsigned long long)(c->half[i].new != NULL ?
			    c->half[i].new->ino :
			    c->half[i].old->ino));
	if (c->node != NULL)
		fprintf(out, " mode of %llu, was %06o",
		    (unsigned long long)c->node->ino, c->old_mode);
	fputc('\n', out);
}

/* libcheck ends the program at messages longer than 8 KiB. */
#define DUMP_MAX 6000

char *memfs_dump(struct memfs *fs)
{
	char *text = NULL;
	size_t size, i;
	unsigned m;
	FILE *out = open_memstream(&text, &size);

	pthread_mutex_lock(&fs->lock);
	if (fs->hit[0] != '\0')
		fprintf(out, "hit at: %s\n", fs->hit);
	fprintf(out, "tree:\n");
	visit(out, "", fs->mounts[0]->root, print_node);
	for (m = 0; m < fs->nr_mounts; m++) {
		if (fs->mounts[m]->nr_log > 0)
			fprintf(out, "pending on mount %u:\n", m);
		for (i = 0; i < fs->mounts[m]->nr_log; i++)
			print_change(out, &fs->mounts[m]->log[i]);
	}
	pthread_mutex_unlock(&fs->lock);
	fclose(out);
	if (size > DUMP_MAX)
		strcpy(text + DUMP_MAX, "...\n");
	return text;
}
