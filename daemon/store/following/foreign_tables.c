/* Foreign refs in reftables: in the stack of the common dir. */
#include "daemon/store/following/foreign_tables.h"

#include <errno.h>
#include <string.h>

#include "daemon/store/stack/stack_reader.h"
#include "daemon/store/stack/stack_set.h"

/* The present tables. Not to be moved. */
struct look {
	struct stack *stack;
	struct stack_snapshot *snap;
	struct stack_reader reader;
	struct reftable_budget budget;
};

static void look_done(struct look *look)
{
	stack_reader_done(&look->reader);
	stack_snapshot_put(look->snap);
	if (look->stack != NULL)
		stack_put(look->stack);
}

static int look_init(struct look *look, const struct repo *repo)
{
	struct reftable_fault fault;
	int r;

	memset(look, 0, sizeof(*look));
	look->budget = REFTABLE_BUDGET(STACK_WORK_MAX);
	r = stack_set_get(repo->stacks, "", repo->fd, &look->stack);
	if (r < 0)
		look->stack = NULL;
	else
		r = stack_snapshot(look->stack, &look->snap, &fault);
	if (r == 0)
		r = stack_reader_init(&look->reader, look->snap, &look->budget);
	if (r < 0)
		look_done(look);
	return r;
}

static int take_target(const struct reftable_text *target,
    struct foreign_ref *ref)
{
	if (memchr(target->at, '\0', target->len) != NULL)
		return 0;
	ref->target = strndup(target->at, target->len);
	if (ref->target == NULL)
		return -ENOMEM;
	ref->kind = LOOSE_SYMREF;
	return 0;
}

static int read_ref(struct look *look, struct foreign_ref *ref)
{
	const struct reftable_record *rec;
	int r = stack_reader_find(&look->reader, ref->name, &rec);

	if (r <= 0) {
		ref->kind = r == 0 ? LOOSE_ABSENT : LOOSE_BROKEN;
		return r;
	}
	if (rec->ref.kind == REFTABLE_REF_SYMREF)
		return take_target(&rec->ref.target, ref);
	ref->kind = LOOSE_OID;
	ref->oid = rec->ref.oid;
	return 0;
}

int foreign_tables_read(const struct repo *repo, struct foreign_ref *ref)
{
	struct look look;
	int r = look_init(&look, repo);

	if (r < 0)
		return r;
	r = read_ref(&look, ref);
	look_done(&look);
	return r;
}

int foreign_tables_find_blocker(const struct repo *repo, const char *name,
    char found[REFD_PATH_MAX])
{
	struct look look;
	int r = look_init(&look, repo);

	if (r < 0)
		return r;
	r = stack_reader_conflict(&look.reader, name, NULL, NULL, found);
	look_done(&look);
	return r;
}
