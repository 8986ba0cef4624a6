/*
 * The table of open repositories, by device and inode of the common dir, so
 * that all paths to a repository find the same entry. There are some hundred
 * repositories, and a look-up compares a few numbers, so lists are fast enough.
 *
 * A repository is doomed if its path leads elsewhere now, or its config
 * changed. References stay valid, but nobody gets a new reference.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/hash.h"
#include "daemon/store/replica.h"
#include "daemon/store/repos/repo_internal.h"

void repos_init(struct repos *repos, const struct sys *sys,
    struct journal *journal, const char *const *roots, size_t nr_roots,
    size_t max_open)
{
	static struct replica alone = { &replica_single, NULL };

	memset(repos, 0, sizeof(*repos));
	repos->sys = sys;
	repos->journal = journal;
	repos->roots = roots;
	repos->nr_roots = nr_roots;
	repos->max_open = max_open;
	repos->replica = &alone;
	mutex_init(&repos->mutex, MUTEX_QUEUES);
	pthread_cond_init(&repos->not_busy, NULL);
}

/* New loose refs of a closed repository, and the rest after a packing. */
struct repo_loose {
	uint64_t id, nr;
	int64_t pack_after_ns;
	UT_hash_handle hh;
};

void repos_done(struct repos *repos)
{
	struct repo_loose *loose, *next;
	struct repo *repo;

	HASH_ITER(hh, repos->loose, loose, next) {
		HASH_DEL(repos->loose, loose);
		free(loose);
	}
	while ((repo = repos->open) != NULL) {
		assert(repo->refs == 0);
		repos->open = repo->next;
		repo_close(repos, repo);
	}
	fs_free_all(repos);
	pthread_cond_destroy(&repos->not_busy);
	mutex_destroy(&repos->mutex);
}

/* ---- one thread per repository ---- */

/* Under MUTEX. */
static bool is_busy(const struct repos *repos, uint64_t dev, uint64_t ino)
{
	const struct repo_busy *b;

	for (b = repos->busy; b != NULL; b = b->next)
		if (b->dev == dev && b->ino == ino)
			return true;
	return false;
}

/* Under MUTEX. */
static void busy_begin(struct repos *repos, struct repo_busy *busy)
{
	while (is_busy(repos, busy->dev, busy->ino))
		mutex_wait(&repos->not_busy, &repos->mutex);
	busy->next = repos->busy;
	repos->busy = busy;
}

static void busy_end(struct repos *repos, const struct repo_busy *busy)
{
	struct repo_busy **at = &repos->busy;

	mutex_lock(&repos->mutex);
	while (*at != busy)
		at = &(*at)->next;
	*at = busy->next;
	pthread_cond_broadcast(&repos->not_busy);
	mutex_unlock(&repos->mutex);
}

/* ---- new loose refs ---- */

/* Remembers the number of new loose refs, and the rest after a packing, while
 * REPO is closed. Otherwise a repository that is idle between its updates would
 * never get enough new loose refs to be packed, or would get no rest. Without
 * memory, number and rest begin anew. Under MUTEX. */
static void remember_loose(struct repos *repos, struct repo *repo)
{
	const uint64_t nr = atomic_load(&repo->nr_loose_made);
	const int64_t after_ns = atomic_load(&repo->pack_after_ns);
	struct repo_loose *loose;

	if (nr == 0 && after_ns <= SYS(repos->sys, now_mono))
		return;
	HASH_FIND(hh, repos->loose, &repo->id, sizeof(repo->id), loose);
	if (loose == NULL) {
		loose = calloc(1, sizeof(*loose));
		if (loose == NULL)
			return;
		loose->id = repo->id;
		HASH_ADD(hh, repos->loose, id, sizeof(loose->id), loose);
	}
	loose->nr += nr;
	loose->pack_after_ns = after_ns;
	if (loose->hh.tbl == NULL)
		free(loose);
}

/* Under MUTEX. */
static void recall_loose(struct repos *repos, struct repo *repo)
{
	struct repo_loose *loose;

	HASH_FIND(hh, repos->loose, &repo->id, sizeof(repo->id), loose);
	if (loose == NULL)
		return;
	atomic_fetch_add(&repo->nr_loose_made, loose->nr);
	atomic_store(&repo->pack_after_ns, loose->pack_after_ns);
	HASH_DEL(repos->loose, loose);
	free(loose);
}

/* ---- the table ---- */

/* Gives REPO its file system, a reference and a place in the table. The file
 * system may have failed and been closed since fs_attach(), because fs_fail()
 * and fs_is_in_use() see only repositories in the table. So the state is
 * checked once more. -EIO: the file system failed to sync. */
