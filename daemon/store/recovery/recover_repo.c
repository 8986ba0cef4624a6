/*
 * Recovery of one repository.
 *
 * The happy path:
 *	replay	leftover locks found, locks without a record removed, records
 *		redone
 *	note	deferred and aborted members recorded in the journal
 *	clean	the other locks removed
 *
 * Failures: the repository's disk, memory, or the journal. The step that failed
 * tells the caller the cause.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/store/recovery/recover_internal.h"
#include "daemon/store/recovery/redo.h"
#include "daemon/store/repos/repo_config.h"
#include "daemon/store/tables/stack/stack.h"
#include "proto/lib/array.h"

static bool has_locks(const struct replay_row *row)
{
	return row->evidence != EVIDENCE_POWER_LOSS;
}

/* Removes locks that are no evidence: all locks after a power loss, and locks
 * of batches without a record. */
static int unlock_unneeded(struct leftover_locks *leftover,
    const struct replay_row *rows, size_t *unlocked)
{
	const struct replay_row *row;
	uint64_t *tokens;
	size_t nr = 0;
	int r;

	for (row = rows; row != NULL; row = row->next)
		nr += has_locks(row);
	tokens = calloc(nr + 1, sizeof(*tokens));
	if (tokens == NULL)
		return -ENOMEM;
	nr = 0;
	for (row = rows; row != NULL; row = row->next)
		if (has_locks(row))
			tokens[nr++] = row->row.token;
	array_sort_u64(tokens, nr);
	r = leftover_locks_unlock_others(leftover, tokens, nr, unlocked);
	if (r == 0)
		leftover_locks_drop_tokens(leftover);
	free(tokens);
	return r;
}

/* A power loss may have emptied the configuration, so then the rows tell the
 * format. */
static void find_format(const struct sys *sys, struct repo *repo,
    const struct replay_row *rows)
{
	struct repo_config config;
	struct sys_stat st;
	char *why = NULL;

	repo->object_format = rows->rec.object_format;
	if (SYS(sys, lstatat, repo->fd, "config", &st) == 0 && st.size > 0 &&
	    repo_config_read(sys, repo->fd, repo->path, &config, &why) ==
		REFD_OK) {
		repo->object_format = config.object_format;
		repo_config_done(&config);
	}
	free(why);
}

/* False: the configuration is lost or malformed, or names another format. */
static bool read_settings(struct replay *rp)
{
	struct repo *repo = rp->repo;
	struct repo_config config;
	char *why = NULL;
	bool is_reftable;

	if (repo_config_read(rp->sys, repo->fd, repo->path, &config, &why) !=
	    REFD_OK) {
		free(why);
		return false;
	}
	is_reftable = config.is_reftable;
	if (is_reftable)
		repo->object_format = config.object_format;
	rp->git_syncs = config.git_syncs_refs;
	repo_config_done(&config);
	return is_reftable;
}

/* Did ROW change or confirm a ref? */
static bool has_refs(const struct replay_row *row)
{
	const struct record_member *m = row->rec.members;
	size_t i;

	for (i = 0; i < row->rec.nr_members; i++)
		if (m[i].status == REFD_OK && m[i].action != RECORD_NOTHING)
			return true;
	return false;
}

/* False: the repository has ids or refs of another format than ROWS. */
static bool takes_format_of(const struct sys *sys, struct repo *repo,
    bool has_stacks, const struct replay_row *rows)
{
	if (rows != NULL && !repo->has_format)
		find_format(sys, repo, rows);
	for (; rows != NULL; rows = rows->next)
		if (has_refs(rows) &&
		    (rows->rec.object_format != repo->object_format ||
			rows->rec.has_indices != has_stacks))
			return false;
	return true;
}

/* Has an open batch with reftables lost a lock, although names are exact, as
 * after a crash or a failed sync? Then its row is judged as after a power loss,
 * because the indices in the stack tell whether the row was published. But if
 * no list is staged, all rows were published or needed no list, and only the
 * batch had not ended. Then nothing is left to do, whoever has written since.
 */
