/*
 * Files: locks a ref and reads its loose value; reads a value without a lock.
 *
 * What fails:
 *	a lock is held			the change is given back, tried later
 *	a parent is a file, a broken	the update fails, or its atomic
 *	file				transaction
 */
#include <errno.h>
#include <string.h>

#include "daemon/store/files/batch/files.h"

static void file_blocks(struct change *c)
{
	char path[2 * REFD_PATH_MAX];

	change_whole_path(c, c->edit.name, ".lock", path);
	change_fail_detail(c, REFD_CONFLICT, REFD_DETAIL_NOT_DIRECTORY,
	    c->u->ask->name, path, NULL);
}

/* Fails C: a parent of the name is a file. As in git, a ref with an expected
 * old value is missing if the parent is a ref. */
static void conflicts_with_parent(struct pass *p, struct change *c)
{
	char parent[REFD_REFNAME_MAX + 1];
	struct loose_value value;
	bool is_ref = false;
	char *slash;

	strcpy(parent, c->edit.name);
	while ((slash = strrchr(parent, '/')) != NULL) {
		*slash = '\0';
		if (loose_read(p->sys, c->edit.dirfd, parent, c->edit.format,
			&value) < 0 ||
		    value.kind == LOOSE_ABSENT)
			continue;
		is_ref = value.kind == LOOSE_OID || value.kind == LOOSE_SYMREF;
		loose_value_done(&value);
		break;
	}
	if (!is_ref)
		file_blocks(c);
	else if (change_needs_value(c) || c->u->ask->old_target != NULL)
		change_cant_resolve(c);
	else
		change_fail_detail(c, REFD_CONFLICT,
		    REFD_DETAIL_NAME_TAKEN_EARLY, c->u->ask->name, parent,
		    c->edit.name);
}

/* The ref in the way may be a value that no machine has acknowledged. */
static void blocked(struct pass *p, struct change *c)
{
	REPLICA(p->ap->replica, permit, p, c);
	if (change_is_live(c))
		conflicts_with_parent(p, c);
}

static void lock_failed(struct pass *p, struct change *c, int err)
{
	if (err == -EEXIST)
		change_locked(c, c->edit.name);
	else if (err == -ENOTDIR)
		blocked(p, c);
	else if (err == -EXDEV || err == -EPERM || err == -EOPNOTSUPP)
		change_fail(c, REFD_UNSUPPORTED,
		    "the file system can't link lock files: %s",
		    strerror(-err));
	else
		change_fail_errno(c, err, "can't create the lock file");
}

/* Git may hold the lock while it waits for the gate, and nobody needs the lock
 * of a name below a ref. A lock of refd has a second name, in stage/. */
static bool is_read_unlocked(struct pass *p, const struct change *c, int err)
{
	char lock[REFD_PATH_MAX];
	struct sys_stat st;

	if (!change_is_gated(c) || (err != -EEXIST && err != -ENOTDIR))
		return false;
	return err == -ENOTDIR ||
	    (token_lock_path(lock, c->edit.name) == 0 &&
		SYS(p->sys, lstatat, c->edit.dirfd, lock, &st) == 0 &&
		st.nlink == 1);
}

bool files_hold(struct pass *p, struct change *c, struct loose_value *value)
{
	int r;

	if (!change_stays_inside(p, c, c->edit.name))
		return false;
	r = edit_lock(&c->edit, c->slice->dir_mode);
	c->made_dirs = c->repo_slice->token.made_dirs;
	if (r < 0 && !is_read_unlocked(p, c, r)) {
		lock_failed(p, c, r);
		return false;
	}
	r = edit_read(&c->edit, value);
	if (r < 0) {
		change_fail_errno(c, r, "can't read the reference");
		return false;
	}
	c->is_loose = value->kind == LOOSE_OID || value->kind == LOOSE_SYMREF;
	c->old_mtime_ns = c->is_loose ? value->mtime_ns : 0;
	c->is_vacant = value->is_vacant;
	return true;
}

int files_look(struct pass *p, const struct change *at,
    struct loose_value *value)
{
	struct repo_slice *g = at->repo_slice;
	int r;

	r = loose_read(p->sys, at->edit.dirfd, at->edit.name,
	    g->repo->object_format, value);
	if (r < 0 ||
	    (value->kind != LOOSE_ABSENT && value->kind != LOOSE_DIR) ||
	    at->edit.dirfd != g->repo->fd || g->files.snap == NULL)
		return r;
	r = packed_lookup(g->files.snap, at->edit.name, &value->oid);
	if (r > 0)
		value->kind = LOOSE_OID;
	return r < 0 ? r : 0;
}
