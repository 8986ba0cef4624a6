/*
 * The repositories of history, and who may read them.
 *
 * Happy path: a question names a repository by its path. A later repository of
 * a different owner can have the same path, device and inode, so these alone
 * prove nothing. The uuid in <common-dir>/refd/id names the present row of the
 * journal's table. If others may write the file, path and inode must be those
 * of the row, too (repo_id.h).
 *
 * Rows of a repository are told to a peer who may read its refs now: the
 * repository at the recorded path has the recorded uuid, and refs/ and every
 * directory on the way are open to the peer. If the repository is gone, or was
 * moved and not written since, no directory tells who may read. So its rows are
 * told only to root and to the daemon's own account.
 *
 * A disk that hangs must not hold the journal, so no caller is within a read of
 * the journal.
 *
 * Failures:
 *	the journal cannot be read	the question is not answered
 *	nothing is at the path		root and the daemon's account are told
 *					of the last repository there
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

#include "daemon/store/history/history_internal.h"
#include "daemon/store/repos/repo_id.h"
#include "daemon/store/repos/repo_internal.h"
#include "proto/lib/array.h"

/* ---- which one ---- */

/* The id of the repository whose common dir is DIR. */
static bool read_id(const struct history *h, int dir, struct repo_id *id)
{
	return repo_id_read_in(h->cfg->sys, dir, id) == 0 &&
	    memcmp(id->journal, journal_uuid(h->cfg->journal),
		sizeof(id->journal)) == 0;
}

/* Is REPO at PLACE, which has ID? */
static bool is_at(const struct journal_repo *repo,
    const struct repo_place *place, const struct repo_id *id)
{
	return memcmp(id->uuid, repo->uuid, sizeof(id->uuid)) == 0 &&
	    repo_id_is_believed(id, repo, place->path, place->st.ino);
}

/* Is REPO at the path in the journal? If so, *PLACE is open, and the caller
 * closes it. */
static bool is_there(const struct history *h, const struct journal_repo *repo,
    struct repo_place *place)
{
	struct repo_id found;

	if (repo_find_known(h->cfg->repos, repo->path, place) < 0)
		return false;
	if (strcmp(place->path, repo->path) == 0 &&
	    read_id(h, place->fd, &found) && is_at(repo, place, &found))
		return true;
	SYS(h->cfg->sys, close, place->fd);
	return false;
}

/* A copy has the id of the original until the first write there, but no
 * history. A moved repository has history, so the id alone cannot tell the two
 * apart. */
static bool is_copy(const struct history *h, const struct journal_repo *repo,
    const struct repo_place *place)
{
	struct repo_place original;

	if (strcmp(repo->path, place->path) == 0 ||
	    !is_there(h, repo, &original))
		return false;
	SYS(h->cfg->sys, close, original.fd);
	return true;
}

/* Sets *ID to the repository with history at PLACE, if there is one. */
static int find_at(struct history *h, const struct repo_place *place,
    uint64_t *id)
{
	struct journal_repo repo;
	struct repo_id found;
	int r;

	if (!read_id(h, place->fd, &found))
		return 0;
	r = journal_read_repo(h->reader, 0, found.uuid, &repo);
	if (r != 0)
		return r == -ENOENT ? 0 : r;
	if (is_at(&repo, place, &found) && !is_copy(h, &repo, place))
		*id = repo.id;
	free(repo.path);
	return 0;
}

struct by_path {
	const char *path;
	uint64_t id;
};

static int note_path(void *arg, const struct journal_repo *repo)
{
	struct by_path *wanted = arg;

	if (strcmp(repo->path, wanted->path) == 0)
		wanted->id = repo->id;
	return 0;
}

/* The last repository that was at PATH. */
static int find_by_path(const struct history *h, const char *path, uint64_t *id)
{
	struct by_path wanted = { .path = path };
	int r;

	r = journal_each_repo(h->cfg->journal, note_path, &wanted);
	*id = wanted.id;
	return r;
}

/* ---- rights ---- */

/* Is PEER root, or the daemon's own account? Everything may be told then,
 * because both can read the journal itself. */
static bool history_may_all(const struct txn_peer *peer)
{
	return peer->uid == 0 || peer->uid == (uint32_t)geteuid();
}

/* May PEER read the refs there: their names, and their values? */
static bool may_read_at(const struct history *h, const struct txn_peer *peer,
    const struct repo_place *place)
{
	const struct sys *sys = h->cfg->sys;
	struct rights_given given;
	struct sys_stat refs;

	if (history_may_all(peer))
		return true;
	return (h->cfg->rights == NULL ||
		   rights_allow(h->cfg->rights, place->path, peer, &given)) &&
	    SYS(sys, lstatat, place->fd, "refs", &refs) == 0 &&
	    S_ISDIR(refs.mode) && repo_peer_has(&refs, peer, 05) &&
	    repo_peer_may_reach(sys, place->path, place->st.dev, place->st.ino,
		peer);
}

int history_learn_repo(struct history *h, const struct txn_peer *peer,
    uint64_t id, struct history_repo *learned)
{
	struct journal_repo repo = { .path = NULL };
	struct repo_place place;
	int r = -ENOENT;

	free(learned->path);
	*learned = (struct history_repo){ .may = history_may_all(peer) };
	if (id != 0)
		r = journal_read_repo(h->reader, id, NULL, &repo);
	if (r != 0 && r != -ENOENT)
		return r;
	learned->id = id;
	learned->is_learned = true;
	learned->path = repo.path;
	if (learned->may || r != 0 || !is_there(h, &repo, &place))
		return 0;
	learned->may = may_read_at(h, peer, &place);
	SYS(h->cfg->sys, close, place.fd);
	return 0;
}

/* ---- the repository of a question ---- */

static bool is_another(const struct refd_request *req,
    const struct repo_place *place)
{
	return (req->common_dev != 0 || req->common_ino != 0) &&
	    (req->common_dev != place->st.dev ||
		req->common_ino != place->st.ino);
}

int history_repo_of(struct history *h, const struct refd_request *req,
    const struct txn_peer *peer, uint64_t *id)
{
	struct repo_place place;
	char *why = NULL;
	int r = 0;

	*id = 0;
	if (repo_find(h->cfg->repos, req->git_dir, &place, &why) != REFD_OK) {
		free(why);
		return history_may_all(peer) ?
		    find_by_path(h, req->git_dir, id) :
		    0;
	}
	if (may_read_at(h, peer, &place))
		r = is_another(req, &place) ? -ESTALE : find_at(h, &place, id);
	SYS(h->cfg->sys, close, place.fd);
	return r;
}
