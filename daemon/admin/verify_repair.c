/*
 * Repairs.
 *
 * Happy path, for a ref, its log and packed-refs.new:
 *	lock	with git's lock, against git and the daemon
 *	check	again, under the lock
 *	save	the old file in refd/saved/ (saved.h)
 *	repair	durably
 *
 * Not repaired, with a reason: everything before recovery, or without the
 * journal of the repository; a ref with deferred redo; a ref with a lock of
 * another writer. A well-formed value is never replaced. The repair writes no
 * record, but the new file is younger than the records, so a later recovery
 * leaves it alone. client/verify.c confirms the value through the daemon.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/admin/verify_internal.h"
#include "daemon/store/files/format/loose.h"
#include "daemon/store/files/format/reflog.h"
#include "daemon/store/publish/edit.h"
#include "daemon/store/recovery/leftover_locks.h"
#include "daemon/store/recovery/saved.h"
#include "daemon/store/repos/repo_internal.h"

/* ---- locks ---- */

/* Takes git's lock, without a token, because refd may never have served the
 * repository. */
static int lock_take(struct verify *v, const struct ref_place *place,
    const char *name, struct edit *e)
{
	*e = (struct edit){ .sys = v->sys,
		.name = name,
		.dirfd = place->dirfd,
		.format = v->repo.object_format,
		.evidence = EVIDENCE_REPAIR };
	if (loose_stays_inside(v->sys, place->dirfd, name) < 0)
		return -ELOOP;
	return edit_lock(e, v->repo.mode & 07777);
}

/* ---- a ref ---- */

static int sync_file(struct verify *v, int dirfd, const char *path, int flags)
{
	int fd = SYS(v->sys, openat, dirfd, path, O_RDONLY | flags, 0), r = fd;

	if (fd >= 0) {
		r = SYS(v->sys, fsync, fd);
		SYS(v->sys, close, fd);
	}
	return r;
}

/* The directory of NAME may be removed, too, so the nearest directory that
 * exists is synced. */
static int sync_parent(struct verify *v, int dirfd, const char *name)
{
	char dir[REFD_PATH_MAX];
	char *slash;
	int r;

	snprintf(dir, sizeof(dir), "%s", name);
	do {
		slash = strrchr(dir, '/');
		if (slash != NULL)
			*slash = '\0';
		r = sync_file(v, dirfd, slash != NULL ? dir : ".", O_DIRECTORY);
	} while (r == -ENOENT && slash != NULL);
	return r;
}

static int put_value(struct verify *v, struct edit *e, mode_t mode,
    const struct verify_value *value)
{
	int fd, r;

	fd = edit_stage(e, &value->oid, value->target, mode);
	if (fd < 0)
		return fd;
	r = SYS(v->sys, fsync, fd);
	SYS(v->sys, close, fd);
	if (r == 0)
		r = edit_place(e);
	return r == 0 ? sync_parent(v, e->dirfd, e->name) : r;
}

/* Whatever is found as FOUND_REF_BROKEN can be repaired. */
static bool is_broken(struct verify *v, const struct ref_place *place,
    const char *name)
{
	const struct verify_subject again = { verify_ref, *place, name };
	const struct verify_subject *was = v->subject;
	const bool was_sure = v->is_sure;

	v->subject = &again;
	v->is_sure = false;
	v->is_broken = false;
	verify_ref(v, place, name);
	v->subject = was;
	v->is_sure = was_sure;
	return v->is_broken;
}

/* A HEAD that is missing, and a value in packed-refs, have no file, so nothing
 * is saved. */
static int save(struct verify *v, const struct ref_place *place,
    const char *name, char saved[SAVED_PATH_MAX])
{
	struct sys_stat st;
	int r;

	saved[0] = '\0';
	r = SYS(v->sys, lstatat, place->dirfd, name, &st);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = saved_link(v->sys, &v->repo, place->dirfd, place->worktree,
		    name, saved);
	return r == 0 ? sync_parent(v, v->repo.fd, saved) : r;
}

