/*
 * Claims a repository for the daemon.
 *
 * The happy path:
 *	migrate	<common-dir>/refd/migrate, a directory, is absent or unlocked:
 *		refd migrate is not at work
 *	lock	<common-dir>/refd/lock: one daemon per repository
 *	share	marks for other programs, if other machines have the repository
 *		(replica.h)
 *	name	<common-dir>/refd/id, made at the first opening
 *	note	in the journal: recovery then knows the path
 *	mark	<common-dir>/refd/checkpoint, with the first note of the journal
 * The id and the row are not synced here, because the first transactions in the
 * repository wait at the barrier for both syncs (barrier.c).
 *
 * A failure refuses the transaction, with the reason: refd migrate wants or has
 * the lock, so the client tries again; another daemon has the lock; the
 * repository belongs to a different journal; it is new in place of one that was
 * lost; the id can't be read, or refd did not write it; the disk failed.
 *
 * If others may write the id, the journal must confirm it, and then a new file
 * replaces it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/replica.h"
#include "daemon/store/repos/repo_checkpoint.h"
#include "daemon/store/repos/repo_id.h"
#include "daemon/store/repos/repo_internal.h"
#include "proto/lib/shell_word.h"

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

static int open_migrate(const struct repos *repos, const struct repo *repo)
{
	return SYS(repos->sys, openat, repo->refd_fd, "migrate",
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* refd migrate holds a flock on refd/migrate from before the wait for refd/lock
 * until its end (client/request/hold.c). */
static bool is_migrating(const struct repos *repos, const struct repo *repo)
{
	const struct sys *sys = repos->sys;
	int fd = open_migrate(repos, repo), r;

	if (fd < 0)
		return false;
	r = SYS(sys, flock_try, fd);
	SYS(sys, close, fd);
	return r == -EAGAIN;
}

/* A refd migrate that was killed may leave reftable/ beside refs in files. Git
 * ignores reftable/ then, but recovery and batches would take reftable/ for the
 * refs, so reftable/ is moved aside. The caller has refd/lock. */
static void put_reftable_aside(const struct repos *repos,
    const struct repo *repo)
{
	const struct sys *sys = repos->sys;
	int fd = open_migrate(repos, repo);

	if (fd < 0)
		return;
	SYS(sys, renameat, repo->fd, "reftable", fd, "reftable");
	SYS(sys, close, fd);
}

/* A copy by hard links shares the file with the original, and a lock would lock
 * both, so a file with a second name is replaced. Another daemon may replace
 * the file before our lock, so only the file with the name counts. Returns a
 * descriptor; -EAGAIN: somebody holds the lock. */
