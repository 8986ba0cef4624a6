/*
 * Maps a refname to its file: below the common dir, or below the git-dir of a
 * worktree (git's refs.c, parse_worktree_ref(), and files_ref_path()).
 *
 *	refs/heads/x, refs/...		common dir
 *	HEAD, refs/bisect/x, ...	the client's own worktree
 *	main-worktree/HEAD		common dir
 *	worktrees/<id>/HEAD		that worktree
 *
 * What fails: a worktree that was removed must stay removed. So the worktree is
 * never recreated, and its names never become names of the main worktree. If a
 * directory on the way is a symbolic link, which git would follow, the update
 * is denied if the link leads out of the repository, and otherwise unsupported.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/batch/pass.h"
#include "proto/refname.h"

int pass_worktree(struct pass *p, struct repo *repo, const char *id,
    const struct worktree **out)
{
	struct worktree *w;
	size_t len = strlen(id);
	int r;

	for (w = p->worktrees; w != NULL; w = w->next)
		if (w->repo == repo && strcmp(w->id, id) == 0) {
			*out = w;
			return 0;
		}
	w = malloc(sizeof(*w) + len + 1);
	if (w == NULL)
		return -ENOMEM;
	w->repo = repo;
	memcpy(w->id, id, len + 1);
	w->fd = repo_open_worktree(p->sys, repo, id);
	if (w->fd < 0) {
		r = w->fd;
		free(w);
		return r;
	}
	w->next = p->worktrees;
	p->worktrees = w;
	*out = w;
	return 0;
}

void pass_close_worktrees(struct pass *p)
{
	struct worktree *w;

	while ((w = p->worktrees) != NULL) {
		p->worktrees = w->next;
		SYS(p->sys, close, w->fd);
		free(w);
	}
}

static int place_in_worktree(struct pass *p, struct slice *s, const char *id,
    size_t id_len, const char *name, struct change *c)
{
	char copy[REFD_REFNAME_MAX + 1];
	const struct worktree *w;
	int r;

	memcpy(copy, id, id_len);
	copy[id_len] = '\0';
	r = pass_worktree(p, s->repo, copy, &w);
	if (r < 0)
		return r;
	c->edit.dirfd = w->fd;
	c->worktree = w->id;
	c->edit.name = name;
	return 0;
}

int pass_place(struct pass *p, struct slice *s, const char *name,
    struct change *c)
{
	const char *id, *bare;
	size_t id_len;

	c->edit.name = name;
	c->worktree = "";
	c->edit.dirfd = s->repo->fd;
	switch (refd_refname_place(name, &id, &id_len, &bare)) {
	case REFD_PLACE_COMMON:
		return 0;
	case REFD_PLACE_OWN:
		c->edit.dirfd = s->git_fd;
		c->worktree = s->worktree;
		return 0;
	case REFD_PLACE_MAIN:
		c->edit.name = bare;
		return 0;
	case REFD_PLACE_LINKED:
		return place_in_worktree(p, s, id, id_len, bare, c);
	}
	return -EINVAL;
}

bool change_stays_inside(struct pass *p, struct change *c, const char *path)
{
	char dir[REFD_PATH_MAX];
	char *slash;
	int r;

	strcpy(dir, path);
	slash = strrchr(dir, '/');
	if (slash == NULL)
		return true;
	*slash = '\0';
	r = SYS(p->sys, stays_below, c->edit.dirfd, dir);
	/* A missing directory is fine, because the existing directories above
	 * were checked. */
	if (r == 0 || r == -ENOENT || r == -ENOTDIR)
		return true;
	if (r == -EXDEV)
		change_cant_lock(c, REFD_DENIED,
		    "a link on the way to '%s' leads out of the repository",
		    path);
	else if (r == -ELOOP)
		/* Recovery would not find the lock behind the link. */
		change_fail(c, REFD_UNSUPPORTED,
		    "cannot lock ref '%s': a directory on the way to '%s' is "
		    "a symbolic link",
		    c->u->ask->name, path);
	else
		change_fail_errno(c, r, "can't look where its file is");
	return false;
}
