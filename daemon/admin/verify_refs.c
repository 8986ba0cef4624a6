/*
 * Loose refs, and the values of refs, loose or packed.
 *
 * Happy path: a file with an id, a name that git accepts, an existing object.
 *
 * A ref that is absent at the second check is no finding, because git packs and
 * deletes refs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/verify_internal.h"
#include "proto/lib/lock_pid.h"
#include "proto/refname.h"

int verify_ref_value(struct verify *v, const struct ref_place *place,
    const char *name, struct refd_oid *oid)
{
	struct loose_value loose;
	int r = -1;

	if (loose_read(v->sys, place->dirfd, name, v->repo.object_format,
		&loose) < 0)
		return -1;
	switch (loose.kind) {
	case LOOSE_OID:
		*oid = loose.oid;
		r = 1;
		break;
	case LOOSE_SYMREF:
		r = 2;
		break;
	case LOOSE_BROKEN:
		break;
	case LOOSE_ABSENT:
	case LOOSE_DIR:
		if (place->worktree[0] != '\0')
			r = 0;
		else if (v->snap != NULL)
			r = packed_lookup(v->snap, name, oid);
		break;
	}
	loose_value_done(&loose);
	return r;
}

/* ---- its object ---- */

static bool wants_commit(const char *name)
{
	return strncmp(name, "refs/heads/", 11) == 0 ||
	    strcmp(name, "HEAD") == 0;
}

bool verify_object_fits(struct verify *v, const char *name,
    const struct refd_oid *oid)
{
	enum object_type type;

	if (v->odb == NULL)
		return true;
	if (refd_oid_is_null(oid))
		return false;
	type = odb_type(v->odb, oid);
	return type != OBJECT_ABSENT && type != OBJECT_ERROR &&
	    (type == OBJECT_COMMIT || !wants_commit(name));
}

void verify_object(struct verify *v, const char *ref, const char *name,
    const char *file, const struct refd_oid *oid)
{
	char hex[REFD_OID_MAX_HEX + 1];

	refd_oid_hex(oid, v->repo.object_format, hex);
	if (refd_oid_is_null(oid)) {
		verify_found(v, FOUND_REF_BROKEN, ref, file,
		    "its value is the null id");
		return;
	}
	if (v->odb == NULL)
		return;
	switch (odb_type(v->odb, oid)) {
	case OBJECT_ABSENT:
		verify_found(v, FOUND_OBJECT_MISSING, ref, file,
		    "object %s is not in the repository", hex);
		break;
	case OBJECT_ERROR:
		verify_found(v, FOUND_OBJECT_UNREADABLE, ref, file,
		    "object %s can't be read", hex);
		break;
	case OBJECT_TREE:
	case OBJECT_BLOB:
	case OBJECT_TAG:
		if (wants_commit(name))
			verify_found(v, FOUND_OBJECT_NOT_COMMIT, ref, file,
			    "object %s is not a commit", hex);
		break;
	case OBJECT_COMMIT:
		break;
	}
}

/* ---- its file ---- */

static void describe_broken(struct verify *v, const struct ref_place *place,
    const char *ref, const char *name)
{
	const char *what =
	    "its file holds neither an id nor a symbolic reference";
	char *text;
	size_t len;
	int r;

	r = sys_read_file(v->sys, place->dirfd, name, REFD_PATH_MAX, &text,
	    &len);
	if (r == -EINVAL) {
		what = "it is not a file but a FIFO, a socket or a device";
	} else if (r == -EISDIR) {
		what = "it is a link to a directory, below another such link";
	} else if (r == 0) {
		if (len == 0)
			what = "its file is empty";
		else if (memchr(text, '\0', len) != NULL)
			what =
			    "its file holds NUL bytes, as a power cut leaves";
		free(text);
	}
	verify_found(v, FOUND_REF_BROKEN, ref, name, "%s", what);
}

static void check_symref(struct verify *v, const char *ref, const char *name,
    const struct loose_value *loose)
{
	if (!refd_refname_format_ok(loose->target))
		verify_found(v, FOUND_REF_BROKEN, ref, name,
		    "it points to '%s', which is not a valid name",
		    loose->target);
}

static void check_name(struct verify *v, const char *ref, const char *name)
{
	if (strcmp(name, "HEAD") != 0 && !refd_refname_format_ok(name))
		verify_found(v, FOUND_REF_NAME, ref, name,
		    "git does not accept that name");
}