static int open_lock(const struct sys *sys, int refd_fd)
{
	struct sys_stat st, named;
	int fd, r, tries;

	for (tries = 0; tries < 2; tries++) {
		fd = SYS(sys, openat, refd_fd, "lock",
		    O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
		if (fd < 0)
			return fd;
		r = SYS(sys, flock_try, fd);
		if (r == 0)
			r = SYS(sys, fstat, fd, &st);
		if (r == 0)
			r = SYS(sys, lstatat, refd_fd, "lock", &named);
		if (r == 0 && named.ino == st.ino) {
			if (st.nlink == 1)
				return fd;
			r = SYS(sys, unlinkat, refd_fd, "lock");
		}
		SYS(sys, close, fd);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return -EAGAIN;
}

static int take_lock(const struct repos *repos, struct repo *repo,
    struct repo_lock *lock)
{
	int fd;

	if (lock != NULL) {
		lock->refs++;
		repo->lock = lock;
		return 0;
	}
	fd = open_lock(repos->sys, repo->refd_fd);
	if (fd < 0)
		return fd;
	lock = calloc(1, sizeof(*lock));
	if (lock == NULL) {
		SYS(repos->sys, close, fd);
		return -ENOMEM;
	}
	*lock = (struct repo_lock){ .fd = fd, .refs = 1 };
	repo->lock = lock;
	return 0;
}

/* Does PATH have a different repository with this id? An id of a foreign
 * account does not count. An id that others may write counts only in the
 * directory with the number INO, which the journal has at PATH, and nowhere if
 * INO is 0. Otherwise whoever may write at the former path of a moved
 * repository could turn the repository into a copy, without history. */
static bool is_also_at(const struct repos *repos, const struct repo *repo,
    const char *path, const uint8_t uuid[16], uint64_t ino)
{
	const struct sys *sys = repos->sys;
	struct repo_id other;
	struct sys_stat st;
	int fd, refd_fd, r;

	fd = repo_open_below_root(repos, path);
	if (fd < 0)
		return false;
	r = SYS(sys, fstat, fd, &st);
	/* Nothing is read there, because the owner is not served. The records
	 * of a repository there must not go to REPO, so the answer is yes. */
	if (r == 0 && !repo_owner_is_served(st.uid)) {
		SYS(sys, close, fd);
		return st.dev != repo->dev || st.ino != repo->ino;
	}
	refd_fd = SYS(sys, openat, fd, "refd", O_RDONLY | O_DIRECTORY, 0);
	SYS(sys, close, fd);
	if (refd_fd < 0)
		return false;
	if (r == 0)
		r = repo_id_read(sys, refd_fd, &other);
	SYS(sys, close, refd_fd);
	return r == 0 &&
	    (other.whose == OWN_FILE_CLOSED ||
		(other.whose == OWN_FILE_OPEN && st.ino == ino)) &&
	    (st.dev != repo->dev || st.ino != repo->ino) &&
	    memcmp(other.uuid, uuid, 16) == 0;
}

struct copy_search {
	const struct repos *repos;
	const struct repo *repo;
	const struct repo_id *id;
	bool is_there, is_believed;
};

static int look_there(void *arg, const struct journal_repo *known)
{
	struct copy_search *search = arg;

	search->is_there = is_also_at(search->repos, search->repo, known->path,
	    known->uuid, known->ino);
	search->is_believed = repo_id_is_believed(search->id, known,
	    search->repo->path, search->repo->ino);
	return 0;
}

static bool has_no_journal(const struct repos *repos, const struct repo_id *id)
{
	return repos->replica->ops->shares_rows || repo_id_is_unclaimed(id);
}

static int note_known(void *arg, const struct journal_repo *known)
{
	bool *is_known = arg;

	*is_known = known->ino != 0;
	return 0;
}

/* R is of the journal, whose -EBADMSG becomes -EIO, because refuse() would take
 * the error for one of refd/id. */
static int journal_result(int r)
{
	return r > 0 || r == -EBADMSG ? -EIO : r;
}

int repo_is_lost(const struct repos *repos, const struct repo_id *id)
{
	bool is_known = false;
	int r;

	if (!repo_id_is_unclaimed(id) || !repos->replica->ops->shares_rows)
		return 0;
	r = journal_find_repo(repos->journal, id->uuid, note_known, &is_known);
	return r == 0 ? is_known : journal_result(r);
}

/* Is ID a copy of the id of a different repository? An account with write
 * access to refd/ can put any id there, and would get the records and the
 * history of that repository. So an id of this journal, or of no journal, is
 * not trusted if others can have written it (repo_id.h). The path in the
 * journal is checked too. */
static int find_copy(const struct repos *repos, const struct repo *repo,
    const struct repo_id *id, bool *copy)
{
	struct copy_search search = { .repos = repos,
		.repo = repo,
		.id = id,
		.is_believed = id->whose == OWN_FILE_CLOSED };
	bool is_ours = has_no_journal(repos, id) ||
	    memcmp(id->journal, journal_uuid(repos->journal), 16) == 0;
	int r =
	    journal_find_repo(repos->journal, id->uuid, look_there, &search);

	*copy = search.is_there || (is_ours && !search.is_believed) ||
	    (strcmp(id->path, repo->path) != 0 &&
		is_also_at(repos, repo, id->path, id->uuid, 0));
	return journal_result(r);
}

/* Is the journal an older copy than at the last write to this repository? */
static bool is_ahead(const struct repos *repos, const struct repo *repo)
{
	return repo_checkpoint_read(repos->sys, repo->refd_fd, repos->journal)
		   .lsn > journal_last_lsn(repos->journal);
}

static int name_it(const struct repos *repos, struct repo *repo,
    struct repo_id *id)
{
	bool is_new, has_one, changes, is_unnamed;
	int r;

	r = repo_id_read(repos->sys, repo->refd_fd, id);
	has_one = r == 0;
	is_new = r == -ENOENT;
	if (r == 0)
		r = find_copy(repos, repo, id, &is_new);
	if (r == 0 && !is_new && (r = repo_is_lost(repos, id)) > 0)
		r = -EIDRM;
	is_unnamed = r == 0 && repo_id_is_unclaimed(id);
	changes = is_new ||
	    (r == 0 && has_no_journal(repos, id) &&
		memcmp(id->journal, journal_uuid(repos->journal), 16) != 0);
	if (is_new && (r == 0 || r == -ENOENT))
		r = repo_id_make_uuid(id->uuid);
	if (r < 0)
		return r;
	repo->is_new = is_new;
	if (changes)
		memcpy(id->journal, journal_uuid(repos->journal), 16);
	if (memcmp(id->journal, journal_uuid(repos->journal), 16) != 0)
		return -ESTALE;
	if (is_ahead(repos, repo))
		return -EOVERFLOW;
	r = REPLICA(repos->replica, claim, repos->sys, repo,
	    is_new ? id->uuid : NULL);
	if (r < 0)
		return r;
	memcpy(repo->uuid, id->uuid, 16);
	/* If others may write an id, somebody may have its file open. So the id
	 * is written to a new file, which replaces the old file. */
	if (!changes && id->whose != OWN_FILE_OPEN &&
	    strcmp(id->path, repo->path) == 0)
		return 0;
	snprintf(id->path, sizeof(id->path), "%s", repo->path);
	r = repo_id_write(repos->sys, repo->refd_fd, id, has_one);
	/* The id is durable before the journal knows it. Otherwise a power loss
	 * could bring the id without a journal back, and repo_is_lost() would
	 * find a loss. */
	return r == 0 && is_unnamed ? SYS(repos->sys, syncfs, repo->refd_fd) :
				      r;
}

/* journal_find_repo(). 1: another directory. */
static int is_other_dir(void *arg, const struct journal_repo *known)
{
	const struct repo *repo = arg;

	return known->ino != 0 && known->ino != repo->ino;
}

static bool is_replaced(struct repos *repos, struct repo *repo)
{
	struct journal *j = repos->journal;

	return journal_forgotten(j) < journal_last_lsn(j) &&
	    journal_find_repo(j, repo->uuid, is_other_dir, repo) == 1;
}

static int note_it(struct repos *repos, struct repo *repo)
{
	struct journal_repo known = { .path = repo->path,
		.dev = repo->dev,
		.ino = repo->ino };
	int r;

	if (repos->report.replaced != NULL && is_replaced(repos, repo))
		repos->report.replaced(repos->report.arg, repo->path);
	memcpy(known.uuid, repo->uuid, 16);
	r = journal_register_repo(repos->journal, &known);
	if (r == 0) {
		repo->id = known.id;
		repo->journal_epoch = known.epoch;
	}
	return journal_result(r);
}

static enum refd_status refuse_migrating(char **why)
{
	*why = repo_why("%s", busy_cause_text(BUSY_MIGRATING));
	return busy_cause_count(BUSY_MIGRATING);
}

/* ERR: of a step of repo_claim(). ID: of refd/id. */
static enum refd_status refuse(const struct repo *repo, int err,
    const struct repo_id *id, char **why)
{
	const char *path = repo->path;
	char word[SHELL_WORD_MAX(REFD_PATH_MAX)], hex[33];

	switch (err) {
	case -EAGAIN:
		*why = repo_why("'%s' is served by another refd already "
				"(%s/refd/lock is held)",
		    path, path);
		return REFD_NOREPO;
	case -ESTALE:
		repo_id_hex(id->journal, hex);
		*why = repo_why("'%s' belongs to the journal %s of another "
				"refd: its refs may await recovery there; once "
				"that one is gone for good, run \"refd disown "
				"%s\"",
		    path, hex, shell_word(word, path));
		return REFD_NOREPO;
	case -EIDRM:
		*why = repo_why("'%s' is new, and this node had another copy "
				"of the repository and has lost it: replace "
				"it by a copy from another node",
		    path);
		return REFD_NOREPO;
	case -EBADMSG:
		*why = repo_why("'%s/refd/id' is not what refd wrote there: "
				"put it back, or run \"refd disown %s\", by "
				"which what awaits recovery there is given up",
		    path, shell_word(word, path));
		return REFD_NOREPO;
	case -EOVERFLOW:
		*why = repo_why("'%s' has seen more of the journal than there "
				"is: the daemon's state is an older copy, or "
				"damaged; if that is what is to be, run "
				"\"refd disown %s\"",
		    path, shell_word(word, path));
		return REFD_NOREPO;
	default:
		*why = repo_why("can't set '%s/refd' up: %s", path,
		    strerror(-err));
		return txn_status_of(err);
	}
}

enum refd_status repo_claim(struct repos *repos, struct repo *repo,
    struct repo_lock *lock, char **why)
{
	struct repo_id id = { .journal = { 0 } };
	int r;

	r = make_refd_dir(repos, repo);
	if (r == 0 && is_migrating(repos, repo))
		return refuse_migrating(why);
	if (r == 0)
		r = take_lock(repos, repo, lock);
	/* refd migrate may have begun in between. */
	if (r == -EAGAIN && is_migrating(repos, repo))
		return refuse_migrating(why);
	if (r == 0 && lock == NULL && repo->format == REPO_FILES)
		put_reftable_aside(repos, repo);
	if (r == 0)
		r = name_it(repos, repo, &id);
	if (r == 0)
		r = note_it(repos, repo);
	if (r != 0)
		return refuse(repo, r, &id, why);
	/* Without the note an older copy of the journal or of the repository is
	 * not noticed. This is no reason to refuse, and the next checkpoint
	 * tries again if the file is there. */
	repo_checkpoint_make(repos->sys, repo->refd_fd, repos->journal);
	return REFD_OK;
}

int repo_unmark(const struct sys *sys, const struct repo *repo,
    const char *name)
{
	int r = SYS(sys, unlinkat, repo->refd_fd, name);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return SYS(sys, fsync, repo->refd_fd);
}

/* Opens the refd/ directory of an earlier run. A copy of the repository may
 * lack the empty directory stage/, so stage/ is made again. */
static int open_refd_dir(const struct repos *repos, struct repo *repo)
{
	const struct sys *sys = repos->sys;
	int r;

	repo->refd_fd = SYS(sys, openat, repo->fd, "refd",
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (repo->refd_fd < 0)
		return repo->refd_fd;
	r = SYS(sys, mkdirat, repo->refd_fd, "stage",
	    repo_dir_mode(repo->shared_perm, 022));
	if (r < 0 && r != -EEXIST)
		return r;
	repo->stage_fd = SYS(sys, openat, repo->refd_fd, "stage",
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return repo->stage_fd < 0 ? repo->stage_fd : 0;
}

int repo_claim_known(const struct repos *repos, struct repo *repo,
    const struct journal_repo *known)
{
	struct repo_id id;
	int r;

	r = open_refd_dir(repos, repo);
	if (r == 0)
		r = repo_id_read(repos->sys, repo->refd_fd, &id);
	if (r == -ENOENT || (r == 0 && memcmp(id.uuid, known->uuid, 16) != 0))
		r = -ESTALE;
	if (r == 0)
		r = take_lock(repos, repo, NULL);
	if (r < 0)
		return r;
	memcpy(repo->uuid, id.uuid, 16);
	repo->id = known->id;
	return 0;
}

int repo_claim_any(const struct repos *repos, struct repo *repo)
{
	int r = open_refd_dir(repos, repo);

	return r == 0 ? take_lock(repos, repo, NULL) : r;
}

/* ---- before anything is replayed ---- */

struct mark_check {
	struct repos *repos;
	const char *state_dir;
	char **why;
};

static const char a_machine[] =
    "the refs are newer than the journal: run 'refd recover --discard', and "
    "'refd disown' and 'refd verify' for each repository";
static const char a_node[] = "make the node anew by 'refd group join'";

static int check_checkpoint(void *arg, const struct journal_repo *known)
{
	struct mark_check *check = arg;
	struct repos *repos = check->repos;
	const struct sys *sys = repos->sys;
	uint64_t lsn = 0, last = journal_last_lsn(repos->journal);
	struct sys_stat st;
	struct repo_id id;
	char *doubt;
	int dir, fd;

	dir = repo_open_below_root(repos, known->path);
	if (dir < 0)
		return 0;
	fd = SYS(sys, openat, dir, "refd", O_RDONLY | O_DIRECTORY, 0);
	SYS(sys, close, dir);
	if (fd < 0)
		return 0;
	if (SYS(sys, fstat, fd, &st) == 0 && repo_owner_is_served(st.uid) &&
	    repo_id_read(sys, fd, &id) == 0 &&
	    memcmp(id.uuid, known->uuid, 16) == 0)
		lsn = repo_checkpoint_read(sys, fd, repos->journal).lsn;
	SYS(sys, close, fd);
	if (lsn <= last)
		return 0;
	doubt = journal_wal_doubt(repos->journal);
	*check->why = repo_why(
	    "the journal in '%s' ends at record %llu, and '%s' has seen record "
	    "%llu of it: %s; nothing was changed; put the newest copy of its "
	    "files there; if there is none, %s",
	    check->state_dir, (unsigned long long)last, known->path,
	    (unsigned long long)lsn,
	    doubt != NULL ? doubt : "it is damaged, or an older copy",
	    journal_shares_rows(repos->journal) ? a_node : a_machine);
	free(doubt);
	return -ESTALE;
}

int repos_check_checkpoints(struct repos *repos, const char *state_dir,
    char **why)
{
	struct mark_check check = { repos, state_dir, why };

	return journal_each_repo(repos->journal, check_checkpoint, &check);
}
