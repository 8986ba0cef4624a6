/*
 * Copies the new objects of a repository for the record of a transaction, in
 * place of the barrier (docs/decisions/018-objects-in-the-record.md). The
 * record is flushed in any case, so a push with few new objects needs no second
 * flush.
 *
 * The happy path: the walk of the barrier finds new loose objects in the
 * repository's own store, and nothing else is new.
 *
 * Failures: none reaches the client, because the barrier then serves the
 * transaction.
 */
#include <errno.h>

#include "daemon/base/fs_type.h"
#include "daemon/store/barrier/barrier_internal.h"

/* Bytes of objects that the journal holds for all repositories. Rows stay as
 * long as any file system hangs, so the journal would grow without this
 * bound. */
#define JOURNAL_BYTES (32 * 1024 * 1024)

struct object_copying {
	const struct store_parts *cfg;
	int64_t limit; /* of the repository's own store */
	struct new_objects_look look;
};

static int64_t limit_of(void *arg, int fd, const struct sys_stat *st)
{
	return barrier_limit(((struct object_copying *)arg)->cfg, fd, st);
}

static int add_fanout(void *arg, int fd, const char *name, int64_t limit)
{
	struct object_copying *c = arg;

	c->limit = limit;
	return limit == INT64_MIN ? 1 :
				    new_objects_add(&c->look, fd, name, limit);
}

/* May the ctimes of files be trusted, are objects all that is new, and does a
 * sync of the file system of REPO include the store? */
static bool is_suitable(const struct store_parts *cfg, const struct repo *repo)
{
	const struct object_stores *stores = odb_stores(repo->odb);
	const struct sys *sys = cfg->sys;
	struct sys_stat st;
	uint64_t type;

	return stores->nr > 0 && stores->at[0].dev == repo->dev &&
	    SYS(sys, fstat, stores->at[0].fd, &st) == 0 &&
	    new_objects_may_restore(&st) &&
	    !barrier_is_shallow_new(cfg, repo) &&
	    SYS(sys, fs_type, stores->at[0].fd, &type) == 0 &&
	    fs_type_marks_new_names(type) &&
	    journal_objects_bytes(commit_log_journal(cfg->log)) < JOURNAL_BYTES;
}

bool barrier_copy(struct barriers *b, struct repo *repo,
    struct new_objects **objects)
{
	struct object_copying c = { .cfg = b->cfg };
	const struct objects_walk walk = { .sys = b->cfg->sys,
		.limit = limit_of,
		.fanout = add_fanout,
		.arg = &c };
	int r = 1;

	*objects = NULL;
	new_objects_begin(&c.look, b->cfg->sys, repo->object_format, repo->dev);
	if (is_suitable(b->cfg, repo))
		r = objects_walk(&walk, odb_stores(repo->odb));
	if (new_objects_end(&c.look, r, objects) != 0)
		return false;
	if (repo->copied_since_ns != c.limit)
		repo->copied_bytes = 0;
	repo->copied_since_ns = c.limit;
	mutex_lock(&b->mutex);
	b->nr_copied++;
	mutex_unlock(&b->mutex);
	return true;
}
