/*
 * The care for stacks of reftables, after a sync of their file system.
 *
 * The happy path: tables that were replaced before the sync are removed. Then
 * tables are merged, so that every table has at least twice the size of the
 * next table. A merge needs two flushes more, and holds the list lock for the
 * second flush, so batches fold only small tables. Then the stack rests, so
 * that no repository occupies the checkpoints of its neighbours.
 *
 * Failures: a merge that fails, or that meets a batch or git, is left to a
 * later round. A failed flush of tables by git, of the list or of the
 * directory is reported as a failed sync of the file system, as in batches.
 */
#include "daemon/store/checkpoint/checkpointer_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/fs_type.h"
#include "daemon/store/tables/stack/stack_merge.h"
#include "daemon/store/tables/stack/stack_set.h"
#include "daemon/store/tables/stack/stack_sweep.h"

/* No merge begins after this time, because the next round of the checkpoint
 * waits. */
#define MERGES_NS INT64_C(300000000)
/* After a merge, or a failed merge, a stack rests so many times as long. */
#define MERGE_REST 20

static bool is_wanted(const struct repo *repo, const struct fs *fs)
{
	return repo->fs == fs && repo->format == REPO_REFTABLE &&
	    atomic_load(&repo->touched);
}

static int begin_one(void *arg, struct stack *stack)
{
	(void)arg;
	stack_tidy_begin(stack);
	return 0;
}

void checkpoint_tidy_begin(struct checkpoint_tidy *t, struct checkpointer *c,
    struct fs *fs)
{
	struct repos *repos = c->cfg->repos;
	struct repo *repo;
	size_t i;

	*t = (struct checkpoint_tidy){ .owner = c, .fs = fs };
	mutex_lock(&repos->mutex);
	for (repo = repos->open; repo != NULL; repo = repo->next)
		t->nr += is_wanted(repo, fs);
	t->repos = t->nr > 0 ? calloc(t->nr, sizeof(struct repo *)) : NULL;
	t->nr = 0;
	for (repo = repos->open; t->repos != NULL && repo != NULL;
	    repo = repo->next)
		if (is_wanted(repo, fs)) {
			repo->refs++;
			t->repos[t->nr++] = repo;
		}
	mutex_unlock(&repos->mutex);
	for (i = 0; i < t->nr; i++)
		stack_set_each(t->repos[i]->stacks, begin_one, NULL);
	/* After the lists were read, because a row is older than its table. */
	t->last_lsn = journal_last_lsn(c->journal);
}

/* ---- after the sync ---- */

struct ending {
	uint64_t last_lsn, forgotten_lsn;
};

static int end_one(void *arg, struct stack *stack)
{
	const struct ending *e = arg;

	stack_tidy_end(stack, e->last_lsn, e->forgotten_lsn);
	return 0;
}

/* Removes what a sync made superfluous in the stacks of REPO. A row may be
 * replayed long after the sync of its file system, because another file system
 * hangs, an update is answered `unknown`, or the row is deferred. Until then
 * tombstones by other writers are evidence, so they stay. */
static void end_repo(struct checkpoint_tidy *t, struct repo *repo)
{
	struct checkpointer *c = t->owner;
	struct ending e = { .last_lsn = t->last_lsn };

	if (!deferred_blocks_writes(c->cfg->deferred, repo->id))
		e.forgotten_lsn = journal_forgotten_durably(c->journal);
	stack_set_each(repo->stacks, end_one, &e);
}

/* ---- merging ---- */

struct merging {
	struct checkpoint_tidy *tidy;
	struct repo *repo;
	int64_t until_ns;
};

static int64_t durable_before(struct merging *m)
{
	int64_t ns = fs_synced_ns(m->tidy->owner->cfg->repos, m->tidy->fs->dev);

	return ns == 0 ? INT64_MIN : ns - FS_SLACK_NS;
}

static int publish(struct merging *m, struct stack_update *u)
{
	int r;

	r = stack_sync_table(u);
	/* A batch is at work, so the next round tries again. */
	if (r < 0 || !stack_update_turn(u, 0))
		return r;
	return stack_merge_publish(u, NULL, durable_before(m),
	    m->tidy->fs->fsync_covers_all);
}

static void merge_stack(struct merging *m, struct stack *stack)
{
	struct checkpointer *c = m->tidy->owner;
	struct stack_update u;
	struct token token;
	int r;

	r = token_init(&token, c->cfg->sys, m->repo->stage_fd,
	    pipeline_next_token(c->cfg->pipeline));
	stack_update_init(&u, stack, -1, &token, 0);
	/* As permissive as refs/, which git made. */
	u.mode |= repo_file_mode(m->repo->shared_perm, ~m->repo->mode & 0777);
	if (r == 0)
		r = stack_merge_make(&u);
	if (r > 0)
		r = publish(m, &u);
	if (u.is_fs_lost)
		fs_fail(c->cfg->repos, m->tidy->fs, u.err);
	if (stack_update_end(&u) < 0 || u.list.progress == PROGRESS_DEFERRED ||
	    token_done(&token) < 0)
		deferred_add_locks(c->cfg->deferred, m->repo, token.id);
}

static int merge_one(void *arg, struct stack *stack)
{
	struct merging *m = arg;
	const struct sys *sys = m->tidy->owner->cfg->sys;
	const int64_t begin_ns = SYS(sys, now_mono);
	int64_t end_ns;

	if (begin_ns > m->until_ns)
		return 1;
	if (begin_ns < stack->merge_after_ns || !stack_merge_pays(stack))
		return 0;
	merge_stack(m, stack);
	end_ns = SYS(sys, now_mono);
	stack->merge_after_ns = end_ns + MERGE_REST * (end_ns - begin_ns);
	return 0;
}

static void merge(struct checkpoint_tidy *t)
{
	struct checkpointer *c = t->owner;
	struct merging m = { .tidy = t,
		.until_ns = SYS(c->cfg->sys, now_mono) + MERGES_NS };
	size_t i;

	if (t->nr == 0 || fs_enter(c->cfg->repos, t->fs) < 0)
		return;
	for (i = 0; i < t->nr; i++) {
		m.repo = t->repos[i];
		stack_set_each(m.repo->stacks, merge_one, &m);
	}
	fs_leave(c->cfg->repos, t->fs);
}

void checkpoint_tidy_end(struct checkpoint_tidy *t, bool succeeded)
{
	size_t i;

	for (i = 0; succeeded && i < t->nr; i++)
		end_repo(t, t->repos[i]);
	if (succeeded)
		merge(t);
	for (i = 0; i < t->nr; i++)
		repo_put(t->owner->cfg->repos, t->repos[i]);
	free(t->repos);
}
