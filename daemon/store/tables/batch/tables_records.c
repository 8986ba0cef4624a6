/*
 * Tables: the records of the new tables.
 *
 *	a new value		a ref, and an entry of its log
 *	a deletion		a deletion of the ref; stack_table_make() adds
 *				the deletions of its log entries
 *	a symbolic ref on	an entry of its log
 *	the way, HEAD
 *	a confirmed value,	nothing
 *	or a ref that is
 *	already absent
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/batch/tables.h"
#include "daemon/store/tables/stack/stack_log.h"

bool tables_writes_nothing(const struct change *c)
{
	return c->action == CHANGE_NOTHING ||
	    (c->action == CHANGE_DELETE && !c->exists);
}

static bool writes_ref(const struct change *c)
{
	return c->action == CHANGE_WRITE ||
	    (c->action == CHANGE_DELETE && c->exists);
}

static bool writes_log(const struct change *c)
{
	return c->log && (c->action == CHANGE_WRITE || c->action == CHANGE_LOG);
}

static bool confirms(const struct change *c)
{
	return tables_writes_nothing(c) && c->is_end && !change_only_looks(c);
}

static int count(struct pass *p, struct repo_slice *g)
{
	struct tables_part *part;
	struct change *c;
	int r;

	for (c = g->changes; c != NULL; c = c->next_in_repo) {
		if (!change_is_live(c))
			continue;
		r = tables_part(p, c, &part);
		if (r < 0)
			return r;
		part->has_changes = true;
		part->update.mode |= c->slice->file_mode;
		part->confirms = part->confirms || confirms(c);
		part->nr_records += writes_ref(c) + writes_log(c);
	}
	return 0;
}

static int allocate(struct repo_slice *g)
{
	struct tables_part *part;

	for (part = g->tables.parts; part != NULL; part = part->next) {
		if (part->nr_records == 0)
			continue;
		part->records =
		    calloc(part->nr_records, sizeof(*part->records));
		if (part->records == NULL)
			return -ENOMEM;
		part->nr_records = 0;
	}
	return 0;
}

int tables_list_records(struct pass *p, struct repo_slice *g)
{
	struct tables_part *part;
	struct change *c;
	int r;

	r = count(p, g);
	if (r == 0)
		r = allocate(g);
	if (r < 0)
		return r;
	for (c = g->changes; c != NULL; c = c->next_in_repo) {
		if (!change_is_live(c) || tables_part(p, c, &part) < 0)
			continue;
		if (writes_ref(c))
			part->records[part->nr_records++] =
			    (struct tables_record){ c, false };
		if (writes_log(c))
			part->records[part->nr_records++] =
			    (struct tables_record){ c, true };
	}
	return 0;
}

static void set_ref(const struct change *c, struct reftable_record *rec)
{
	const char *target = change_new_target(c);
	const struct txn_update *u = c->u;

	rec->section = REFTABLE_REFS;
	if (c->action == CHANGE_DELETE) {
		rec->is_deletion = true;
		rec->ref.kind = REFTABLE_REF_DELETED;
	} else if (target != NULL) {
		rec->ref.kind = REFTABLE_REF_SYMREF;
		rec->ref.target =
		    (struct reftable_text){ target, strlen(target) };
	} else {
		rec->ref.kind = u->object == TXN_OBJECT_TAG && u->peeled ?
		    REFTABLE_REF_PEELED :
		    REFTABLE_REF_OID;
		rec->ref.oid = u->ask->new_oid;
		if (rec->ref.kind == REFTABLE_REF_PEELED)
			rec->ref.peeled = *u->peeled;
	}
}

static void set_log(const struct change *c, struct reftable_record *rec)
{
	static const struct refd_oid null_oid;
	const struct change *end = c->of != NULL ? c->of : c;
	const struct slice *s = c->slice;

	rec->section = REFTABLE_LOGS;
	stack_log_set(&rec->log, end->exists ? &end->old_oid : &null_oid,
	    end->action != CHANGE_DELETE ? &end->new_oid : &null_oid,
	    s->committer, s->message != NULL ? s->message : "");
}

void tables_record_of(void *arg, size_t i, struct reftable_record *rec)
{
	const struct tables_part *part = arg;
	const struct change *c = part->records[i].change;

	rec->name = c->edit.name;
	if (part->records[i].is_log)
		set_log(c, rec);
	else
		set_ref(c, rec);
}
