/*
 * Compares the last record of each ref with the ref.
 *
 * Happy path: the ref has the recorded value, or another writer wrote the ref
 * later, by the rule of rule.h, or of stack_rule.h for refs in reftables.
 *
 * No power loss is known here, unlike in recovery, so git may have deleted an
 * absent ref, and a packed-refs younger than the record belongs to another
 * writer.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/admin/verify_internal.h"
#include "daemon/store/files/recovery/rule.h"
#include "daemon/store/recovery/returned.h"
#include "daemon/store/tables/recovery/stack_rule.h"

#define AT_WORK_US (10 * INT64_C(1000000))

/* The last record of a ref, borrowed from verify_each_row(). */
struct plan {
	const char *name; /* of the ref; lives longer */
	const struct journal_row *row;
	const struct record_member *m;
};

/* Files: 1 or 0. Reftables: also a negative errno. */
static int has_log(struct verify *v, const struct ref_place *place,
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

static void value_text(const struct plan *plan, enum refd_object_format format,
    char text[160])
{
	char hex[REFD_OID_MAX_HEX + 1], when[32] = "";
	time_t seconds = (time_t)(plan->row->time_us / 1000000);
	struct tm tm;

	if (gmtime_r(&seconds, &tm) != NULL)
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (plan->m->action == RECORD_DELETE)
		snprintf(text, 160, "its deletion (%s, record %llu)", when,
		    (unsigned long long)plan->row->lsn);
	else
		snprintf(text, 160, "%.80s (%s, record %llu)",
		    plan->m->target != NULL ?
			plan->m->target :
			refd_oid_hex(&plan->m->new_oid, format, hex),
		    when, (unsigned long long)plan->row->lsn);
}

static void found_unreadable(struct verify *v, const struct ref_place *place,
    const struct plan *plan, int err)
{
	char buf[REFD_PATH_MAX];

	verify_found(v, FOUND_REFTABLE_UNREADABLE,
	    verify_ref_name(place, plan->name, buf), plan->name,
	    "it can't be compared with the journal: %s", strerror(-err));
}

static void found_lost(struct verify *v, const struct ref_place *place,
    const struct plan *plan, bool is_absent)
{
	char text[160], buf[REFD_PATH_MAX];
	const char *ref = verify_ref_name(place, plan->name, buf);
	int r = is_absent ? has_log(v, place, plan->name) : 0;

	value_text(plan, v->repo.object_format, text);
	if (!is_absent)
		verify_found(v, FOUND_JOURNAL_DISAGREES, ref, plan->name,
		    "the last record of the journal is %s, and the ref is "
		    "older",
		    text);
	else if (r < 0)
		found_unreadable(v, place, plan, r);
	else if (r > 0)
		verify_found(v, FOUND_REF_LOST, ref, plan->name,
		    "the last record of the journal is %s, and only the log of "
		    "the ref exists",
		    text);
	else
		verify_found(v, FOUND_REF_GONE, ref, plan->name,
		    "the last record of the journal is %s; the ref was deleted "
		    "without refd, or lost",
		    text);
}

/* Only packed-refs has the ref, with VALUE. */
static void check_packed(struct verify *v, const struct ref_place *place,
    const char *name, const struct refd_oid *value)
{
	struct returned returned = { .name = name, .value = *value };
	char *text;

	if (verify_each_row(v, place, name, returned_note, &returned) < 0 ||
	    returned.replaced_by == 0 ||
	    returned_is_logged(v->sys, place->dirfd, v->repo.object_format,
		&returned))
		return;
	text = returned_text(&returned, v->repo.object_format);
	verify_found(v, FOUND_REF_RETURNED, name, name, "%s",
	    text != NULL ? text : "out of memory");
	free(text);
}

/* Recovery omits a record whose object was pruned, so such a record shows no
 * loss. */
static bool is_to_be_had(struct verify *v, const struct plan *plan)
{
	return plan->m->action == RECORD_DELETE || plan->m->target != NULL ||
	    verify_object_fits(v, plan->name, &plan->m->new_oid);
}

/* Only the record before the last one proves a loss. All other indices may be
 * of a newer stack, which counts from 1, because the repository was migrated,
 * or the worktree was made again. */
static void check_in_stack(struct verify *v, const struct ref_place *place,
    const struct plan *plan)
{
	struct stack_found found;
	int r;

	r = verify_find_in_stack(v, place, plan->name, &found);
	if (r < 0)
		found_unreadable(v, place, plan, r);
	else if (!stack_rule_is_value(plan->m, &found) &&
	    stack_rule_apply(&plan->m, 1, &found, 0) == STACK_REDO &&
	    is_to_be_had(v, plan))
		found_lost(v, place, plan, !found.exists);
	stack_found_done(&found);
}

static void check_in_files(struct verify *v, const struct ref_place *place,
    const struct plan *plan)
{
	const bool is_common = place->worktree[0] == '\0';
	const struct rule_files files = { .sys = v->sys,
		.dirfd = place->dirfd,
		.format = v->repo.object_format,
		.snap = is_common ? v->snap : NULL };
	struct rule_files_found found;

	if (rule_files_apply(&files, plan->m, plan->row->locked_at_ns, &found) <
		0 ||
	    (!found.is_loose && is_common && v->snap == NULL))
		return;
	/* A broken ref is another finding. */
	if (found.verdict == RULE_LOST && !found.is_broken &&
	    is_to_be_had(v, plan))
		found_lost(v, place, plan, !found.is_loose && !found.has_oid);
	else if (!found.is_loose && found.has_oid)
		check_packed(v, place, plan->name, &found.oid);
}

/* The daemon may still publish or abort a record of the last seconds, so such a
 * record is not compared. */
static bool is_at_work(struct verify *v, const struct plan *plan)
{
	return v->is_daemon_up &&
	    SYS(v->sys, now_wall) / 1000 - plan->row->time_us < AT_WORK_US;
}

static int keep_plan(void *arg, const struct journal_row *row,
    const struct record *rec, const struct record_member *m)
{
	struct plan *plan = arg;

	(void)rec;
	plan->row = row;
	plan->m = m;
	return 1;
}

static void check_record(struct verify *v, const struct ref_place *place,
    const char *name)
{
	struct plan plan = { .name = name };

	if (verify_each_row(v, place, name, keep_plan, &plan) <= 0 ||
	    is_at_work(v, &plan) || verify_is_deferred(v, place, name))
		return;
	if (v->is_reftable)
		check_in_stack(v, place, &plan);
	else
		check_in_files(v, place, &plan);
}

/* ---- all of them ---- */

static const struct ref_place *place_of(struct verify *v,
    const struct fold_ref *ref)
{
	const size_t len = (size_t)(ref->name - ref->key) - 1;
	const struct ref_places *places = &v->places;
	size_t i;

	for (i = 0; i < places->nr; i++)
		if (strlen(places->list[i].worktree) == len &&
		    strncmp(places->list[i].worktree, ref->key, len) == 0)
			return &places->list[i];
	return NULL;
}

void verify_records(struct verify *v)
{
	const struct ref_place *place;
	struct fold_ref *ref, *next;
	char *damage;

	if (v->repo_rows == NULL)
		return;
	HASH_ITER(hh, v->repo_rows->refs, ref, next) {
		place = v->awaits ? NULL : place_of(v, ref);
		if (place != NULL)
			verify_check(v, check_record, place, ref->name);
	}
	verify_check_again(v);
	if (v->rows->wrong_shared != NULL)
		verify_found(v, FOUND_JOURNAL_GROUP, "", "", "%s",
		    v->rows->wrong_shared);
	if (v->rows->err < 0 && v->rows->err != -EINTR) {
		damage = journal_damage(v->journal);
		verify_found(v, verify_journal_failed(v->rows->err), "", "",
		    "the journal in '%s' can't be read to its end: %s",
		    v->opt->state,
		    damage != NULL ? damage : strerror(-v->rows->err));
		free(damage);
	}
}
