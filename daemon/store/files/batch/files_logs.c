/*
 * Files: creates the log files for the lines of a pass.
 *
 * What fails: the update, or its atomic transaction.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/files/batch/files.h"

int files_has_log(struct pass *p, const struct change *at)
{
	char path[REFD_PATH_MAX];
	const struct reflog_file log = edit_log(&at->edit, path);
	struct sys_stat st;
	int r;

	r = SYS(p->sys, lstatat, log.dirfd, log.path, &st);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	return r < 0 ? r : 1;
}

/* Adds rights to a log, and takes none away. Git would take the right to write
 * from others, but somebody can have the log open, and could still write to the
 * log. The file could then have any text, and would look as if only this
 * account had written the text (own_file.h). */
static int share_file(struct pass *p, struct change *c, int fd)
{
	struct sys_stat st;
	mode_t mode;
	int r;

	r = SYS(p->sys, fstat, fd, &st);
	if (r == 0 && !S_ISREG(st.mode))
		r = -EINVAL;
	if (r == 0 && st.nlink > 1)
		r = -EMLINK;
	if (r < 0)
		return r;
	mode = repo_shared_mode(c->slice->shared_perm, st.mode & 07777) |
	    (st.mode & 022);
	if (mode == (st.mode & 07777))
		return 0;
	return SYS(p->sys, fchmod, fd, mode);
}

/* As git does, sets the mode of every log with a new line. */
static int share_log(struct pass *p, struct change *c, const char *path)
{
	int fd, r;

	if (c->slice->shared_perm == 0)
		return 0;
	fd = SYS(p->sys, openat, c->edit.dirfd, path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	r = share_file(p, c, fd);
	SYS(p->sys, close, fd);
	return r;
}

/* All refs are locked, so no other writer creates their logs. */
static bool has_no_logs(struct pass *p, struct repo_slice *g)
{
	struct sys_stat st;

	if (!g->files.logs_looked) {
		g->files.logs_looked = true;
		g->files.has_no_logs =
		    SYS(p->sys, lstatat, g->repo->fd, "logs", &st) == -ENOENT;
	}
	return g->files.has_no_logs;
}

/* True for most refs in bare repositories. */
static bool is_surely_unlogged(struct pass *p, const struct change *c,
    bool may_create)
{
	return c->action != CHANGE_DELETE && !may_create &&
	    c->edit.dirfd == c->repo_slice->repo->fd &&
	    has_no_logs(p, c->repo_slice);
}

/* C creates no log, and the directory of the log does not exist. */
static bool has_no_log(struct pass *p, const struct change *c, const char *path,
    bool may_create)
{
	size_t len = change_dir_len(c);
	char dir[REFD_PATH_MAX];
	struct sys_stat st;

	if (may_create)
		return false;
	if (c->edit.dirfd == p->logless_fd && len == p->logless_len &&
	    memcmp(c->edit.name, p->logless_dir, len) == 0)
		return true;
	strcpy(dir, path);
	*strrchr(dir, '/') = '\0';
	if (SYS(p->sys, lstatat, c->edit.dirfd, dir, &st) != -ENOENT)
		return false;
	p->logless_fd = c->edit.dirfd;
	p->logless_dir = c->edit.name;
	p->logless_len = len;
	return true;
}

static void cant_log(struct change *c, enum refd_detail_kind kind,
    const char *path)
{
	char whole[2 * REFD_PATH_MAX];

	change_whole_path(c, path, "", whole);
	change_fail_detail(c, REFD_CONFLICT, kind, change_shown_name(c), whole,
	    NULL);
}

static void log_has_two_names(struct change *c, const char *path)
{
	char whole[2 * REFD_PATH_MAX];

	change_whole_path(c, path, "", whole);
	change_fail(c, REFD_UNSUPPORTED,
	    "cannot update the ref '%s': the log '%s' has a second name (a "
	    "hard link), which may be outside of the repository; copy the log "
	    "to a new file",
	    change_shown_name(c), whole);
}

void files_log(struct pass *p, struct change *c, bool create)
{
	char path[REFD_PATH_MAX];
	struct reflog_file log;
	int r;

	if (is_surely_unlogged(p, c, create))
		return;
	log = edit_log(&c->edit, path);
	log.create = create;
	log.file_mode = c->slice->file_mode;
	log.dir_mode = c->slice->dir_mode;
	if (!change_stays_inside(p, c, path) || c->action == CHANGE_DELETE ||
	    has_no_log(p, c, path, create))
		return;
	r = reflog_prepare(&log, &c->log, &c->log_made, &c->log_made_dirs);
	if (r == 0 && c->log && !c->log_made)
		r = share_log(p, c, path);
	if (r == -EISDIR)
		cant_log(c, REFD_DETAIL_LOGS_BELOW, path);
	else if (r == -ENOTDIR)
		cant_log(c, REFD_DETAIL_LOG_BLOCKED, path);
	else if (r == -EMLINK)
		log_has_two_names(c, path);
	else if (r < 0)
		change_fail_errno(c, r, "can't prepare the reflog");
}
