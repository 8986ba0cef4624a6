#include "daemon/store/recovery/old_copy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/files/recovery/rule.h"
#include "daemon/store/journal/fold.h"
#include "daemon/store/repos/repo_checkpoint.h"
#include "daemon/store/tables/recovery/stack_rule.h"
#include "daemon/store/tables/stack/stack_look.h"
#include "proto/lib/array.h"
#include "proto/refname.h"

#define ROWS_MAX 50000
/* Of the reading, and of the comparison. */
#define LOOK_NS (3 * 1000000000LL / 2)

struct copy_look {
	struct repos *repos;
	struct journal *journal;
	struct fold fold;
	unsigned nr_rows;
	int64_t end_ns; /* of reading, then of comparing */
	const struct store_report *report;
	char **why;
	/* The LSNs of the deferred rows, sorted. A row is left out if only log
	 * lines of the row are deferred. */
	uint64_t *deferred; /* owned */
	size_t nr_deferred, size;
	/* The owners of older repositories, and of refs with their newest
	 * values. Two of each kind are enough to tell one owner from
	 * several. */
	uint32_t older[2], newest[2];
	size_t nr_older, nr_newest;

	/* The repository of the last comparison. */
	uint64_t repo_id;  /* 0: none yet */
	struct repo *repo; /* NULL: not to be had, or older */
	struct repo_checkpoint note;
	struct packed_snapshot *snap;
	struct stack_look stack; /* empty: it has none that can be read */

	/* The ref at hand. */
	bool is_newest; /* its newest row comes next */
	/* The ref has the value OID, and not from its newest row. */
	bool is_foreign;
	struct refd_oid oid;
};

/* ---- the repository ---- */

static void put_repo(struct copy_look *l)
{
	packed_snapshot_put(l->snap);
	l->snap = NULL;
	stack_look_end(&l->stack);
	if (l->repo != NULL)
		repo_put(l->repos, l->repo);
	l->repo = NULL;
	repos_trim(l->repos, INT64_MAX / 2);
}

/* A repository that is moved, removed or in use is compared never. */
static int open_repo(struct copy_look *l, uint64_t id,
    enum refd_object_format format)
{
	struct journal_repo known = { .path = NULL };
	int r;

	if (l->repo_id == id)
		return 0;
	put_repo(l);
	l->repo_id = id;
	r = journal_read_repo(l->fold.reader, id, NULL, &known);
	if (r == 0)
		r = repos_get_known(l->repos, &known, &l->repo);
	free(known.path);
	if (r != 0) {
		l->repo = NULL;
		return r == -ENOMEM ? r : 0;
	}
	if (!l->repo->has_format)
		l->repo->object_format = format;
	l->note =
	    repo_checkpoint_read(l->repos->sys, l->repo->refd_fd, l->journal);
	if (packed_snapshot(l->repo->packed, &l->snap) < 0)
		l->snap = NULL;
	stack_look_begin(&l->stack, l->repo->stacks, "", l->repo->fd,
	    STACK_WORK_MAX);
	return 0;
}

/* ---- one ref ---- */

/* True: since NS, a name in the directory of ref NAME has changed. If this
 * directory is gone, the nearest parent counts. */
static bool is_directory_younger(const struct copy_look *l, const char *name,
    int64_t ns)
{
	char path[REFD_PATH_MAX];
	struct sys_stat st;
	char *slash;

	snprintf(path, sizeof(path), "%s", name);
	while ((slash = strrchr(path, '/')) != NULL) {
		*slash = '\0';
		if (SYS(l->repos->sys, lstatat, l->repo->fd, path, &st) == 0)
			return sys_stat_written_ns(&st) >= ns;
	}
	return SYS(l->repos->sys, fstat, l->repo->fd, &st) == 0 &&
	    sys_stat_written_ns(&st) >= ns;
}

static void note_owner(uint32_t owners[2], size_t *nr, uint32_t owner)
{
	if (*nr == 0 || (*nr == 1 && owners[0] != owner))
		owners[(*nr)++] = owner;
}