static int enlist(struct repos *repos, struct repo *repo)
{
	int r = fs_attach(repos, repo);

	if (r < 0)
		return r;
	repo->refs = 1;
	mutex_lock(&repos->mutex);
	if (repo->fs->state == FS_OPEN) {
		recall_loose(repos, repo);
		repo->next = repos->open;
		repos->open = repo;
		repos->nr_open++;
	} else {
		r = -EIO;
	}
	mutex_unlock(&repos->mutex);
	return r;
}

/* Takes out a repository without references which is doomed, idle since before
 * BEFORE_NS, or any while the table is full. Marks the repository as BUSY. */
static struct repo *take_out(struct repos *repos, int64_t before_ns,
    struct repo_busy *busy)
{
	struct repo **at = &repos->open, *repo;

	mutex_lock(&repos->mutex);
	while ((repo = *at) != NULL) {
		if (repo->refs == 0 && !is_busy(repos, repo->dev, repo->ino) &&
		    (repo->doomed || repo->last_used_ns <= before_ns ||
			repos->nr_open >= repos->max_open))
			break;
		at = &repo->next;
	}
	if (repo != NULL) {
		remember_loose(repos, repo);
		*at = repo->next;
		repos->nr_open--;
		*busy = (struct repo_busy){ repo->dev, repo->ino, NULL };
		busy_begin(repos, busy);
	}
	mutex_unlock(&repos->mutex);
	return repo;
}

void repos_trim(struct repos *repos, int64_t idle_ns)
{
	int64_t before_ns = SYS(repos->sys, now_mono) - idle_ns;
	struct repo_busy busy;
	struct repo *repo;

	while ((repo = take_out(repos, before_ns, &busy)) != NULL) {
		repo_close(repos, repo);
		busy_end(repos, &busy);
	}
	mutex_lock(&repos->mutex);
	for (repo = repos->open; repo != NULL; repo = repo->next) {
		/* The last close of a removed file may block on the disk, so
		 * MUTEX is given back. With a reference the repository stays in
		 * the list. */
		repo->refs++;
		mutex_unlock(&repos->mutex);
		packed_trim(repo->packed);
		mutex_lock(&repos->mutex);
		repo->refs--;
	}
	mutex_unlock(&repos->mutex);
}

const struct fs *repos_place(struct repos *repos, const char *git_dir)
{
	const struct fs *place = NULL;
	const struct repo *repo;

	mutex_lock(&repos->mutex);
	for (repo = repos->open; repo != NULL; repo = repo->next)
		if (!repo->doomed && strcmp(repo->path, git_dir) == 0)
			place = repo->fs;
	mutex_unlock(&repos->mutex);
	return place;
}

/* Returns the open repository at PLACE, with a reference. If there is only a
 * doomed repository, returns its lock. *OTHER, with a reference, or NULL: the
 * same repository, opened at another path. Under MUTEX. */
static struct repo *find_open(struct repos *repos,
    const struct repo_place *place, struct repo_lock **lock,
    struct repo **other)
{
	struct repo *repo, *found = NULL;

	*lock = NULL;
	*other = NULL;
	for (repo = repos->open; repo != NULL && found == NULL;
	    repo = repo->next) {
		if (repo->dev != place->st.dev || repo->ino != place->st.ino)
			continue;
		*lock = repo->lock;
		if (repo->doomed)
			continue;
		if (strcmp(repo->path, place->path) == 0)
			found = repo;
		else
			*other = repo;
	}
	if (found != NULL)
		found->refs++;
	if (*other != NULL)
		(*other)->refs++;
	return found;
}

/* After a move, the journal gets the new path at the next opening. If the
 * repository is moved back, the journal needs the old path again, so it must be
 * opened once more. */
static void doom_moved(struct repos *repos, struct repo *repo)
{
	if (repo == NULL)
		return;
	if (repo_is_moved(repos, repo))
		repo_doom(repos, repo);
	repo_put(repos, repo);
}

/* Opens the repository at PLACE, which no other thread opens or closes
 * meanwhile. */
static struct repo *open_at(struct repos *repos, struct repo_place *place,
    struct repo_lock *lock, enum refd_status *status, char **why)
{
	struct repo *repo;
	int r;

	*status = repo_open(repos, place, lock, &repo, why);
	if (place->fd >= 0)
		SYS(repos->sys, close, place->fd);
	if (*status != REFD_OK)
		return NULL;
	r = enlist(repos, repo);
	if (r < 0) {
		*why = repo_why("can't use the file system of '%s': %s",
		    repo->path, strerror(-r));
		*status = txn_status_of(r);
		repo_close(repos, repo);
		return NULL;
	}
	return repo;
}

static bool leads_elsewhere(const struct repos *repos, const char *path,
    uint64_t dev, uint64_t ino)
{
	struct sys_stat st;
	int r = SYS(repos->sys, lstatat, SYS_TRUSTED, path, &st);

	return r == -ENOENT || r == -ENOTDIR ||
	    (r == 0 && (st.dev != dev || st.ino != ino));
}

