/*
 * Compares the last record of each ref with the ref.
 *
 * Happy path: the ref has the recorded value, or another writer wrote the ref
 * later, by the rule of rule.h, or of stack_rule.h for refs in reftables.
 *
 * The journal may have more refs than fit in memory. A full ledger keeps one
 * half of the names, and a further pass reads the other half. Halves are halved
 * again if necessary.
 *
 * No power loss is known here, unlike in recovery. Git may have deleted an
 * absent ref, and a packed-refs younger than the record belongs to another
 * writer.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/admin/verify_internal.h"
#include "daemon/base/hash.h"
#include "daemon/store/recovery/returned.h"
#include "daemon/store/files/recovery/rule.h"
#include "daemon/store/tables/recovery/stack_rule.h"
#include "proto/lib/interrupt.h"

struct ledger_entry {
	uint64_t lsn;
	int64_t locked_at_ns, time_us;
	struct record_member last; /* borrows all but the numbers */
	char *target;              /* of LAST, or NULL */
	/* The line of packed-refs when the entry was made. */
	bool has_packed;
	struct returned packed;
	const char *name; /* in key */
	uint32_t hash;
	UT_hash_handle hh;
	char key[]; /* worktree, "/", name */
};

struct half {
	uint32_t mask, want;
};

struct ledger_pass {
	struct verify *v;
	struct half half;
	struct half *later; /* to be passed through */
	size_t nr_later;
	uint64_t last;
	bool is_filled; /* new records only update the ledger */
};

#define AT_WORK_US (10 * INT64_C(1000000))
/* Each half adds a bit to the mask. */
#define HALVES_MAX 32

static void entry_free(struct ledger_entry *e)
{
	free(e->target);
	free(e);
}

static void ledger_free(struct verify *v)
{
	struct ledger_entry *e, *next;

	HASH_ITER(hh, v->ledger, e, next) {
		HASH_DEL(v->ledger, e);
		entry_free(e);
	}
}

static uint32_t hash_of(const char *key)
{
	uint32_t h = 2166136261u;

	for (; *key != '\0'; key++)
		h = (h ^ (unsigned char)*key) * 16777619u;
	return h ^ h >> 15;
}

/* ---- filling it ---- */

static void halve(struct ledger_pass *pass)
{
	uint32_t bit = pass->half.mask + 1;
	struct ledger_entry *e, *next;

	pass->later[pass->nr_later++] =
	    (struct half){ pass->half.mask | bit, pass->half.want | bit };
	pass->half.mask |= bit;
	HASH_ITER(hh, pass->v->ledger, e, next)
		if ((e->hash & pass->half.mask) != pass->half.want) {
			HASH_DEL(pass->v->ledger, e);
			entry_free(e);
		}
}

static struct ledger_entry *entry_add(struct verify *v, const char *key,
    size_t worktree_len)
{
	const size_t len = strlen(key);
	struct ledger_entry *e;

	e = calloc(1, sizeof(*e) + len + 1);
	if (e == NULL)
		return NULL;
	memcpy(e->key, key, len + 1);
	e->name = e->key + worktree_len + 1;
	e->hash = hash_of(key);
	e->has_packed = worktree_len == 0 && v->snap != NULL &&
	    packed_lookup(v->snap, e->name, &e->packed.value) > 0;
	e->packed.name = e->name;
	HASH_ADD_KEYPTR(hh, v->ledger, e->key, len, e);
	if (e->hh.tbl != NULL)
		return e;
	entry_free(e);
	return NULL;
}

static void note_packed(struct ledger_entry *e, const struct journal_row *row,
    const struct record *rec, const struct record_member *m)
{
	if (!e->has_packed)
		return;
	if (!rec->is_seen) {
		e->packed.told_lsn = row->lsn;
		e->packed.is_deleted = m->action == RECORD_DELETE;
	}
	switch (rule_packed(rec, m, &e->packed.value)) {
	case RULE_PACKED_NOTHING:
		break;
	case RULE_PACKED_MEANT:
		e->packed.replaced_by = 0;
		break;
	case RULE_PACKED_REPLACED:
		e->packed.replaced_by = row->lsn;
		break;
	}
}

