/*
 * Recovery of all repositories.
 *
 * The happy path:
 *	read	every record after the last checkpoint, without aborted
 *		updates
 *	sort	by repository, and by the end of the run that wrote the record:
 *		a crash (boot and mount are the same, and no snapshot came
 *		between), a power loss, or a crash after a failed sync of the
 *		file system
 *		(sync_failures.c), which counts as a power loss
 *	replay	each repository of the journal; without records, only to look
 *		for locks
 *	sync	every file system
 *	forget	all records, except deferred records, which have separate rows
 *
 * Failures:
 *	a repository is missing, or	all its records become deferred rows
 *	has refs of another format
 *	its disk fails, in replay or	all its records become deferred rows,
 *	in the sync after		and its locks stand; until the redo
 *					nothing is written there
 *	one ref cannot be redone	deferred, aborted or left: redo_file.c,
 *					or stack_refs.c
 *	one ref cannot be redone in	as if the disk of its repository failed
 *	a strict recovery (recover.h)
 *	the journal, or no memory	the errno is returned and nothing is
 *					forgotten: the next run starts over
 *	the sync after, in a strict	-ENOTRECOVERABLE, and nothing is
 *	recovery			forgotten: the next run starts over
 *	the repositories are an older	-ENOTRECOVERABLE: the next run compares
 *	copy (old_copy.h)		again
 */
#include "daemon/store/recovery/recover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/recovery/old_copy.h"
#include "daemon/store/recovery/recover_internal.h"
#include "daemon/store/repos/repo_checkpoint.h"

/* A repository of the journal. */
struct repo_visit {
	struct journal_repo known; /* path owned */
	struct replay_row *rows;   /* the run's */
	struct fs *fs;             /* NULL: not opened */
	bool failed;               /* keep all records */
	int err;                   /* the cause, if known; or 0 */
	bool lost;                 /* a sync of its file system failed */
	bool is_copy;              /* of the directory in KNOWN */
	bool lacks_refs;           /* store_recovery.note */
	uint64_t deferred;         /* members */
	struct repo_visit *next;
};

struct recovery_run {
	struct store_recovery *rec;
	struct recover_rows rows, older;
	struct recover_starts starts;
	struct repo_visit *visits, **visits_end;
	struct recover_findings findings;
	struct store_report report; /* of the replays: to FINDINGS */
	uint64_t last_lsn;          /* of ROWS; 0: none */
	uint64_t done, total;       /* repositories, and members of rows */
	char *why;                  /* store_recovery.why */
};

static void stepped(void *arg, size_t nr)
{
	struct recovery_run *run = arg;

	run->done += nr;
	run->rec->report->progress(run->rec->report->arg, run->done,
	    run->total);
}

/* Notes that the repository has its rows now. Otherwise an earlier value that
 * another program writes later would look like an older copy (old_copy.h). The
 * rows are durable, and a later sync covers the note, so no sync is needed
 * here. If there is no note, the directory may be a copy from another machine,
 * in which the rows left no index. So no note is made then. */
static void note_rows(const struct store_recovery *rec, const struct repo *repo)
{
	struct journal *journal = commit_log_journal(rec->log);

	if (repo_checkpoint_read(rec->sys, repo->refd_fd, journal).is_there)
		repo_checkpoint_write(rec->sys, repo->refd_fd, journal);
}

static bool any_is_deferred(const struct replay_row *rows)
{
	for (; rows != NULL; rows = rows->next)
		if (rows->row.kind == JOURNAL_DEFERRED)
			return true;
	return false;
}

/* Records the results of a replay, and removes its locks. *FAILED as in
 * replay_visited(). */
static int end_replay(struct recovery_run *run, struct repo_visit *v,
    struct replay *rp, size_t *unlocked, int *failed)
{
	struct store_recovery *rec = run->rec;
	int r = 0;

