/*
 * Refs of this node which another program has written: the old value of a row
 * of the group differs. The row wins, and nothing is thrown away:
 *
 *	a value			kept as refs/refd/diverged/<LSN of the row>/...;
 *				the row is applied over it
 *	a value in the way	kept, and removed with the same transaction
 *	a symbolic ref		removed; the log has its target
 *	no ref			nothing to keep
 *
 * Each step is durable before the next. After a crash in between, the next
 * start finds the same value again, and finds it kept.
 *
 * What fails: a lock, a full disk, an unreadable ref: the row waits. A ref that
 * is as the row expects: the row differs in another way, and the caller
 * decides.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/following/follower_internal.h"
#include "daemon/store/following/foreign_ref.h"
#include "daemon/store/following/node_txn.h"
#include "proto/refname.h"

/* Names for several values of one ref. */
#define KEPT_MAX     100
#define BLOCKERS_MAX 1000

struct keeping {
	struct follower *f;
	struct attempt *a;
	const struct repo *repo;
	char kept[REFD_REFNAME_MAX + 1]; /* of the present ref; "": nothing */
	bool is_lost; /* the object of the present ref is missing */
};

/* ---- a transaction of this node ---- */

static enum result look_at(struct keeping *k, const struct node_txn *nt)
{
	const struct txn_update *u;
	size_t i;

	for (i = 0; i < nt->txn->nr_updates; i++) {
		u = &nt->txn->updates[i];
		if (u->status == REFD_OK || u->status == REFD_ABORTED)
			continue;
		attempt_say(k->a,
		    "can't keep a ref of another program: '%s' "
		    "of '%s': %s%s%s",
		    u->ask->name, k->repo->path,
		    u->status == REFD_PENDING ? "is locked" :
						refd_status_name(u->status),
		    u->text != NULL ? ", " : "",
		    u->text != NULL ? u->text : "");
		attempt_make_readable(k->a->why);
		return RESULT_WAITS;
	}
	if (nt->batch->slices[0].lsn == 0)
		return attempt_waits(k->a, "the journal takes no kept ref");
	return RESULT_DONE;
}

/* Has admission refused an update? */
static bool is_decided(const struct node_txn *nt)
{
	size_t i;

	for (i = 0; i < nt->txn->nr_updates; i++)
		if (nt->txn->updates[i].status != REFD_PENDING)
			return true;
	return false;
}

static bool lacks_object(const struct node_txn *nt)
{
	size_t i;

	for (i = 0; i < nt->txn->nr_updates; i++)
		if (nt->txn->updates[i].status == REFD_NOOBJECT)
			return true;
	return false;
}

static enum result apply(struct keeping *k, struct node_txn *nt)
{
	follower_admit(k->f, nt->txn);
	if (nt->txn->refused != REFD_OK)
		return attempt_waits(k->a,
		    nt->txn->why != NULL ? nt->txn->why :
					   refd_status_name(nt->txn->refused));
	k->is_lost = lacks_object(nt);
	if (k->is_lost)
		return RESULT_WAITS;
	/* A value that can't be kept must not be removed. */
	if (is_decided(nt))
		return look_at(k, nt);
	pipeline_apply_row(k->f->cfg.pipeline, nt->batch);
	return look_at(k, nt);
}

static enum result run(struct keeping *k, const struct refd_update *updates,
    size_t nr)
{
	enum result result;
	struct node_txn nt;
	int r;

	if (nr == 0)
		return RESULT_DONE;
	r = node_txn_init(&nt, k->repo, updates, nr);
	if (r < 0)
		return attempt_waits(k->a, strerror(-r));
	result = apply(k, &nt);
	follower_put_repo(k->f, nt.txn);
	node_txn_done(&nt);
	return result;
}

/* ---- the name of a kept value ---- */

