/*
 * Mends a ref of this node whose value is not the value that the group gave the
 * ref. A program without refd's hook has written the ref, or the repository was
 * replaced by an older copy. The group's value comes back, because the group
 * has acknowledged it, and nothing is thrown away:
 *
 *	a value			kept as refs/refd/diverged/<LSN of the row>/...,
 *				by the transaction that mends the ref
 *	a value in the way	kept, and removed
 *	a symbolic ref		replaced; the log has its target
 *	no ref			nothing to keep
 *	a value of a later row	not kept, because the later row will bring
 *				the value back
 *
 * Only this node has the other value, so the transaction that mends is of this
 * node alone. The journal has this transaction, and the log of the group has
 * not. Its locks and comparisons are those of any other transaction. The caller
 * then tries its update again, which meets the group's value, so no batch needs
 * to know about values of other programs.
 *
 * A crash in between leaves the group's value, or the found value, which the
 * next attempt finds kept already.
 *
 * Each ref costs a flush, and a row can have very many refs, or refs in the
 * way. The rows of all repositories wait meanwhile, so an attempt mends a part,
 * and the next attempt goes on.
 *
 * What fails: with a lock, a full disk, an unreadable ref or a missing object
 * the ref cannot get its value, so the repository waits. If a ref is as it
 * should be, the caller decides.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/group/follower_internal.h"
#include "daemon/group/foreign_ref.h"
#include "daemon/group/mend.h"
#include "daemon/group/own_txn.h"
#include "proto/refname.h"

/* Names for several values of one ref. */
#define KEPT_MAX     100
#define BLOCKERS_MAX 1000
/* After this time no further ref is mended. The first ref is always mended, so
 * each attempt makes progress. */
#define MEND_NS (200 * 1000000LL)

struct row_mending {
	struct follower *f;
	struct attempt *a;
	const struct repo *repo;
	const struct refd_oid *next;
	char kept[REFD_REFNAME_MAX + 1]; /* of the present ref; "": nothing */
	bool is_lost;   /* the object of the present ref is missing */
	bool is_later;  /* the present ref is of a row that comes later */
	int64_t end_ns; /* is_late() */
};

static const struct journal_value no_ref;

static bool is_late(const struct row_mending *k)
{
	return SYS(k->f->host->sys, now_mono) >= k->end_ns;
}

/* ---- a transaction of this node ---- */

static enum result look_at(struct row_mending *k, const struct own_txn *nt)
{
	const struct txn_update *u;
	size_t i;

	for (i = 0; i < nt->txn->nr_updates; i++) {
		u = &nt->txn->updates[i];
		if (u->status == REFD_OK || u->status == REFD_ABORTED)
			continue;
		attempt_say(k->a,
		    "can't give a ref the group's value back: '%s' "
		    "of '%s': %s%s%s",
		    u->ask->name, k->repo->path,
		    u->status == REFD_PENDING ? "is locked" :
						refd_status_name(u->status),
		    u->text != NULL ? ", " : "",
		    u->text != NULL ? u->text : "");
		attempt_make_readable(k->a->why);
		return RESULT_WAITS;
	}
	if (nt->slice.lsn == 0)
		return attempt_waits(k->a, "the journal takes no kept ref");
	return RESULT_DONE;
}

/* Has admission refused an update? */
static bool is_decided(const struct own_txn *nt)
{
	size_t i;

	for (i = 0; i < nt->txn->nr_updates; i++)
		if (nt->txn->updates[i].status != REFD_PENDING)
			return true;
	return false;
}

static bool lacks_object(const struct own_txn *nt)
{
	size_t i;

	for (i = 0; i < nt->txn->nr_updates; i++)
		if (nt->txn->updates[i].status == REFD_NOOBJECT)
			return true;
	return false;
}

/* Does the found value lack its object? */
static bool lacks_kept(const struct row_mending *k, const struct own_txn *nt)
{
	return strcmp(nt->txn->updates[0].ask->name, k->kept) == 0 &&
	    nt->txn->updates[0].status == REFD_NOOBJECT;
}

static enum result apply(struct row_mending *k, struct own_txn *nt)
{
	follower_admit(k->f, nt, 1);
	if (attempt_is_refused(k->a, nt->txn))
		return RESULT_WAITS;
	k->is_lost = lacks_kept(k, nt);
	if (k->is_lost)
		return RESULT_WAITS;
	k->a->lacks_object = lacks_object(nt);
	/* A value that cannot be kept must not be replaced, so nothing is
	 * done. */
	if (is_decided(nt))
		return look_at(k, nt);
	pipeline_apply_rows(k->f->host->pipeline, &nt->slice, 1);
	return look_at(k, nt);
}

