#include "tests/lib/world.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/checkpoint/checkpointer_internal.h"
#include "daemon/store/deferred/deferred_fs.h"
#include "daemon/store/deferred/deferred_internal.h"
#include "daemon/store/recovery/recover_internal.h"
#include "tests/lib/sysvfs.h"
#include "tests/lib/txn_help.h"

static const char *const roots[] = { "/srv" };
static const char vfs_name[] = "world";
static char state_dir[] = "/state";

static enum refd_status configure(const struct repos *repos, struct repo *repo,
    char **why)
{
	const struct world *w = (const struct world *)((const char *)repos -
	    offsetof(struct world, store.repos));

	(void)why;
	if (memfs_exists(w->fs, WORLD_REPO "/reftable"))
		repo->format = REPO_REFTABLE;
	repo->object_format = world_format();
	repo->bare = true;
	repo->log_policy = w->packed_least > 0 ? REFLOG_NEVER : REFLOG_ALWAYS;
	return REFD_OK;
}

struct world *world_new(struct memfs *fs, bool state_elsewhere)
{
	struct world *w;

	w = calloc(1, sizeof(*w));
	assert(w != NULL);
	w->fs = fs;
	w->sys = memfs_sys(fs);
	if (state_elsewhere)
		memfs_mount(fs, "/state");
	else
		memfs_mkdirs(fs, "/state");
	memfs_mkdirs(fs, WORLD_REPO "/refs/heads");
	memfs_mkdirs(fs, WORLD_REPO "/refs/tags");
	memfs_mkdirs(fs, WORLD_REPO "/objects/pack");
	memfs_write(fs, WORLD_REPO "/HEAD", "ref: refs/heads/main\n");
	world_write(fs, WORLD_REPO "/config",
	    "[core]\n\tbare = true\n\trepositoryFormatVersion = 1\n"
	    "[extensions]\n\tobjectFormat = @*\n");
	return w;
}

void world_free(struct world *w)
{
	if (w == NULL)
		return;
	if (w->up) {
		memfs_fail_none(w->fs);
		memfs_between(w->fs, 0, NULL, NULL);
		world_stop(w);
	}
	memfs_free(w->fs);
	free(w);
}

/* ---- replacements for the rest of the store ---- */

static void wake(void *arg)
{
	(void)arg;
}

static int commit(void *arg, struct journal_row *rows, size_t nr, bool flush)
{
	return pipeline_commit(((struct world *)arg)->store.pipeline, rows, nr,
	    flush);
}

static void defer_line(void *arg, const struct repo *repo)
{
	struct world *w = arg;

	w->owed++;
	deferred_add_line(w->store.deferred, repo);
}

static void left(void *arg, const struct repo *repo, uint64_t token)
{
	deferred_add_locks(((struct world *)arg)->store.deferred, repo, token);
}

static void defer_update(void *arg, uint64_t lsn, uint32_t index)
{
	struct world *w = arg;

	w->kept++;
	deferred_add_update(w->store.deferred, lsn, index);
}

static void found(void *arg, const struct store_found *found)
{
	struct world *w = arg;

	w->found[found->finding]++;
	if (found->finding == STORE_UNLOCKED ||
	    found->finding == STORE_DEFERRED)
		snprintf(w->text, sizeof(w->text), "%s", found->text);
	if (found->evidence != NULL)
		snprintf(w->evidence, sizeof(w->evidence), WORLD_REPO "/%s",
		    found->evidence);
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	(void)done;
	(void)total;
}

static int has_object(void *arg, struct repo *repo, const struct refd_oid *oid)
{
	(void)arg;
	(void)repo;
	/* Objects 'p' are pruned. */
	return oid->bytes[0] != 'p';
}

static uint64_t next_token(void *arg)
{
	return pipeline_next_token(((struct world *)arg)->store.pipeline);
}

