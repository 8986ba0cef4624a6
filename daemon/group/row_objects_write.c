#include "daemon/group/row_objects_write.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/objects/loose_object.h"
#include "daemon/store/objects/row_objects.h"

/* Recovery uses a different name, in a different thread. */
#define TEMPORARY "tmp_obj_row"

struct writing {
	const struct sys *sys;
	const struct record *rec;
	int fd; /* objects/ */
};

static int write_object(void *arg, const struct row_object *object)
{
	const struct writing *w = arg;

	return loose_object_write(w->sys, w->fd, TEMPORARY,
	    w->rec->object_format, object->type, object->data, object->len,
	    w->rec->dir_mode);
}

static int write_into(const struct sys *sys, const struct repo *repo,
    const struct group_row *row, const struct record *rec)
{
	struct writing w = { .sys = sys, .rec = rec };
	int r;

	w.fd = SYS(sys, openat, repo->fd, "objects",
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (w.fd < 0)
		return w.fd;
	r = row_objects_each(row->objects.data, row->objects.len, write_object,
	    &w);
	SYS(sys, close, w.fd);
	return r;
}

int row_objects_write(struct repos *repos, const char *path,
    const struct group_row *row, const struct record *rec)
{
	enum refd_status status;
	struct repo *repo;
	char *why = NULL;
	int r = 1;

	if (row->objects.len == 0)
		return 0;
	repo = repos_get(repos, path, &status, &why);
	free(why);
	if (repo == NULL)
		return 1;
	if (memcmp(repo->uuid, row->repo, sizeof(row->repo)) == 0 &&
	    repo->object_format == rec->object_format)
		r = write_into(repos->sys, repo, row, rec);
	repo_put(repos, repo);
	return r;
}