static enum result run(struct row_mending *k, const struct refd_update *updates,
    size_t nr)
{
	enum result result;
	struct own_txn nt;
	int r;

	if (nr == 0)
		return RESULT_DONE;
	r = own_txn_of_node(&nt, k->repo, updates, nr, k->a->row != NULL);
	if (r < 0)
		return attempt_waits(k->a, strerror(-r));
	result = apply(k, &nt);
	follower_put_repo(k->f, nt.txn);
	own_txn_done(&nt);
	return result;
}

/* ---- the name of a kept value ---- */

static void make_name(struct row_mending *k, const char *name, unsigned nth)
{
	const char *bare = strncmp(name, "refs/", 5) == 0 ? name + 5 : name;
	char number[16] = "";
	int len;

	if (nth > 1)
		snprintf(number, sizeof(number), ".%u", nth);
	len = snprintf(k->kept, sizeof(k->kept), REFD_DIVERGED "%llu%s/%s",
	    (unsigned long long)k->a->lsn, number, bare);
	if ((size_t)len >= sizeof(k->kept))
		snprintf(k->kept, sizeof(k->kept),
		    REFD_DIVERGED "%llu%s/long-name",
		    (unsigned long long)k->a->lsn, number);
}

/* 1: the name is free; 0: it is taken; negative errno. *IS_KEPT: it has OID. */
static int is_free(const struct row_mending *k, const struct refd_oid *oid,
    bool *is_kept)
{
	const struct sys *sys = k->f->host->sys;
	struct foreign_ref ref;
	int r;

	r = foreign_ref_read(sys, k->repo, k->kept, &ref);
	*is_kept =
	    r == 0 && ref.kind == LOOSE_OID && refd_oid_eq(&ref.oid, oid);
	if (r == 0)
		r = *is_kept || ref.kind == LOOSE_ABSENT;
	foreign_ref_done(&ref);
	if (r <= 0 || *is_kept)
		return r;
	r = foreign_ref_find_blocker(sys, k->repo, k->kept, &ref);
	foreign_ref_done(&ref);
	return r < 0 ? r : r == 0;
}

/* An earlier attempt may have kept the same value, or another value of the same
 * ref, so a taken name gets a number. */
static bool choose_name(struct row_mending *k, const struct foreign_ref *ref,
    bool *is_kept)
{
	unsigned nth;
	int r = 0;

	for (nth = 1; nth <= KEPT_MAX && r == 0; nth++) {
		make_name(k, ref->name, nth);
		r = is_free(k, &ref->oid, is_kept);
	}
	if (r <= 0)
		attempt_say(k->a,
		    "no name is free below " REFD_DIVERGED "%llu of '%s' for "
		    "'%s', which another program has written: delete refs "
		    "there",
		    (unsigned long long)k->a->lsn, k->repo->path, ref->name);
	return r > 0;
}

/* ---- one ref ---- */

bool mend_is_as_wanted(const struct foreign_ref *ref,
    const struct journal_value *want)
{
	if (want->target != NULL)
		return ref->kind == LOOSE_SYMREF &&
		    strcmp(ref->target, want->target) == 0;
	if (want->exists)
		return ref->kind == LOOSE_OID &&
		    refd_oid_eq(&ref->oid, &want->oid);
	return ref->kind == LOOSE_ABSENT || ref->kind == LOOSE_DIR;
}

/* From the value of REF to WANT. */
static struct refd_update make_update(const struct foreign_ref *ref,
    const struct journal_value *want)
{
	struct refd_update u = { .action = REFD_UPDATE,
		.name = ref->name,
		.no_deref = true,
		.has_old = true,
		.old_oid = ref->oid,
		.new_oid = want->oid };

	if (want->target != NULL) {
		u.action = REFD_SYMREF_UPDATE;
		u.target = want->target;
	} else if (!want->exists) {
		u.action = REFD_DELETE;
	}
	if (ref->kind == LOOSE_SYMREF) {
		u.old_target = ref->target;
		if (u.action == REFD_DELETE)
			u.action = REFD_SYMREF_DELETE;
	}
	return u;
}

/* Is the value of REF from a later row of the group? The copies of a join are
 * made after the position in the log, so they can have such values. */
