/*
 * Opens a repository.
 *
 * The happy path:
 *	find	git-dir -> common dir -> its real path (repo_find.c)
 *	trust	git would open the repository, refd can write the format, and
 *		the daemon's own user may write refs/
 *	ask	whether it may be served, if it never was
 *	claim	its lock, its id, its row in the journal (repo_claim.c)
 *
 * A failure refuses the transaction, with the reason, and leaves nothing open,
 * so the next transaction tries again.
 */
#include "daemon/base/busy_cause.h"
#include "daemon/store/repos/repo_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/fs_type.h"
#include "daemon/store/repos/repo_config.h"
#include "daemon/store/tables/stack/stack_set.h"
#include "proto/format.h"

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

char *repo_why_moved(const char *git_dir)
{
	return repo_why("the repository '%s' was moved, removed or replaced "
			"meanwhile",
	    git_dir);
}

/* ---- trust ---- */

/* The owner of refs/ is the owner of the repository. If refs/ is lost, the
 * owner of the directory counts. */
static int learn_owner(const struct repos *repos, struct repo *repo)
{
	const struct sys *sys = repos->sys;
	struct sys_stat st;
	int found, r;

	found = r = SYS(sys, lstatat, repo->fd, "refs", &st);
	if (r == 0 && !S_ISDIR(st.mode))
		found = r = S_ISLNK(st.mode) ? -ELOOP : -ENOTDIR;
	if (r < 0)
		r = SYS(sys, fstat, repo->fd, &st);
	if (r < 0)
		return r;
	repo->owner = st.uid;
	repo->group = st.gid;
	repo->mode = st.mode;
	return found;
}

bool repo_owner_is_served(uint32_t uid)
{
	return uid == 0 || geteuid() != 0;
}

char *repo_owner_why(const char *path, uint32_t uid)
{
	return repo_why("'%s' belongs to uid %u, and a daemon of root serves "
			"root's repositories only: run a daemon as that user "
			"(refd@NAME.service in refd-daemon(8))",
	    path, uid);
}

/* Do refs and objects belong to a served owner, as the common directory, which
 * repo_find() has checked? */
static bool is_served(const struct repos *repos, const struct repo *repo,
    uint32_t *uid)
{
	static const char *const names[] = { "refs", "objects" };
	struct sys_stat st;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (SYS(repos->sys, lstatat, repo->fd, names[i], &st) == 0 &&
		    !repo_owner_is_served(st.uid)) {
			*uid = st.uid;
			return false;
		}
	return true;
}

/*
 * The daemon's own account writes the files, so it must have the rights.
 */
static enum refd_status check_owner(struct repo *repo, int refs, char **why)
{
	uint32_t gids[256], euid = (uint32_t)geteuid();
	int n;

	if (refs < 0) {
		*why = repo_why("can't find the refs directory of '%s': %s",
		    repo->path, strerror(-refs));
		return refs == -ELOOP ? REFD_UNSUPPORTED :
					repo_open_status(refs);
	}
	n = getgroups(255, gids);
	n = n < 0 ? 0 : n;
	gids[n++] = (uint32_t)getegid();
	if (repo_may_write(repo, euid, gids, (size_t)n))
		return REFD_OK;
	*why = repo_why("refs of '%s' belong to uid %u and the daemon runs as "
			"uid %u: run a daemon as that user",
	    repo->path, repo->owner, euid);
	return REFD_DENIED;
}

/* A file server may lose renamed files without a recovery here, and a daemon on
 * a different machine may not see the locks, so network file systems are
 * refused. */
static enum refd_status check_fs(const struct repos *repos,
    const struct repo *repo, char **why)
{
	const char *network;
	uint64_t type;

	if (SYS(repos->sys, fs_type, repo->fd, &type) < 0 ||
	    (network = fs_type_network(type)) == NULL)
		return REFD_OK;
	*why = repo_why("'%s' is on a network file system (%s), where refd "
			"can promise nothing",
	    repo->path, network);
	return REFD_UNSUPPORTED;
}

/* As git's validate_headref(): a ref below refs/, or an id of any object format
 * (an id of SHA-256 begins as an id of SHA-1). 0, or a negative errno; -EINVAL:
 * HEAD holds something else. */
