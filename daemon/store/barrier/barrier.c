/*
 * The object barrier: no ref becomes durable before its objects.
 *
 * The happy path: every directory with objects (pack, the fan-outs, also of
 * alternates), and shallow, last changed well before the last completed syncfs
 * of the file system. Then all objects are on disk, so nothing is to be done.
 * Otherwise transactions wait here, before any lock is taken:
 *	only packs are new		the files of every pack are fsynced,
 *					then objects/pack, if the last syncfs
 *					took longer: a syncfs also waits for
 *					data of other processes
 *	anything else, or many packs	one syncfs of the file system serves
 *					all waiting transactions
 *
 * A power loss could separate a repository from its records if its id, or its
 * row in the journal, is not durable. So all its transactions wait here until
 * both are known to be durable. The same syncfs makes the id durable, and one
 * flush of the journal makes all rows durable.
 *
 * The comparison of times is safe, because both times come from the clock for
 * ctimes of the file system, of the marker or of the kernel. SLACK covers a
 * tick (4 ms before multigrain timestamps), and a directory that changed at the
 * time of the marker. Directories are compared with the begin of the last
 * syncfs, so nothing is clean before the first syncfs of this start, nor after
 * the clock was set back.
 *
 * Failures: a failed sync refuses the transactions that waited for it, and the
 * time does not advance. Object stores on the file system are no longer
 * trusted, because a failed sync can leave objects that only memory has
 * (fs_sync.c, suspect_store.c). An object store that cannot be read is not
 * clean, so no transaction of this store passes.
 */
#include <errno.h>

#include "daemon/store/barrier/barrier_internal.h"
#include "daemon/store/sync_failures/suspect_store.h"

/* ---- clean? ---- */

/* Everything on DEV that changed before this time is durable. */
static int64_t synced_before(const struct store_parts *cfg, uint64_t dev)
{
	int64_t ns = fs_synced_ns(cfg->repos, dev);

	return ns == 0 ? INT64_MIN : ns - FS_SLACK_NS;
}

int64_t barrier_limit(const struct store_parts *cfg, int fd,
    const struct sys_stat *st)
{
	return suspect_store_is(cfg->sync_failures, fd, st) ?
	    INT64_MIN :
	    synced_before(cfg, st->dev);
}

static int64_t limit_of(void *arg, int fd, const struct sys_stat *st)
{
	return barrier_limit(((struct barriers *)arg)->cfg, fd, st);
}

/* git writes the file shallow after the objects and without a sync, so the file
 * can be new when all objects are old. A commit whose parents git did not fetch
 * needs the file. */
bool barrier_is_shallow_new(const struct store_parts *cfg,
    const struct repo *repo)
{
	struct sys_stat st;
	int r = SYS(cfg->sys, lstatat, repo->fd, "shallow", &st);

	return r == 0 ? st.ctime_ns >= synced_before(cfg, repo->dev) :
			r != -ENOENT;
}

bool barrier_is_clean(struct barriers *b, struct repo *repo, uint8_t first)
{
	const struct objects_walk walk = { .sys = b->cfg->sys,
		.limit = limit_of,
		.arg = b,
		.first = first,
		.fanouts = &repo->fanouts };
	const struct object_stores *stores = odb_stores(repo->odb);

	return stores->nr > 0 && objects_walk(&walk, stores) == 0 &&
	    !barrier_is_shallow_new(b->cfg, repo);
}

/* May refd/id, by which refd knows REPO, be in memory only? */
static bool is_id_suspect(const struct store_parts *cfg,
    const struct repo *repo)
{
	unsigned nth;

	return suspect_store_dir_since(cfg->sync_failures, repo->refd_fd,
		   repo->fs->mount, &nth) != SYNC_FAILURES_NONE;
}

/* The id file is written last, so the sync of this file covers the others. */
bool barrier_is_settled(struct barriers *b, struct repo *repo)
{
	const struct store_parts *cfg = b->cfg;
	struct sys_stat st;

	if (atomic_load(&repo->settled))
		return true;
	if (is_id_suspect(cfg, repo) ||
	    SYS(cfg->sys, lstatat, repo->refd_fd, "id", &st) < 0 ||
	    st.ctime_ns >= synced_before(cfg, repo->dev) ||
	    !journal_repos_are_durable(commit_log_journal(cfg->log),
		repo->journal_epoch))
		return false;
	atomic_store(&repo->settled, true);
	return true;
}

int barrier_settle(const struct store_parts *cfg, struct repo *repo)
{
	int r = journal_flush_repos(commit_log_journal(cfg->log),
	    repo->journal_epoch);

	if (r == JOURNAL_UNKNOWN) {
		commit_log_mend(cfg->log);
		r = -EIO;
	}
	if (r == 0)
		atomic_store(&repo->settled, true);
	else
		repo_doom(cfg->repos, repo);
	return r;
}