static bool is_of_later_row(const struct row_mending *k,
    const struct foreign_ref *ref)
{
	struct journal_value value;
	bool is = journal_find_value(k->f->host->repos->journal, k->repo->id,
		      ref->name, &value) == 1 &&
	    value.lsn >= k->a->lsn && mend_is_as_wanted(ref, &value);

	free(value.target);
	return is;
}

/* The value of REF gets a second name, and REF becomes WANT. */
static enum result replace(struct row_mending *k, const struct foreign_ref *ref,
    const struct journal_value *want)
{
	struct refd_update updates[2];
	bool is_kept = true;
	enum result result;
	size_t nr = 0;

	k->kept[0] = '\0';
	k->is_lost = false;
	k->is_later = is_of_later_row(k, ref);
	if (ref->kind == LOOSE_OID && !k->is_later &&
	    (k->next == NULL || !refd_oid_eq(&ref->oid, k->next)) &&
	    !choose_name(k, ref, &is_kept))
		return RESULT_WAITS;
	if (!is_kept)
		updates[nr++] = (struct refd_update){ .action = REFD_CREATE,
			.name = k->kept,
			.no_deref = true,
			.new_oid = ref->oid };
	updates[nr++] = make_update(ref, want);
	result = run(k, updates, nr);
	if (!k->is_lost)
		return result;
	k->kept[0] = '\0';
	result = run(k, &updates[1], 1);
	k->is_lost = true;
	return result;
}

static void report(struct row_mending *k, const struct foreign_ref *ref)
{
	char was[REFD_PATH_MAX + 16] = "no value", text[3 * REFD_PATH_MAX];

	if (k->is_later)
		return;
	if (ref->kind == LOOSE_OID)
		refd_oid_hex(&ref->oid, k->repo->object_format, was);
	else if (ref->kind == LOOSE_SYMREF)
		snprintf(was, sizeof(was), "the target %s", ref->target);
	snprintf(text, sizeof(text),
	    "'%s' had %s%s, which is not from the group: %s%s; the value that "
	    "the group gave until row %llu is back",
	    ref->name, was, k->is_lost ? ", a missing object" : "",
	    k->kept[0] != '\0' ? "kept as " : "nothing is kept", k->kept,
	    (unsigned long long)k->a->lsn);
	attempt_make_readable(text);
	if (k->f->host->config->event != NULL)
		k->f->host->config->event(STORE_REF_DIVERGED, k->repo->path,
		    text);
}

static enum result unreadable(struct row_mending *k, const char *name, int err)
{
	attempt_say(k->a,
	    "'%s' of '%s', which is not as in the group, can't be read: %s",
	    name, k->repo->path, err < 0 ? strerror(-err) : "it is damaged");
	return RESULT_WAITS;
}

/* ---- refs in the way ---- */

/* A value that is kept already gets no second name, because this name would be
 * in the way again. */
static bool is_kept_name(const char *name)
{
	const size_t len = strlen(REFD_DIVERGED) - 1;

	return strncmp(name, REFD_DIVERGED, len) == 0 &&
	    (name[len] == '/' || name[len] == '\0');
}

/* Looks for a lock, or for another file that is no ref, below NAME. */
static enum result look_for_file(struct row_mending *k, const char *name)
{
	char *found = NULL;
	int r;

	if (k->repo->format != REPO_FILES)
		return RESULT_DONE;
	r = loose_find_file(k->f->host->sys, k->repo->fd, name, &found);
	if (r < 0)
		return unreadable(k, name, r);
	if (r > 0) {
		attempt_say(k->a,
		    "the group has '%s' of '%s', and the file '%s', which is "
		    "no ref, is in the way: remove it",
		    name, k->repo->path, found);
		attempt_make_readable(k->a->why);
	}
	free(found);
	return r > 0 ? RESULT_WAITS : RESULT_DONE;
}

static enum result remove_blocker(struct row_mending *k, const char *name)
{
	enum result result;
	struct foreign_ref ref;
	int r;

	r = foreign_ref_find_blocker(k->f->host->sys, k->repo, name, &ref);
	if (r < 0 || ref.kind == LOOSE_BROKEN) {
		result = unreadable(k, r < 0 ? name : ref.name, r);
	} else if (r == 0) {
		result = look_for_file(k, name);
	} else if (is_kept_name(ref.name)) {
		attempt_say(k->a,
		    "the group has '%s' of '%s', and the kept value '%s' is in "
		    "the way: delete it (git update-ref -d)",
		    name, k->repo->path, ref.name);
		result = RESULT_WAITS;
	} else {
		result = replace(k, &ref, &no_ref);
		if (result == RESULT_DONE) {
			report(k, &ref);
			result = RESULT_AGAIN;
		}
	}
	foreign_ref_done(&ref);
	return result;
}