static void note(void *arg, const struct journal_repo *repo, uint64_t nr,
    int err, bool lacks_refs)
{
	struct world *w = arg;

	deferred_note(w->store.deferred, repo, nr, err);
	if (lacks_refs)
		deferred_note_lacking(w->store.deferred, repo->id);
}

/* ---- start and stop ---- */

static void still_deferred(void *arg, const char *worktree, const char *name)
{
	struct world *w = arg;

	snprintf(w->still, sizeof(w->still), "%s:%s", worktree, name);
	w->nr_still++;
}

static struct store_recovery recovery_of(struct world *w,
    const struct store_report *report)
{
	return (struct store_recovery){ .sys = w->sys,
		.repos = &w->store.repos,
		.log = w->store.log,
		.this_boot = &w->this_boot,
		.report = report,
		.has_object = has_object,
		.next_token = next_token,
		.note = note,
		.still_deferred = still_deferred,
		.rows_mutex = &w->store.deferred->rows,
		.arg = w };
}

static void set_why(struct world *w, const struct store_recovery *rec)
{
	snprintf(w->why, sizeof(w->why), "%s",
	    rec->why != NULL ? rec->why : "");
	free(rec->why);
}

static int recover(struct world *w)
{
	struct store_report report = { found, progress, w };
	struct store_recovery rec = recovery_of(w, &report);
	int r;

	memset(w->found, 0, sizeof(w->found));
	w->evidence[0] = '\0';
	r = recover_all(&rec, &w->deferred);
	set_why(w, &rec);
	return r;
}

int world_retry(struct world *w)
{
	struct store_report report = { found, progress, w };
	struct store_recovery rec = recovery_of(w, &report);
	enum refd_status status;
	struct repo *repo;
	char *why;
	int r;

	memset(w->found, 0, sizeof(w->found));
	w->evidence[0] = '\0';
	w->nr_still = 0;
	repo = repos_get(&w->store.repos, WORLD_REPO, NULL, &status, &why);
	if (repo == NULL) {
		free(why);
		return -EIO;
	}
	rec.live = deferred_fs_first_batch(w->store.deferred, repo);
	r = recover_deferred(&rec, repo, &w->deferred);
	repo_put(&w->store.repos, repo);
	set_why(w, &rec);
	return r;
}

static void init_store(struct world *w)
{
	struct store *s = &w->store;

	memset(s, 0, sizeof(*s));
	s->sys = w->sys;
	s->cfg.sys = w->sys;
	s->cfg.wake = wake;
	s->cfg.durability = w->mode != REFD_DURABILITY_DEFAULT ?
	    w->mode :
	    REFD_DURABILITY_JOURNAL;
	s->cfg.prepare_max_ns = INT64_MAX / 2;
	store_init_replica(s);
	s->state_dir = state_dir;
	completions_init(&s->completions, w->sys, wake, NULL);
	mutex_init(&s->mutex, MUTEX_QUEUES);
	mutex_init(&s->rights.mutex, MUTEX_INNER);
	snprintf(s->boot_id, sizeof(s->boot_id), "%s", memfs_boot_id(w->fs));
}

static void init_repos(struct world *w)
{
	repos_init(&w->store.repos, w->sys, w->store.journal, roots, 1, 16);
	w->store.repos.sync_failures = w->store.sync_failures;
	w->store.repos.has_failed = sync_failures_any(w->store.sync_failures);
	w->store.repos.configure = configure;
}

/* The pipeline has no threads, so no batch is handed over to it. */
static void init_applier(struct world *w)
{
	struct applier *ap = &w->store.pipeline->applier;

	/* This thread syncs each file at once. */
	flusher_free(ap->flusher);
	ap->flusher = NULL;
	ap->packed_least = w->packed_least > 0 ? w->packed_least : SIZE_MAX;
	ap->commit = commit;
	ap->prepared = NULL;
	ap->defer_line = defer_line;
	ap->left = left;
	ap->defer_update = defer_update;
	ap->arg = w;
}

