/*
 * The repositories of history, and who may read them.
 *
 * Happy path: a question names a repository by its path. The uuid in
 * <common-dir>/refd/id names the present row of the journal's table. Path,
 * device and inode are no proof: a later repository of a different owner can
 * have all three.
 *
 * Rows of a repository are told to a peer who may read its refs now: the
 * repository at the recorded path has the recorded uuid, and refs/ and every
 * directory on the way are open to the peer. If the repository is gone, or was
 * moved and not written since, its rows are told only to root and to the
 * daemon's own account.
 *
 * Failures:
 *	the table cannot be read	the old table is kept, and the question
 *					is not answered
 *	nothing is at the path		root and the daemon's account are told of
 *					the last repository there
 *	the peer may not read there	the same answer as for an empty path
 *	a different repository is there	its readers are told nothing of the old
 *					repository
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/array.h"
#include "daemon/store/history/history_internal.h"
#include "daemon/store/repos/repo_id.h"
#include "daemon/store/repos/repo_internal.h"

/* How soon a changed path is seen. */
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

	grown = array_room(repos->all, repos->nr, &repos->size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	repos->all = grown;
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

static const struct journal_repo *find_repo(const struct history *h,
    uint64_t id)
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
	repo = find_repo(h, id);
	if (repo == NULL) {
		read_repos(h);
		repo = find_repo(h, id);
	}
	return repo;
}

/* ---- which one ---- */

/* The uuid of the repository whose common dir is DIR. */
static bool read_uuid(const struct history *h, int dir, uint8_t uuid[16])
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
	if (r < 0 || !repo_id_is_own(&id) ||
	    memcmp(id.journal, journal_uuid(h->cfg.journal),
		sizeof(id.journal)) != 0)
		return false;
	memcpy(uuid, id.uuid, sizeof(id.uuid));
	return true;
}

/* Is REPO at the path in the journal? *PLACE is then open. */
static bool is_there(const struct history *h, const struct journal_repo *repo,
    struct repo_place *place)
{
	uint8_t uuid[16];

	if (repo_find_known(h->cfg.repos, repo->path, place) < 0)
		return false;
	if (strcmp(place->path, repo->path) == 0 &&
	    read_uuid(h, place->fd, uuid) &&
	    memcmp(uuid, repo->uuid, sizeof(uuid)) == 0)
		return true;
	SYS(h->cfg.sys, close, place->fd);
	return false;
}

/* A copy has the id of the original until the first write there, and has no
 * history. A moved repository has history. */
static bool is_copy(const struct history *h, const struct journal_repo *repo,
    const struct repo_place *place)
{
	struct repo_place original;

	if (strcmp(repo->path, place->path) == 0 ||
	    !is_there(h, repo, &original))
		return false;
	SYS(h->cfg.sys, close, original.fd);
	return true;
}

static uint64_t find_at(const struct history *h, const struct repo_place *place)
{
	const struct journal_repo *repo;
	uint8_t uuid[16];
	size_t i;

	if (!read_uuid(h, place->fd, uuid))
		return 0;
	for (i = 0; i < h->repos.nr; i++) {
		repo = &h->repos.all[i];
		if (memcmp(uuid, repo->uuid, sizeof(uuid)) == 0)
			return is_copy(h, repo, place) ? 0 : repo->id;
	}
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

/* ---- rights ---- */

bool history_may_all(const struct txn_peer *peer)
{
	return peer->uid == 0 || peer->uid == (uint32_t)geteuid();
}

/* May PEER read the refs there: their names, and their values? */
static bool may_read_at(const struct history *h, const struct txn_peer *peer,
    const struct repo_place *place)
{
	const struct sys *sys = h->cfg.sys;
	struct rights_given given;
	struct sys_stat refs;

	if (history_may_all(peer))
		return true;
	return (h->cfg.rights == NULL ||
		   rights_allow(h->cfg.rights, place->path, peer, &given)) &&
	    SYS(sys, lstatat, place->fd, "refs", &refs) == 0 &&
	    S_ISDIR(refs.mode) && repo_peer_has(&refs, peer, 05) &&
	    repo_peer_may_reach(sys, place->path, place->st.dev, place->st.ino,
		peer);
}

bool history_may_read(struct history *h, const struct txn_peer *peer,
    uint64_t id)
{
	const struct journal_repo *repo = history_repo(h, id);
	struct repo_place place;
	bool may;

	if (history_may_all(peer))
		return true;
	if (repo == NULL || !is_there(h, repo, &place))
		return false;
	may = may_read_at(h, peer, &place);
	SYS(h->cfg.sys, close, place.fd);
	return may;
}

/* ---- the repository of a question ---- */

static int repo_at(struct history *h, const struct refd_request *req,
    const struct repo_place *place, uint64_t *id)
{
	*id = find_at(h, place);
	if (*id == 0) {
		read_repos(h);
		*id = find_at(h, place);
	}
	if ((req->common_dev != 0 || req->common_ino != 0) &&
	    (req->common_dev != place->st.dev ||
		req->common_ino != place->st.ino))
		return -ESTALE;
	return 0;
}

int history_repo_of(struct history *h, const struct refd_request *req,
    const struct txn_peer *peer, uint64_t *id)
{
	struct repo_place place;
	char *why = NULL;
	int r = 0;

	*id = 0;
	if (are_old(h))
		read_repos(h);
	if (repo_find(h->cfg.repos, req->git_dir, &place, &why) != REFD_OK) {
		free(why);
		if (history_may_all(peer))
			*id = find_by_path(h, req->git_dir);
		return 0;
	}
	if (may_read_at(h, peer, &place))
		r = repo_at(h, req, &place, id);
	SYS(h->cfg.sys, close, place.fd);
	return r;
}
