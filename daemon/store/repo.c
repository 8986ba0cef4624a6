/*
 * Opening a repository.
 *
 * The happy path:
 *	find	git-dir -> common dir -> its real path, which must be under
 *		a root
 *	trust	a repository git would open, of a kind refd writes, whose
 *		refs/ the daemon's own user may write
 *	lock	<common-dir>/refd/lock: one daemon per repository
 *	name	<common-dir>/refd/id, made and synced at the first opening
 *	note	in the journal, durably: recovery then knows where to look
 *
 * What fails refuses the transaction that asked, with the reason in words,
 * and leaves nothing open; the next one tries again.
 */
#include "daemon/store/repo_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/repo_id.h"

char *repo_why(const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : text;
}

/* ---- find ---- */

static bool is_under_root(const struct repos *repos, const char *path)
{
	size_t i, len;

	for (i = 0; i < repos->nr_roots; i++) {
		len = strlen(repos->roots[i]);
		while (len > 0 && repos->roots[i][len - 1] == '/')
			len--;
		if (strncmp(path, repos->roots[i], len) == 0 &&
		    (path[len] == '/' || path[len] == '\0'))
			return true;
	}
	return false;
}

/* Opens PATH and learns its real name, which must be under a root. */
static enum refd_status open_dir(const struct repos *repos, int dirfd,
    const char *path, struct repo_place *place, char **why)
{
	const struct sys *sys = repos->sys;
	int r;

	place->fd = SYS(sys, openat, dirfd, path, O_RDONLY | O_DIRECTORY, 0);
	if (place->fd < 0) {
		*why = repo_why("can't open the repository '%s': %s", path,
		    strerror(-place->fd));
		return REFD_NOREPO;
	}
	r = SYS(sys, fd_path, place->fd, place->path, sizeof(place->path));
	if (r == 0)
		r = SYS(sys, fstat, place->fd, &place->st);
	if (r == 0 && is_under_root(repos, place->path))
		return REFD_OK;
	*why = r == 0 ? repo_why("'%s' is not under a root that refd serves "
				 "(daemon.root, --root)",
			    place->path) :
			repo_why("can't read the repository's path '%s': %s",
			    path, strerror(-r));
	SYS(sys, close, place->fd);
	return REFD_NOREPO;
}

enum refd_status repo_find(const struct repos *repos, const char *git_dir,
    struct repo_place *place, char **why)
{
	struct repo_place own;
	enum refd_status status;
	size_t len;
	char *common;
	int r;

	if (git_dir[0] != '/') {
		*why =
		    repo_why("git-dir '%s' is not an absolute path", git_dir);
		return REFD_NOREPO;
	}
	status = open_dir(repos, AT_FDCWD, git_dir, &own, why);
	if (status != REFD_OK)
		return status;
	r = sys_read_file(repos->sys, own.fd, "commondir", REFD_PATH_MAX,
	    &common, &len);
	if (r == -ENOENT) {
		*place = own;
		return REFD_OK;
	}
	if (r < 0) {
		*why = repo_why("can't read '%s/commondir': %s", own.path,
		    strerror(-r));
		status = REFD_NOREPO;
	} else {
		common[strcspn(common, "\n")] = '\0';
		status = open_dir(repos, own.fd, common, place, why);
		free(common);
	}
	SYS(repos->sys, close, own.fd);
	return status;
}

/* ---- trust ---- */

/*
 * Files that the daemon makes belong to the daemon's user, so it must be one
 * who may write there in his own right; root would leave files behind that
 * the repository's owner can't replace.
 */
static enum refd_status check_owner(const struct repos *repos,
    struct repo *repo, char **why)
{
	uint32_t gids[256], euid = (uint32_t)geteuid();
	struct sys_stat st;
	int n, r;

	r = SYS(repos->sys, statat, repo->fd, "refs", &st);
	if (r < 0) {
		*why = repo_why("'%s' has no refs directory: %s", repo->path,
		    strerror(-r));
		return REFD_NOREPO;
	}
	repo->owner = st.uid;
	repo->group = st.gid;
	repo->mode = st.mode;
	n = getgroups(255, gids);
	n = n < 0 ? 0 : n;
	gids[n++] = (uint32_t)getegid();
	if (repo_may_write(repo, euid, gids, (size_t)n))
		return REFD_OK;
	*why = repo_why("refs of '%s' belong to uid %u and the daemon runs as "
			"uid %u: run a daemon as that user",
	    repo->path, st.uid, euid);
	return REFD_DENIED;
}

static enum refd_status configure_by_git(const struct repos *repos,
    struct repo *repo, char **why)
{
	const struct gitrepo_config *cfg;
	enum gitrepo_problem problem;

