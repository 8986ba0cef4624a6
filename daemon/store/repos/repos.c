/*
 * The table of open repositories: found by device and inode of the common
 * dir, so that any path to one leads to the same. Short lists: a daemon
 * holds some hundreds open at most, and a look-up is a few comparisons.
 *
 * A repository whose path leads elsewhere now, or whose config changed, is
 * doomed: who holds a reference finishes, nobody gets another.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/repos/repo_internal.h"

void repos_init(struct repos *repos, const struct sys *sys,
    struct journal *journal, const char *const *roots, size_t nr_roots,
    size_t max_open)
{
	memset(repos, 0, sizeof(*repos));
	repos->sys = sys;
	repos->journal = journal;
	repos->roots = roots;
	repos->nr_roots = nr_roots;
	repos->max_open = max_open;
	pthread_mutex_init(&repos->mutex, NULL);
}

void repos_done(struct repos *repos)
{
	struct repo *repo;

	while ((repo = repos->open) != NULL) {
		assert(repo->refs == 0);
		repos->open = repo->next;
		repo_close(repos, repo);
	}
	fs_free_all(repos);
	pthread_mutex_destroy(&repos->mutex);
}

/* ---- the table ---- */

static void enlist(struct repos *repos, struct repo *repo)
{
	repo->refs = 1;
	pthread_mutex_lock(&repos->mutex);
	repo->next = repos->open;
	repos->open = repo;
	repos->nr_open++;
	pthread_mutex_unlock(&repos->mutex);
}

/* Takes out what may be closed: doomed, or idle since before BEFORE_NS; as
 * far as the table is over its size, whatever nobody refers to. */
static struct repo *take_out(struct repos *repos, int64_t before_ns)
{
	struct repo **at = &repos->open, *repo, *gone = NULL;

	pthread_mutex_lock(&repos->mutex);
	while ((repo = *at) != NULL) {
		if (repo->refs > 0 ||
		    (!repo->doomed && repo->last_used_ns > before_ns &&
			repos->nr_open < repos->max_open)) {
			at = &repo->next;
			continue;
		}
		*at = repo->next;
		repos->nr_open--;
		repo->next = gone;
		gone = repo;
	}
	pthread_mutex_unlock(&repos->mutex);
	return gone;
}

void repos_trim(struct repos *repos, int64_t idle_ns)
{
	struct repo *gone, *next;

	gone = take_out(repos, SYS(repos->sys, now_mono) - idle_ns);
	for (; gone != NULL; gone = next) {
		next = gone->next;
		repo_close(repos, gone);
	}
	pthread_mutex_lock(&repos->mutex);
	for (next = repos->open; next != NULL; next = next->next)
		packed_trim(next->packed);
	pthread_mutex_unlock(&repos->mutex);
}

/* The open one at PLACE, with a reference; its lock when only a doomed one
 * is there. */
static struct repo *find_open(struct repos *repos,
    const struct repo_place *place, struct repo_lock **lock)
{
	struct repo *repo, *found = NULL;

	*lock = NULL;
	pthread_mutex_lock(&repos->mutex);
	for (repo = repos->open; repo != NULL; repo = repo->next) {
		if (repo->dev != place->st.dev || repo->ino != place->st.ino)
			continue;
		*lock = repo->lock;
		if (repo->doomed || strcmp(repo->path, place->path) != 0)
			continue;
		repo->refs++;
		found = repo;
		break;
	}
	pthread_mutex_unlock(&repos->mutex);
	return found;
}

struct repo *repos_get(struct repos *repos, const char *git_dir,
    enum refd_status *status, char **why)
{
	struct repo_place place;
	struct repo_lock *lock;
	struct repo *repo;
	int r;

	*why = NULL;
	*status = repo_find(repos, git_dir, &place, why);
	if (*status != REFD_OK)
		return NULL;
	repo = find_open(repos, &place, &lock);
	if (repo != NULL && !repo_is_same(repos, repo)) {
		repo_doom(repos, repo);
		repo_put(repos, repo);
		repo = NULL;
	}
	if (repo != NULL) {
		SYS(repos->sys, close, place.fd);
		return repo;
	}
	if (repos->nr_open >= repos->max_open) {
		repos_trim(repos, INT64_MAX / 2);
		/* Perhaps the doomed one went, and its lock with it. */
		find_open(repos, &place, &lock);
	}
	*status = repo_open(repos, &place, lock, &repo, why);
	if (place.fd >= 0)
		SYS(repos->sys, close, place.fd);
	if (*status != REFD_OK)
		return NULL;
	r = fs_attach(repos, repo);
	if (r < 0) {
		*why = repo_why("can't use the file system of '%s': %s",
		    repo->path, strerror(-r));
		*status = txn_status_of(r);
		repo_close(repos, repo);
		return NULL;
	}
	enlist(repos, repo);
	return repo;
}

int repos_get_known(struct repos *repos, const struct journal_repo *known,
    struct repo **out)
{
	struct repo *repo;
	int r;

	r = repo_open_known(repos, known, &repo);
	if (r < 0)
		return r;
	r = fs_attach(repos, repo);
	if (r < 0) {
		repo_close(repos, repo);
		return r;
	}
	/* Nothing but recovery may use it: it was not looked at by git. */
	repo->doomed = true;
	enlist(repos, repo);
	*out = repo;
	return 0;
}

void repo_hold(struct repos *repos, struct repo *repo)
{
	pthread_mutex_lock(&repos->mutex);
	assert(repo->refs > 0);
	repo->refs++;
	pthread_mutex_unlock(&repos->mutex);
}

void repo_put(struct repos *repos, struct repo *repo)
{
	pthread_mutex_lock(&repos->mutex);
	assert(repo->refs > 0);
	repo->refs--;
	repo->last_used_ns = SYS(repos->sys, now_mono);
	pthread_mutex_unlock(&repos->mutex);
}

bool repo_is_there(const struct repos *repos, const struct repo *repo)
{
	struct sys_stat st;

	if (atomic_load(&repo->fs->failed))
		return false;
	return SYS(repos->sys, statat, AT_FDCWD, repo->path, &st) == 0 &&
	    st.dev == repo->dev && st.ino == repo->ino;
}

bool repo_is_same(const struct repos *repos, const struct repo *repo)
{
	const struct sys *sys = repos->sys;
	struct sys_stat st;

	if (!repo_is_there(repos, repo))
		return false;
	if (SYS(sys, statat, repo->fd, "config", &st) < 0)
		memset(&st, 0, sizeof(st));
	return st.ino == repo->config_stat.ino &&
	    st.size == repo->config_stat.size &&
	    st.mtime_ns == repo->config_stat.mtime_ns &&
	    st.ctime_ns == repo->config_stat.ctime_ns;
}

bool repo_has_reftable(const struct sys *sys, const struct repo *repo)
{
	struct sys_stat st;

	return SYS(sys, lstatat, repo->fd, "reftable", &st) != -ENOENT;
}

void repo_doom(struct repos *repos, struct repo *repo)
{
	pthread_mutex_lock(&repos->mutex);
	repo->doomed = true;
	pthread_mutex_unlock(&repos->mutex);
}
