/*
 * The steps of a ref edit, for refs in files.
 *
 * Happy path: stage, lock, place, unlock. A creation of an atomic transaction
 * is linked first, because a link can be removed again under the lock. All are
 * placed when all are linked.
 *
 * Failure modes: each step states the result of its failure, so that the caller
 * can finish or take back. A caller that can do neither leaves the edit to
 * recovery (DEFERRED).
 */
#include "daemon/store/publish/edit.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- progress ---- */

#define TO(state) (1u << PROGRESS_##state)

static const unsigned transitions[PROGRESS_STATES] = {
	[PROGRESS_PLANNED] = TO(STAGED) | TO(LOCKED),
	/* Staged a second time, or the value was discarded. */
	[PROGRESS_STAGED] = TO(STAGED) | TO(LOCKED) | TO(PLANNED),
	[PROGRESS_LOCKED] =
	    TO(LINKED) | TO(PUBLISHED) | TO(RELEASED) | TO(DEFERRED),
	[PROGRESS_LINKED] = TO(LOCKED) | TO(PUBLISHED) | TO(DEFERRED),
	[PROGRESS_PUBLISHED] = TO(DONE) | TO(DEFERRED),
	[PROGRESS_DONE] = 0,
	[PROGRESS_RELEASED] = 0,
	[PROGRESS_DEFERRED] = TO(DEFERRED),
};

bool edit_progress_may(enum progress from, enum progress to)
{
	return transitions[from] & (1u << to);
}

void edit_to(struct edit *e, enum progress to)
{
	assert(edit_progress_may(e->progress, to));
	e->progress = to;
}

/* ---- git's lock ---- */

/* Git's lock becomes the ref itself, so git creates the lock with the mode of a
 * new ref. stage_in_lock() corrects the mode. */
#define GIT_LOCK_MODE 0644

static int git_lock(struct edit *e, mode_t dir_mode)
{
	char path[REFD_PATH_MAX];
	int r = token_lock_path(path, e->name);

	if (r < 0)
		return r;
	sys_make_parents(e->sys, e->dirfd, path, dir_mode);
	r = SYS(e->sys, openat, e->dirfd, path,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, GIT_LOCK_MODE);
	if (r < 0)
		return r;
	e->lock_fd = r;
	e->has_lock_fd = true;
	return 0;
}

static int stage_in_lock(struct edit *e, const char *content, size_t len,
    mode_t file_mode)
{
	int fd = e->lock_fd, r;

	assert(e->has_lock_fd);
	e->has_lock_fd = false;
	/* A file system without modes can still have the value. */
	SYS(e->sys, fchmod, fd, file_mode);
	r = SYS(e->sys, write_all, fd, content, len);
	if (r < 0)
		SYS(e->sys, close, fd);
	return r < 0 ? r : fd;
}

/* The lock itself becomes the ref. */
static int git_place(struct edit *e)
{
	char path[REFD_PATH_MAX];
	int r = token_lock_path(path, e->name);

	assert(!e->has_lock_fd);
	if (r == 0)
		r = SYS(e->sys, renameat, e->dirfd, path, e->dirfd, e->name);
	e->is_doubtful = sys_may_have_happened(r);
	if (e->is_doubtful)
		edit_to(e, PROGRESS_DEFERRED);
	if (r < 0)
		return r;
	edit_to(e, PROGRESS_PUBLISHED);
	edit_to(e, PROGRESS_DONE);
	return 0;
}

static int git_unlock(struct edit *e)
{
	char path[REFD_PATH_MAX];
	int r = token_lock_path(path, e->name);

	if (e->has_lock_fd)
		SYS(e->sys, close, e->lock_fd);
	e->has_lock_fd = false;
	if (r == 0)
		r = SYS(e->sys, unlinkat, e->dirfd, path);
	if (r < 0 && r != -ENOENT)
		return r;
	/* git_lock() may have made directories for the lock alone. */
	loose_prune_parents(e->sys, e->dirfd, e->name, 2);
	return 0;
}

/* ---- the value ---- */

int edit_stage(struct edit *e, const struct refd_oid *oid, const char *target,
    mode_t file_mode)
{
	char content[LOOSE_CONTENT_MAX];
	int len = loose_format(oid, e->format, target, content);

	return len < 0 ? len :
			 edit_stage_bytes(e, content, (size_t)len, file_mode);
}

int edit_stage_bytes(struct edit *e, const char *content, size_t len,
    mode_t file_mode)
{
	char value[TOKEN_NAME_MAX];

	if (e->token == NULL)
		return stage_in_lock(e, content, len, file_mode);
	/* Even a failed call may leave a file, so edit_discard() has to
	 * unlink. */
	e->has_value = true;
	if (!edit_is_locked(e))
		edit_to(e, PROGRESS_STAGED);
	token_value_name(value, e->token->id, e->value_nr);
	return loose_stage(e->sys, e->token->stage_fd, value, content, len,
	    file_mode);
}

void edit_hand_over(struct edit *from, struct edit *to)
{
	to->value_nr = from->value_nr;
	if (!from->has_value)
		return;
	from->has_value = false;
	to->has_value = true;
	edit_to(to, PROGRESS_STAGED);
}

int edit_discard(struct edit *e)
{
	char value[TOKEN_NAME_MAX];
	int r;

	if (!e->has_value)
		return 0;
	token_value_name(value, e->token->id, e->value_nr);
	r = SYS(e->sys, unlinkat, e->token->stage_fd, value);
	e->has_value = r < 0 && r != -ENOENT;
	if (!e->has_value && e->progress == PROGRESS_STAGED)
		edit_to(e, PROGRESS_PLANNED);
	return e->has_value ? r : 0;
}

