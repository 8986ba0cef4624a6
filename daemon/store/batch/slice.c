/*
 * Sets the slice of one transaction up.
 *
 * The happy path: the repository's settings, the settings of the client, and
 * the git-dir that the client is in.
 *
 * What fails: no memory for the message. A git-dir that can't be opened is
 * noted, and its updates fail later.
 */
#include <errno.h>
#include <string.h>

#include "daemon/store/batch/pass.h"
#include "daemon/store/repos/repo_config.h"

/*
 * Opens the client's git-dir if it is a linked worktree. The client chose the
 * path, and the path may lead elsewhere since admission. The opened directory
 * must be at the place where recovery looks for the worktree.
 */
static int find_git_dir(struct pass *p, struct slice *s)
{
	char path[REFD_PATH_MAX];
	size_t len = strlen(s->repo->path);
	const struct worktree *b;
	int fd, r;

	s->git_fd = s->repo->fd;
	if (strcmp(s->txn->req.git_dir, s->repo->path) == 0)
		return 0;
	fd = repo_open_below_root(p->ap->repos, s->txn->req.git_dir);
	if (fd < 0)
		return fd;
	r = SYS(p->sys, fd_path, fd, path, sizeof(path));
	SYS(p->sys, close, fd);
	if (r < 0 || strcmp(path, s->repo->path) == 0)
		return r;
	if (strncmp(path, s->repo->path, len) != 0 ||
	    strncmp(path + len, "/worktrees/", 11) != 0 ||
	    strchr(path + len + 11, '/') != NULL)
		return -ENOENT;
	r = pass_worktree(p, s->repo, path + len + 11, &b);
	if (r < 0)
		return r;
	s->git_fd = b->fd;
	s->worktree = b->id;
	return 0;
}

/* A linked worktree is not bare. */
enum reflog_policy txn_log_policy(const struct txn *txn, bool in_worktree)
{
	const char *value = txn->req.log_all_ref_updates;
	enum reflog_policy policy = txn->repo->log_policy;

	if (value != NULL || txn->repo->log_unset)
		reflog_policy_parse(value, txn->repo->bare && !in_worktree,
		    &policy);
	return policy;
}

bool slice_init(struct pass *p, struct slice *s, struct txn_slice *txn_slice)
{
	const struct refd_request *req = &txn_slice->txn->req;

	s->txn_slice = txn_slice;
	s->txn = txn_slice->txn;
	s->repos = p->ap->repos;
	s->repo = txn_slice->txn->repo;
	s->worktree = "";
	s->mode = txn_durability(txn_slice->txn, p->ap->durability);
	s->committer = req->committer != NULL ? req->committer :
						"unknown <unknown> 0 +0000";
	s->message = reflog_normalise(req->message != NULL ? req->message : "");
	if (s->repo == NULL)
		return s->message != NULL;
	s->shared_perm = s->repo->shared_perm;
	if (req->shared_repository != NULL)
		repo_config_parse_shared(req->shared_repository,
		    &s->shared_perm);
	s->file_mode = repo_file_mode(s->shared_perm, req->umask);
	s->dir_mode = repo_dir_mode(s->shared_perm, req->umask);
	s->git_err = find_git_dir(p, s);
	s->log_policy = txn_log_policy(s->txn, s->worktree[0] != '\0');
	return s->message != NULL;
}