/* The rest of the repository is compared no more. */
static void note_older(struct copy_look *l, uint64_t lsn, const char *name)
{
	char *text = repo_why(
	    "it is older than record %llu of the journal, and this node lacks "
	    "an update of its group: copy the repository of another node",
	    (unsigned long long)lsn);
	const struct store_found found = { .finding = STORE_LEFT,
		.repo = l->repo->path,
		.ref = name,
		.text = text != NULL ? text : "it is older than the journal" };

	l->report->found(l->report->arg, &found);
	free(text);
	if (*l->why == NULL)
		*l->why = repo_why(
		    "'%s' in '%s' is older than record %llu of the journal: "
		    "the repositories are an older copy, and this node lacks "
		    "updates of its group. Make the node anew by 'refd group "
		    "join', or put back the newest copy; nothing was changed",
		    name, l->repo->path, (unsigned long long)lsn);
	note_owner(l->older, &l->nr_older, l->repo->owner);
	put_repo(l);
}

/* Do the older repositories show that all repositories are an older copy? Not
 * if they are of one owner, and a ref of another owner has its newest value:
 * then this owner has put back repositories. */
static bool are_older(const struct copy_look *l)
{
	return l->nr_older == 2 ||
	    (l->nr_older == 1 &&
		(l->nr_newest == 0 ||
		    (l->nr_newest == 1 && l->newest[0] == l->older[0])));
}

/* Was ROW published in this directory? The directory may be a copy of another
 * node. */
static bool is_of_here(const struct copy_look *l, const struct journal_row *row)
{
	return l->note.is_there && row->lsn > l->note.since;
}

/* Compares row M with the stack. The value counts first, because a lost row
 * gets no new table if the ref has its value anyway. Then the index counts: git
 * and refd only ever raise the index of a stack, so an index below the index of
 * M shows an older copy. But if the directory is a copy of another node, its
 * tables have indices of their own. So the row must have been published in this
 * directory. */
static int compare_in_tables(struct copy_look *l, const struct journal_row *row,
    const struct record_member *m)
{
	struct stack_found found;
	uint64_t max_index;
	int r;

	if (l->stack.snap == NULL)
		return 0;
	r = stack_look_found(&l->stack.reader, m->name, &found);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	max_index = l->stack.snap->max_index;
	if (max_index >= m->update_index || stack_rule_is_value(m, &found))
		note_owner(l->newest, &l->nr_newest, l->repo->owner);
	else if (is_of_here(l, row) && max_index != 0)
		note_older(l, row->lsn, m->name);
	stack_found_done(&found);
	return 0;
}

/* Compares M, the newest record of its ref, with the files. Times show nothing
 * about a row that another node published here: a node that lags publishes a
 * row later than another node publishes the next rows. */
static void compare(struct copy_look *l, const struct journal_row *row,
    const struct record_member *m)
{
	const struct rule_files files = { .sys = l->repos->sys,
		.dirfd = l->repo->fd,
		.format = l->repo->object_format,
		.snap = l->snap };
	struct rule_files_found found;

	if (rule_files_apply(&files, m, row->locked_at_ns, &found) < 0 ||
	    found.is_broken)
		return;
	if (found.verdict == RULE_STANDS) {
		note_owner(l->newest, &l->nr_newest, l->repo->owner);
		return;
	}
	if (found.verdict == RULE_LOST && is_of_here(l, row) &&
	    (found.is_loose ||
		!is_directory_younger(l, m->name, row->locked_at_ns))) {
		note_older(l, row->lsn, m->name);
		return;
	}
	if (!l->note.is_there || l->note.lsn >= row->lsn)
		return;
	if (!found.is_loose && !found.has_oid) {
		note_older(l, row->lsn, m->name);
		return;
	}
	l->is_foreign = found.has_oid;
	l->oid = found.oid;
}

/* Is the foreign value of the ref from M, or from before M? */
static bool is_earlier(const struct copy_look *l, const struct record_member *m)
{
	return (m->action == RECORD_WRITE && m->target == NULL &&
		   refd_oid_eq(&m->new_oid, &l->oid)) ||
	    (m->had_old && refd_oid_eq(&m->old_oid, &l->oid));
}

