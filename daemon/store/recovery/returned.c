/*
 * Happy path:
 *	read	the records, newest first; the first record that says something
 *		about the packed value of a name decides (rule_packed())
 *	look	the packed value is still there, no file is loose, and no log
 *		tells of a writer
 *
 * Failure modes:
 *	the journal can't be read,	the result; refd verify remains
 *	no memory
 *	a record is not published yet	the caller waits before; a disk that
 *					hangs longer gives a false finding
 */
#include "daemon/store/recovery/returned.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/hash.h"
#include "daemon/store/files/recovery/rule.h"
#include "daemon/store/files/format/reflog.h"
#include "proto/lib/array.h"

/* A read must not hold the WAL for long. */
#define SLICE_ROWS 256
/* Some 50 ms of work. */
#define ROWS_MAX 20000
/* Git takes less time between its reads and packed-refs.lock. A stopped git can
 * take any time: refd verify reads all records. */
#define BEFORE_US (3600 * INT64_C(1000000))
/* Ends a read. */
#define STOP 2

struct known {
	UT_hash_handle hh;
	bool is_open; /* older records can say more */
	struct returned found;
	char name[];
};

struct taken_back {
	uint64_t lsn;
	uint32_t index;
};

struct search {
	const struct repo *repo;
	struct packed_snapshot *snap;
	int64_t oldest_us;
	struct known *names;
	struct taken_back *aborts;
	size_t nr_aborts, size;
	uint64_t before; /* the last row */
	unsigned nr_rows;
};

bool returned_is_logged(const struct sys *sys, int dirfd,
    enum refd_object_format format, const struct returned *r)
{
	char path[REFD_PATH_MAX];
	const struct reflog_file log = { .sys = sys,
		.dirfd = dirfd,
		.path = path,
		.format = format };
	struct refd_oid from, to;

	return (size_t)snprintf(path, sizeof(path), "logs/%s", r->name) <
	    sizeof(path) &&
	    reflog_last(&log, &from, &to) > 0 && refd_oid_eq(&to, &r->value);
}

char *returned_text(const struct returned *r, enum refd_object_format format)
{
	char hex[REFD_OID_MAX_HEX + 1];

	return repo_why("packed-refs has %s, which record %llu replaced, and "
			"no record tells of a later writer; 'refd restore "
			"--at %llu --undo-git%s --ref %s' puts the recorded "
			"value back",
	    refd_oid_hex(&r->value, format, hex),
	    (unsigned long long)r->replaced_by, (unsigned long long)r->told_lsn,
	    r->is_deleted ? " --force" : "", r->name);
}

/* ---- records ---- */

static struct known *get(struct search *s, const char *name)
{
	struct known *k;

	HASH_FIND_STR(s->names, name, k);
	if (k != NULL)
		return k;
	k = calloc(1, sizeof(*k) + strlen(name) + 1);
	if (k == NULL)
		return NULL;
	strcpy(k->name, name);
	k->found.name = k->name;
	k->is_open = packed_lookup(s->snap, name, &k->found.value) > 0;
	HASH_ADD_KEYPTR(hh, s->names, k->name, strlen(k->name), k);
	if (k->hh.tbl != NULL)
		return k;
	free(k);
	return NULL;
}

static bool is_taken_back(const struct search *s, uint64_t lsn, uint32_t index)
{
	size_t i;

	for (i = 0; i < s->nr_aborts; i++)
		if (s->aborts[i].lsn == lsn && s->aborts[i].index == index)
			return true;
	return false;
}