static int open_sync_failures(struct store *s)
{
	struct recover_starts starts;
	int r, fd;

	r = recover_starts_read(&starts, s->journal);
	fd = SYS(s->sys, openat, AT_FDCWD, state_dir, O_RDONLY, 0);
	r = r == 0 && fd < 0 ? fd : r;
	if (r == 0)
		r = sync_failures_open(s->sys, fd, s->boot_id,
		    starts.nr_of_boot <= 1, &s->sync_failures);
	SYS(s->sys, close, fd);
	recover_starts_done(&starts);
	return r;
}

int world_start(struct world *w)
{
	struct journal_config cfg = { .sys = w->sys,
		.dir = state_dir,
		.vfs = vfs_name,
		.boot_id = w->store.boot_id,
		.wal_room = 16384 };
	struct commit_log_config log = { .journal = &cfg,
		.failed = store_log_failed,
		.arg = &w->store };
	char *why = NULL;
	int r = -ENOMEM;

	assert(!w->up);
	init_store(w);
	w->vfs = sysvfs_new(vfs_name, w->sys);
	if (w->vfs == NULL)
		return r;
	w->store.workers = workers_new(0); /* no worker ever runs */
	if (w->store.workers != NULL)
		r = commit_log_open(&log, &w->store.log, &why);
	if (r == 0)
		r = commit_log_claim(w->store.log, &why);
	if (r == 0) {
		w->store.journal = commit_log_journal(w->store.log);
		r = open_sync_failures(&w->store);
	}
	if (r == 0)
		r = store_open_deferred(&w->store);
	if (r == 0)
		r = store_open_pipeline(&w->store);
	if (r == 0)
		r = store_open_checkpointer(&w->store);
	w->up = true;
	if (r == 0) {
		store_open_barriers(&w->store);
		init_repos(w);
		init_applier(w);
		r = recover(w);
	}
	free(why);
	if (r != 0)
		world_crash(w);
	return r > 0 ? -EIO : r;
}

void world_crash(struct world *w)
{
	if (!w->up)
		return;
	checkpointer_free(w->store.checkpointer);
	packer_free(w->store.packer);
	looker_free(w->store.looker);
	pipeline_free(w->store.pipeline);
	workers_free(w->store.workers);
	deferred_free(w->store.deferred);
	repos_done(&w->store.repos);
	commit_log_close(w->store.log);
	sync_failures_free(w->store.sync_failures);
	sysvfs_free(w->vfs);
	w->up = false;
}

int world_checkpoint(struct world *w)
{
	struct journal_stats stats;

	/* Without SQLite's own checkpoint, which only world_tick() makes. */
	journal_stats(w->store.journal, &stats);
	w->store.checkpointer->repos_copied = stats.repos;
	w->store.checkpointer->wal_copied_ns = SYS(w->sys, now_mono);
	return checkpointer_once(w->store.checkpointer, true);
}

int world_tick(struct world *w)
{
	/* With SQLite's own checkpoint, which is due after ten minutes. */
	w->store.checkpointer->wal_copied_ns =
	    SYS(w->sys, now_mono) - INT64_C(600) * 1000000000;
	return checkpointer_once(w->store.checkpointer, false);
}

int world_stop(struct world *w)
{
	int r;

	r = world_checkpoint(w);
	world_crash(w);
	return r;
}

/* ---- transactions ---- */

static struct txn *make_txn(struct world *w, const char *spec, bool atomic)
{
	char committer[80];
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1,
		.git_dir = WORLD_REPO,
		.object_format = world_format(),
		.atomic = atomic,
		.durability = w->asked,
		.umask = 022,
		.committer = committer,
		.message = "test" };

	snprintf(committer, sizeof(committer),
	    "A U Thor <a@example.org> %u +0000", 1700000000 + w->seconds);
	w->seconds += !w->clock_stands;
	refd_txid_make(&req.txid);
	return txn_help_of(&req, spec);
}