/* 1: older rows tell no more. */
static int look_at(void *arg, const struct journal_row *row,
    const struct record *rec, const struct record_member *m)
{
	struct copy_look *l = arg;
	int r = open_repo(l, row->repo, rec->object_format);

	if (r != 0 || l->repo == NULL)
		return r != 0 ? r : 1;
	if (l->is_newest && rec->has_indices)
		r = compare_in_tables(l, row, m);
	else if (l->is_newest)
		compare(l, row, m);
	l->is_newest = false;
	if (r != 0)
		return r;
	if (!l->is_foreign)
		return 1;
	if (!is_earlier(l, m))
		return 0;
	note_older(l, row->lsn, m->name);
	return 1;
}

static bool is_over(const struct copy_look *l)
{
	return SYS(l->repos->sys, now_mono) >= l->end_ns;
}

/* Compares all refs but two kinds. Kept refs are left out, because a copy of
 * another node's repository lacks the values that this node kept. A ref whose
 * newest row is deferred is left out, because the ref does not have the value
 * of this row yet. */
static int look_at_all(struct copy_look *l, uint64_t upto)
{
	struct fold_repo *repo, *next_repo;
	struct fold_ref *ref, *next;
	int r;

	HASH_ITER(hh, l->fold.repos, repo, next_repo)
		HASH_ITER(hh, repo->refs, ref, next) {
			if (is_over(l))
				return 0;
			if (ref->key[0] != '/' || ref->lsns[0] > upto ||
			    refd_refname_is_kept(ref->name) ||
			    array_has_u64(l->deferred, l->nr_deferred,
				ref->lsns[0]))
				continue;
			l->is_newest = true;
			l->is_foreign = false;
			r = fold_each(&l->fold, ref, look_at, l);
			if (r < 0)
				return r;
		}
	return 0;
}

/* ---- the rows ---- */

static int add_deferred(void *arg, const struct journal_row *row)
{
	struct copy_look *l = arg;
	bool has_refs = false;
	struct record rec;
	uint64_t *grown;
	size_t i;
	int r = record_decode(row->body, row->len, &rec);

	if (r < 0)
		return r;
	for (i = 0; i < rec.nr_members; i++)
		has_refs = has_refs || record_changes_ref(&rec.members[i]);
	record_done(&rec);
	if (!has_refs)
		return 0;
	grown =
	    array_room(l->deferred, l->nr_deferred, &l->size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	l->deferred = grown;
	grown[l->nr_deferred++] = row->refers_to;
	return 0;
}

static int read_deferred(struct copy_look *l)
{
	int r = journal_each_deferred(l->journal, 0, add_deferred, l);

	array_sort_u64(l->deferred, l->nr_deferred);
	return r;
}

static enum fold_want wants(void *arg, const struct journal_row *row)
{
	struct copy_look *l = arg;

	if (l->nr_rows++ == ROWS_MAX || is_over(l))
		return FOLD_STOP;
	return row->repo != 0 ? FOLD_TAKE : FOLD_SKIP;
}

int old_copy_look(struct repos *repos, struct journal *j,
    const struct store_report *report, uint64_t after, uint64_t upto,
    bool *skipped, char **why)
{
	struct copy_look l = { .repos = repos,
		.journal = j,
		.fold = { .wants = wants, .arg = &l },
		.report = report,
		.why = why };
	int r;

	if (!journal_shares_rows(j))
		return 0;
	r = read_deferred(&l);
	if (r == 0)
		r = journal_reader_open(j, &l.fold.reader);
	/* An owner can have many deferred rows, and they take no time from the
	 * look. */
	l.end_ns = SYS(repos->sys, now_mono) + LOOK_NS;
	if (r == 0)
		r = fold_rows(&l.fold, after, UINT64_MAX);
	l.end_ns += LOOK_NS;
	/* A damaged row is reported to readers of history, so the look goes on,
	 * and all rows behind are compared. */
	if (r == 0 || r == -EUCLEAN || r == -EBADMSG)
		r = look_at_all(&l, upto);
	put_repo(&l);
	fold_done(&l.fold);
	journal_reader_close(l.fold.reader);
	free(l.deferred);
	*skipped = l.nr_deferred > 0;
	if (r == 0 && are_older(&l))
		return -ENOTRECOVERABLE;
	free(*why);
	*why = NULL;
	return r > 0 ? -EIO : r;
}