	/* The end of a deferred row is final, so its values are synced before.
	 * Other rows remain until all are forgotten. */
	if (any_is_deferred(v->rows)) {
		*failed = fs_sync_published(rec->repos, rp->repo->fs);
		v->lost = *failed < 0;
	}
	/* Without locks, only the note tells which records are unfinished, and
	 * without the note a query by id would get "ok" for an aborted update.
	 * So the note is durable before the locks go. */
	if (*failed == 0)
		r = recover_note(rec, rp, v->rows, &v->deferred);
	/* Only the lock tells the next attempt about an unfinished record, so a
	 * record that could not be rolled forward keeps its lock. */
	if (*failed == 0 && r == 0)
		*failed = recover_clean(rp, unlocked);
	return r;
}

/* A repository that came by a join is known without a directory. */
static bool is_copy(const struct journal_repo *known, const struct repo *repo)
{
	return known->ino != 0 &&
	    (known->ino != repo->ino || known->dev != repo->dev);
}

/* *FAILED: the repository failed, and not the journal. */
static int replay_visited(struct recovery_run *run, struct repo_visit *v,
    struct repo *repo, int *failed)
{
	struct store_recovery *rec = run->rec;
	struct leftover_locks leftover = { .sys = rec->sys };
	struct replay rp = { .sys = rec->sys,
		.repo = repo,
		.journal = commit_log_journal(rec->log),
		.leftover = &leftover,
		.older = recover_rows_of(&run->older, v->known.id),
		.this_boot = rec->this_boot,
		.report = &run->report,
		.has_object = rec->has_object,
		.is_strict = run->findings.is_strict,
		.is_copy = is_copy(&v->known, repo),
		.stepped = stepped,
		.step_arg = run,
		.arg = rec->arg };
	size_t unlocked = 0;
	int r = 0;

	v->is_copy = rp.is_copy;
	*failed = recover_replay(rec, &rp, &run->starts, v->rows, &unlocked);
	/* A retry starts over, so an update that would be given up stays, locks
	 * and all. */
	if (*failed == 0 && run->findings.waits)
		*failed = -ENOTRECOVERABLE;
	if (*failed == 0) {
		if (run->findings.is_strict && v->rows != NULL)
			note_rows(rec, repo);
		r = end_replay(run, v, &rp, &unlocked, failed);
	}
	if (unlocked > 0)
		recover_findings_repo(&run->findings, STORE_UNLOCKED,
		    repo->path,
		    "removed locks of a run that ended before its journal "
		    "record, or that was redone");
	v->fs = repo->fs;
	replay_done(&rp);
	leftover_locks_done(&leftover);
	return r;
}

static const char *missing_text(int err)
{
	if (err == -ENOENT)
		return "it is not there; its records are kept until it is, or "
		       "until refd recover --forget drops them";
	if (err == -ESTALE)
		return "another repository is at its path; its records are "
		       "kept until it is back, or until refd recover --forget "
		       "drops them";
	if (err == -EKEYREJECTED)
		return "it is not root's, and a daemon of root leaves it "
		       "alone; its records are kept until it is root's, or "
		       "until refd recover --forget drops them";
	return "another refd holds it; its records are kept";
}

/* V is there, and failed with ERR. */
static void fail_visit(struct recovery_run *run, struct repo_visit *v, int err)
{
	v->failed = true;
	v->err = err;
	v->lacks_refs =
	    run->findings.is_strict && recover_rows_have_refs(v->rows);
	if (err != -EMEDIUMTYPE)
		recover_findings_failed(&run->findings, v->known.path, err,
		    v->lacks_refs);
	else if (v->rows != NULL)
		recover_findings_repo(&run->findings, STORE_DEFERRED,
		    v->known.path,
		    "its refs have another format by now (files or reftables, "
		    "or the ids), and refd writes nothing there; its records "
		    "are kept until the refs are as before, or until refd "
		    "recover --forget drops them");
}

