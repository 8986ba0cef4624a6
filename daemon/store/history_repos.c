/*
 * Which repositories there are in history, and who may hear of them.
 *
 * Happy path: the journal's table, read now and then; a question names one by
 * its path, whose device and inode the table knows.
 *
 * What fails:
 *	nothing is at that path any more	the path itself is looked for
 *	another repository is there now		who may read that one is told
 *						nothing of the old one
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/history_internal.h"
#include "daemon/store/repo_internal.h"

/* A path that changes is seen after so long. */
#define REREAD_NS (10 * 1000000000LL)

static int add_repo(void *arg, const struct journal_repo *repo)
{
	struct history *h = arg;
	struct journal_repo *grown;
	size_t size;

	if (h->nr_repos == h->repos_size) {
		size = h->repos_size == 0 ? 16 : 2 * h->repos_size;
		grown = realloc(h->repos, size * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		h->repos = grown;
		h->repos_size = size;
	}
	grown = &h->repos[h->nr_repos];
	*grown = *repo;
	grown->path = strdup(repo->path);
	if (grown->path == NULL)
		return -ENOMEM;
	h->nr_repos++;
	return 0;
}

static void read_repos(struct history *h)
{
	size_t i;

	for (i = 0; i < h->nr_repos; i++)
		free(h->repos[i].path);
	h->nr_repos = 0;
	h->repos_read_ns = SYS(h->cfg.sys, now_mono);
	journal_each_repo(h->cfg.journal, add_repo, h);
}

static const struct journal_repo *find(const struct history *h, uint64_t id)
{
	size_t low = 0, high = h->nr_repos, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (h->repos[mid].id == id)
			return &h->repos[mid];
		if (h->repos[mid].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static bool are_old(const struct history *h)
{
	return h->nr_repos == 0 ||
	    SYS(h->cfg.sys, now_mono) - h->repos_read_ns > REREAD_NS;
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

/* The latest of those that fit. */
static uint64_t find_by_inode(const struct history *h, uint64_t dev,
    uint64_t ino)
{
	size_t i;

	for (i = h->nr_repos; i-- > 0;)
		if (h->repos[i].dev == dev && h->repos[i].ino == ino)
			return h->repos[i].id;
	return 0;
}

static uint64_t find_by_path(const struct history *h, const char *path)
{
	size_t i;

	for (i = h->nr_repos; i-- > 0;)
		if (strcmp(h->repos[i].path, path) == 0)
			return h->repos[i].id;
	return 0;
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
		SYS(h->cfg.sys, close, place.fd);
		*id = find_by_inode(h, st.dev, st.ino);
		if (*id == 0) {
			read_repos(h);
			*id = find_by_inode(h, st.dev, st.ino);
		}
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
	enum refd_durability least;
	struct sys_stat st;
	bool is_open = false;
	int fd;

	if (history_may_all(peer))
		return true;
	if (repo == NULL ||
	    (h->cfg.rights != NULL &&
		!rights_allow(h->cfg.rights, repo->path, peer, &least)))
		return false;
	fd = SYS(sys, openat, AT_FDCWD, repo->path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return false;
	if (SYS(sys, fstat, fd, &st) == 0 && st.dev == repo->dev &&
	    st.ino == repo->ino && SYS(sys, statat, fd, "refs", &st) == 0)
		/* Names are read, and what they stand for. */
		is_open = repo_peer_has(&st, peer, 05) &&
		    repo_peer_may_reach(sys, repo->path, repo->dev, repo->ino,
			peer);
	SYS(sys, close, fd);
	return is_open;
}