void world_run(struct world *w, struct txn *const *txns, size_t nr,
    enum batch_session session)
{
	struct batch win = { .nr_slices = nr, .session = session };
	struct txn_slice *slice;
	size_t i, k;

	win.slices = calloc(nr, sizeof(*win.slices));
	assert(win.slices != NULL);
	for (i = 0; i < nr; i++) {
		slice = &win.slices[i];
		slice->txn = txns[i];
		slice->updates = calloc(txns[i]->nr_updates, sizeof(void *));
		assert(slice->updates != NULL);
		for (k = 0; k < slice->txn->nr_updates; k++)
			if (slice->txn->updates[k].status == REFD_PENDING)
				slice->updates[slice->nr++] =
				    &slice->txn->updates[k];
	}
	apply_batch(&w->store.pipeline->applier, &win);
	w->rest_ns = win.unlocked_ns - win.locked_ns;
	for (i = 0; i < nr; i++)
		free(win.slices[i].updates);
	free(win.slices);
}

/* A ref below refs/tags names a tag of a commit; all other refs name
 * commits. */
static void look_at_objects(struct txn *txn)
{
	struct txn_update *u;
	size_t i;

	for (i = 0; i < txn->nr_updates; i++) {
		u = &txn->updates[i];
		u->object = TXN_OBJECT_COMMIT;
		if (strncmp(u->ask->name, "refs/tags/", 10) != 0)
			continue;
		u->object = TXN_OBJECT_TAG;
		u->peeled = malloc(sizeof(*u->peeled));
		assert(u->peeled != NULL);
		*u->peeled = world_oid('c');
	}
}

struct repo *world_repo(struct world *w, const char *git_dir)
{
	struct store *s = &w->store;
	enum refd_status status;
	struct repo *repo;
	char *why;
	int r = 0;

	repo = repos_get(&s->repos, git_dir, NULL, &status, &why);
	if (repo == NULL) {
		free(why);
		return NULL;
	}
	/* The work of the barrier. */
	if (!barrier_is_settled(&s->barriers, repo)) {
		r = fs_sync(&s->repos, repo->fs, repo->fs->objects_fd);
		if (r == 0)
			r = barrier_settle(&s->parts, repo);
	}
	if (r == 0)
		return repo;
	repo_put(&s->repos, repo);
	return NULL;
}

struct txn *world_begin_in(struct world *w, const char *git_dir,
    const char *spec, bool atomic)
{
	struct txn *txn = make_txn(w, spec, atomic);

	txn->req.git_dir = git_dir;
	txn->repo = world_repo(w, git_dir);
	if (txn->repo == NULL) {
		txn_free(txn);
		return NULL;
	}
	look_at_objects(txn);
	/* As in admission, so that batches get later numbers. */
	deferred_fs_first_batch(w->store.deferred, txn->repo);
	return txn;
}

struct txn *world_apply(struct world *w, const char *spec, bool atomic)
{
	struct txn *txn = world_begin(w, spec, atomic);

	if (txn != NULL)
		world_run(w, &txn, 1, BATCH_WHOLE);
	return txn;
}

void world_batch(struct world *w, struct txn *const *txns, size_t nr)
{
	world_run(w, txns, nr, BATCH_WHOLE);
}

struct txn *world_session(struct world *w, const char *spec, bool atomic)
{
	struct txn *txn = world_begin(w, spec, atomic);

	if (txn == NULL)
		return NULL;
	txn->req.verb = REFD_VERB_SESSION;
	world_run(w, &txn, 1, BATCH_PREPARE);
	return txn;
}

void world_session_end(struct world *w, struct txn *txn, bool commit)
{
	world_run(w, &txn, 1, commit ? BATCH_COMMIT : BATCH_ABORT);
}

void world_done(struct world *w, struct txn *txn)
{
	if (txn == NULL)
		return;
	repo_put(&w->store.repos, txn->repo);
	txn->repo = NULL;
	txn_free(txn);
}