bool repo_is_moved(const struct repos *repos, const struct repo *repo)
{
	return leads_elsewhere(repos, repo->path, repo->dev, repo->ino);
}

bool repo_move_may_cause(enum refd_status status)
{
	return status == REFD_IO || status == REFD_DENIED ||
	    status == REFD_UNSUPPORTED || status == REFD_NOOBJECT;
}

/* Returns the open repository at PLACE, and otherwise begins the opening, with
 * LOCK as above. */
static struct repo *begin_at(struct repos *repos,
    const struct repo_place *place, struct repo_busy *busy,
    struct repo_lock **lock, bool *is_full)
{
	struct repo *repo, *other;

	busy->dev = place->st.dev;
	busy->ino = place->st.ino;
	mutex_lock(&repos->mutex);
	busy_begin(repos, busy);
	repo = find_open(repos, place, lock, &other);
	*is_full = repos->nr_open >= repos->max_open;
	mutex_unlock(&repos->mutex);
	doom_moved(repos, other);
	if (repo == NULL || repo_is_same(repos, repo))
		return repo;
	repo_doom(repos, repo);
	repo_put(repos, repo);
	return NULL;
}

struct repo *repos_get(struct repos *repos, const char *git_dir,
    const struct repo_first *first, enum refd_status *status, char **why)
{
	struct repo_place place;
	struct repo_busy busy;
	struct repo_lock *lock;
	struct repo *repo;
	bool is_full;

	*why = NULL;
	*status = repo_find(repos, git_dir, &place, why);
	if (*status != REFD_OK)
		return NULL;
	place.first = first;
	repo = begin_at(repos, &place, &busy, &lock, &is_full);
	if (repo == NULL && is_full) {
		/* Closing a doomed repository may release the lock, so the lock
		 * is looked up again. */
		busy_end(repos, &busy);
		repos_trim(repos, INT64_MAX / 2);
		repo = begin_at(repos, &place, &busy, &lock, &is_full);
	}
	if (repo != NULL)
		SYS(repos->sys, close, place.fd);
	else
		repo = open_at(repos, &place, lock, status, why);
	busy_end(repos, &busy);
	/* refd migrate waits until the repository is closed, so a doomed
	 * opening is closed at once. */
	if (repo == NULL && *status == REFD_BUSY)
		repos_trim(repos, INT64_MAX / 2);
	/* The daemon may have no access to a directory that was moved away, so
	 * any failure may come from a move. */
	if (repo == NULL &&
	    leads_elsewhere(repos, place.path, place.st.dev, place.st.ino)) {
		free(*why);
		*why = repo_why_moved(git_dir);
		*status = REFD_NOREPO;
	}
	return repo;
}

int repos_get_known(struct repos *repos, const struct journal_repo *known,
    struct repo **out)
{
	struct repo_busy busy = { 0 };
	struct sys_stat st;
	struct repo *repo;
	int r;

	if (SYS(repos->sys, lstatat, SYS_TRUSTED, known->path, &st) < 0)
		return -ENOENT;
	busy.dev = st.dev;
	busy.ino = st.ino;
	mutex_lock(&repos->mutex);
	busy_begin(repos, &busy);
	mutex_unlock(&repos->mutex);
	r = repo_open_known(repos, known, &repo);
	if (r == 0) {
		/* Only recovery may use the repository, because git's checks
		 * were not done. */
		repo->doomed = true;
		r = enlist(repos, repo);
		if (r < 0)
			repo_close(repos, repo);
		else
			*out = repo;
	}
	busy_end(repos, &busy);
	return r;
}

void repo_hold(struct repos *repos, struct repo *repo)
{
	mutex_lock(&repos->mutex);
	assert(repo->refs > 0);
	repo->refs++;
	mutex_unlock(&repos->mutex);
}

void repo_put(struct repos *repos, struct repo *repo)
{
	mutex_lock(&repos->mutex);
	assert(repo->refs > 0);
	repo->refs--;
	repo->last_used_ns = SYS(repos->sys, now_mono);
	mutex_unlock(&repos->mutex);
}

bool repo_is_there(const struct repos *repos, const struct repo *repo)
{
	struct sys_stat st;

	if (repo->fs->state != FS_OPEN)
		return false;
	return SYS(repos->sys, lstatat, SYS_TRUSTED, repo->path, &st) == 0 &&
	    st.dev == repo->dev && st.ino == repo->ino;
}

bool repo_is_same(const struct repos *repos, const struct repo *repo)
{
	const struct sys *sys = repos->sys;
	struct sys_stat st;

	if (!repo_is_there(repos, repo))
		return false;
	if (SYS(sys, lstatat, repo->fd, "config", &st) < 0)
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
	mutex_lock(&repos->mutex);
	repo->doomed = true;
	mutex_unlock(&repos->mutex);
}
