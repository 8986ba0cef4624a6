#include "daemon/group/row_objects_write.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/fs_type.h"
#include "daemon/store/objects/loose_object.h"
#include "daemon/store/objects/row_objects.h"
#include "daemon/store/sync_failures/suspect_store.h"

/* Recovery uses a different name, because it can run in a different thread. */
#define TEMPORARY "tmp_obj_row"

/* git prunes no file of this age, unless it is told to. */
#define YOUNG_NS (3600 * 1000000000LL)

struct writing {
	const struct sys *sys;
	const struct record *rec;
	int fd;          /* objects/ */
	bool is_suspect; /* suspect_store_is() */
};

/* May the barrier take the time of DIR for the time of FILE there? The barrier
 * looks at directories only, and new content in an existing file changes no
 * directory. So the file must not be younger than its directory. */
static bool is_seen(const struct writing *w, const char *dir,
    const struct sys_stat *file)
{
	struct sys_stat st;

	return !w->is_suspect && SYS(w->sys, lstatat, w->fd, dir, &st) == 0 &&
	    file->ctime_ns <= st.ctime_ns + FS_SLACK_NS;
}

/* Is OBJECT in a file that was written recently? An older file does not count,
 * because git can prune it. Nor does a torn file, so it is written again. */
static bool is_there(const struct writing *w, const struct row_object *object)
{
	char hex[REFD_OID_MAX_HEX + 1], path[REFD_OID_MAX_HEX + 2], dir[3];
	struct object_content is;
	struct refd_oid oid;
	struct sys_stat st;
	bool is_same;

	object_id(object->type, object->data, object->len,
	    w->rec->object_format, &oid);
	refd_oid_hex(&oid, w->rec->object_format, hex);
	snprintf(dir, sizeof(dir), "%.2s", hex);
	snprintf(path, sizeof(path), "%s/%s", dir, hex + 2);
	if (SYS(w->sys, lstatat, w->fd, path, &st) < 0 ||
	    !is_seen(w, dir, &st) ||
	    st.mtime_ns < SYS(w->sys, now_wall) - YOUNG_NS ||
	    loose_object_read(w->sys, w->fd, &oid, w->rec->object_format,
		object->len, &is) < 0)
		return false;
	is_same = is.type == object->type && is.len == object->len &&
	    memcmp(is.data, object->data, is.len) == 0;
	free(is.data);
	return is_same;
}

static int write_object(void *arg, const struct row_object *object)
{
	const struct writing *w = arg;

	if (is_there(w, object))
		return 0;
	return loose_object_write(w->sys, w->fd, TEMPORARY,
	    w->rec->object_format, object, w->rec->dir_mode);
}

static int write_into(const struct repos *repos, const struct repo *repo,
    const struct group_row *row, const struct record *rec)
{
	const struct sys *sys = repos->sys;
	struct writing w = { .sys = sys, .rec = rec };
	struct sys_stat st;
	int r;

	w.fd = SYS(sys, openat, repo->fd, "objects",
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (w.fd < 0)
		return w.fd;
	w.is_suspect = SYS(sys, fstat, w.fd, &st) < 0 ||
	    suspect_store_is(repos->sync_failures, w.fd, &st);
	r = row_objects_each(row->objects.data, row->objects.len, write_object,
	    &w);
	SYS(sys, close, w.fd);
	return r;
}

/* *REPO: another one, or NULL. */
static void open_repo(struct repos *repos, struct repo **repo, const char *path)
{
	enum refd_status status;
	char *why;

	if (*repo != NULL)
		repo_put(repos, *repo);
	*repo = repos_get(repos, path, NULL, &status, &why);
	free(why);
}

int row_objects_write(struct repos *repos, struct repo **repo, const char *path,
    const struct group_row *row, const struct record *rec)
{
	if (row->objects.len == 0)
		return 0;
	if (*repo == NULL || strcmp((*repo)->path, path) != 0)
		open_repo(repos, repo, path);
	if (*repo == NULL ||
	    memcmp((*repo)->uuid, row->repo, sizeof(row->repo)) != 0 ||
	    (*repo)->object_format != rec->object_format)
		return 1;
	return write_into(repos, *repo, row, rec);
}