static void make_name(struct keeping *k, const char *name, unsigned nth)
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
static int is_free(const struct keeping *k, const struct refd_oid *oid,
    bool *is_kept)
{
	const struct sys *sys = k->f->cfg.sys;
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
 * ref. */
static bool choose_name(struct keeping *k, const struct foreign_ref *ref,
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

static size_t add_removal(const struct foreign_ref *ref,
    struct refd_update *updates)
{
	updates[0] = (struct refd_update){ .action = REFD_DELETE,
		.name = ref->name,
		.no_deref = true,
		.has_old = true,
		.old_oid = ref->oid };
	if (ref->kind == LOOSE_SYMREF) {
		updates[0].action = REFD_SYMREF_DELETE;
		updates[0].old_target = ref->target;
	}
	return 1;
}

/* The value of REF gets a second name, and with REMOVES loses the first. */
static enum result take(struct keeping *k, const struct foreign_ref *ref,
    bool removes)
{
	struct refd_update updates[2];
	bool is_kept = true;
	enum result result;
	size_t nr = 0;

	k->kept[0] = '\0';
	k->is_lost = false;
	if (ref->kind == LOOSE_OID && !choose_name(k, ref, &is_kept))
		return RESULT_WAITS;
	if (!is_kept)
		updates[nr++] = (struct refd_update){ .action = REFD_CREATE,
			.name = k->kept,
			.no_deref = true,
			.new_oid = ref->oid };
	if (removes)
		nr += add_removal(ref, &updates[nr]);
	result = run(k, updates, nr);
	if (!k->is_lost)
		return result;
	k->kept[0] = '\0';
	result = run(k, updates, removes ? add_removal(ref, updates) : 0);
	k->is_lost = true;
	return result;
}

/* WHAT became of REF, if nothing was kept. */
static void report(struct keeping *k, const struct foreign_ref *ref,
    const char *what)
{
	char was[REFD_PATH_MAX + 16] = "no value", text[3 * REFD_PATH_MAX];

	if (ref->kind == LOOSE_OID)
		refd_oid_hex(&ref->oid, k->repo->object_format, was);
	else if (ref->kind == LOOSE_SYMREF)
		snprintf(was, sizeof(was), "the target %s", ref->target);
	snprintf(text, sizeof(text),
	    "'%s' had %s%s, which is not from the group: %s%s; row %llu of the "
	    "group is applied",
	    ref->name, was, k->is_lost ? ", a missing object" : "",
	    k->kept[0] != '\0' ? "kept as " : what, k->kept,
	    (unsigned long long)k->a->lsn);
	attempt_make_readable(text);
	if (k->f->cfg.event != NULL)
		k->f->cfg.event(STORE_GROUP_DIVERGED, k->repo->path, text);
}

static enum result unreadable(struct keeping *k, const char *name, int err)
{
	attempt_say(k->a,
	    "'%s' of '%s', which is not as in the group, can't be read: %s",
	    name, k->repo->path, err < 0 ? strerror(-err) : "it is damaged");
	return RESULT_WAITS;
}

/* ---- refs in the way ---- */

/* Another name of a kept value would be in the way again. */
static bool is_kept_name(const char *name)
{
	const size_t len = strlen(REFD_DIVERGED) - 1;

	return strncmp(name, REFD_DIVERGED, len) == 0 &&
	    (name[len] == '/' || name[len] == '\0');
}

/* A lock, or another file that is no ref, is below NAME. */
static enum result look_for_file(struct keeping *k, const char *name)
{
	char *found = NULL;
	int r;

	if (k->repo->format != REPO_FILES)
		return RESULT_DONE;
	r = loose_find_file(k->f->cfg.sys, k->repo->fd, name, &found);
	if (r < 0)
		return unreadable(k, name, r);
	if (r > 0) {
		attempt_say(k->a,
		    "the row has '%s' of '%s', and the file '%s', which is no "
		    "ref, is in the way: remove it",
		    name, k->repo->path, found);
		attempt_make_readable(k->a->why);
	}
	free(found);
	return r > 0 ? RESULT_WAITS : RESULT_DONE;
}

static enum result remove_blocker(struct keeping *k, const char *name)
{
	enum result result;
	struct foreign_ref ref;
	int r;

	r = foreign_ref_find_blocker(k->f->cfg.sys, k->repo, name, &ref);
	if (r < 0 || ref.kind == LOOSE_BROKEN) {
		result = unreadable(k, r < 0 ? name : ref.name, r);
	} else if (r == 0) {
		result = look_for_file(k, name);
	} else if (is_kept_name(ref.name)) {
		attempt_say(k->a,
		    "the row has '%s' of '%s', and the kept value '%s' is in "
		    "the way: delete it (git update-ref -d)",
		    name, k->repo->path, ref.name);
		result = RESULT_WAITS;
	} else {
		result = take(k, &ref, true);
		if (result == RESULT_DONE) {
			report(k, &ref, "removed");
			result = RESULT_AGAIN;
		}
	}
	foreign_ref_done(&ref);
	return result;
}

/* DONE: none was there. */
static enum result remove_blockers(struct keeping *k, const char *name)
{
	enum result result = RESULT_AGAIN;
	unsigned i;

	for (i = 0; i < BLOCKERS_MAX && result == RESULT_AGAIN; i++)
		result = remove_blocker(k, name);
	return result == RESULT_DONE && i > 1 ? RESULT_AGAIN : result;
}

/* ---- the updates of a row ---- */

/* The next attempt expects the value of REF. */
static enum result expect(struct keeping *k, const struct record_member *m,
    const struct foreign_ref *ref, bool exists)
{
	k->a->found[m->index] = (struct row_found){ .is_known = true,
		.exists = exists,
		.oid = ref->oid };
	return RESULT_AGAIN;
}

static enum result take_value(struct keeping *k, const struct record_member *m,
    const struct foreign_ref *ref)
{
	enum result result = RESULT_DONE;

	if (m->had_old && refd_oid_eq(&m->old_oid, &ref->oid))
		return RESULT_DIFFERS;
	k->kept[0] = '\0';
	if (m->target != NULL || !refd_oid_eq(&m->new_oid, &ref->oid))
		result = take(k, ref, false);
	if (result != RESULT_DONE)
		return result;
	report(k, ref, "the row has the same value");
	return expect(k, m, ref, true);
}

static enum result take_symref(struct keeping *k, const struct record_member *m,
    const struct foreign_ref *ref)
{
	enum result result;

	if (m->target != NULL)
		return RESULT_DIFFERS;
	result = take(k, ref, true);
	if (result != RESULT_DONE)
		return result;
	report(k, ref, "removed");
	return expect(k, m, ref, false);
}

static enum result take_absence(struct keeping *k,
    const struct record_member *m, const struct foreign_ref *ref)
{
	if (!m->had_old)
		return RESULT_DIFFERS;
	k->kept[0] = '\0';
	report(k, ref, "there is nothing to keep");
	return expect(k, m, ref, false);
}

static enum result take_ref(struct keeping *k, const struct record_member *m)
{
	enum result result = RESULT_DIFFERS;
	struct foreign_ref ref;
	int r;

	k->is_lost = false;
	r = foreign_ref_read(k->f->cfg.sys, k->repo, m->name, &ref);
	if (r < 0 || ref.kind == LOOSE_BROKEN)
		result = unreadable(k, m->name, r);
	else if (ref.kind == LOOSE_OID)
		result = take_value(k, m, &ref);
	else if (ref.kind == LOOSE_SYMREF)
		result = take_symref(k, m, &ref);
	else if (ref.kind == LOOSE_ABSENT)
		result = take_absence(k, m, &ref);
	foreign_ref_done(&ref);
	return result;
}

static enum result keep_of(struct keeping *k, const struct record_member *m)
{
	enum result blockers = RESULT_DONE, result;

	/* A deletion needs no room. */
	if (m->action != RECORD_DELETE)
		blockers = remove_blockers(k, m->name);
	if (blockers == RESULT_WAITS)
		return blockers;
	result = take_ref(k, m);
	return result == RESULT_DIFFERS && blockers == RESULT_AGAIN ? blockers :
								      result;
}

enum result diverged_keep(struct follower *f, struct attempt *a,
    const struct row_txn *rt)
{
	struct keeping k = { .f = f, .a = a, .repo = rt->txn->repo };
	const struct record *rec = &rt->record;
	enum result result = RESULT_DIFFERS, next;
	size_t i;

	if (a->found == NULL)
		a->found = calloc(rec->nr_updates, sizeof(*a->found));
	if (a->found == NULL)
		return attempt_waits(a, "out of memory");
	for (i = 0; i < rec->nr_members && result != RESULT_WAITS; i++) {
		if (!attempt_differs(&rec->members[i],
			&rt->txn->updates[rec->members[i].index]))
			continue;
		next = keep_of(&k, &rec->members[i]);
		if (next != RESULT_DIFFERS)
			result = next;
	}
	return result;
}