	(void)repos;
	problem = gitrepo_open(repo->path, &repo->git, why);
	switch (problem) {
	case GITREPO_OK:
		break;
	case GITREPO_NOT_A_REPOSITORY:
		return REFD_NOREPO;
	case GITREPO_UNSUPPORTED:
		return REFD_UNSUPPORTED;
	case GITREPO_FAILED:
		return REFD_IO;
	}
	cfg = gitrepo_config(repo->git);
	repo->bare = cfg->bare;
	repo->shared_perm = cfg->shared_perm;
	repo->log_unset = cfg->log_all_ref_updates == NULL;
	if (reflog_policy_parse(cfg->log_all_ref_updates, cfg->bare,
		&repo->log_policy) < 0) {
		*why = repo_why("core.logAllRefUpdates of '%s' is neither a "
				"boolean nor \"always\"",
		    repo->path);
		return REFD_NOREPO;
	}
	return REFD_OK;
}

/* ---- lock, name, note ---- */

static int make_refd_dir(const struct repos *repos, struct repo *repo)
{
	const struct sys *sys = repos->sys;
	mode_t mode = repo_dir_mode(repo->shared_perm, 022);
	int r;

	r = SYS(sys, mkdirat, repo->fd, "refd", mode);
	if (r < 0 && r != -EEXIST)
		return r;
	repo->refd_fd = SYS(sys, openat, repo->fd, "refd",
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (repo->refd_fd < 0)
		return repo->refd_fd;
	r = SYS(sys, mkdirat, repo->refd_fd, "stage", mode);
	if (r < 0 && r != -EEXIST)
		return r;
	repo->stage_fd = SYS(sys, openat, repo->refd_fd, "stage",
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return repo->stage_fd < 0 ? repo->stage_fd : 0;
}

static int take_lock(const struct repos *repos, struct repo *repo,
    struct repo_lock *lock)
{
	const struct sys *sys = repos->sys;
	int r;

	if (lock != NULL) {
		lock->refs++;
		repo->lock = lock;
		return 0;
	}
	lock = calloc(1, sizeof(*lock));
	if (lock == NULL)
		return -ENOMEM;
	lock->fd = SYS(sys, openat, repo->refd_fd, "lock",
	    O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	r = lock->fd < 0 ? lock->fd : SYS(sys, flock_try, lock->fd);
	if (r < 0) {
		if (lock->fd >= 0)
			SYS(sys, close, lock->fd);
		free(lock);
		return r;
	}
	lock->refs = 1;
	repo->lock = lock;
	return 0;
}

/* Is the repository that ID's path names still there, beside this one? */
static bool is_copy(const struct repos *repos, const struct repo *repo,
    const struct repo_id *id)
{
	const struct sys *sys = repos->sys;
	struct repo_id other;
	struct sys_stat st;
	int fd, refd_fd, r;

	fd = SYS(sys, openat, AT_FDCWD, id->path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return false;
	r = SYS(sys, fstat, fd, &st);
	refd_fd = SYS(sys, openat, fd, "refd", O_RDONLY | O_DIRECTORY, 0);
	SYS(sys, close, fd);
	if (refd_fd < 0)
		return false;
	if (r == 0)
		r = repo_id_read(sys, refd_fd, &other);
	SYS(sys, close, refd_fd);
	return r == 0 && (st.dev != repo->dev || st.ino != repo->ino) &&
	    memcmp(other.uuid, id->uuid, 16) == 0;
}

static int name_it(const struct repos *repos, struct repo *repo,
    struct repo_id *id)
{
	bool is_new = false;
	int r;

	r = repo_id_read(repos->sys, repo->refd_fd, id);
	if (r == -ENOENT ||
	    (r == 0 && strcmp(id->path, repo->path) != 0 &&
		is_copy(repos, repo, id))) {
		is_new = true;
		memcpy(id->journal, journal_uuid(repos->journal), 16);
		r = repo_id_make_uuid(id->uuid);
	}
	if (r < 0)
		return r;
	if (memcmp(id->journal, journal_uuid(repos->journal), 16) != 0)
		return -ESTALE;
	memcpy(repo->uuid, id->uuid, 16);
	if (!is_new && strcmp(id->path, repo->path) == 0)
		return 0;
	snprintf(id->path, sizeof(id->path), "%s", repo->path);
	return repo_id_write(repos->sys, repo->refd_fd, repo->fd, id);
}

static int note_it(struct repos *repos, struct repo *repo)
{
	struct journal_repo known = { .path = repo->path,
		.dev = repo->dev,
		.ino = repo->ino };
	int r;

	memcpy(known.uuid, repo->uuid, 16);
	r = journal_register_repo(repos->journal, &known);
	if (r == 0)
		repo->id = known.id;
	return r > 0 ? -EIO : r;
}

static enum refd_status claim(struct repos *repos, struct repo *repo,
    struct repo_lock *lock, char **why)
{
	struct repo_id id;
	char hex[33];
	int r;

	r = make_refd_dir(repos, repo);
	if (r == 0)
		r = take_lock(repos, repo, lock);
	if (r == -EAGAIN) {
		*why = repo_why("'%s' is served by another refd already "
				"(%s/refd/lock is held)",
		    repo->path, repo->path);
		return REFD_NOREPO;
	}
	if (r == 0)
		r = name_it(repos, repo, &id);
	if (r == -ESTALE) {
		repo_id_hex(id.journal, hex);
		*why = repo_why(
		    "'%s' belongs to the journal %s of another "
		    "refd: its refs may await recovery there; once that one is "
		    "gone for good, remove '%s/refd'",
		    repo->path, hex, repo->path);
		return REFD_NOREPO;
	}
	if (r == -EBADMSG) {
		*why = repo_why("'%s/refd/id' is not what refd wrote there",
		    repo->path);
		return REFD_NOREPO;
	}
	if (r == 0)
		r = note_it(repos, repo);
	if (r == 0)
		return REFD_OK;
	*why = repo_why("can't set '%s/refd' up: %s", repo->path, strerror(-r));
	return r == -ENOSPC || r == -EDQUOT ? REFD_NOSPACE :
	    r == -EACCES || r == -EPERM     ? REFD_DENIED :
					      REFD_IO;
}

static struct repo *repo_new(const struct repos *repos,
    struct repo_place *place)
{
	struct repo *repo;

	repo = calloc(1, sizeof(*repo));
	if (repo == NULL)
		return NULL;
	repo->fd = repo->refd_fd = repo->stage_fd = -1;
	repo->path = strdup(place->path);
	repo->packed = packed_new(repos->sys, place->fd);
	if (repo->path == NULL || repo->packed == NULL) {
		packed_free(repo->packed);
		free(repo->path);
		free(repo);
		return NULL;
	}
	repo->fd = place->fd;
	repo->dev = place->st.dev;
	repo->ino = place->st.ino;
	place->fd = -1;
	return repo;
}

enum refd_status repo_open(struct repos *repos, struct repo_place *place,
    struct repo_lock *lock, struct repo **out, char **why)
{
	enum refd_status status;
	struct repo *repo;

	repo = repo_new(repos, place);
	if (repo == NULL) {
		*why = NULL;
		return REFD_BUSY;
	}
	/* Before it is read: a later change is then noticed. */
	if (SYS(repos->sys, statat, repo->fd, "config", &repo->config_stat) < 0)
		memset(&repo->config_stat, 0, sizeof(repo->config_stat));
	status = repos->configure != NULL ? repos->configure(repos, repo, why) :
					    configure_by_git(repos, repo, why);
	if (status == REFD_OK)
		status = check_owner(repos, repo, why);
	if (status == REFD_OK)
		status = claim(repos, repo, lock, why);
	if (status != REFD_OK) {
		repo_close(repos, repo);
		return status;
	}
	*out = repo;
	return REFD_OK;
}

/* Opens what an earlier run set up; makes nothing. */
static int open_refd_dir(const struct repos *repos, struct repo *repo)
{
	const struct sys *sys = repos->sys;

	repo->refd_fd = SYS(sys, openat, repo->fd, "refd",
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (repo->refd_fd < 0)
		return repo->refd_fd;
	repo->stage_fd = SYS(sys, openat, repo->refd_fd, "stage",
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return repo->stage_fd < 0 ? repo->stage_fd : 0;
}

int repo_open_known(struct repos *repos, const struct journal_repo *known,
    struct repo **out)
{
	struct repo_place place;
	struct repo_id id;
	struct repo *repo;
	char *why = NULL;
	int r;

	if (open_dir(repos, AT_FDCWD, known->path, &place, &why) != REFD_OK) {
		free(why);
		return -ENOENT;
	}
	repo = repo_new(repos, &place);
	if (repo == NULL) {
		SYS(repos->sys, close, place.fd);
		return -ENOMEM;
	}
	r = open_refd_dir(repos, repo);
	if (r == 0)
		r = repo_id_read(repos->sys, repo->refd_fd, &id);
	if (r == -ENOENT || (r == 0 && memcmp(id.uuid, known->uuid, 16) != 0))
		r = -ESTALE;
	if (r == 0)
		r = take_lock(repos, repo, NULL);
	if (r == 0) {
		memcpy(repo->uuid, id.uuid, 16);
		repo->id = known->id;
		*out = repo;
		return 0;
	}
	repo_close(repos, repo);
	return r;
}

void repo_close(struct repos *repos, struct repo *repo)
{
	const struct sys *sys = repos->sys;

	if (repo == NULL)
		return;
	packed_free(repo->packed);
	gitrepo_free(repo->git);
	if (repo->lock != NULL && --repo->lock->refs == 0) {
		SYS(sys, close, repo->lock->fd);
		free(repo->lock);
	}
	if (repo->stage_fd >= 0)
		SYS(sys, close, repo->stage_fd);
	if (repo->refd_fd >= 0)
		SYS(sys, close, repo->refd_fd);
	if (repo->fd >= 0)
		SYS(sys, close, repo->fd);
	free(repo->path);
	free(repo);
}

/* One component after the other. What is a link is no worktree: it could lead
 * to another repository. */
int repo_open_worktree(const struct sys *sys, const struct repo *repo,
    const char *id)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
	int all, fd;

	if (id[0] == '\0')
		return repo->fd;
	all = SYS(sys, openat, repo->fd, "worktrees", flags, 0);
	fd = all < 0 ? all : SYS(sys, openat, all, id, flags, 0);
	if (all >= 0)
		SYS(sys, close, all);
	return fd == -ENOTDIR || fd == -ELOOP ? -ENOENT : fd;
}
