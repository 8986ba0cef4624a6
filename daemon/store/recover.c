/*
 * Recovery of all repositories.
 *
 * The happy path:
 *	read	every record after the last checkpoint, voids taken off
 *	sort	by repository; by what ended the run that wrote it: the same
 *		boot and mount still stand (a kill), or not (a cut)
 *	replay	each repository the journal knows, if only to look for locks
 *	note	what is parked or voided by now, durably
 *	sync	every file system, then forget all of it
 *
 * What fails:
 *	a repository isn't there	its records are kept as parked rows
 *	one ref can't be redone		parked, voided or left, see redo.c
 *	a disk fails, no room		the others are still tried; the errno
 *					is returned and nothing is forgotten,
 *					so that the next run starts over
 */
#include "daemon/store/recover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

struct reading {
	struct recovery *rec;
	struct replay_row *rows, **tail;
	uint64_t parked_only_of; /* a repository, or 0 for everything */
	uint64_t last_lsn;
};

static void drop_voided(struct reading *rd, uint64_t lsn,
    const struct record *voids)
{
	struct replay_row *row;
	size_t i, k;

	for (row = rd->rows; row != NULL; row = row->next)
		if (row->row.lsn == lsn)
			for (i = 0; i < row->rec.nr_members; i++)
				for (k = 0; k < voids->nr_members; k++)
					if (row->rec.members[i].index ==
					    voids->members[k].index)
						row->dropped[i] = true;
}

static int read_row(void *arg, const struct journal_row *from)
{
	struct reading *rd = arg;
	struct replay_row *row;
	int r;

	rd->last_lsn = from->lsn;
	row = calloc(1, sizeof(*row));
	if (row == NULL)
		return -ENOMEM;
	r = record_decode(from->body, from->len, &row->rec);
	if (r == 0 && from->kind == JOURNAL_VOID)
		drop_voided(rd, from->voids, &row->rec);
	if (r < 0 || from->kind == JOURNAL_VOID || from->repo == 0 ||
	    (rd->parked_only_of != 0 &&
		(from->kind != JOURNAL_PARKED ||
		    from->repo != rd->parked_only_of))) {
		replay_row_free(row);
		return r;
	}
	row->row = *from;
	row->row.body = NULL;
	row->dropped = calloc(row->rec.nr_members + 1, sizeof(bool));
	if (row->dropped == NULL) {
		replay_row_free(row);
		return -ENOMEM;
	}
	*rd->tail = row;
	rd->tail = &row->next;
	return 0;
}

struct starts {
	const char *boot_id;
	uint64_t *same; /* starts of this very boot */
	size_t nr;
};