/* ---- the lock ---- */

int edit_lock(struct edit *e, mode_t dir_mode)
{
	int r = e->token == NULL ?
	    git_lock(e, dir_mode) :
	    token_lock(e->token, e->dirfd, e->name, dir_mode);

	if (r == 0)
		edit_to(e, PROGRESS_LOCKED);
	return r;
}

/* Locks of an earlier run stay until all is done and recorded, because they
 * show the next start that work is left. */
int edit_unlock(struct edit *e)
{
	int r;

	if (!edit_is_locked(e) || e->is_earlier)
		return 0;
	r = e->token == NULL ? git_unlock(e) :
			       token_unlock(e->token, e->dirfd, e->name);
	if (r == 0)
		edit_to(e,
		    e->progress == PROGRESS_PUBLISHED ? PROGRESS_DONE :
							PROGRESS_RELEASED);
	return r;
}

int edit_read(const struct edit *e, struct loose_value *value)
{
	return loose_read(e->sys, e->dirfd, e->name, e->format, value);
}

/* ---- publishing ---- */

typedef int place_fn(const struct sys *sys, int from_fd, const char *from,
    int to_fd, const char *to);

static bool is_directory_there(int err)
{
	return err == -EISDIR || err == -ENOTEMPTY || err == -EEXIST;
}

static int place_once(struct edit *e, place_fn *fn)
{
	char value[TOKEN_NAME_MAX];
	int r;

	token_value_name(value, e->token->id, e->value_nr);
	r = fn(e->sys, e->token->stage_fd, value, e->dirfd, e->name);
	e->is_doubtful = sys_may_have_happened(r);
	return r;
}

static int place(struct edit *e, place_fn *fn)
{
	int r = place_once(e, fn);

	if (!is_directory_there(r))
		return r;
	r = loose_clear_dirs(e->sys, e->dirfd, e->name, NULL);
	return r < 0 ? r : place_once(e, fn);
}

int edit_place(struct edit *e)
{
	int r = 0;

	if (e->token == NULL)
		return git_place(e);
	if (e->progress != PROGRESS_LINKED) {
		r = place(e, e->sys->renameat);
		e->has_value = r < 0;
	}
	if (r == 0)
		edit_to(e, PROGRESS_PUBLISHED);
	return r;
}

int edit_link(struct edit *e)
{
	int r = place(e, e->sys->linkat);

	if (r == 0 || e->is_doubtful)
		edit_to(e, PROGRESS_LINKED);
	return r;
}

int edit_take_back(struct edit *e)
{
	int r = SYS(e->sys, unlinkat, e->dirfd, e->name);

	if (r < 0 && r != -ENOENT)
		return r;
	edit_to(e, PROGRESS_LOCKED);
	return 0;
}

int edit_remove_log(struct edit *e)
{
	char path[REFD_PATH_MAX];
	const struct reflog_file log = edit_log(e, path);
	int r = reflog_delete(&log);

	return r == -EACCES || r == -EPERM ? 0 : r;
}

int edit_remove(struct edit *e, bool is_loose)
{
	int r = 0;

	if (is_loose)
		r = SYS(e->sys, unlinkat, e->dirfd, e->name);
	if (r < 0 && r != -ENOENT)
		return r;
	edit_to(e, PROGRESS_PUBLISHED);
	return 0;
}

/* ---- log lines ---- */

struct reflog_file edit_log(const struct edit *e, char path[REFD_PATH_MAX])
{
	snprintf(path, REFD_PATH_MAX, "logs/%s", e->name);
	return (struct reflog_file){ .sys = e->sys,
		.dirfd = e->dirfd,
		.path = path,
		.format = e->format };
}

char *edit_line(const struct record *plan, const struct record_member *member,
    size_t *len)
{
	static const struct refd_oid null_oid;

	return reflog_line(member->had_old ? &member->old_oid : &null_oid,
	    &member->new_oid, plan->object_format, plan->committer,
	    plan->message, len);
}

int edit_append(struct edit *e, const struct record *plan,
    const struct record_member *member)
{
	char path[REFD_PATH_MAX];
	const struct reflog_file log = edit_log(e, path);
	size_t len;
	char *line;
	int r;

	line = edit_line(plan, member, &len);
	if (line == NULL)
		return -ENOMEM;
	r = reflog_append(&log, line, len);
	free(line);
	e->log_fd = r;
	e->has_log_fd = r >= 0;
	return r < 0 ? r : 0;
}

static int retract_last(const struct edit *e,
    const struct record_member *member, const char *line, size_t len)
{
	char path[REFD_PATH_MAX];
	const struct reflog_file log = edit_log(e, path);
	int r = reflog_retract(&log, line, len);

	/* The log of a new ref would block the writer who took the name, so an
	 * empty log goes. */
	if (r == 0 && member->action == RECORD_WRITE && !member->had_old)
		r = reflog_unmake(&log);
	return r;
}

int edit_retract(struct edit *e, const struct record *plan,
    const struct record_member *member)
{
	bool is_live = e->evidence == EVIDENCE_LIVE;
	size_t len;
	char *line;
	int r;

	if (is_live ? !e->has_log_fd : e->evidence != EVIDENCE_CRASHED)
		return 0;
	line = edit_line(plan, member, &len);
	if (line == NULL)
		r = -ENOMEM;
	else if (is_live)
		r = reflog_retract_open(e->sys, e->log_fd, line, len);
	else
		r = retract_last(e, member, line, len);
	free(line);
	if (e->has_log_fd)
		SYS(e->sys, close, e->log_fd);
	e->has_log_fd = false;
	return r < 0 ? r : 0;
}
