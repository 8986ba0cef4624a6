/*
 * Which repositories there are in history, and who may hear of them.
 *
 * Happy path: the journal's table, read now and then; a question names one by
 * its path, and what is there is known by the id in it, or, where it was moved
 * and nobody wrote since, by device and inode.
 *
 * What fails:
 *	the table can't be read			the one before is kept, and the
 *						question is not answered
 *	a start of the machine gave its disk	its id tells, until somebody
 *	another number				writes and that is noted
 *	nothing is at that path any more	the path itself is looked for
 *	another repository is there now		who may read that one is told
 *						nothing of the old one
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/history/history_internal.h"
#include "daemon/store/repos/repo_id.h"
#include "daemon/store/repos/repo_internal.h"

/* A path that changes is seen after so long. */
#define REREAD_NS (10 * 1000000000LL)

static void free_repos(struct history_repos *repos)
{
	size_t i;

	for (i = 0; i < repos->nr; i++)
		free(repos->all[i].path);
	free(repos->all);
	*repos = (struct history_repos){ .all = NULL };
}

static int add_repo(void *arg, const struct journal_repo *repo)
{
	struct history_repos *repos = arg;
	struct journal_repo *grown;
	size_t size;

	if (repos->nr == repos->size) {
		size = repos->size == 0 ? 16 : 2 * repos->size;
		grown = realloc(repos->all, size * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		repos->all = grown;
		repos->size = size;
	}
	grown = &repos->all[repos->nr];
	*grown = *repo;
	grown->path = strdup(repo->path);
	if (grown->path == NULL)
		return -ENOMEM;
	repos->nr++;
	return 0;
}

static void read_repos(struct history *h)
{
	struct history_repos now = { .all = NULL };
	int r;

	now.read_ns = SYS(h->cfg.sys, now_mono);
	r = journal_each_repo(h->cfg.journal, add_repo, &now);
	if (r != 0) {
		free_repos(&now);
		h->repos_failed = r;
		return;
	}
	free_repos(&h->repos);
	h->repos = now;
}

void history_free_repos(struct history *h)
{
	free_repos(&h->repos);
}

static const struct journal_repo *find(const struct history *h, uint64_t id)
{
	size_t low = 0, high = h->repos.nr, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (h->repos.all[mid].id == id)
			return &h->repos.all[mid];
		if (h->repos.all[mid].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static bool are_old(const struct history *h)
{
	return h->repos.nr == 0 ||
	    SYS(h->cfg.sys, now_mono) - h->repos.read_ns > REREAD_NS;
}

const struct journal_repo *history_repo(struct history *h, uint64_t id)
{
	const struct journal_repo *repo;

	if (id == 0)
		return NULL;
	if (are_old(h))
		read_repos(h);
	repo = find(h, id);
	if (repo == NULL) {
		read_repos(h);
		repo = find(h, id);
	}
	return repo;
}

/* As who writes there believes it (repo_claim.c). DIR is where REPO was. */
static bool has_id_of(const struct history *h, int dir,
    const struct journal_repo *repo)
{
	const struct sys *sys = h->cfg.sys;
	struct repo_id id;
	int fd, r;

	fd = SYS(sys, openat, dir, "refd", O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
	    0);
	if (fd < 0)
		return false;
	r = repo_id_read(sys, fd, &id);
	SYS(sys, close, fd);
	return r == 0 && memcmp(id.uuid, repo->uuid, sizeof(id.uuid)) == 0 &&
	    memcmp(id.journal, journal_uuid(h->cfg.journal),
		sizeof(id.journal)) == 0;
}

static uint64_t find_by_id(const struct history *h,
    const struct repo_place *place)
{
	size_t i;

	for (i = h->repos.nr; i-- > 0;)
		if (strcmp(h->repos.all[i].path, place->path) == 0 &&
		    has_id_of(h, place->fd, &h->repos.all[i]))
			return h->repos.all[i].id;
	return 0;
}

/* The latest of those that fit. */
static uint64_t find_by_inode(const struct history *h, uint64_t dev,
    uint64_t ino)
{
	size_t i;

	for (i = h->repos.nr; i-- > 0;)
		if (h->repos.all[i].dev == dev && h->repos.all[i].ino == ino)
			return h->repos.all[i].id;
	return 0;
}

static uint64_t find_by_path(const struct history *h, const char *path)
{
	size_t i;

	for (i = h->repos.nr; i-- > 0;)
		if (strcmp(h->repos.all[i].path, path) == 0)
			return h->repos.all[i].id;
	return 0;
}

static uint64_t find_at(const struct history *h, const struct repo_place *place)
{
	uint64_t id = find_by_id(h, place);

	return id != 0 ? id : find_by_inode(h, place->st.dev, place->st.ino);
}

int history_repo_of(struct history *h, const struct refd_request *req,
    uint64_t *id)
{
	struct repo_place place;
	struct sys_stat st;
	char *why = NULL;

	if (are_old(h))
		read_repos(h);
	if (repo_find(h->cfg.repos, req->git_dir, &place, &why) == REFD_OK) {
		st = place.st;
		*id = find_at(h, &place);
		if (*id == 0) {
			read_repos(h);
			*id = find_at(h, &place);
		}
		SYS(h->cfg.sys, close, place.fd);
		if ((req->common_dev != 0 || req->common_ino != 0) &&
		    (req->common_dev != st.dev || req->common_ino != st.ino))
			return -ESTALE;
	} else {
		free(why);
		*id = find_by_path(h, req->git_dir);
	}
	return 0;
}

/* ---- rights ---- */

bool history_may_all(const struct txn_peer *peer)
{
	return peer->uid == 0 || peer->uid == (uint32_t)geteuid();
}

bool history_may_read(struct history *h, const struct txn_peer *peer,
    uint64_t id)
{
	const struct journal_repo *repo = history_repo(h, id);
	const struct sys *sys = h->cfg.sys;
	struct rights_given given;
	struct sys_stat st, refs;
	bool is_open = false;
	int fd;

	if (history_may_all(peer))
		return true;
	if (repo == NULL ||
	    (h->cfg.rights != NULL &&
		!rights_allow(h->cfg.rights, repo->path, peer, &given)))
		return false;
	fd = SYS(sys, openat, AT_FDCWD, repo->path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return false;
	if (SYS(sys, fstat, fd, &st) == 0 &&
	    ((st.dev == repo->dev && st.ino == repo->ino) ||
		has_id_of(h, fd, repo)) &&
	    SYS(sys, statat, fd, "refs", &refs) == 0)
		/* Names are read, and what they stand for. */
		is_open = repo_peer_has(&refs, peer, 05) &&
		    repo_peer_may_reach(sys, repo->path, st.dev, st.ino, peer);
	SYS(sys, close, fd);
	return is_open;
}