static int note(struct search *s, const struct journal_row *row,
    const struct record *rec, const struct record_member *m)
{
	struct known *k;

	if (m->status != REFD_OK || m->worktree[0] != '\0' ||
	    (m->action != RECORD_WRITE && m->action != RECORD_DELETE) ||
	    is_taken_back(s, row->lsn, m->index))
		return 0;
	k = get(s, m->name);
	if (k == NULL)
		return -ENOMEM;
	if (!k->is_open)
		return 0;
	if (!rec->is_seen && k->found.told_lsn == 0) {
		k->found.told_lsn = row->lsn;
		k->found.is_deleted = m->action == RECORD_DELETE;
	}
	switch (rule_packed(rec, m, &k->found.value)) {
	case RULE_PACKED_NOTHING:
		return 0;
	case RULE_PACKED_REPLACED:
		k->found.replaced_by = row->lsn;
		break;
	case RULE_PACKED_MEANT:
		break;
	}
	k->is_open = false;
	return 0;
}

static int note_abort(struct search *s, const struct journal_row *row,
    const struct record_member *m)
{
	struct taken_back *grown =
	    array_room(s->aborts, s->nr_aborts, &s->size, sizeof(*grown));

	if (grown == NULL)
		return -ENOMEM;
	s->aborts = grown;
	grown[s->nr_aborts++] = (struct taken_back){ row->refers_to, m->index };
	return 0;
}

static int note_row(void *arg, const struct journal_row *row)
{
	struct search *s = arg;
	struct record rec;
	size_t i;
	int r;

	s->before = row->lsn;
	if (++s->nr_rows > ROWS_MAX || row->time_us < s->oldest_us)
		return STOP;
	if (row->repo != s->repo->id ||
	    (row->kind != JOURNAL_SLICE && row->kind != JOURNAL_ABORT))
		return 0;
	r = record_decode(row->body, row->len, &rec);
	if (r < 0)
		return r;
	for (i = 0; i < rec.nr_members && r == 0; i++)
		r = row->kind == JOURNAL_ABORT ?
		    note_abort(s, row, &rec.members[i]) :
		    note(s, row, &rec, &rec.members[i]);
	record_done(&rec);
	return r;
}

static int read_rows(struct search *s, struct journal *journal)
{
	struct journal_reader *reader;
	uint64_t before = UINT64_MAX;
	int r = journal_reader_open(journal, &reader);

	if (r != 0)
		return r < 0 ? r : -EIO;
	/* SQLite's numbers have a sign. */
	for (s->before = INT64_MAX; r == 0 && s->before != before;) {
		before = s->before;
		r = journal_read(reader, 0, before, true, SLICE_ROWS, note_row,
		    s);
	}
	journal_reader_close(reader);
	if (r == STOP)
		return 0;
	return r > 0 ? -EIO : r;
}

/* ---- the refs now ---- */

static bool is_still_there(const struct sys *sys, const struct search *s,
    const struct returned *r)
{
	struct packed_snapshot *snap;
	struct sys_stat st;
	struct refd_oid oid;
	bool is;

	if (SYS(sys, lstatat, s->repo->fd, r->name, &st) == 0 &&
	    !S_ISDIR(st.mode))
		return false;
	if (packed_snapshot(s->repo->packed, &snap) < 0)
		return false;
	is = packed_lookup(snap, r->name, &oid) > 0 &&
	    refd_oid_eq(&oid, &r->value);
	packed_snapshot_put(snap);
	return is &&
	    !returned_is_logged(sys, s->repo->fd, s->repo->object_format, r);
}

int returned_find(const struct sys *sys, struct journal *journal,
    const struct repo *repo, returned_fn *fn, void *arg)
{
	struct search s = { .repo = repo };
	struct known *k, *next;
	struct sys_stat st;
	int r = SYS(sys, lstatat, repo->fd, "packed-refs", &st);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	s.oldest_us = st.mtime_ns / 1000 - BEFORE_US;
	r = packed_snapshot(repo->packed, &s.snap);
	if (r < 0)
		return r;
	r = read_rows(&s, journal);
	HASH_ITER(hh, s.names, k, next) {
		if (r == 0 && k->found.replaced_by != 0 &&
		    is_still_there(sys, &s, &k->found))
			fn(arg, &k->found);
		HASH_DEL(s.names, k);
		free(k);
	}
	free(s.aborts);
	packed_snapshot_put(s.snap);
	return r;
}
