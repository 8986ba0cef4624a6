/*
 * A repository whose refs are in reftables, with a stack in the common dir and
 * in each worktree.
 *
 * Happy path: every listed table exists and passes the check of the whole table
 * (reftable_check.h). Names, ids and objects are those of sound refs, and the
 * newest entry of each reflog has the value of its ref.
 *
 * A stack is checked as a snapshot, so other writers do not matter. If there is
 * a finding, the whole stack is checked a second time, because objects may be
 * pruned meanwhile. A stack with a damaged table is not read further.
 * verify_record.c compares the refs with the journal.
 *
 * Repaired: tables that have lost their footer, under git's lock
 * (daemon/store/tables/stack/stack_mend.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/verify_internal.h"
#include "daemon/store/tables/format/reftable_check.h"
#include "daemon/store/tables/format/reftable_merged.h"
#include "daemon/store/tables/format/reftable_stack.h"
#include "daemon/store/tables/stack/stack_look.h"
#include "daemon/store/tables/stack/stack_mend.h"
#include "proto/lib/interrupt.h"
#include "proto/refname.h"

#define DIRECTORY "reftable"
#define LIST      DIRECTORY "/" REFTABLE_LIST

/* Of a stack (struct reftable_budget): some minutes, so that nobody else's
 * repository waits longer, whatever the tables say. */
#define WORK_MAX ((uint64_t)64 * 1024 * 1024 * 1024)

struct stack_check {
	struct verify *v;
	const struct ref_place *place;
	struct reftable_stack stack;
	struct reftable_fault fault;
	struct reftable_budget budget;
	struct reftable_iterator found; /* for look-ups of refs */
	char name[REFD_PATH_MAX];       /* the last one */
	/* A ref has the first LENGTH bytes of the name. */
	bool is_ref[REFD_PATH_MAX];
};

static void found_fault(struct stack_check *c, int error)
{
	char text[REFTABLE_FAULT_TEXT], file[REFTABLE_TABLE_NAME_MAX + 16];
	enum finding_id id = FOUND_REFTABLE_DAMAGED;

	c->v->has_fault = c->v->has_fault || c->v->is_sure;
	snprintf(file, sizeof(file), DIRECTORY "/%s", c->fault.table);
	reftable_stack_fault_text(&c->fault, error, text);
	if (error != -EBADMSG && error != -ENOENT && error != -EFBIG)
		id = FOUND_REFTABLE_UNREADABLE;
	else if (strcmp(file, LIST) == 0)
		id = FOUND_REFTABLE_LIST;
	verify_found(c->v, id, "", file, "%s", text);
}

/* Has the table of the fault only lost its footer? */
static bool found_footer(struct stack_check *c, int dirfd)
{
	char file[REFTABLE_TABLE_NAME_MAX + 16];
	struct reftable_fault ignored;
	struct reftable_mend mend;

	if (!reftable_stack_is_name(c->fault.table) ||
	    strcmp(c->fault.table, REFTABLE_LIST) == 0 ||
	    reftable_mend_open(c->v->sys, dirfd, c->fault.table,
		c->v->git_syncs, &mend, &ignored) < 0)
		return false;
	snprintf(file, sizeof(file), DIRECTORY "/%s", c->fault.table);
	verify_found(c->v, FOUND_REFTABLE_FOOTER, "", file,
	    "the footer is lost, so git reads no ref; all blocks are there%s",
	    mend.may_lack_logs ?
		", but entries of logs may be missing at the end" :
		"");
	reftable_mend_close(&mend);
	return true;
}

/* ---- refs ---- */

static void check_symref(struct stack_check *c, const char *ref,
    const struct reftable_text *target)
{
	char name[REFD_PATH_MAX];
	int len = (int)target->len;

	if (target->len >= sizeof(name)) {
		verify_found(c->v, FOUND_REF_BROKEN, ref, LIST,
		    "it points to a name that is too long");
		return;
	}
	snprintf(name, sizeof(name), "%.*s", len, target->at);
	if (strlen(name) != target->len || !refd_refname_format_ok(name))
		verify_found(c->v, FOUND_REF_BROKEN, ref, LIST,
		    "it points to '%s', which is not a valid name", name);
}

