/*
 * Happy path:
 *	read	the records, newest first; the first record that says something
 *		about the packed value of a name decides (rule_packed())
 *	look	the packed value is still there, no file is loose, and no log
 *		tells of a writer
 *
 * Git adds a line with each value that it writes, if there is a log. So a log
 * that ends with the packed value tells of a writer who meant the value.
 *
 * Failure modes:
 *	the journal can't be read,	the errno is returned; refd verify
 *	no memory			remains
 *	a record is not published yet	the caller waits before; a disk that
 *					hangs longer gives a false finding
 */
#include "daemon/store/recovery/returned.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/files/format/reflog.h"
#include "daemon/store/files/recovery/rule.h"

/* Some 50 ms of work for small records, and half a second for large ones. */
#define ROWS_MAX  20000
#define BYTES_MAX ((size_t)64 << 20)
/* Git takes less time than BEFORE_US between its reads and packed-refs.lock.
 * Only a stopped git can take longer, so refd verify reads all records. */
#define BEFORE_US (3600 * INT64_C(1000000))

/* A ref of packed-refs with a record. */
struct recorded_ref {
	UT_hash_handle hh;
	bool is_decided; /* older records can say no more */
	struct returned found;
	char name[];
};

struct returned_search {
	const struct repo *repo;
	struct packed_snapshot *snap;
	int64_t oldest_us;
	struct recorded_ref *names;
	unsigned nr_rows;
	size_t bytes; /* of the rows of the repository */
};

int returned_note(void *arg, const struct journal_row *row,
    const struct record *rec, const struct record_member *m)
{
	struct returned *r = arg;
	enum rule_packed says = rule_packed(rec, m, &r->value);

	if (!rec->is_seen && r->told_lsn == 0) {
		r->told_lsn = row->lsn;
		r->is_deleted = m->action == RECORD_DELETE;
	}
	if (says == RULE_PACKED_REPLACED)
		r->replaced_by = row->lsn;
	return says != RULE_PACKED_NOTHING;
}

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

static struct recorded_ref *add(struct returned_search *s, const char *name,
    const struct refd_oid *value)
{
	struct recorded_ref *k = calloc(1, sizeof(*k) + strlen(name) + 1);

	if (k == NULL)
		return NULL;
	strcpy(k->name, name);
	k->found = (struct returned){ .name = k->name, .value = *value };
	HASH_ADD_STR(s->names, name, k);
	if (k->hh.tbl != NULL)
		return k;
	free(k);
	return NULL;
}

static int note(void *arg, const struct journal_row *row,
    const struct record *rec, const struct record_member *m)
{
	struct returned_search *s = arg;
	struct refd_oid value;
	struct recorded_ref *k;

	if (m->worktree[0] != '\0' ||
	    packed_lookup(s->snap, m->name, &value) <= 0)
		return 0;
	HASH_FIND_STR(s->names, m->name, k);
	if (k == NULL)
		k = add(s, m->name, &value);
	if (k == NULL)
		return -ENOMEM;
	if (!k->is_decided)
		k->is_decided = returned_note(&k->found, row, rec, m) != 0;
	return 0;
}

static enum fold_want wants(void *arg, const struct journal_row *row)
{
	struct returned_search *s = arg;

	if (++s->nr_rows > ROWS_MAX || row->time_us < s->oldest_us)
		return FOLD_STOP;
	if (row->repo != s->repo->id)
		return FOLD_SKIP;
	s->bytes += row->len;
	return s->bytes > BYTES_MAX ? FOLD_STOP : FOLD_TAKE;
}

static int read_rows(struct returned_search *s, struct journal *journal)
{
	struct fold fold = { .wants = wants, .member = note, .arg = s };
	int r = journal_reader_open(journal, &fold.reader);

	if (r == 0)
		r = fold_rows(&fold, 0, UINT64_MAX);
	fold_done(&fold);
	journal_reader_close(fold.reader);
	return r > 0 ? -EIO : r;
}

/* ---- the refs now ---- */

static bool is_still_there(const struct sys *sys,
    const struct returned_search *s, const struct returned *r)
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
	struct returned_search s = { .repo = repo };
	struct recorded_ref *k, *next;
	struct sys_stat st;
	int r = SYS(sys, lstatat, repo->fd, "packed-refs", &st);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	s.oldest_us = sys_stat_written_ns(&st) / 1000 - BEFORE_US;
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
	packed_snapshot_put(s.snap);
	return r;
}