static int visit(struct recovery_run *run, struct repo_visit *v)
{
	struct store_recovery *rec = run->rec;
	struct repo *repo;
	int r = 0, failed;

	failed = repos_get_known(rec->repos, &v->known, &repo);
	if (failed == -ENOENT || failed == -ESTALE || failed == -EAGAIN ||
	    failed == -EKEYREJECTED) {
		v->failed = true;
		if (v->rows != NULL)
			recover_findings_repo(&run->findings,
			    STORE_REPO_MISSING, v->known.path,
			    missing_text(failed));
		return 0;
	}
	if (failed == 0) {
		r = replay_visited(run, v, repo, &failed);
		repo_put(rec->repos, repo);
	}
	if (r == 0 && failed == -ENOMEM)
		return failed;
	if (r == 0 && failed < 0)
		fail_visit(run, v, failed);
	return r;
}

static int add_visit(void *arg, const struct journal_repo *known)
{
	struct recovery_run *run = arg;
	struct repo_visit *v;

	v = calloc(1, sizeof(*v));
	if (v == NULL)
		return -ENOMEM;
	*run->visits_end = v;
	run->visits_end = &v->next;
	v->known = *known;
	v->known.path = strdup(known->path);
	if (v->known.path == NULL)
		return -ENOMEM;
	v->rows = recover_rows_of(&run->rows, known->id);
	run->total++;
	return 0;
}

/* Reading the list keeps the journal open, but the journal is opened again if
 * the sync of a note fails. So the visits begin after the list is read. */
static int visit_all(struct recovery_run *run)
{
	struct repo_visit *v;
	int r = 0;

	for (v = run->visits; v != NULL && r == 0; v = v->next) {
		r = visit(run, v);
		recover_findings_end(&run->findings);
		/* Descriptors stay open no longer than needed. */
		repos_trim(run->rec->repos, INT64_MAX / 2);
		stepped(run, 1);
	}
	return r;
}

static void refuse(struct recovery_run *run, const struct repo_visit *v,
    int err)
{
	if (run->why == NULL)
		run->why = repo_why(
		    "'%s': %s (%s). The journal is of a group of nodes, and a "
		    "node gives up no update of its group: correct the cause "
		    "and start again, or make the node anew from a copy of "
		    "another node",
		    v->known.path, leftover_locks_why(err),
		    store_finding_name(STORE_FAILED));
}

/* A failed sync affects only the repositories on that file system. A strict
 * recovery fails all the same, because no owner of a repository causes this,
 * and other machines go on. */
static int sync_visited(struct recovery_run *run)
{
	struct store_recovery *rec = run->rec;
	struct repo_visit *v;
	struct fs *fs;
	int r, refused = 0;

	for (fs = rec->repos->fs; fs != NULL; fs = fs->next) {
		r = fs_sync_published(rec->repos, fs);
		for (v = run->visits; v != NULL && r < 0; v = v->next) {
			if (v->fs != fs || v->failed || v->rows == NULL)
				continue;
			v->failed = v->lost = true;
			recover_findings_failed(&run->findings, v->known.path,
			    r, false);
			if (run->findings.is_strict) {
				refuse(run, v, r);
				refused = -ENOTRECOVERABLE;
			}
		}
	}
	return refused;
}

/* The mount by whose rule a row of V is redone later. Normally this is the
 * mount in the row, because the locks of the row stand. But the file system may
 * have failed while another repository was synced. And the redo may find a copy
 * of the repository, which the journal then knows already. So only the row can
 * say that memory may lack its values. */
static uint64_t mount_of(const struct recovery_run *run,
    const struct repo_visit *v, const struct replay_row *row)
{
	if (v->lost)
		return JOURNAL_MOUNT_LOST;
	if (v->is_copy)
		return replay_row_has_failed(row) ? JOURNAL_MOUNT_LOST : 0;
	return sync_failures_has_rows(run->rec->repos->sync_failures,
		   row->row.mount) ?
	    row->row.mount | JOURNAL_MOUNT_FAILED :
	    row->row.mount;
}

/* No row may count beside its copy, so all rows are forgotten in the same
 * commit. */
