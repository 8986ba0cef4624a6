/*
 * Locks for libgit2's git_transaction, and for changes of whole logs.
 *
 * A lock is a session that verifies the present value of the ref. The daemon
 * then holds <ref>.lock, so neither git nor a client of refd can write the ref
 * or its log. The protocol has no request that changes a whole log, so
 * libgit2's own code does that, under such a lock.
 *
 * The end of a git_transaction's lock:
 *	no new value	the lock goes
 *	deletion	the lock goes; one transaction deletes the ref with the
 *			value that was locked
 *	new value	the lock goes; one transaction writes the ref with the
 *			value that was locked as the old value
 *	new value, and	the same; then, under another lock, the line of this
 *	a new log	write is dropped from the log, which is complete
 *			without the line
 * The lock has to go first, because a session has its new value from the
 * beginning, and libgit2 tells the value at the end.
 *
 * What fails:
 *	another writer comes between lock and transaction	GIT_EMODIFIED,
 *		nothing is written
 *	another writer comes before the line is dropped		GIT_EMODIFIED,
 *		the ref is written, and its log has a line too many
 *	the daemon ended the lock (session.timeout)		a new value is
 *		checked as above; a new log could lose a line of another writer
 */
#include <stdlib.h>
#include <string.h>

#include "client/libgit2/request.h"

/* The ref may change between the look and the lock, so both are repeated. */
#define TRIES 10

struct lock {
	struct lock *next; /* in the list of the backend */
	struct request session;
	git_reference *value; /* NULL: no such ref */
	char *name;
};

/* The beginning of libgit2's struct git_reflog, from 0.19 to 1.9, because no
 * call of libgit2 tells the name of a log. */
struct reflog_head {
	git_refdb *db;
	char *ref_name;
};

static int add_verify(struct backend *be, struct request *r, const char *name,
    git_reference **value)
{
	const char *target;
	struct refd_update *u;
	int err;

	err = be->files->lookup(value, be->files, name);
	if (err < 0 && err != GIT_ENOTFOUND)
		return err;
	if (err == GIT_ENOTFOUND)
		*value = NULL;
	target = *value ? git_reference_symbolic_target(*value) : NULL;
	u = request_add(r, target ? REFD_SYMREF_VERIFY : REFD_VERIFY, name);
	u->has_old = true;
	u->old_target = target;
	if (*value && !target)
		request_set_oid(&u->old_oid, git_reference_target(*value));
	return 0;
}

static int try_lock(struct backend *be, struct request *r,
    const char *const names[], git_reference *values[], size_t nr)
{
	int err = request_open(r, be, NULL, NULL);
	size_t i;

	for (i = 0; i < nr && err == 0; i++)
		err = add_verify(be, r, names[i], &values[i]);
	return err < 0 ? err : request_prepare(r);
}

/* Locks the refs with their present values. request_close() unlocks, also after
 * a failure. The caller owns VALUES, which are NULL after a failure. */
static int lock_refs(struct backend *be, struct request *r,
    const char *const names[], git_reference *values[], size_t nr)
{
	int err, tries = 0;
	size_t i;

	for (;;) {
		memset(values, 0, nr * sizeof(values[0]));
		err = try_lock(be, r, names, values, nr);
		if (err == 0)
			return 0;
		for (i = 0; i < nr; i++) {
			git_reference_free(values[i]);
			values[i] = NULL;
		}
		if ((err != GIT_EMODIFIED && err != GIT_EEXISTS &&
			err != GIT_ENOTFOUND) ||
		    ++tries == TRIES)
			return err;
		request_close(r);
	}
}

/* ---- git_transaction ---- */

static void lock_free(struct lock *l)
{
	request_close(&l->session);
	git_reference_free(l->value);
	free(l->name);
	free(l);
}

static void enlist(struct backend *be, struct lock *l)
{
	pthread_mutex_lock(&be->mutex);
	l->next = be->locks;
	be->locks = l;
	pthread_mutex_unlock(&be->mutex);
}

static void delist(struct backend *be, const struct lock *l)
{
	struct lock **at = &be->locks;

	pthread_mutex_lock(&be->mutex);
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	pthread_mutex_unlock(&be->mutex);
}

int lock_ref(void **payload, git_refdb_backend *parent, const char *name)
{
	struct backend *be = (struct backend *)parent;
	struct lock *l = calloc(1, sizeof(*l));
	const char *names[1];
	int err;

	if (!l || !(l->name = strdup(name))) {
		free(l);
		return backend_fail(GIT_ERROR, "out of memory");
	}
	names[0] = l->name;
	err = lock_refs(be, &l->session, names, &l->value, 1);
	if (err < 0) {
		lock_free(l);
		return err;
	}
	enlist(be, l);
	*payload = l;
	return 0;
}

