#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/systree.h"

#define FILES_MAX  4096
#define NAMES_MAX  4096
#define SIZE_LIMIT ((size_t)1 << 30)

struct seen {
	uint64_t dev, ino;
	char *path;
};

struct tree {
	const struct sys *sys;
	size_t base;
	FILE *out;
	struct seen seen[FILES_MAX];
	int nr_seen;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int systree_list(const struct sys *sys, int dirfd, const char *path,
    char **lines, int max)
{
	struct sys_dir *dir;
	struct sys_dirent entry;
	int r, nr = 0;

	r = SYS(sys, dir_open, dirfd, path, &dir);
	if (r < 0)
		return r;
	while ((r = SYS(sys, dir_next, dir, &entry)) > 0) {
		r = nr == max ? -E2BIG : 0;
		if (r == 0 &&
		    asprintf(&lines[nr], "%s %u", entry.name, entry.type) < 0)
			r = -ENOMEM;
		if (r < 0)
			break;
		nr++;
	}
	SYS(sys, dir_close, dir);
	if (r < 0) {
		while (nr > 0)
			free(lines[--nr]);
		return r;
	}
	qsort(lines, (size_t)nr, sizeof(*lines), by_text);
	return nr;
}

static const char *first_path(struct tree *t, const struct sys_stat *st,
    const char *path)
{
	struct seen *s;

	for (s = t->seen; s < t->seen + t->nr_seen; s++) {
		if (s->ino == st->ino && s->dev == st->dev)
			return s->path;
	}
	if (t->nr_seen < FILES_MAX) {
		s->dev = st->dev;
		s->ino = st->ino;
		s->path = strdup(path);
		t->nr_seen++;
	}
	return path;
}

static void print_file(struct tree *t, const char *path,
    const struct sys_stat *st)
{
	size_t i, len;
	unsigned sum = 0;
	char *buf;
	int r;

	fprintf(t->out, " size %llu links %u as %s",
	    (unsigned long long)st->size, st->nlink,
	    first_path(t, st, path + t->base));
	r = sys_read_file(t->sys, AT_FDCWD, path, SIZE_LIMIT, &buf, &len);
	if (r < 0) {
		fprintf(t->out, " (%s)", strerror(-r));
		return;
	}
	for (i = 0; i < len; i++)
		sum = sum * 31 + (unsigned char)buf[i];
	fprintf(t->out, " sum %u", sum);
	free(buf);
}

static void print(struct tree *t, const char *path);

static void print_below(struct tree *t, const char *path)
{
	char **names = calloc(NAMES_MAX, sizeof(*names)), *sub;
	int i, nr = systree_list(t->sys, AT_FDCWD, path, names, NAMES_MAX);

	if (nr < 0)
		fprintf(t->out, "%s (%s)\n", path + t->base, strerror(-nr));
	for (i = 0; i < nr; i++) {
		*strrchr(names[i], ' ') = '\0';
		if (asprintf(&sub, "%s/%s", path, names[i]) < 0)
			abort();
		print(t, sub);
		free(sub);
		free(names[i]);
	}
	free(names);
}

static void print(struct tree *t, const char *path)
{
	struct sys_stat st;
	char target[256];
	ssize_t n;
	int r;

	r = SYS(t->sys, lstatat, AT_FDCWD, path, &st);
	if (r < 0) {
		fprintf(t->out, "%s (%s)\n", path + t->base, strerror(-r));
		return;
	}
	fprintf(t->out, "%s %o", path + t->base, st.mode);
	if (S_ISREG(st.mode))
		print_file(t, path, &st);
	if (S_ISLNK(st.mode)) {
		n = SYS(t->sys, readlinkat, AT_FDCWD, path, target,
		    sizeof(target));
		fprintf(t->out, " -> %.*s", n < 0 ? 0 : (int)n, target);
	}
	fputc('\n', t->out);
	if (S_ISDIR(st.mode))
		print_below(t, path);
}

char *systree(const struct sys *sys, const char *base)
{
	struct tree *t = calloc(1, sizeof(*t));
	size_t size;
	char *text;
	int i;

	t->sys = sys;
	t->base = strlen(base);
	t->out = open_memstream(&text, &size);
	print(t, base);
	fclose(t->out);
	for (i = 0; i < t->nr_seen; i++)
		free(t->seen[i].path);
	free(t);
	return text;
}