/* The refs come in order, so the names that are the beginning of a name come
 * before the name, and only names with the same beginning are in between. */
static void check_conflict(struct stack_check *c, const char *ref,
    const char *name)
{
	size_t len = strlen(name), same = 0, i;

	while (name[same] != '\0' && name[same] == c->name[same])
		same++;
	memset(c->is_ref + same + 1, 0, sizeof(c->is_ref) - same - 1);
	for (i = 1; i < len; i++)
		if (name[i] == '/' && c->is_ref[i])
			verify_found(c->v, FOUND_REF_CONFLICT, ref, LIST,
			    "'%.*s' is a ref as well", (int)i, name);
	c->is_ref[len] = true;
	memcpy(c->name, name, len + 1);
}

static void check_ref(struct stack_check *c, const struct reftable_record *rec)
{
	struct verify *v = c->v;
	char buf[REFD_PATH_MAX];
	const char *ref = verify_ref_name(c->place, rec->name, buf);

	findings_progress(v->opt->findings, v->repo.path, ref);
	if (!refd_refname_format_ok(rec->name))
		verify_found(v, FOUND_REF_NAME, ref, LIST,
		    "git does not accept that name");
	check_conflict(c, ref, rec->name);
	if (rec->ref.kind == REFTABLE_REF_SYMREF)
		check_symref(c, ref, &rec->ref.target);
	else
		verify_object(v, ref, rec->name, LIST, &rec->ref.oid);
}

/* ---- reflogs ---- */

static void check_log(struct stack_check *c, const struct reftable_record *log)
{
	char buf[REFD_PATH_MAX], is[REFD_OID_MAX_HEX + 1];
	char said[REFD_OID_MAX_HEX + 1];
	const char *ref = verify_ref_name(c->place, log->name, buf);
	const enum refd_object_format format = c->stack.format;
	const struct reftable_record *rec = &c->found.cursor.record;
	int r;

	r = reftable_stack_find(&c->stack, log->name, &c->found, &c->fault);
	if (r < 0)
		found_fault(c, r);
	else if (r == 0)
		verify_found(c->v, FOUND_LOG_ORPHAN, ref, LIST,
		    "there is no such ref, but its log exists");
	else if (rec->ref.kind != REFTABLE_REF_SYMREF &&
	    !refd_oid_eq(&rec->ref.oid, &log->log.to))
		verify_found(c->v, FOUND_LOG_DISAGREES, ref, LIST,
		    "the ref is at %s, its log ends with %s",
		    refd_oid_hex(&rec->ref.oid, format, is),
		    refd_oid_hex(&log->log.to, format, said));
}

/* Git marks an empty reflog by an entry of two null ids. */
static bool is_entry(const struct reftable_log *log)
{
	return !refd_oid_is_null(&log->from) || !refd_oid_is_null(&log->to);
}

/* ---- one stack ---- */

static void each_record(struct stack_check *c, enum reftable_section section)
{
	const struct reftable_record *rec;
	struct reftable_merged *merged;
	int r;

	r = reftable_merged_open(&c->stack, section, "", false, &c->budget,
	    &merged, &c->fault);
	if (r < 0) {
		found_fault(c, r);
		return;
	}
	c->name[0] = '\0';
	while ((r = reftable_merged_next(merged, &rec, &c->fault)) > 0 &&
	    !interrupt_came()) {
		if (section == REFTABLE_REFS) {
			check_ref(c, rec);
		} else if (strcmp(c->name, rec->name) != 0) {
			snprintf(c->name, sizeof(c->name), "%s", rec->name);
			if (is_entry(&rec->log))
				check_log(c, rec);
		}
	}
	if (r < 0)
		found_fault(c, r);
	reftable_merged_free(merged);
}

static bool check_tables(struct stack_check *c)
{
	bool is_sound = true;
	size_t i;
	int r;

	for (i = 0; i < c->stack.nr && !interrupt_came(); i++) {
		r = reftable_check(&c->stack.tables[i], &c->budget, &c->fault);
		if (r < 0) {
			found_fault(c, r);
			is_sound = false;
		}
	}
	return is_sound;
}

