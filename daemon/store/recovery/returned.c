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

#include "daemon/store/files/format/reflog.h"
#include "daemon/store/files/recovery/rule.h"

/* Some 50 ms of work. */
#define ROWS_MAX 20000
/* Git takes less time between its reads and packed-refs.lock. A stopped git can
 * take any time: refd verify reads all records. */
#define BEFORE_US (3600 * INT64_C(1000000))

struct search {
	const struct repo *repo;
	struct packed_snapshot *snap;
	int64_t oldest_us;
	struct fold fold;
	unsigned nr_rows;
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

static enum fold_want wants(void *arg, const struct journal_row *row)
{
	struct search *s = arg;

	if (++s->nr_rows > ROWS_MAX || row->time_us < s->oldest_us)
		return FOLD_STOP;
	return row->repo == s->repo->id ? FOLD_TAKE : FOLD_SKIP;
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

static int look_at(const struct sys *sys, struct search *s,
    const struct fold_ref *ref, returned_fn *fn, void *arg)
{
	struct returned found = { .name = ref->name };
	int r;

	if (ref->key[0] != '/' ||
	    packed_lookup(s->snap, found.name, &found.value) <= 0)
		return 0;
	r = fold_each(&s->fold, ref, returned_note, &found);
	if (r >= 0 && found.replaced_by != 0 && is_still_there(sys, s, &found))
		fn(arg, &found);
	return r < 0 ? r : 0;
}

static int search(const struct sys *sys, struct search *s, returned_fn *fn,
    void *arg)
{
	struct fold_repo *repo = NULL;
	struct fold_ref *ref, *next;
	int r;

	r = fold_rows(&s->fold, 0, UINT64_MAX);
	if (r == 0 && (repo = fold_repo(&s->fold, s->repo->id)) == NULL)
		r = -ENOMEM;
	if (r == 0)
		HASH_ITER(hh, repo->refs, ref, next)
			if ((r = look_at(sys, s, ref, fn, arg)) < 0)
				break;
	return r;
}

int returned_find(const struct sys *sys, struct journal *journal,
    const struct repo *repo, returned_fn *fn, void *arg)
{
	struct search s = { .repo = repo,
		.fold = { .wants = wants, .arg = &s } };
	struct sys_stat st;
	int r = SYS(sys, lstatat, repo->fd, "packed-refs", &st);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	s.oldest_us = st.mtime_ns / 1000 - BEFORE_US;
	r = packed_snapshot(repo->packed, &s.snap);
	if (r < 0)
		return r;
	r = journal_reader_open(journal, &s.fold.reader);
	if (r == 0)
		r = search(sys, &s, fn, arg);
	fold_done(&s.fold);
	journal_reader_close(s.fold.reader);
	packed_snapshot_put(s.snap);
	return r > 0 ? -EIO : r;
}