/* DONE: none was there. AGAIN: there can be more if K is late. */
static enum result remove_blockers(struct row_mending *k, const char *name)
{
	enum result result = RESULT_AGAIN;
	unsigned i;

	for (i = 0; i < BLOCKERS_MAX && result == RESULT_AGAIN; i++) {
		if (i > 0 && is_late(k))
			return RESULT_AGAIN;
		result = remove_blocker(k, name);
	}
	return result == RESULT_DONE && i > 1 ? RESULT_AGAIN : result;
}

/* ---- mending ---- */

static enum result mend_value(struct row_mending *k, const char *name,
    const struct journal_value *want)
{
	enum result result = RESULT_DIFFERS;
	struct foreign_ref ref;
	int r;

	r = foreign_ref_read(k->f->host->sys, k->repo, name, &ref);
	if (r < 0 || ref.kind == LOOSE_BROKEN)
		result = unreadable(k, name, r);
	else if (!mend_is_as_wanted(&ref, want))
		result = replace(k, &ref, want);
	if (result == RESULT_DONE) {
		report(k, &ref);
		result = RESULT_AGAIN;
	}
	foreign_ref_done(&ref);
	return result;
}

static enum result mend_name(struct row_mending *k, const char *name,
    const struct journal_value *want)
{
	enum result blockers = RESULT_DONE, result;

	/* A deletion needs no room, but a new value of the ref does. */
	if (want->exists || want->target != NULL || k->next != NULL)
		blockers = remove_blockers(k, name);
	k->a->is_part = blockers == RESULT_AGAIN && is_late(k);
	if (blockers == RESULT_WAITS || k->a->is_part)
		return blockers;
	result = mend_value(k, name, want);
	return result == RESULT_DIFFERS && blockers == RESULT_AGAIN ? blockers :
								      result;
}

enum result mend_ref(struct follower *f, struct attempt *a,
    const struct repo *repo, const char *name, const struct journal_value *want,
    const struct refd_oid *next)
{
	struct row_mending k = { .f = f,
		.a = a,
		.repo = repo,
		.next = next,
		.end_ns = SYS(f->host->sys, now_mono) + MEND_NS };

	return mend_name(&k, name, want);
}

/* Mends the ref of M, which gets the old value of the row. The leader has
 * compared this old value with the group's value. So the old value of the row
 * is the group's value, even if this node takes another value for the
 * group's. */
static enum result mend_member(struct row_mending *k,
    const struct record_member *m)
{
	const struct journal_value want = {
		.lsn = k->a->lsn,
		.exists = m->had_old && !refd_oid_is_null(&m->old_oid),
		.oid = m->old_oid,
	};

	k->next = m->action != RECORD_DELETE ? &m->new_oid : NULL;
	return mend_name(k, m->name, &want);
}

/* Each attempt at a large row needs much time before mending can begin. So
 * mending may take as long as the attempt has taken: otherwise most of the time
 * would go to the attempts, and the row would wait for hours. */
static int64_t end_of_mending(const struct follower *f, const struct attempt *a)
{
	const int64_t now_ns = SYS(f->host->sys, now_mono);
	const int64_t took_ns = now_ns - a->began_ns;

	return now_ns + (took_ns > MEND_NS ? took_ns : MEND_NS);
}

/* Once a part of the refs is mended, the row fits only in part, and then all
 * its updates fail (append.c). So the failed updates do not tell which refs are
 * mended already. The next attempt begins with the ref that was mended last:
 * otherwise its time would go to refs that have their values. */
enum result mend_row(struct follower *f, struct attempt *a,
    const struct own_txn *rt)
{
	const struct record *rec = &rt->record;
	const size_t nr = rec->nr_members, first = a->member;
	struct row_mending k = { .f = f,
		.a = a,
		.repo = rt->txn->repo,
		.end_ns = end_of_mending(f, a) };
	enum result result = RESULT_DIFFERS, next;
	const struct record_member *m;
	size_t n, i;

	for (n = 0; n < nr && result != RESULT_WAITS; n++) {
		i = (first + n) % nr;
		m = &rec->members[i];
		if (!attempt_differs(m, &rt->txn->updates[m->index]))
			continue;
		if (result == RESULT_AGAIN && is_late(&k))
			break;
		next = mend_member(&k, m);
		if (next != RESULT_DIFFERS) {
			result = next;
			a->member = i;
		}
	}
	return result;
}