static int check_head(const struct sys *sys, int fd)
{
	struct refd_oid oid;
	char text[256];
	const char *p;
	ssize_t n;
	int head;

	n = SYS(sys, readlinkat, fd, "HEAD", text, sizeof(text));
	if (n >= 0)
		return n >= 5 && strncmp(text, "refs/", 5) == 0 ? 0 : -EINVAL;
	head = SYS(sys, openat, fd, "HEAD",
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (head < 0)
		return head;
	n = SYS(sys, pread, head, text, sizeof(text) - 1, 0);
	SYS(sys, close, head);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	if (strncmp(text, "ref:", 4) == 0) {
		p = text + 4;
		p += strspn(p, " \t\n\v\f\r");
		if (strncmp(p, "refs/", 5) == 0)
			return 0;
	}
	return refd_oid_parse(text, REFD_FORMAT_SHA1, &oid) == 0 ? 0 : -EINVAL;
}

enum refd_status repo_check_git_dir(const struct sys *sys, int fd,
    const char *path, char **why)
{
	struct sys_stat st;
	int r = SYS(sys, lstatat, fd, "commondir", &st);

	if (r == 0) {
		*why = repo_why("'%s' belongs to a linked worktree", path);
		return REFD_NOREPO;
	}
	r = r == -ENOENT ? check_head(sys, fd) : r;
	if (r == 0)
		r = SYS(sys, lstatat, fd, "objects", &st);
	if (r == 0 && !S_ISREG(st.mode))
		return REFD_OK;
	if (repo_open_status(r) != REFD_NOREPO)
		*why = repo_why("can't look at HEAD and objects/ of '%s': %s",
		    path, strerror(-r));
	else
		*why = repo_why("'%s' is not a git repository: HEAD or "
				"objects/ is missing or broken",
		    path);
	return repo_open_status(r);
}

static enum refd_status configure(const struct repos *repos, struct repo *repo,
    char **why)
{
	struct repo_config cfg;
	enum refd_status status;

	status = repo_config_read(repos->sys, repo->fd, repo->path, &cfg, why);
	if (status != REFD_OK)
		return status;
	status = repo_check_git_dir(repos->sys, repo->fd, repo->path, why);
	if (status != REFD_OK) {
		repo_config_done(&cfg);
		return status;
	}
	repo->object_format = cfg.object_format;
	repo->format = cfg.is_reftable ? REPO_REFTABLE : REPO_FILES;
	repo->has_format = true;
	repo->is_partial = cfg.is_partial;
	repo->bare = cfg.bare;
	repo->shared_perm = cfg.shared_perm;
	repo->is_log_unsure = cfg.is_log_unsure;
	repo->is_shared_unsure = cfg.is_shared_unsure;
	repo->log_unset = cfg.log_all_ref_updates == NULL;
	if (reflog_policy_parse(cfg.log_all_ref_updates, cfg.bare,
		&repo->log_policy) < 0) {
		*why = repo_why("core.logAllRefUpdates of '%s' is neither a "
				"boolean nor \"always\"",
		    repo->path);
		status = REFD_NOREPO;
	}
	repo_config_done(&cfg);
	return status;
}

/* ---- opening ---- */

static struct repo *repo_new(const struct repos *repos,
    struct repo_place *place)
{
	struct object_rule rule = { .open_root = repo_open_root, .arg = repos };
	struct repo *repo;

	repo = calloc(1, sizeof(*repo));
	if (repo == NULL)
		return NULL;
	rule.owner = &repo->owner;
	rule.group = &repo->group;
	repo->fd = repo->refd_fd = repo->stage_fd = -1;
	repo->path = strdup(place->path);
	repo->packed = packed_new(repos->sys, place->fd, &repo->object_format);
	repo->odb = odb_new(repos->sys, place->fd, &repo->object_format, &rule);
	repo->stacks = stack_set_new(repos->sys, &repo->object_format);
	if (repo->path == NULL || repo->packed == NULL || repo->odb == NULL ||
	    repo->stacks == NULL) {
		stack_set_free(repo->stacks);
		odb_free(repo->odb);
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

/* May REPO be served, if it never was? If refd/ cannot be looked at, the claim
 * fails with the reason. */
static enum refd_status check_first(const struct repos *repos,
    const struct repo *repo, const struct repo_first *first, char **why)
{
	struct sys_stat st;

	if (first == NULL ||
	    SYS(repos->sys, lstatat, repo->fd, "refd", &st) != -ENOENT)
		return REFD_OK;
	return first->may(first->arg, repo, why);
}

static enum refd_status trust_and_claim(struct repos *repos, struct repo *repo,
    const struct repo_first *first, struct repo_lock *lock, char **why)
{
	enum refd_status status = check_fs(repos, repo, why);
	uint32_t uid;
	int refs;

	if (status != REFD_OK)
		return status;
	if (!is_served(repos, repo, &uid)) {
		*why = repo_owner_why(repo->path, uid);
		return REFD_DENIED;
	}
	refs = learn_owner(repos, repo);
	/* Stat before reading, so that a later change is noticed. */
	if (SYS(repos->sys, lstatat, repo->fd, "config", &repo->config_stat) <
	    0)
		memset(&repo->config_stat, 0, sizeof(repo->config_stat));
	status = repos->configure != NULL ? repos->configure(repos, repo, why) :
					    configure(repos, repo, why);
	if (status == REFD_OK)
		status = check_owner(repo, refs, why);
	if (status == REFD_OK)
		status = check_first(repos, repo, first, why);
	if (status == REFD_OK)
		status = repo_claim(repos, repo, lock, why);
	return status;
}

enum refd_status repo_open(struct repos *repos, struct repo_place *place,
    struct repo_lock *lock, struct repo **out, char **why)
{
	enum refd_status status;
	struct repo *repo;

	repo = repo_new(repos, place);
	if (repo == NULL) {
		*why = NULL;
		return busy_cause_count(BUSY_MEMORY);
	}
	status = trust_and_claim(repos, repo, place->first, lock, why);
	if (status == REFD_OK)
		*out = repo;
	else
		repo_close(repos, repo);
	return status;
}

/* Claims KNOWN; NULL: any repository. PLACE is closed or taken over. */
static int claim_place(struct repos *repos, struct repo_place *place,
    const struct journal_repo *known, struct repo **out)
{
	struct repo *repo = repo_new(repos, place);
	uint32_t uid;
	int r;

	if (repo == NULL) {
		SYS(repos->sys, close, place->fd);
		return -ENOMEM;
	}
	learn_owner(repos, repo);
	if (!is_served(repos, repo, &uid))
		r = -EKEYREJECTED;
	else if (known != NULL)
		r = repo_claim_known(repos, repo, known);
	else
		r = repo_claim_any(repos, repo);
	if (r == 0)
		*out = repo;
	else
		repo_close(repos, repo);
	return r;
}

int repo_open_known(struct repos *repos, const struct journal_repo *known,
    struct repo **out)
{
	struct repo_place place;
	int r;

	r = repo_find_known(repos, known->path, &place);
	if (r == -EXDEV || r == -ENOTDIR || r == -ELOOP)
		return -ENOENT;
	return r < 0 ? r : claim_place(repos, &place, known, out);
}

int repo_open_claimed(struct repos *repos, struct repo_place *place,
    struct repo **out)
{
	return claim_place(repos, place, NULL, out);
}

void repo_close(struct repos *repos, struct repo *repo)
{
	const struct sys *sys = repos->sys;

	if (repo == NULL)
		return;
	packed_free(repo->packed);
	stack_set_free(repo->stacks);
	odb_free(repo->odb);
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
	free(repo->replica);
	free(repo->path);
	free(repo);
}

/* A link is refused as a worktree, because it could lead to a different
 * repository. */
int repo_open_worktree(const struct sys *sys, const struct repo *repo,
    const char *id)
{
	char path[REFD_PATH_MAX];
	int fd;

	if (id[0] == '\0')
		return repo->fd;
	snprintf(path, sizeof(path), "worktrees/%s", id);
	fd = SYS(sys, openat, repo->fd, path, O_RDONLY | O_DIRECTORY, 0);
	return fd == -ENOTDIR || fd == -ELOOP || fd == -EINVAL ? -ENOENT : fd;
}
