/*
 * What recovery reads of the journal.
 *
 * The happy path: one scan; each row decoded, each void taken off the row it
 * speaks of.
 *
 * What fails: a row that can't be decoded, or memory; then nothing can be
 * recovered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/recover_internal.h"

/* ---- starts ---- */

static int add_start(void *arg, const struct journal_start *start)
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

int starts_read(struct starts *starts, struct journal *journal,
    const char *boot_id)
{
	memset(starts, 0, sizeof(*starts));
	starts->boot_id = boot_id;
	return journal_each_start(journal, add_start, starts);
}

void starts_done(struct starts *starts)
{
	free(starts->same);
}

/* The window's number says which start took the locks; a parked copy has
 * been written by another. */
enum replay_rule starts_rule(const struct starts *starts,
    const struct replay_row *row, const struct repo *repo)
{
	uint64_t start = row->row.token >> JOURNAL_TOKEN_BITS;
	size_t i;

	if (row->row.mount == 0 || row->row.mount != repo->fs->mount)
		return REPLAY_CUT;
	for (i = 0; i < starts->nr; i++)
		if (starts->same[i] == start)
			return REPLAY_KILL;
	return REPLAY_CUT;
}

/* ---- rows ---- */

struct reading {
	struct replay_row *rows, **tail;
	uint64_t parked_only_of;
	uint64_t last_lsn;
};

/* A void that says ok finishes one member of a parked row; any other takes
 * all back that the update would have written. */
static bool is_voided(const struct record_member *m,
    const struct record_member *by)
{
	return m->index == by->index &&
	    (by->status != REFD_OK ||
		(m->status == REFD_OK && strcmp(m->name, by->name) == 0 &&
		    strcmp(m->worktree, by->worktree) == 0));
}

static void drop_voided(struct reading *rd, uint64_t lsn,
    const struct record *voids)
{
	struct replay_row *row;
	size_t i, k;

	for (row = rd->rows; row != NULL; row = row->next)
		if (row->row.lsn == lsn)
			for (i = 0; i < row->rec.nr_members; i++)
				for (k = 0; k < voids->nr_members; k++)
					if (is_voided(&row->rec.members[i],
						&voids->members[k]))
						row->dropped[i] = true;
}

static bool is_wanted(const struct reading *rd, const struct journal_row *row)
{
	if (row->kind == JOURNAL_VOID || row->repo == 0)
		return false;
	return rd->parked_only_of == 0 ||
	    (row->kind == JOURNAL_PARKED && row->repo == rd->parked_only_of);
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
	if (r < 0 || !is_wanted(rd, from)) {
		replay_row_free(row);
		return r;
	}
	row->row = *from;
	row->row.body = NULL;
	row->dropped = calloc(2 * row->rec.nr_members + 1, sizeof(bool));
	if (row->dropped == NULL) {
		replay_row_free(row);
		return -ENOMEM;
	}
	row->passed = row->dropped + row->rec.nr_members;
	*rd->tail = row;
	rd->tail = &row->next;
	return 0;
}

int rows_read(struct journal *journal, uint64_t parked_only_of,
    struct replay_row **rows, uint64_t *last_lsn)
{
	struct reading rd = { .parked_only_of = parked_only_of };
	int r;

	rd.tail = &rd.rows;
	r = journal_scan(journal, journal_forgotten(journal), read_row, &rd);
	if (r != 0) {
		rows_free(rd.rows);
		return r;
	}
	*rows = rd.rows;
	*last_lsn = rd.last_lsn;
	return 0;
}

struct replay_row *rows_take(struct replay_row **rows, uint64_t repo)
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

void rows_free(struct replay_row *rows)
{
	struct replay_row *next;

	for (; rows != NULL; rows = next) {
		next = rows->next;
		replay_row_free(rows);
	}
}