static bool has_lost_lock(struct leftover_locks *leftover,
    const struct replay_row *row)
{
	const struct record_member *m = row->rec.members;
	size_t i;

	if (row->evidence == EVIDENCE_POWER_LOSS || !row->rec.has_indices ||
	    !leftover_locks_is_open(leftover, row->row.token) ||
	    !leftover_locks_has_list(leftover, row->row.token))
		return false;
	for (i = 0; i < row->rec.nr_members; i++)
		if (m[i].status == REFD_OK && m[i].action != RECORD_NOTHING &&
		    leftover_locks_lookup(leftover, row->row.token,
			m[i].worktree,
			STACK_DIRECTORY "/" REFTABLE_LIST) == NULL)
			return true;
	return false;
}

/* The list of leftover locks in RP is empty at first. Adds removed locks to
 * *UNLOCKED. */
int recover_replay(struct store_recovery *rec, struct replay *rp,
    const struct recover_starts *starts, struct replay_row *rows,
    size_t *unlocked)
{
	struct live_batches live = { .from = rec->live,
		.over = rec->over,
		.nr_over = rec->nr_over };
	struct replay_row *row;
	bool has_settings = false, orphans = false;
	int r;

	rp->has_stacks = repo_has_reftable(rec->sys, rp->repo);
	rp->is_other_format =
	    !takes_format_of(rec->sys, rp->repo, rp->has_stacks, rows);
	if (rp->has_stacks && !rp->is_other_format)
		has_settings = read_settings(rp);
	for (row = rows; row != NULL; row = row->next) {
		row->evidence = recover_starts_evidence(starts, row, rp);
		/* Only at a start no batch of this run has locks. */
		orphans = orphans ||
		    (rp->this_boot != NULL &&
			row->evidence == EVIDENCE_POWER_LOSS);
	}
	if (live.from == 0)
		live.from = journal_this_start(commit_log_journal(rec->log))
		    << JOURNAL_TOKEN_BITS;
	r = leftover_locks_find(rp->leftover, rec->sys, rp->repo, live,
	    orphans);
	if (r < 0)
		return r;
	for (row = rows; row != NULL; row = row->next) {
		row->lost_lock = has_lost_lock(rp->leftover, row);
		if (row->lost_lock)
			row->evidence = EVIDENCE_POWER_LOSS;
	}
	/* An earlier try may have written values that its sync lost, so memory
	 * may differ from the disk. */
	rp->is_memory_lost = sync_failures_is_unsure(rec->repos->sync_failures,
	    rp->repo->fs->mount);
	rp->token_id = rec->next_token(rec->arg) | JOURNAL_TOKEN_RECOVERY;
	r = unlock_unneeded(rp->leftover, rows, unlocked);
	if (r == 0)
		r = replay_repo(rp, rows);
	if (r == 0 && has_settings)
		r = replay_stacks_mend(rp);
	atomic_store(&rp->repo->fs->touched, true);
	return r;
}

int recover_clean(struct replay *rp, size_t *unlocked)
{
	int r = rp->has_stacks ? replay_stacks_sweep(rp) : 0;

	if (r == 0)
		r = leftover_locks_clean(rp->leftover, unlocked);
	if (r == 0 && !rp->has_stacks)
		r = redo_sweep_packed(rp);
	return r;
}

/* A later note must not repeat these rows. */
int recover_note(struct store_recovery *rec, const struct replay *rp,
    struct replay_row *rows, uint64_t *deferred)
{
	struct recover_notes notes = { .nr = 0 };
	const struct replay_member *m;
	struct replay_row *row;
	size_t i, k;
	int r;

	for (i = 0; i < rp->aborted.nr; i++) {
		m = &rp->aborted.items[i];
		for (k = 0; k < m->row->rec.nr_members; k++)
			if (m->row->rec.members[k].index == m->member->index)
				m->row->dropped[k] = true;
	}
	r = recover_notes_abort(&notes, &rp->aborted);
	for (row = rows; row != NULL && r == 0; row = row->next)
		r = recover_notes_replayed(&notes, rp->leftover, row, deferred);
	if (r == 0)
		r = recover_notes_write(&notes, rec->log);
	recover_notes_done(&notes);
	for (row = rows; row != NULL && r == 0; row = row->next)
		for (i = 0; i < row->rec.nr_members; i++)
			row->dropped[i] = row->dropped[i] || row->deferred[i] ||
			    row->row.kind == JOURNAL_DEFERRED;
	return r;
}
