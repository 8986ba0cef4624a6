/*
 * Walks through the files below a directory. The directories of a repository
 * may be as deep as a path is long, so all levels share one buffer.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/admin/verify_internal.h"

struct ref_walk {
	struct verify *v;
	const struct verify_place *place;
	verify_walk_fn *fn;
	void *arg;
	char path[REFD_PATH_MAX];
};

static bool is_dir(const struct ref_walk *w, unsigned char type)
{
	struct sys_stat st;

	if (type != DT_UNKNOWN)
		return type == DT_DIR;
	return SYS(w->v->sys, lstatat, w->place->dirfd, w->path, &st) == 0 &&
	    S_ISDIR(st.mode);
}

static int walk(struct ref_walk *w, size_t len);

static int enter(struct ref_walk *w, size_t len, const struct sys_dirent *entry)
{
	const size_t nr = strlen(entry->name);
	int r;

	if (len + 1 + nr >= sizeof(w->path))
		return w->fn(w->arg, w->place, w->path, VERIFY_TOO_LONG);
	w->path[len] = '/';
	memcpy(w->path + len + 1, entry->name, nr + 1);
	if (is_dir(w, entry->type))
		r = walk(w, len + 1 + nr);
	else
		r = w->fn(w->arg, w->place, w->path, VERIFY_FILE);
	w->path[len] = '\0';
	return r;
}

/* PATH of LEN bytes is a directory. */
static int walk(struct ref_walk *w, size_t len)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r = SYS(w->v->sys, dir_open, w->place->dirfd, w->path, &dir);
	int stop = 0;

	if (r == 0) {
		while (stop == 0 &&
		    (r = SYS(w->v->sys, dir_next, dir, &entry)) > 0)
			stop = enter(w, len, &entry);
		SYS(w->v->sys, dir_close, dir);
	}
	if (stop == 0 && r < 0 && r != -ENOENT && r != -ENOTDIR)
		stop = w->fn(w->arg, w->place, w->path, VERIFY_UNREADABLE);
	return stop;
}

void verify_walk(struct verify *v, const struct verify_place *place,
    const char *dir, verify_walk_fn *fn, void *arg)
{
	struct ref_walk w = { .v = v, .place = place, .fn = fn, .arg = arg };

	strcpy(w.path, dir);
	walk(&w, strlen(dir));
}
