#include "tests/lib/leader_rig.h"

#include <check.h>
#include <stdio.h>

#include "daemon/group/group_internal.h"
#include "daemon/group/own_txn.h"
#include "daemon/store/batch/pass.h"

bool ldr_has_tables;
unsigned ldr_nr_told;
const char *ldr_told;
char ldr_names[200];
ldr_commit_fn *ldr_commit;

/* ---- fixtures ---- */

void ldr_begin(void)
{
	if (ldr_has_tables)
		tbl_setup();
	else
		wr_setup();
}

void ldr_begin_files(void)
{
	ldr_has_tables = false;
	ldr_begin();
}

void ldr_begin_tables(void)
{
	ldr_has_tables = true;
	ldr_begin();
}

void ldr_end(void)
{
	if (ldr_has_tables)
		tbl_teardown();
	else
		wr_teardown();
}

char ldr_value(const char *name)
{
	return ldr_has_tables ? tbl_ref(name) : world_ref(w, name);
}

/* ---- the group ---- */

static void tell(struct follower *f, const struct repo *repo, const char *name)
{
	(void)f;
	ck_assert_str_eq(repo->path, WORLD_REPO);
	ck_assert_str_eq(name, ldr_told);
	ldr_nr_told++;
}

void ldr_share_rows(void)
{
	static struct group g;

	g = (struct group){ .base = { &group_replica_ops, &w->store.parts },
		.diverged = tell };
	w->store.pipeline->applier.replica = &g.base;
}

static void note_names(const struct record *rec)
{
	const char *answered = "", *changed = "";
	size_t i;

	for (i = 0; rec != NULL && i < rec->nr_members; i++) {
		if (rec->members[i].answers)
			answered = rec->members[i].name;
		if (record_changes_ref(&rec->members[i]))
			changed = rec->members[i].name;
	}
	snprintf(ldr_names, sizeof(ldr_names), "%s %s", answered, changed);
}

static int number(void *arg, struct journal_row *rows, size_t nr, bool flush)
{
	uint64_t lsn = journal_shared_lsn(w->store.journal);
	size_t i;

	for (i = 0; i < nr; i++) {
		if (rows[i].slice == NULL ||
		    !group_txn_is_of_node(rows[i].slice->txn))
			rows[i].shared_lsn = ++lsn;
		note_names(rows[i].record);
	}
	return ldr_commit(arg, rows, nr, flush);
}

void ldr_join(ldr_commit_fn *commit)
{
	struct applier *ap = &w->store.pipeline->applier;

	journal_set_shared(w->store.journal,
	    (const uint8_t *)"a group of nodes");
	ldr_commit = ap->commit;
	ap->commit = commit;
	ldr_share_rows();
}

void ldr_lead(void)
{
	ldr_join(number);
	ldr_nr_told = 0;
	ldr_told = "refs/heads/a";
}

void ldr_write_beside(const char *spec)
{
	struct applier *ap = &w->store.pipeline->applier;
	ldr_commit_fn *const commit = ap->commit;

	ap->replica = &w->store.alone;
	ap->commit = ldr_commit;
	wr_ok(spec);
	ap->commit = commit;
	ldr_share_rows();
}
