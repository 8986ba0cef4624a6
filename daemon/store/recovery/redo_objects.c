/*
 * Restores the new loose objects that rows contain, before recovery asks which
 * objects exist.
 *
 * Happy path: after a power loss, a file with other bytes than recorded, or no
 * file, is written under a temporary name and renamed. The recorded bytes have
 * the checksum which is the name. So a different file is damaged, or is the
 * same object at another level of compression, and may be replaced. The sync of
 * the file system, before the row is forgotten, makes the file durable.
 *
 * After a failed sync only memory may have the bytes, so every file is written.
 * After a crash the page cache is exact, so nothing is restored.
 *
 * The repository may lack older objects, because they were pruned after the ref
 * was deleted, or a backup was restored. `git gc` would fail at a restored
 * commit without its parents. So a new value which leads to a missing object is
 * not restored, and its ref is passed over. But a strict recovery restores the
 * value that a ref gets, because another machine has the missing object.
 *
 * Failures: the repository, or the journal; its rows stay. A leftover temporary
 * file has a name that `git prune` removes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/objects/loose_object.h"
#include "daemon/store/objects/new_objects.h"
#include "daemon/store/recovery/redo.h"

#define TEMPORARY  "tmp_obj_refd"
#define DIR_FLAGS  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

struct redo_objects {
	struct replay *rp;
	const struct sys *sys;
	int fd;                              /* objects/ */
	const struct replay_row *rows, *row; /* ROW: of ROWS */
	uint8_t *bytes;                      /* the objects of ROW; owned */
	size_t len;
	size_t nr;
};

static bool holds(const struct sys *sys, int dirfd, const char *name,
    const uint8_t *data, size_t len)
{
	bool is_equal = false;
	size_t have;
	char *now;
	int fd;

	fd = SYS(sys, openat, dirfd, name, FILE_FLAGS, 0);
	if (fd < 0)
		return false;
	if (sys_read_fd(sys, fd, len, &now, &have) == 0) {
		is_equal = have == len && memcmp(now, data, len) == 0;
		free(now);
	}
	SYS(sys, close, fd);
	return is_equal;
}

static int exists(void *arg, const struct refd_oid *oid)
{
	struct replay *rp = ((struct redo_objects *)arg)->rp;

	return rp->has_object(rp->arg, rp->repo, oid);
}

static bool writes(const struct replay_row *row, size_t i,
    const struct refd_oid *oid)
{
	const struct record_member *m = &row->rec.members[i];

	return m->status == REFD_OK && m->action == RECORD_WRITE &&
	    refd_oid_eq(&m->new_oid, oid);
}

static bool is_new_value(const struct replay_row *row,
    const struct refd_oid *oid)
{
	size_t i;

	for (i = 0; i < row->rec.nr_members; i++)
		if (writes(row, i, oid))
			return true;
	return false;
}

/* A ref that gets the value OID, by any row; or NULL. */
static const char *ref_that_gets(const struct replay_row *rows,
    const struct refd_oid *oid)
{
	const struct record_member *m;
	size_t i;

	for (; rows != NULL; rows = rows->next)
		for (i = 0; i < rows->rec.nr_members; i++) {
			m = &rows->rec.members[i];
			if (!rows->dropped[i] && writes(rows, i, oid) &&
			    replay_is_last(rows, m))
				return m->name;
		}
	return NULL;
}

/* Is OID a new value of the row that leads to a missing object? Then OID is not
 * restored, so that replay.c passes the value over. But a strict recovery needs
 * the value that a ref gets, and the record may have the only copy. */
static bool is_cut_off(struct redo_objects *at, const struct refd_oid *oid)
{
	const char *name;

	if (!is_new_value(at->row, oid) ||
	    new_objects_is_complete(at->bytes, at->len,
		at->row->rec.object_format, oid, exists, at) != 0)
		return false;
	name = at->rp->is_strict ? ref_that_gets(at->rows, oid) : NULL;
	if (name != NULL)
		replay_report_lacking(at->rp, name);
	return name == NULL;
}

static int restore_in(struct redo_objects *at, int dirfd, const char *name,
    const struct new_object *object)
{
	struct sys_stat st;
	int r;

	r = SYS(at->sys, fstat, dirfd, &st);
	if (r < 0)
		return r;
	/* The sync before forgetting would not include the file. */
	if (st.dev != at->rp->repo->dev)
		return -EXDEV;
	if ((!at->rp->is_memory_lost &&
		holds(at->sys, dirfd, name, object->data, object->len)) ||
	    is_cut_off(at, &object->oid))
		return 0;
	r = loose_object_put(at->sys, dirfd, TEMPORARY, name, object->data,
	    object->len, object->mode);
	at->nr += r == 0;
	return r;
}

/* For new_objects_each(). */
static int restore(void *arg, const struct new_object *object)
{
	struct redo_objects *at = arg;
	char path[REFD_OID_MAX_HEX + 2], hex[REFD_OID_MAX_HEX + 1];
	int dirfd, r;

	refd_oid_hex(&object->oid, at->row->rec.object_format, hex);
	snprintf(path, sizeof(path), "%.2s/%s", hex, hex + 2);
	r = sys_make_parents(at->sys, at->fd, path, object->dir_mode);
	if (r < 0)
		return r;
	path[2] = '\0';
	dirfd = SYS(at->sys, openat, at->fd, path, DIR_FLAGS, 0);
	if (dirfd < 0)
		return dirfd;
	r = restore_in(at, dirfd, path + 3, object);
	SYS(at->sys, close, dirfd);
	return r;
}

static bool needs_objects(const struct replay_row *row)
{
	return row->evidence != EVIDENCE_CRASHED && row->rec.has_objects &&
	    !row->is_aside;
}

/* Restores the objects of one row. After a row is forgotten, its objects are
 * durable, and may be deleted. Only a deferred row can refer to such a row. So
 * if a slice itself lacks its objects, the journal is damaged. */
static int restore_row(struct replay *rp, struct redo_objects *at)
{
	int r;

	r = journal_read_objects(rp->journal, at->row->origin, &at->bytes,
	    &at->len);
	if (r > 0)
		return -EIO;
	if (r == 0 && at->len == 0 && at->row->row.kind == JOURNAL_SLICE)
		r = -EUCLEAN;
	if (r == 0)
		r = new_objects_each(at->bytes, at->len,
		    at->row->rec.object_format, restore, at);
	free(at->bytes);
	return r;
}

static void report(struct replay *rp, size_t nr)
{
	char text[96];

	if (nr == 0)
		return;
	snprintf(text, sizeof(text),
	    "%zu new object files written again from the journal", nr);
	redo_report(rp, STORE_OBJECTS_RESTORED, "", text);
}

int redo_objects(struct replay *rp, const struct replay_row *rows)
{
	struct redo_objects at = { .rp = rp,
		.rows = rows,
		.sys = rp->sys,
		.fd = -1 };
	int r = 0;

	for (at.row = rows; at.row != NULL && r == 0; at.row = at.row->next) {
		if (!needs_objects(at.row))
			continue;
		if (at.fd < 0)
			at.fd = SYS(rp->sys, openat, rp->repo->fd, "objects",
			    DIR_FLAGS, 0);
		r = at.fd < 0 ? at.fd : restore_row(rp, &at);
	}
	if (at.fd >= 0)
		SYS(rp->sys, close, at.fd);
	report(rp, at.nr);
	return r;
}