static int note_member(void *arg, const struct journal_row *row,
    const struct record *rec, const struct record_member *m)
{
	struct ledger_pass *pass = arg;
	char key[REFD_PATH_MAX];
	struct ledger_entry *e;
	size_t len;

	if (interrupt_came())
		return -EINTR;
	len = (size_t)snprintf(key, sizeof(key), "%s/%s", m->worktree, m->name);
	if (len >= sizeof(key) ||
	    (hash_of(key) & pass->half.mask) != pass->half.want)
		return 0;
	HASH_FIND_STR(pass->v->ledger, key, e);
	if (e == NULL && pass->is_filled)
		return 0;
	if (e == NULL)
		e = entry_add(pass->v, key, strlen(m->worktree));
	if (e == NULL)
		return -ENOMEM;
	free(e->target);
	e->target = m->target != NULL ? strdup(m->target) : NULL;
	if (m->target != NULL && e->target == NULL)
		return -ENOMEM;
	note_packed(e, row, rec, m);
	e->lsn = row->lsn;
	e->locked_at_ns = row->locked_at_ns;
	e->time_us = row->time_us;
	e->last = *m;
	e->last.name = e->name;
	e->last.target = e->target;
	e->last.text = e->last.worktree = NULL;
	if (HASH_COUNT(pass->v->ledger) > pass->v->opt->ledger_max &&
	    pass->nr_later < HALVES_MAX)
		halve(pass);
	return 0;
}

/* ---- one ref ---- */

/* Files: 1 or 0. Reftables: also a negative errno. */
static int has_log(struct verify *v, const struct verify_place *place,
    const char *name)
{
	char path[REFD_PATH_MAX];
	struct sys_stat st;

	if (v->is_reftable)
		return verify_has_log_in_stack(v, place, name);
	return (size_t)snprintf(path, sizeof(path), "logs/%s", name) <
	    sizeof(path) &&
	    SYS(v->sys, lstatat, place->dirfd, path, &st) == 0 && st.size > 0;
}

static void value_text(const struct ledger_entry *e,
    enum refd_object_format format, char text[160])
{
	char hex[REFD_OID_MAX_HEX + 1], when[32] = "";
	time_t seconds = (time_t)(e->time_us / 1000000);
	struct tm tm;

	if (gmtime_r(&seconds, &tm) != NULL)
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (e->last.action == RECORD_DELETE)
		snprintf(text, 160, "its deletion (%s, record %llu)", when,
		    (unsigned long long)e->lsn);
	else
		snprintf(text, 160, "%.80s (%s, record %llu)",
		    e->target != NULL ?
			e->target :
			refd_oid_hex(&e->last.new_oid, format, hex),
		    when, (unsigned long long)e->lsn);
}

static void found_unreadable(struct verify *v, const struct verify_place *place,
    const struct ledger_entry *e, int err)
{
	char buf[REFD_PATH_MAX];

	verify_found(v, FOUND_REFTABLE_UNREADABLE,
	    verify_ref_name(place, e->name, buf), e->name,
	    "it can't be compared with the journal: %s", strerror(-err));
}

static void found_lost(struct verify *v, const struct verify_place *place,
    const struct ledger_entry *e, bool is_absent)
{
	char text[160], buf[REFD_PATH_MAX];
	const char *ref = verify_ref_name(place, e->name, buf);
	int r = is_absent ? has_log(v, place, e->name) : 0;

	value_text(e, v->repo.object_format, text);
	if (!is_absent)
		verify_found(v, FOUND_JOURNAL_DISAGREES, ref, e->name,
		    "the last record of the journal is %s, and the ref is "
		    "older",
		    text);
	else if (r < 0)
		found_unreadable(v, place, e, r);
	else if (r > 0)
		verify_found(v, FOUND_REF_LOST, ref, e->name,
		    "the last record of the journal is %s, and only the log of "
		    "the ref exists",
		    text);
	else
		verify_found(v, FOUND_REF_GONE, ref, e->name,
		    "the last record of the journal is %s; the ref was deleted "
		    "without refd, or lost",
		    text);
}

static void found_returned(struct verify *v, const struct ledger_entry *e)
{
	char *text = returned_text(&e->packed, v->repo.object_format);

	verify_found(v, FOUND_REF_RETURNED, e->name, e->name, "%s",
	    text != NULL ? text : "out of memory");
	free(text);
}

/* Recovery omits a record whose object was pruned. */
static bool is_to_be_had(struct verify *v, const struct ledger_entry *e)
{
	return e->last.action == RECORD_DELETE || e->target != NULL ||
	    verify_object_fits(v, e->name, &e->last.new_oid);
}

/* Only the record before the last one proves a loss. All other indices may be
 * those of a newer stack, which counts from 1: of a repository that was
 * migrated, or of a worktree that was made again. */
