/*
 * The ref database of an attached repository: libgit2's own backend reads the
 * files; write.c and lock.c write.
 *
 * libgit2 would rename a packed-refs that is not synced over refs that are
 * durable, so git_refdb_compress() does nothing, as git_refdb_backend permits.
 * The daemon packs, and git pack-refs may run beside.
 */
#include "client/libgit2/backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/libgit2/refd_git2.h"

int backend_fail(int code, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	git_error_set_str(GIT_ERROR_REFERENCE, text);
	return code;
}

/* ---- reading ---- */

static git_refdb_backend *files_of(git_refdb_backend *parent)
{
	return ((struct backend *)parent)->files;
}

static int exists(int *out, git_refdb_backend *parent, const char *name)
{
	return files_of(parent)->exists(out, files_of(parent), name);
}

static int lookup(git_reference **out, git_refdb_backend *parent,
    const char *name)
{
	return files_of(parent)->lookup(out, files_of(parent), name);
}

static int has_log(git_refdb_backend *parent, const char *name)
{
	return files_of(parent)->has_log(files_of(parent), name);
}

static int reflog_read(git_reflog **out, git_refdb_backend *parent,
    const char *name)
{
	return files_of(parent)->reflog_read(out, files_of(parent), name);
}

/* Creates an empty file if there is none. An empty file needs no lock, so
 * libgit2's own code does this. */
static int ensure_log(git_refdb_backend *parent, const char *name)
{
	return files_of(parent)->ensure_log(files_of(parent), name);
}

/* libgit2's iterator finds its backend through its database, so the iterator of
 * an attached repository contains an iterator of the other database. */
struct iterator {
	git_reference_iterator parent; /* first */
	git_reference_iterator *files;
};

static int iterator_next(git_reference **out, git_reference_iterator *parent)
{
	git_reference_iterator *files = ((struct iterator *)parent)->files;

	return files->next(out, files);
}

static int iterator_next_name(const char **out, git_reference_iterator *parent)
{
	git_reference_iterator *files = ((struct iterator *)parent)->files;

	return files->next_name(out, files);
}

static void iterator_free(git_reference_iterator *parent)
{
	struct iterator *it = (struct iterator *)parent;

	it->files->free(it->files);
	free(it);
}

static int iterator_new(git_reference_iterator **out, git_refdb_backend *parent,
    const char *glob)
{
	struct backend *be = (struct backend *)parent;
	struct iterator *it = calloc(1, sizeof(*it));
	int err;

	if (!it)
		return backend_fail(GIT_ERROR, "out of memory");
	err = be->files->iterator(&it->files, be->files, glob);
	if (err < 0) {
		free(it);
		return err;
	}
	it->files->db = be->files_db;
	it->parent.next = iterator_next;
	it->parent.next_name = iterator_next_name;
	it->parent.free = iterator_free;
	*out = &it->parent;
	return 0;
}

/* ---- making ---- */

void backend_free(struct backend *be)
{
	if (!be)
		return;
	git_refdb_free(be->files_db);
	pthread_mutex_destroy(&be->mutex);
	free(be->socket);
	free(be->git_dir);
	free(be);
}

static int open_files(struct backend *be)
{
	git_refdb_backend *files;
	int err;

	err = git_refdb_new(&be->files_db, be->repo);
	if (err == 0)
		err = git_refdb_backend_fs(&files, be->repo);
	if (err < 0)
		return err;
	err = git_refdb_set_backend(be->files_db, files);
	if (err < 0)
		files->free(files);
	else
		be->files = files;
	return err;
}

static int name_repository(struct backend *be)
{
	const char *common = git_repository_commondir(be->repo);
	struct stat st;

	be->git_dir = realpath(git_repository_path(be->repo), NULL);
	if (!be->git_dir || !common || stat(common, &st) < 0)
		return backend_fail(GIT_EINVALID,
		    "refd: cannot find the directory of the repository");
	be->common_dev = st.st_dev;
	be->common_ino = st.st_ino;
	be->owner = st.st_uid;
	return 0;
}

static void free_parent(git_refdb_backend *parent)
{
	backend_free((struct backend *)parent);
}

static const git_refdb_backend functions = { .version =
						 GIT_REFDB_BACKEND_VERSION,
	.exists = exists,
	.lookup = lookup,
	.iterator = iterator_new,
	.write = write_ref,
	.rename = write_rename,
	.del = write_delete,
	.has_log = has_log,
	.ensure_log = ensure_log,
	.free = free_parent,
	.reflog_read = reflog_read,
	.reflog_write = lock_reflog_write,
	.reflog_rename = lock_reflog_rename,
	.reflog_delete = lock_reflog_delete,
	.lock = lock_ref,
	.unlock = lock_end };

int backend_new(struct backend **out, git_repository *repo, const char *socket)
{
	struct backend *be = calloc(1, sizeof(*be));
	int err;

	if (!be)
		return backend_fail(GIT_ERROR, "out of memory");
	be->parent = functions;
	be->repo = repo;
	pthread_mutex_init(&be->mutex, NULL);
	be->socket = strdup(socket);
	if (!be->socket)
		err = backend_fail(GIT_ERROR, "out of memory");
	else
		err = name_repository(be);
	if (err == 0)
		err = open_files(be);
	if (err < 0) {
		backend_free(be);
		return err;
	}
	*out = be;
	return 0;
}