static void check_stack(struct stack_check *c, int dirfd)
{
	int r = reftable_stack_open(c->v->sys, dirfd, c->v->repo.object_format,
	    NULL, &c->stack, &c->fault);

	if (r < 0) {
		if (r != -EBADMSG || !found_footer(c, dirfd))
			found_fault(c, r);
	} else if (check_tables(c)) {
		each_record(c, REFTABLE_REFS);
		each_record(c, REFTABLE_LOGS);
	}
	reftable_iterator_done(&c->found);
	reftable_stack_close(&c->stack);
}

/* NAME: the list of tables. */
static void verify_stack(struct verify *v, const struct ref_place *place,
    const char *name)
{
	struct stack_check *c = calloc(1, sizeof(*c));
	int fd;

	if (c == NULL) {
		v->aborted = true;
		return;
	}
	c->v = v;
	c->place = place;
	c->budget = REFTABLE_BUDGET(WORK_MAX);
	c->found.budget = &c->budget;
	fd = SYS(v->sys, openat, place->dirfd, DIRECTORY,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0) {
		verify_found(v,
		    fd == -ENOENT ? FOUND_REFTABLE_DAMAGED :
				    FOUND_REFTABLE_UNREADABLE,
		    "", name, "the directory of the tables: %s", strerror(-fd));
	} else {
		check_stack(c, fd);
		SYS(v->sys, close, fd);
	}
	free(c);
}

void verify_reftables(struct verify *v, const struct ref_place *place)
{
	verify_check(v, verify_stack, place, LIST);
	verify_check(v, verify_lock, place, LIST);
}

/* ---- the repair ---- */

/* Under git's lock, because refd may never have served the repository. */
static int mend_all(struct verify *v, const struct ref_place *place,
    struct stack *stack, struct reftable_fault *fault, size_t *nr)
{
	struct stack_mended mended;
	struct stack_update u;
	int r, err;

	do {
		stack_update_init(&u, stack, place->dirfd, NULL, 0);
		r = stack_update_lock(&u);
		if (r == 0)
			r = stack_mend(&u, v->git_syncs, &mended);
		*fault = u.fault;
		*nr += r > 0;
		err = stack_update_end(&u);
	} while (r > 0 && err == 0);
	return r < 0 ? r : err;
}

char *verify_mend(struct verify *v, const struct ref_place *place, bool *done)
{
	char text[REFTABLE_FAULT_TEXT];
	struct reftable_fault fault = { .table = DIRECTORY };
	struct stack *stack;
	size_t nr = 0;
	int r;

	r = stack_open(v->sys, place->dirfd, &v->repo.object_format, &stack);
	if (r == 0) {
		r = mend_all(v, place, stack, &fault, &nr);
		stack_put(stack);
	}
	*done = r == 0 && nr > 0;
	if (r == -EEXIST)
		return repo_why("not repaired: another has the lock of the "
				"reftables");
	if (r < 0)
		return repo_why("not repaired: %s",
		    reftable_stack_fault_text(&fault, r, text));
	return nr == 0 ?
	    repo_why("not repaired: another has written it meanwhile") :
	    repo_why("wrote %zu tables again, with their footers", nr);
}

/* ---- one ref ---- */

static int look_begin(struct stack_look *look, struct verify *v,
    const struct ref_place *place)
{
	return stack_look_begin(look, v->repo.stacks, place->worktree,
	    place->dirfd, STACK_WORK_MAX);
}

int verify_find_in_stack(struct verify *v, const struct ref_place *place,
    const char *name, struct stack_found *found)
{
	struct stack_look look;
	int r = look_begin(&look, v, place);

	memset(found, 0, sizeof(*found));
	if (r == 0)
		r = stack_look_found(&look.reader, name, found);
	stack_look_end(&look);
	return r;
}

static int ends_with_value(void *arg, const struct reftable_record *log)
{
	*(bool *)arg = !refd_oid_is_null(&log->log.to);
	return 1;
}

int verify_has_log_in_stack(struct verify *v, const struct ref_place *place,
    const char *name)
{
	bool has = false;
	struct stack_look look;
	int r = look_begin(&look, v, place);

	if (r == 0)
		r = stack_reader_logs(&look.reader, name, ends_with_value,
		    &has);
	stack_look_end(&look);
	return r < 0 ? r : has;
}
