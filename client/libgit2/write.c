/*
 * Writes, deletes and renames refs.
 *
 * The happy path: libgit2's own checks of the old value come first, by a read
 * without a lock, because they give libgit2's own errors. The ref may change
 * after this read, so the daemon checks the old value again in the one
 * transaction, under the lock.
 *
 * A session instead of a transaction:
 *	rename	moves the log while both refs are locked
 *	write	of an id to a ref that must have been symbolic: the daemon has
 *		no such check, so the value is read under the lock
 *
 * What fails: the write. If the session of a rename ends too early, the log
 * moves back. If the program ends between the move and the commit, or the
 * outcome is not known, the log stays under the new name.
 */
#include <string.h>

#include <git2/sys/refs.h>

#include "client/libgit2/refd_git2.h"
#include "client/libgit2/request.h"

/* As libgit2's files: GIT_EMODIFIED if the ref has another value or another
 * type, GIT_ENOTFOUND. Without an old value, or if the ref must not exist and
 * does not: 0. */
static int check_old(struct backend *be, const char *name, const git_oid *old,
    const char *old_target)
{
	git_reference *ref;
	const char *target;
	const git_oid *id;
	bool same;
	int err;

	if (!old && !old_target)
		return 0;
	err = be->files->lookup(&ref, be->files, name);
	if (err == GIT_ENOTFOUND && old && git_oid_is_zero(old) && !old_target)
		return 0;
	if (err < 0)
		return err;
	id = git_reference_target(ref);
	target = git_reference_symbolic_target(ref);
	same = (!old || (id && git_oid_equal(id, old))) &&
	    (!old_target || (target && strcmp(target, old_target) == 0));
	git_reference_free(ref);
	return same ? 0 :
		      backend_fail(GIT_EMODIFIED,
			  "refd: old value of '%s' does not match", name);
}

static int check_absent(struct backend *be, const char *name)
{
	int exists, err = be->files->exists(&exists, be->files, name);

	if (err == 0 && exists)
		err = backend_fail(GIT_EEXISTS,
		    "refd: cannot write '%s': a reference with that name "
		    "already exists",
		    name);
	return err;
}

static void add_write(struct request *r, const git_reference *ref, int force,
    const git_oid *old, const char *old_target)
{
	const char *target = git_reference_symbolic_target(ref);
	struct refd_update *u;

	if (target) {
		u = request_add(r,
		    force ? REFD_SYMREF_UPDATE : REFD_SYMREF_CREATE,
		    git_reference_name(ref));
		u->target = target;
	} else {
		u = request_add(r, force ? REFD_UPDATE : REFD_CREATE,
		    git_reference_name(ref));
		request_set_oid(&u->new_oid, git_reference_target(ref));
		old_target = NULL;
	}
	if (!force || (!old && !old_target))
		return;
	u->has_old = true;
	u->old_target = old_target;
	if (old)
		request_set_oid(&u->old_oid, old);
}

static int write_locked(struct request *r, struct backend *be,
    const git_reference *ref, const char *old_target)
{
	int err = request_prepare(r);

	if (err == 0)
		err = check_old(be, git_reference_name(ref), NULL, old_target);
	return err < 0 ? err : request_commit(r);
}

int write_ref(git_refdb_backend *parent, const git_reference *ref, int force,
    const git_signature *who, const char *message, const git_oid *old,
    const char *old_target)
{
	struct backend *be = (struct backend *)parent;
	const char *name = git_reference_name(ref);
	struct request r;
	int err = 0;

	if (!force)
		err = check_absent(be, name);
	if (err == 0)
		err = check_old(be, name, old, old_target);
	if (err < 0)
		return err;
	err = request_open(&r, be, who, message);
	if (err == 0) {
		add_write(&r, ref, force, old, old_target);
		err = old_target && git_reference_target(ref) ?
		    write_locked(&r, be, ref, old_target) :
		    request_transact(&r);
	}
	request_close(&r);
	/* The caller forces, and expected that there is no ref, so the error is
	 * that of a wrong old value. */
	return force && err == GIT_EEXISTS ? GIT_EMODIFIED : err;
}