static void check_in_stack(struct verify *v, const struct verify_place *place,
    const struct ledger_entry *e)
{
	const struct record_member *last = &e->last;
	struct stack_found found;
	int r;

	r = verify_find_in_stack(v, place, e->name, &found);
	if (r < 0)
		found_unreadable(v, place, e, r);
	else if (!stack_rule_is_value(last, &found) &&
	    stack_rule_apply(&last, 1, &found, 0) == STACK_REDO &&
	    is_to_be_had(v, e))
		found_lost(v, place, e, !found.exists);
	stack_found_done(&found);
}

static void check_entry(struct verify *v, const struct verify_place *place,
    const struct ledger_entry *e)
{
	const bool is_common = place->worktree[0] == '\0';
	const struct rule_files files = { .sys = v->sys,
		.dirfd = place->dirfd,
		.format = v->repo.object_format,
		.snap = is_common ? v->snap : NULL,
		.packed_mtime_ns = v->packed_mtime_ns };
	struct rule_files_found found;

	if (rule_files_apply(&files, &e->last, e->locked_at_ns, &found) < 0 ||
	    (!found.is_loose && is_common && v->snap == NULL))
		return;
	/* A broken ref is another finding. */
	if (found.verdict == RULE_LOST && !found.is_broken &&
	    is_to_be_had(v, e))
		found_lost(v, place, e, !found.is_loose && !found.has_oid);
	else if (!found.is_loose && found.has_oid &&
	    e->packed.replaced_by != 0 &&
	    refd_oid_eq(&found.oid, &e->packed.value) &&
	    !returned_is_logged(v->sys, place->dirfd, v->repo.object_format,
		&e->packed))
		found_returned(v, e);
}

/* The daemon may publish or abort a record of the last seconds. */
static bool is_at_work(struct verify *v, const struct ledger_entry *e)
{
	return v->is_daemon_up &&
	    SYS(v->sys, now_wall) / 1000 - e->time_us < AT_WORK_US;
}

void verify_record(struct verify *v, const struct verify_place *place,
    const char *name)
{
	char key[REFD_PATH_MAX];
	struct ledger_entry *e;

	snprintf(key, sizeof(key), "%s/%s", place->worktree, name);
	HASH_FIND_STR(v->ledger, key, e);
	if (e == NULL || is_at_work(v, e) || verify_is_deferred(v, place, name))
		return;
	if (v->is_reftable)
		check_in_stack(v, place, e);
	else
		check_entry(v, place, e);
}

/* ---- all of them ---- */

static const struct verify_place *place_of(struct verify *v,
    const struct ledger_entry *e, struct verify_place *common)
{
	size_t i, len = (size_t)(e->name - e->key) - 1;

	*common = (struct verify_place){ v->repo.fd, "" };
	if (len == 0)
		return common;
	for (i = 0; i < v->nr_worktrees; i++)
		if (strlen(v->worktrees[i].worktree) == len &&
		    strncmp(v->worktrees[i].worktree, e->key, len) == 0)
			return &v->worktrees[i];
	return NULL;
}

static void read_on(struct verify *v)
{
	struct ledger_pass *pass = v->pass;
	uint64_t last = pass->last;

	if (verify_each_member(v, pass->last, note_member, pass, &last) == 0)
		pass->last = last;
}

static int pass_through(struct ledger_pass *pass)
{
	struct verify *v = pass->v;
	const struct verify_place *place;
	struct ledger_entry *e, *next;
	struct verify_place common;
	int r;

	pass->last = 0;
	pass->is_filled = false;
	r = verify_each_member(v, 0, note_member, pass, &pass->last);
	if (r < 0)
		return r;
	pass->is_filled = true;
	v->refresh = read_on;
	HASH_ITER(hh, v->ledger, e, next) {
		place = place_of(v, e, &common);
		if (place != NULL)
			verify_check(v, verify_record, place, e->name);
	}
	verify_check_again(v);
	v->refresh = NULL;
	return 0;
}

void verify_ledger(struct verify *v)
{
	struct half later[HALVES_MAX];
	struct ledger_pass pass = { .v = v, .later = later };
	char *damage;
	int r = 0;

	if (v->journal == NULL || v->journal_repo == 0 || v->awaits)
		return;
	v->pass = &pass;
	do {
		r = pass_through(&pass);
		ledger_free(v);
		if (pass.nr_later == 0 || r < 0)
			break;
		pass.half = later[--pass.nr_later];
	} while (true);
	if (r < 0) {
		damage = journal_damage(v->journal);
		verify_found(v, FOUND_JOURNAL_UNREADABLE, "", "",
		    "the journal in '%s' can't be read to its end: %s",
		    v->opt->state, damage != NULL ? damage : strerror(-r));
		free(damage);
	}
}