/* If one ref is a directory of the other, one of both is packed, so a look at
 * packed-refs is enough. */
static void check_conflict(struct verify *v, const char *name)
{
	char dir[REFD_PATH_MAX], below[REFD_PATH_MAX];
	char *slash;

	if (v->snap == NULL)
		return;
	snprintf(dir, sizeof(dir), "%s/", name);
	if (packed_find_below(v->snap, dir, below) > 0)
		verify_found(v, FOUND_REF_CONFLICT, name, name,
		    "'%s' in packed-refs needs it as a directory", below);
	dir[strlen(name)] = '\0';
	while ((slash = strrchr(dir, '/')) != NULL) {
		*slash = '\0';
		if (packed_lookup(v->snap, dir, NULL) > 0)
			verify_found(v, FOUND_REF_CONFLICT, name, name,
			    "'%s' in packed-refs is a ref as well", dir);
	}
}

static void check_packed_value(struct verify *v, const char *name)
{
	struct refd_oid oid;

	if (v->snap == NULL || packed_lookup(v->snap, name, &oid) <= 0)
		return;
	check_name(v, name, name);
	check_conflict(v, name);
	verify_object(v, name, name, name, &oid);
}

void verify_ref(struct verify *v, const struct ref_place *place,
    const char *name)
{
	char buf[REFD_PATH_MAX];
	const char *ref = verify_ref_name(place, name, buf);
	struct loose_value loose;
	int r;

	r = loose_read(v->sys, place->dirfd, name, v->repo.object_format,
	    &loose);
	if (r < 0) {
		verify_found(v, FOUND_REF_UNREADABLE, ref, name, "%s",
		    strerror(-r));
		return;
	}
	if (loose.kind == LOOSE_ABSENT || loose.kind == LOOSE_DIR) {
		if (strcmp(name, "HEAD") == 0)
			verify_found(v, FOUND_REF_BROKEN, ref, name,
			    "HEAD is missing");
		else if (place->worktree[0] == '\0')
			check_packed_value(v, name);
		loose_value_done(&loose);
		return;
	}
	check_name(v, ref, name);
	if (place->worktree[0] == '\0')
		check_conflict(v, name);
	if (loose.kind == LOOSE_OID)
		verify_object(v, ref, name, name, &loose.oid);
	else if (loose.kind == LOOSE_SYMREF)
		check_symref(v, ref, name, &loose);
	else
		describe_broken(v, place, ref, name);
	loose_value_done(&loose);
}

/* ---- all of them ---- */

/* A link to a directory inside the repository. */
static bool is_link_to_dir(struct verify *v, const struct ref_place *place,
    const char *path)
{
	bool is_plain;
	int fd = SYS(v->sys, open_below, place->dirfd, path, &is_plain);

	if (fd >= 0)
		SYS(v->sys, close, fd);
	return fd >= 0;
}

/* lock_file_fn; ARG is the struct verify. */
static int visit(void *arg, const struct lock_file *f)
{
	const struct ref_place *place = f->place;
	const char *path = f->path;
	const size_t locked = lock_file_len(path);
	char name[REFD_PATH_MAX], buf[REFD_PATH_MAX];
	struct verify *v = arg;
	const char *ref = verify_ref_name(place, path, buf);

	if (f->err == -ENAMETOOLONG) {
		verify_found(v, FOUND_REF_NAME, ref, ref,
		    "a name below it is longer than git accepts");
	} else if (f->err < 0) {
		verify_found(v, FOUND_REF_UNREADABLE, ref, ref, VERIFY_UNREAD,
		    strerror(-f->err));
	} else if (is_link_to_dir(v, place, path)) {
		verify_found(v, FOUND_REF_NAME, ref, ref,
		    "a symbolic link to a directory; refd does not look behind "
		    "it");
	} else if (lock_pid_is(path)) {
		return 0;
	} else if (locked > 0) {
		snprintf(name, sizeof(name), "%.*s", (int)locked, path);
		verify_check(v, verify_lock, place, name);
	} else {
		verify_check(v, verify_ref, place, path);
	}
	return 0;
}

void verify_walk_refs(struct verify *v, const struct ref_place *place)
{
	lock_walk_tree(v->sys, place, "refs", visit, v);
}