static int count_lines(struct backend *be, const char *name, size_t *nr)
{
	git_reflog *log;
	int err = be->files->reflog_read(&log, be->files, name);

	if (err < 0)
		return err;
	*nr = git_reflog_entrycount(log);
	git_reflog_free(log);
	return 0;
}

static int drop_newest(struct backend *be, const char *name, size_t nr_before)
{
	git_reflog *log;
	size_t nr;
	int err = be->files->reflog_read(&log, be->files, name);

	if (err < 0)
		return err;
	nr = git_reflog_entrycount(log);
	if (nr > nr_before + 1)
		err = GIT_EMODIFIED;
	else if (nr == nr_before + 1)
		err = git_reflog_drop(log, 0, 0);
	if (err == 0 && nr > nr_before)
		err = be->files->reflog_write(be->files, log);
	git_reflog_free(log);
	return err;
}

static int drop_line(struct backend *be, const char *name, size_t nr_before)
{
	git_reference *value;
	struct request r;
	int err = lock_refs(be, &r, &name, &value, 1);

	if (err == 0)
		err = drop_newest(be, name, nr_before);
	git_reference_free(value);
	request_close(&r);
	return err == 0 ? 0 :
			  backend_fail(err,
			      "refd: '%s' is written, but its log has a line "
			      "too many",
			      name);
}

static int write_value(struct backend *be, const struct lock *l, bool deletes,
    const git_reference *ref, const git_signature *who, const char *message)
{
	static const git_oid none;
	const git_oid *old = l->value ? git_reference_target(l->value) : &none;
	const char *old_target =
	    l->value ? git_reference_symbolic_target(l->value) : NULL;

	if (deletes)
		return write_delete(&be->parent, l->name, old, old_target);
	return write_ref(&be->parent, ref, 1, who, message, old, old_target);
}

int lock_end(git_refdb_backend *parent, void *payload, int success,
    int update_reflog, const git_reference *ref, const git_signature *who,
    const char *message)
{
	struct backend *be = (struct backend *)parent;
	bool has_new_log = success == 1 && !update_reflog;
	struct lock *l = payload;
	size_t nr_lines = 0;
	int err = 0;

	delist(be, l);
	if (has_new_log)
		err = count_lines(be, l->name, &nr_lines);
	request_release(&l->session);
	if (err == 0 && success)
		err = write_value(be, l, success == 2, ref, who, message);
	if (err == 0 && has_new_log)
		err = drop_line(be, l->name, nr_lines);
	lock_free(l);
	return err;
}

/* ---- whole logs ---- */

static bool is_locked(struct backend *be, const char *name)
{
	struct lock *l;

	pthread_mutex_lock(&be->mutex);
	for (l = be->locks; l && strcmp(l->name, name) != 0; l = l->next)
		;
	pthread_mutex_unlock(&be->mutex);
	return l != NULL;
}

/* A git_transaction writes the log of a ref while it has locked the ref. So the
 * log of a locked ref is written without a second lock. */
int lock_reflog_write(git_refdb_backend *parent, git_reflog *reflog)
{
	const char *name = ((struct reflog_head *)reflog)->ref_name;
	struct backend *be = (struct backend *)parent;
	git_reference *value;
	struct request r;
	int err;

	if (is_locked(be, name))
		return be->files->reflog_write(be->files, reflog);
	err = lock_refs(be, &r, &name, &value, 1);
	if (err == 0)
		err = be->files->reflog_write(be->files, reflog);
	git_reference_free(value);
	request_close(&r);
	return err;
}

int lock_reflog_delete(git_refdb_backend *parent, const char *name)
{
	struct backend *be = (struct backend *)parent;
	git_reference *value;
	struct request r;
	int err = lock_refs(be, &r, &name, &value, 1);

	if (err == 0)
		err = be->files->reflog_delete(be->files, name);
	git_reference_free(value);
	request_close(&r);
	return err;
}

int lock_reflog_rename(git_refdb_backend *parent, const char *old_name,
    const char *new_name)
{
	const char *names[] = { old_name, new_name };
	struct backend *be = (struct backend *)parent;
	git_reference *values[2];
	struct request r;
	int err = lock_refs(be, &r, names, values, 2);

	if (err == 0)
		err = be->files->reflog_rename(be->files, old_name, new_name);
	git_reference_free(values[0]);
	git_reference_free(values[1]);
	request_close(&r);
	return err;
}