static int restore(struct verify *v, const struct ref_place *place,
    struct edit *e, mode_t mode, struct verify_value *value,
    char saved[SAVED_PATH_MAX])
{
	int r;

	/* Another writer may have been faster, and may have packed the ref, so
	 * all is read again. */
	verify_read_again(v);
	if (!is_broken(v, place, e->name))
		return -EALREADY;
	r = verify_last_value(v, place, e->name, value);
	if (r == 0)
		r = save(v, place, e->name, saved);
	return r == 0 ? put_value(v, e, mode, value) : r;
}

static char *say_failed(int r)
{
	if (r == -EEXIST)
		return repo_why("not repaired: another has its lock");
	if (r == -ENOENT)
		return repo_why("not repaired: neither journal nor log know a "
				"value whose object is there");
	if (r == -ENOLINK)
		return repo_why("not repaired: nothing tells which branch it "
				"named: 'echo ref: refs/heads/BRANCH >HEAD', "
				"run in its directory, names one");
	if (r == -EALREADY)
		return repo_why(
		    "not repaired: another has written it meanwhile");
	if (r == -EXFULL)
		return repo_why("not repaired: refd/saved is full, or the old "
				"file is too large to be saved "
				"(refd-verify(8))");
	if (r == -ELOOP)
		return repo_why("not repaired: a symbolic link is in the way");
	return repo_why("not repaired: %s", leftover_locks_why(r));
}

static char *repair_ref(struct verify *v, const struct ref_place *place,
    const char *name, bool *done)
{
	char saved[SAVED_PATH_MAX], hex[REFD_OID_MAX_HEX + 1], *said;
	struct verify_value value = { .target = NULL };
	struct sys_stat st;
	mode_t mode = v->repo.mode & 0666;
	struct edit e;
	int r;

	if (SYS(v->sys, lstatat, place->dirfd, name, &st) == 0 &&
	    S_ISREG(st.mode))
		mode = st.mode & 0777;
	r = lock_take(v, place, name, &e);
	if (r < 0)
		return say_failed(r);
	r = restore(v, place, &e, mode, &value, saved);
	edit_unlock(&e);
	*done = r == 0;
	said = r < 0 ?
	    say_failed(r) :
	    repo_why("restored to %s from %s%s%s",
		value.target != NULL ?
		    value.target :
		    refd_oid_hex(&value.oid, v->repo.object_format, hex),
		value.from, saved[0] != '\0' ? "; the old file is " : "",
		saved);
	if (r == 0 && value.target == NULL) {
		refd_oid_hex(&value.oid, v->repo.object_format, v->value);
		snprintf(v->from, sizeof(v->from), "%s", value.from);
	}
	free(value.target);
	return said;
}

/* ---- a log ---- */

static char *repair_log(struct verify *v, const struct ref_place *place,
    const char *name, bool *done)
{
	char path[REFD_PATH_MAX], saved[SAVED_PATH_MAX];
	const struct reflog_file log = { .sys = v->sys,
		.dirfd = place->dirfd,
		.path = path,
		.format = v->repo.object_format };
	size_t added = 0, cut = 0;
	struct edit e;
	int r;

	snprintf(path, sizeof(path), "logs/%s", name);
	r = loose_stays_inside(v->sys, place->dirfd, path);
	if (r == 0)
		r = lock_take(v, place, name, &e);
	if (r < 0)
		return say_failed(r);
	r = saved_copy(v->sys, &v->repo, place->dirfd, place->worktree, path,
	    saved);
	if (r == 0)
		r = sync_parent(v, v->repo.fd, saved);
	if (r == 0)
		r = reflog_repair(&log, NULL, 0, 0, &added, &cut);
	if (r == 0)
		r = sync_file(v, place->dirfd, path, O_NOFOLLOW | O_NONBLOCK);
	edit_unlock(&e);
	*done = r == 0;
	return r < 0 ?
	    say_failed(r) :
	    repo_why("%zu bytes cut off; the old log is %s", cut, saved);
}