static int read_start(void *arg, const struct journal_start *start)
{
	struct starts *s = arg;
	uint64_t *grown;

	if (strcmp(start->boot_id, s->boot_id) != 0)
		return 0;
	grown = realloc(s->same, (s->nr + 1) * sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	s->same = grown;
	grown[s->nr++] = start->id;
	return 0;
}

static enum replay_rule rule_of(const struct replay_row *row,
    const struct starts *starts, const struct repo *repo)
{
	size_t i;

	if (row->row.kind == JOURNAL_PARKED ||
	    row->row.mount != repo->fs->mount)
		return REPLAY_CUT;
	for (i = 0; i < starts->nr; i++)
		if (starts->same[i] == row->row.start)
			return REPLAY_KILL;
	return REPLAY_CUT;
}

/* Takes the rows of REPO out of the list, in order. */
static struct replay_row *take_rows(struct replay_row **rows, uint64_t repo)
{
	struct replay_row *taken = NULL, **tail = &taken, *row;

	while ((row = *rows) != NULL) {
		if (row->row.repo != repo) {
			rows = &row->next;
			continue;
		}
		*rows = row->next;
		row->next = NULL;
		*tail = row;
		tail = &row->next;
	}
	return taken;
}

static void free_rows(struct replay_row *rows)
{
	struct replay_row *next;

	for (; rows != NULL; rows = next) {
		next = rows->next;
		replay_row_free(rows);
	}
}

/* ---- what is written back ---- */

struct notes {
	struct journal_row *rows;
	size_t nr, size;
};

static int notes_add(struct notes *notes, const struct journal_row *row,
    const struct record *rec)
{
	struct journal_row *grown;
	size_t size;

	if (notes->nr == notes->size) {
		size = notes->size == 0 ? 8 : 2 * notes->size;
		grown = realloc(notes->rows, size * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		notes->rows = grown;
		notes->size = size;
	}
	grown = &notes->rows[notes->nr];
	*grown = *row;
	grown->body = record_encode(rec, &grown->len);
	if (grown->body == NULL)
		return -ENOMEM;
	notes->nr++;
	return 0;
}

static void notes_done(struct notes *notes)
{
	size_t i;

	for (i = 0; i < notes->nr; i++)
		free((void *)(uintptr_t)notes->rows[i].body);
	free(notes->rows);
}

static int note_parked(struct notes *notes, const struct replay_row *row,
    struct record_member *members, size_t nr)
{
	struct journal_row parked = row->row;
	struct record rec = row->rec;

	parked.kind = JOURNAL_PARKED;
	memset(&parked.txid, 0, sizeof(parked.txid));
	rec.members = members;
	rec.nr_members = nr;
	return notes_add(notes, &parked, &rec);
}

/* A whole row, for a repository that isn't there. */
static int note_missing(struct notes *notes, const struct replay_row *row,
    uint64_t *parked)
{
	struct record_member *members;
	size_t i, nr = 0;
	int r = 0;

	members = calloc(row->rec.nr_members + 1, sizeof(*members));
	if (members == NULL)
		return -ENOMEM;
	for (i = 0; i < row->rec.nr_members; i++)
		if (!row->dropped[i] && row->rec.members[i].status == REFD_OK &&
		    row->rec.members[i].action != RECORD_NOTHING)
			members[nr++] = row->rec.members[i];
	if (nr > 0)
		r = note_parked(notes, row, members, nr);
	*parked += nr;
	free(members);
	return r;
}

static int note_void(struct notes *notes, const struct replay_member *m)
{
	struct journal_row row = m->row->row;
	struct record_member member = *m->member;
	struct record rec = m->row->rec;

	row.kind = JOURNAL_VOID;
	row.voids = m->row->row.lsn;
	member.status = m->status;
	member.text = "another reference stood where its name had to go";
	rec.members = &member;
	rec.nr_members = 1;
	return notes_add(notes, &row, &rec);
}

static int note_parked_members(struct notes *notes, const struct replay *rp,
    uint64_t *parked)
{
	struct record_member member;
	size_t i;
	int r = 0;

	for (i = 0; i < rp->parked.nr && r == 0; i++) {
		member = *rp->parked.items[i].member;
		r = note_parked(notes, rp->parked.items[i].row, &member, 1);
		++*parked;
	}
	return r;
}

static int write_notes(struct recovery *rec, struct notes *notes)
{
	size_t i;
	int r;

	if (notes->nr == 0)
		return 0;
	r = journal_commit(rec->journal, notes->rows, notes->nr);
	for (i = 0; i < notes->nr && r == 0; i++)
		if (notes->rows[i].kind == JOURNAL_PARKED)
			rec->parked_at(rec->arg, notes->rows[i].repo,
			    notes->rows[i].lsn);
	return r > 0 ? -EIO : r;
}

/* Durable at once: until it is, asking by id would say that they happened. */
static int record_voids(struct recovery *rec, const struct replay *rp)
{
	struct notes notes = { NULL, 0, 0 };
	size_t i;
	int r = 0;

	for (i = 0; i < rp->voided.nr && r == 0; i++)
		r = note_void(&notes, &rp->voided.items[i]);
	if (r == 0)
		r = write_notes(rec, &notes);
	notes_done(&notes);
	return r;
}

/* ---- repositories ---- */

struct run {
	struct recovery *rec;
	struct replay_row *rows; /* of repositories not visited yet */
	struct starts starts;
	struct notes notes;
	uint64_t parked, done, total;
	int err;
};

static void say(struct run *run, enum store_finding finding, const char *repo,
    const char *text)
{
	const struct store_report *report = run->rec->report;

	report->found(report->arg, finding, repo, "", text);
}

static int replay_here(struct run *run, struct repo *repo,
    struct replay_row *rows)
{
	struct replay rp = { .sys = run->rec->sys,
		.repo = repo,
		.report = run->rec->report,
		.has_object = run->rec->has_object,
		.arg = run->rec->arg };
	struct replay_row *row;
	struct stale stale;
	bool cut = false;
	size_t unlocked = 0, more = 0;
	int r, err;

	for (row = rows; row != NULL; row = row->next) {
		row->rule = rule_of(row, &run->starts, repo);
		cut = cut ||
		    (row->rule == REPLAY_CUT &&
			row->row.kind != JOURNAL_PARKED);
	}
	r = stale_find(&stale, run->rec->sys, repo);
	if (r < 0)
		return r;
	rp.stale = &stale;
	rp.token_id = run->rec->next_token(run->rec->arg);
	/* After a cut no lock tells anything: the chains do. */
	if (cut)
		r = stale_clean(&stale, &unlocked);
	if (r == 0)
		r = replay_repo(&rp, rows);
	if (r == 0)
		r = record_voids(run->rec, &rp);
	/* What could not be rolled forward keeps its lock: nothing else says
	 * to the next start that it is unfinished. */
	err = r == 0 ? stale_clean(&stale, &more) : 0;
	if (unlocked + more > 0)
		say(run, STORE_UNLOCKED, repo->path,
		    "removed locks of a run that ended before its journal "
		    "record, or that was redone");
	if (r == 0)
		r = err;
	if (r == 0)
		r = note_parked_members(&run->notes, &rp, &run->parked);
	replay_done(&rp);
	stale_done(&stale);
	atomic_store(&repo->fs->touched, true);
	return r;
}

static int visit_repo(void *arg, const struct journal_repo *known)
{
	struct run *run = arg;
	struct replay_row *rows, *row;
	struct repo *repo;
	int r;

	rows = take_rows(&run->rows, known->id);
	r = repos_get_known(run->rec->repos, known, &repo);
	if (r == 0) {
		r = replay_here(run, repo, rows);
		repo_put(run->rec->repos, repo);
		if (r < 0)
			say(run, STORE_FAILED, known->path, strerror(-r));
	} else if (r == -ENOENT || r == -ESTALE || r == -EAGAIN) {
		if (rows != NULL)
			say(run, STORE_REPO_MISSING, known->path,
			    r == -ENOENT ?
				"it is not there; its records are "
				"kept" :
				r == -ESTALE ?
				"another repository is at "
				"its path; its records are kept" :
				"another refd holds it; its records are kept");
		for (r = 0, row = rows; row != NULL && r == 0; row = row->next)
			r = note_missing(&run->notes, row, &run->parked);
	} else if (rows != NULL) {
		say(run, STORE_FAILED, known->path, strerror(-r));
	} else {
		r = 0;
	}
	free_rows(rows);
	if (r < 0 && run->err == 0)
		run->err = r;
	/* Files that are open no longer than they are needed. */
	repos_trim(run->rec->repos, INT64_MAX / 2);
	run->rec->report->progress(run->rec->report->arg, ++run->done,
	    run->total);
	return 0;
}

static int count_repo(void *arg, const struct journal_repo *known)
{
	(void)known;
	++*(uint64_t *)arg;
	return 0;
}

int recover_all(struct recovery *rec, uint64_t *parked)
{
	struct reading rd = { .rec = rec };
	struct run run = { .rec = rec };
	int r;

	rd.tail = &rd.rows;
	run.starts.boot_id = rec->boot_id;
	r = journal_each_start(rec->journal, read_start, &run.starts);
	if (r == 0)
		r = journal_scan(rec->journal, journal_forgotten(rec->journal),
		    read_row, &rd);
	run.rows = rd.rows;
	if (r == 0)
		r = journal_each_repo(rec->journal, count_repo, &run.total);
	if (r == 0)
		r = journal_each_repo(rec->journal, visit_repo, &run);
	if (r == 0)
		r = run.err;
	/* What is parked from here on is in rows of its own, so all that was
	 * read may be forgotten, once the disks hold what was redone. */
	if (r == 0)
		r = rec->sync_all(rec->arg);
	if (r == 0)
		r = write_notes(rec, &run.notes);
	if (r == 0 && rd.last_lsn > journal_forgotten(rec->journal))
		r = journal_forget(rec->journal, rd.last_lsn, true);
	*parked = run.parked;
	free_rows(run.rows);
	free(run.starts.same);
	notes_done(&run.notes);
	return r > 0 ? -EIO : r;
}

/* ---- later ---- */

static bool is_parked_again(const struct replay *rp,
    const struct record_member *member)
{
	size_t i;

	for (i = 0; i < rp->parked.nr; i++)
		if (rp->parked.items[i].member == member)
			return true;
	return false;
}

/* A void for every member of ROW that needs no further try. */
static int note_done(struct recovery *rec, struct notes *notes,
    const struct replay *rp, const struct replay_row *row, uint64_t *parked)
{
	struct replay_member done = { .row = row, .status = REFD_OK };
	size_t i;
	int r = 0;

	for (i = 0; i < row->rec.nr_members && r == 0; i++) {
		done.member = &row->rec.members[i];
		if (row->dropped[i])
			continue;
		if (!is_parked_again(rp, done.member)) {
			r = note_void(notes, &done);
			continue;
		}
		++*parked;
		if (rec->still_parked != NULL)
			rec->still_parked(rec->arg, done.member->name);
	}
	return r;
}

int recover_parked(struct recovery *rec, struct repo *repo, uint64_t *parked)
{
	struct reading rd = { .rec = rec, .parked_only_of = repo->id };
	struct stale none = { .sys = rec->sys, .repo = repo };
	struct replay rp = { .sys = rec->sys,
		.repo = repo,
		.stale = &none,
		.report = rec->report,
		.has_object = rec->has_object,
		.arg = rec->arg };
	struct notes notes = { NULL, 0, 0 };
	struct replay_row *row;
	int r;

	*parked = 0;
	rd.tail = &rd.rows;
	r = journal_scan(rec->journal, journal_forgotten(rec->journal),
	    read_row, &rd);
	for (row = rd.rows; row != NULL; row = row->next)
		row->rule = REPLAY_CUT;
	rp.token_id = rec->next_token(rec->arg);
	if (r == 0)
		r = replay_repo(&rp, rd.rows);
	atomic_store(&repo->fs->touched, true);
	if (r == 0)
		r = rec->sync_all(rec->arg);
	for (row = rd.rows; row != NULL && r == 0; row = row->next)
		r = note_done(rec, &notes, &rp, row, parked);
	if (r == 0)
		r = write_notes(rec, &notes);
	replay_done(&rp);
	free_rows(rd.rows);
	notes_done(&notes);
	return r > 0 ? -EIO : r;
}