static int forget(struct recovery_run *run)
{
	struct store_recovery *rec = run->rec;
	struct journal *journal = commit_log_journal(rec->log);
	struct recover_notes notes = { .may_defer = true };
	const struct replay_row *row;
	struct repo_visit *v;
	int r = 0;

	for (v = run->visits; v != NULL; v = v->next)
		for (row = v->failed ? v->rows : NULL; row != NULL && r == 0;
		    row = row->next)
			r = recover_notes_defer_row(&notes, row,
			    mount_of(run, v, row), &v->deferred);
	if (r == 0 && run->last_lsn > journal_forgotten(journal))
		r = journal_forget(journal, run->last_lsn, notes.nr == 0);
	if (r == 0)
		r = recover_notes_write(&notes, rec->log);
	/* If that failed, the forgetting is still pending, and the next write
	 * to the journal would include it. So the forgetting is undone. */
	if (r != 0)
		journal_unforget(journal);
	recover_notes_done(&notes);
	return r;
}

/* A repository that could not be searched may have leftover locks, so the
 * repository is noted even without records. */
static void note_deferred(const struct recovery_run *run, uint64_t *deferred)
{
	const struct repo_visit *v;

	for (v = run->visits; v != NULL; v = v->next) {
		if (v->deferred > 0 || v->failed)
			run->rec->note(run->rec->arg, &v->known, v->deferred,
			    v->err, v->lacks_refs);
		*deferred += v->deferred;
	}
}

static void run_done(struct recovery_run *run)
{
	struct repo_visit *v;

	while ((v = run->visits) != NULL) {
		run->visits = v->next;
		free(v->known.path);
		free(v);
	}
	recover_findings_end(&run->findings);
	recover_rows_done(&run->rows);
	recover_rows_done(&run->older);
	recover_starts_done(&run->starts);
}

/* Marks the rows on file systems that failed to sync before the daemon
 * ended. */
static void find_failed(struct recovery_run *run)
{
	struct sync_failures *failures = run->rec->repos->sync_failures;
	struct replay_row *row;
	size_t i;

	for (i = 0; i < run->rows.nr && sync_failures_any(failures); i++) {
		row = run->rows.items[i];
		if (sync_failures_has_rows(failures, row->row.mount))
			row->may_be_lost = true;
	}
}

int recover_all(struct store_recovery *rec, uint64_t *deferred)
{
	struct journal *journal = commit_log_journal(rec->log);
	struct recovery_run run = { .rec = rec,
		.visits_end = &run.visits,
		.findings = { .report = rec->report,
		    .is_strict = journal_shares_rows(journal) },
		.report = { recover_findings_add, rec->report->progress,
		    &run.findings } };
	const uint64_t forgotten = journal_forgotten(journal);
	bool skipped = false;
	size_t i;
	int r;

	*deferred = 0;
	r = old_copy_look(rec->repos, journal, rec->report, 0, forgotten,
	    &skipped, &run.why);
	if (r == 0)
		r = recover_starts_read(&run.starts, journal);
	if (r == 0)
		r = recover_rows_read(rec->log, &run.rows, &run.last_lsn);
	if (r == 0)
		r = recover_rows_read_older(rec->log, &run.rows, &run.older);
	find_failed(&run);
	for (i = 0; i < run.rows.nr; i++)
		run.total += run.rows.items[i]->rec.nr_members;
	if (r == 0)
		r = journal_each_repo(journal, add_visit, &run);
	if (r == 0)
		r = visit_all(&run);
	/* All deferred records have rows of their own now. So all rows that
	 * were read may be forgotten, once the disks hold the redone values. */
	if (r == 0)
		r = sync_visited(&run);
	if (r == 0)
		r = forget(&run);
	if (r == 0) {
		sync_failures_recovered(rec->repos->sync_failures);
		note_deferred(&run, deferred);
		/* An older copy has no lock of the batch of a deferred row, so
		 * the row may count as finished now. So after deferred rows
		 * (SKIPPED), the forgotten rows are compared, too. */
		r = old_copy_look(rec->repos, journal, rec->report,
		    skipped ? 0 : forgotten, UINT64_MAX, &skipped, &run.why);
	}
	rec->why = run.why;
	run_done(&run);
	return r > 0 ? -EIO : r;
}

/* ---- later ---- */