static char *remove_log(struct verify *v, const struct ref_place *place,
    const char *name, bool *done)
{
	char path[REFD_PATH_MAX];
	const struct reflog_file log = { .sys = v->sys,
		.dirfd = place->dirfd,
		.path = path };
	struct refd_oid oid;
	struct edit e;
	int r;

	snprintf(path, sizeof(path), "logs/%s", name);
	r = loose_stays_inside(v->sys, place->dirfd, path);
	if (r == 0)
		r = lock_take(v, place, name, &e);
	if (r < 0)
		return say_failed(r);
	r = verify_ref_value(v, place, name, &oid) == 0 ? reflog_unmake(&log) :
							  -EALREADY;
	if (r == 0)
		r = sync_parent(v, place->dirfd, path);
	edit_unlock(&e);
	*done = r == 0;
	return r < 0 ? say_failed(r) : repo_why("removed the empty log");
}

/* ---- leftovers ---- */

static char *repair_packed_new(struct verify *v, bool *done)
{
	const struct ref_place common = { v->repo.fd, "" };
	char saved[SAVED_PATH_MAX];
	struct edit e;
	int r;

	r = lock_take(v, &common, "packed-refs", &e);
	if (r < 0)
		return say_failed(r);
	r = saved_move(v->sys, &v->repo, "packed-refs.new", saved);
	if (r == 0)
		r = sync_parent(v, v->repo.fd, saved);
	edit_unlock(&e);
	*done = r == 0;
	return r < 0 ? say_failed(r) : repo_why("moved to %s", saved);
}

static int unlock_ours(struct verify *v, size_t *unlocked)
{
	static const char *const roots[] = { "/" };
	struct leftover_locks leftover = { .sys = v->sys };
	struct repo *repo = NULL;
	struct repo_place place;
	struct repos repos;
	char *why = NULL;
	int r = -EIO;

	repos_init(&repos, v->sys, NULL, roots, 1, 1);
	if (repo_find(&repos, v->repo.path, &place, &why) == REFD_OK)
		r = repo_open_claimed(&repos, &place, &repo);
	free(why);
	if (r == 0)
		r = leftover_locks_find(&leftover, v->sys, repo,
		    (struct live_batches){ .from = UINT64_MAX }, false);
	if (r == 0)
		r = leftover_locks_clean(&leftover, unlocked);
	leftover_locks_done(&leftover);
	repo_close(&repos, repo);
	repos_done(&repos);
	return r;
}

/* Before recovery, a lock of refd may be the only trace of an unfinished
 * update, so the journal must show that no update needs the locks. */
static char *repair_locks(struct verify *v, bool *done)
{
	size_t unlocked = 0;
	int r;

	if (v->repo_rows == NULL || v->nr_deferred > 0)
		return repo_why(
		    "not removed: the journal does not show that it is unused");
	if (v->is_daemon_up)
		return repo_why(
		    "not removed: a daemon runs, and removes its own locks");
	r = unlock_ours(v, &unlocked);
	*done = r == 0;
	if (r == -EAGAIN)
		return repo_why("not removed: a daemon serves the repository");
	return r < 0 ? say_failed(r) :
		       repo_why("removed %zu locks of earlier runs", unlocked);
}

char *verify_repair(struct verify *v, enum finding_id id,
    const struct verify_subject *s, bool *done)
{
	const enum finding_repair how = finding_repair(id);

	*done = false;
	v->value[0] = '\0';
	if (s == NULL || how == REPAIR_NONE)
		return NULL;
	if (v->awaits)
		return repo_why("not repaired: recovery comes first");
	if (v->is_unread)
		return repo_why(
		    "not repaired: recovery may come first, and the journal of "
		    "the repository was not read: name it by --state");
	if (v->has_lost_format)
		return repo_why("not repaired: restore the configuration");
	if (verify_is_deferred(v, &s->place, s->name))
		return repo_why("not repaired: its record is deferred");
	if (how == REPAIR_TABLE)
		return verify_mend(v, &s->place, done);
	if (how == REPAIR_REF)
		return repair_ref(v, &s->place, s->name, done);
	if (how == REPAIR_LOG)
		return repair_log(v, &s->place, s->name, done);
	if (how == REPAIR_EMPTY)
		return remove_log(v, &s->place, s->name, done);
	if (how == REPAIR_PACKED_NEW)
		return repair_packed_new(v, done);
	if (how == REPAIR_LOCKS)
		return repair_locks(v, done);
	return NULL;
}