int write_delete(git_refdb_backend *parent, const char *name,
    const git_oid *old, const char *old_target)
{
	struct backend *be = (struct backend *)parent;
	int err = check_old(be, name, old, old_target);
	struct refd_update *u;
	struct request r;

	if (err < 0)
		return err;
	err = request_open(&r, be, NULL, NULL);
	if (err == 0) {
		u = request_add(&r,
		    old_target ? REFD_SYMREF_DELETE : REFD_DELETE, name);
		u->has_old = old || old_target;
		u->old_target = old_target;
		if (old)
			request_set_oid(&u->old_oid, old);
		err = request_transact(&r);
	}
	request_close(&r);
	return err;
}

/* ---- rename ---- */

/* Is one name a directory of the other, so that a transaction cannot have
 * both? */
static bool is_above(const char *above, const char *name)
{
	size_t len = strlen(above);

	return strncmp(above, name, len) == 0 && name[len] == '/';
}

static int check_names(struct backend *be, const char *old_name,
    const char *new_name, int force)
{
	if (is_above(old_name, new_name) || is_above(new_name, old_name))
		return backend_fail(GIT_EDIRECTORY,
		    "refd: cannot rename '%s' to '%s' in one step: rename to a "
		    "third name first",
		    old_name, new_name);
	return force ? 0 : check_absent(be, new_name);
}

static void add_rename(struct request *r, const git_reference *old,
    const char *new_name, int force)
{
	const char *target = git_reference_symbolic_target(old);
	struct refd_update *gone, *made;

	if (target) {
		gone =
		    request_add(r, REFD_SYMREF_DELETE, git_reference_name(old));
		made = request_add(r,
		    force ? REFD_SYMREF_UPDATE : REFD_SYMREF_CREATE, new_name);
		gone->old_target = target;
		made->target = target;
	} else {
		gone = request_add(r, REFD_DELETE, git_reference_name(old));
		made =
		    request_add(r, force ? REFD_UPDATE : REFD_CREATE, new_name);
		request_set_oid(&gone->old_oid, git_reference_target(old));
		request_set_oid(&made->new_oid, git_reference_target(old));
	}
	gone->has_old = true;
}

/* The session locks both refs, so nobody else can write one of them while the
 * log moves. The daemon adds its line to the log under the new name, and finds
 * no log to delete. */
static int rename_locked(struct request *r, struct backend *be,
    const char *old_name, const char *new_name)
{
	git_refdb_backend *files = be->files;
	bool has_log = files->has_log(files, old_name) > 0;
	int err;

	r->req.create_reflog = has_log;
	err = request_prepare(r);
	if (err == 0 && has_log)
		err = files->reflog_rename(files, old_name, new_name);
	if (err < 0)
		return err;
	err = request_commit(r);
	if (err < 0 && err != REFD_GIT2_EUNKNOWN && has_log &&
	    !files->has_log(files, old_name))
		files->reflog_rename(files, new_name, old_name);
	return err;
}

static int do_rename(struct backend *be, const git_reference *old,
    const char *new_name, int force, const git_signature *who,
    const char *message)
{
	const char *old_name = git_reference_name(old);
	struct request r;
	int err;

	err = request_open(&r, be, who, message);
	if (err == 0) {
		add_rename(&r, old, new_name, force);
		err = rename_locked(&r, be, old_name, new_name);
	}
	request_close(&r);
	return err;
}

static git_reference *renamed(const git_reference *old, const char *name)
{
	const char *target = git_reference_symbolic_target(old);

	return target ?
	    git_reference__alloc_symbolic(name, target) :
	    git_reference__alloc(name, git_reference_target(old), NULL);
}

int write_rename(git_reference **out, git_refdb_backend *parent,
    const char *old_name, const char *new_name, int force,
    const git_signature *who, const char *message)
{
	struct backend *be = (struct backend *)parent;
	git_reference *old, *made;
	int err;

	err = check_names(be, old_name, new_name, force);
	if (err == 0)
		err = be->files->lookup(&old, be->files, old_name);
	if (err < 0)
		return err;
	made = renamed(old, new_name);
	if (!made)
		err = backend_fail(GIT_ERROR, "out of memory");
	else if (strcmp(old_name, new_name) != 0)
		err = do_rename(be, old, new_name, force, who, message);
	git_reference_free(old);
	if (err == 0 && out)
		*out = made;
	else
		git_reference_free(made);
	return err;
}