static void tell_still_deferred(const struct store_recovery *rec,
    const struct replay_row *rows)
{
	const struct record_member *m;
	size_t i;

	for (; rows != NULL && rec->still_deferred != NULL; rows = rows->next)
		for (i = 0; i < rows->rec.nr_members; i++) {
			m = &rows->rec.members[i];
			/* A missing log line blocks nobody, so the ref is
			 * free. */
			if (rows->deferred[i] && m->action != RECORD_LOG)
				rec->still_deferred(rec->arg, m->worktree,
				    m->name);
		}
}

static void tell_ended(const struct store_recovery *rec,
    const struct replay_row *rows)
{
	const struct record_member *m;
	size_t i;

	for (; rows != NULL && rec->ended != NULL; rows = rows->next)
		for (i = 0; i < rows->rec.nr_members; i++) {
			m = &rows->rec.members[i];
			if (!rows->deferred[i] && m->action != RECORD_LOG)
				rec->ended(rec->arg, rows->origin, m->index);
		}
}

/* The redone values may be in memory only, so they must never count as
 * durable. */
static void defer_lost(struct store_recovery *rec,
    const struct replay_row *rows)
{
	struct recover_notes notes = { .may_defer = true };
	uint64_t deferred = 0;
	int r = 0;

	for (; rows != NULL && r == 0; rows = rows->next)
		r = recover_notes_defer_row(&notes, rows, JOURNAL_MOUNT_LOST,
		    &deferred);
	if (r == 0)
		recover_notes_write(&notes, rec->log);
	recover_notes_done(&notes);
}

int recover_deferred(struct store_recovery *rec, struct repo *repo,
    uint64_t *deferred)
{
	struct journal *journal = commit_log_journal(rec->log);
	struct leftover_locks leftover = { .sys = rec->sys };
	struct recover_findings findings = { .report = rec->report,
		.is_strict = journal_shares_rows(journal),
		.is_retry = true };
	const struct store_report report = { recover_findings_add,
		rec->report->progress, &findings };
	struct replay rp = { .sys = rec->sys,
		.repo = repo,
		.journal = journal,
		.leftover = &leftover,
		.report = &report,
		.is_strict = findings.is_strict,
		.has_object = rec->has_object,
		.arg = rec->arg };
	struct recover_rows rows;
	struct recover_starts starts;
	size_t unlocked = 0;
	int r;

	*deferred = 0;
	memset(&rows, 0, sizeof(rows));
	r = recover_starts_read(&starts, journal);
	mutex_lock(rec->rows_mutex);
	if (r == 0)
		r = recover_rows_read_deferred(journal, repo->id, &rows);
	mutex_unlock(rec->rows_mutex);
	rec->lacks_refs = r == 0 && findings.is_strict &&
	    recover_rows_have_refs(recover_rows_of(&rows, repo->id));
	if (r == 0)
		r = recover_replay(rec, &rp, &starts,
		    recover_rows_of(&rows, repo->id), &unlocked);
	if (r == 0 && findings.waits)
		r = -ENOTRECOVERABLE;
	if (r == 0) {
		if (rec->lacks_refs)
			note_rows(rec, repo);
		r = fs_sync_published(rec->repos, repo->fs);
		if (r < 0)
			defer_lost(rec, recover_rows_of(&rows, repo->id));
	}
	if (r == 0)
		r = recover_note(rec, &rp, recover_rows_of(&rows, repo->id),
		    deferred);
	if (r == 0)
		r = recover_clean(&rp, &unlocked);
	if (r == 0) {
		recover_findings_pass(&findings);
		tell_ended(rec, recover_rows_of(&rows, repo->id));
		tell_still_deferred(rec, recover_rows_of(&rows, repo->id));
	}
	if (r < 0) {
		rec->why = findings.why;
		findings.why = NULL;
	}
	recover_findings_end(&findings);
	replay_done(&rp);
	leftover_locks_done(&leftover);
	recover_rows_done(&rows);
	recover_starts_done(&starts);
	return r > 0 ? -EIO : r;
}
