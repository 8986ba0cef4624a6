#include "tests/lib/tree_image.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKED_MAX 64

struct node {
	char *name;
	ino_t linked; /* of a file with several names, or 0 */
	mode_t mode;
	char *data; /* of a file; target of a link */
	size_t len;
	struct tree_image *below; /* of a directory */
};

struct tree_image {
	struct node *nodes;
	size_t nr;
};

static void expect(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		abort();
	}
}

static void *get(size_t nr, size_t size)
{
	void *p = calloc(nr, size);

	expect(p != NULL, "calloc");
	return p;
}

/* Calls EACH with the name of every entry of DIR_FD. */
static void for_each(int dir_fd, void (*each)(void *arg, const char *name),
    void *arg)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	expect(dir != NULL, "opendir");
	while ((entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			each(arg, entry->d_name);
	closedir(dir);
}

static int open_dir(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	expect(fd >= 0, name);
	return fd;
}

/* ---- taking ---- */

struct taking {
	struct tree_image *image;
	int dir_fd;
};

static void take_file(struct node *node, int dir_fd)
{
	int fd = openat(dir_fd, node->name, O_RDONLY | O_CLOEXEC);

	expect(fd >= 0, node->name);
	expect(read(fd, node->data, node->len) == (ssize_t)node->len,
	    node->name);
	close(fd);
}

static void take_node(void *arg, const char *name)
{
	struct taking *t = arg;
	struct node *node;
	struct stat st;
	int fd;

	t->image->nodes = realloc(t->image->nodes,
	    (t->image->nr + 1) * sizeof(*t->image->nodes));
	expect(t->image->nodes != NULL, "realloc");
	node = &t->image->nodes[t->image->nr++];
	memset(node, 0, sizeof(*node));
	node->name = strdup(name);
	expect(node->name != NULL, "strdup");
	expect(fstatat(t->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0, name);
	node->mode = st.st_mode;
	if (S_ISREG(st.st_mode) && st.st_nlink > 1)
		node->linked = st.st_ino;
	if (S_ISDIR(st.st_mode)) {
		fd = open_dir(t->dir_fd, name);
		node->below = tree_image_take(fd);
		close(fd);
		return;
	}
	node->len = (size_t)st.st_size;
	node->data = get(node->len + 1, 1);
	if (S_ISREG(st.st_mode))
		take_file(node, t->dir_fd);
	else
		expect(readlinkat(t->dir_fd, name, node->data, node->len) > 0,
		    name);
}

struct tree_image *tree_image_take(int dir_fd)
{
	struct taking t = { get(1, sizeof(struct tree_image)), dir_fd };

	for_each(dir_fd, take_node, &t);
	return t.image;
}

void tree_image_free(struct tree_image *image)
{
	size_t i;

	if (image == NULL)
		return;
	for (i = 0; i < image->nr; i++) {
		free(image->nodes[i].name);
		free(image->nodes[i].data);
		tree_image_free(image->nodes[i].below);
	}
	free(image->nodes);
	free(image);
}

/* ---- laying out ---- */

static void remove_entry(void *arg, const char *name)
{
	int dir_fd = *(const int *)arg, fd;

	if (unlinkat(dir_fd, name, 0) == 0)
		return;
	fd = open_dir(dir_fd, name);
	for_each(fd, remove_entry, &fd);
	close(fd);
	expect(unlinkat(dir_fd, name, AT_REMOVEDIR) == 0, name);
}

/* Files with several names, made under their first name. */
struct linked {
	struct {
		ino_t was;
		int fd;
	} files[LINKED_MAX];
	size_t nr;
};

/* Makes NODE as a further name of such a file, if there is one. */
static bool lay_out_link(const struct node *node, int dir_fd,
    const struct linked *linked)
{
	char path[64];
	size_t i;

	for (i = 0; i < linked->nr && node->linked != 0; i++) {
		if (linked->files[i].was != node->linked)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d",
		    linked->files[i].fd);
		expect(linkat(AT_FDCWD, path, dir_fd, node->name,
			   AT_SYMLINK_FOLLOW) == 0,
		    node->name);
		return true;
	}
	return false;
}

static void lay_out(const struct tree_image *image, int dir_fd,
    struct linked *linked);

static void lay_out_node(const struct node *node, int dir_fd,
    struct linked *linked)
{
	int fd;

	if (lay_out_link(node, dir_fd, linked))
		return;
	if (S_ISLNK(node->mode)) {
		expect(symlinkat(node->data, dir_fd, node->name) == 0,
		    node->name);
		return;
	}
	if (S_ISDIR(node->mode)) {
		expect(mkdirat(dir_fd, node->name, 0700) == 0, node->name);
		fd = open_dir(dir_fd, node->name);
		lay_out(node->below, fd, linked);
	} else {
		fd = openat(dir_fd, node->name,
		    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		expect(fd >= 0, node->name);
		expect(write(fd, node->data, node->len) == (ssize_t)node->len,
		    node->name);
	}
	expect(fchmod(fd, node->mode & 07777) == 0, node->name);
	if (node->linked == 0) {
		close(fd);
		return;
	}
	expect(linked->nr < LINKED_MAX, "too many files with several names");
	linked->files[linked->nr].was = node->linked;
	linked->files[linked->nr++].fd = fd;
}

static void lay_out(const struct tree_image *image, int dir_fd,
    struct linked *linked)
{
	size_t i;

	for (i = 0; i < image->nr; i++)
		lay_out_node(&image->nodes[i], dir_fd, linked);
}

void tree_image_lay_out(const struct tree_image *image, int dir_fd)
{
	struct linked linked = { .nr = 0 };

	for_each(dir_fd, remove_entry, &dir_fd);
	lay_out(image, dir_fd, &linked);
	while (linked.nr > 0)
		close(linked.files[--linked.nr].fd);
}

/* ---- describing ---- */

struct description {
	FILE *to;
	int dir_fd;
};

static void describe(void *arg, const char *name)
{
	const struct description *d = arg;
	struct description below = *d;
	struct stat st;

	expect(fstatat(d->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0, name);
	fprintf(d->to, "%s %ju %o %ju %u %u %jd %jd.%09ld %jd.%09ld\n", name,
	    (uintmax_t)st.st_ino, st.st_mode, (uintmax_t)st.st_nlink, st.st_uid,
	    st.st_gid, (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec,
	    st.st_mtim.tv_nsec, (intmax_t)st.st_ctim.tv_sec,
	    st.st_ctim.tv_nsec);
	if (!S_ISDIR(st.st_mode))
		return;
	below.dir_fd = open_dir(d->dir_fd, name);
	for_each(below.dir_fd, describe, &below);
	fprintf(d->to, "end of %s\n", name);
	close(below.dir_fd);
}

char *tree_image_describe(int dir_fd)
{
	struct description d = { .dir_fd = dir_fd };
	char *text;
	size_t len;

	d.to = open_memstream(&text, &len);
	expect(d.to != NULL, "open_memstream");
	for_each(dir_fd, describe, &d);
	expect(fclose(d.to) == 0, "fclose");
	return text;
}
