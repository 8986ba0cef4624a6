#include "daemon/group/foreign_ref.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/stack/stack_look.h"

void foreign_ref_done(struct foreign_ref *ref)
{
	free(ref->target);
	ref->target = NULL;
}

/* ---- one ref ---- */

static int look_into_tables(const struct repo *repo, struct stack_look *look)
{
	return stack_look_begin(look, repo->stacks, "", repo->fd,
	    STACK_WORK_MAX);
}

static void set(struct foreign_ref *ref, struct loose_value *value)
{
	ref->kind = value->kind;
	ref->oid = value->oid;
	ref->target = value->target;
	value->target = NULL;
	loose_value_done(value);
}

static int read_tables(const struct repo *repo, struct foreign_ref *ref)
{
	struct loose_value value;
	struct stack_look look;
	uint64_t index;
	int r = look_into_tables(repo, &look);

	if (r == 0)
		r = stack_look_value(&look.reader, ref->name, &value, &index);
	stack_look_end(&look);
	if (r == 0)
		set(ref, &value);
	return r;
}

static int look_up_packed(const struct repo *repo, struct foreign_ref *ref)
{
	struct packed_snapshot *snap;
	int r = packed_snapshot(repo->packed, &snap);

	if (r < 0)
		return r;
	r = packed_lookup(snap, ref->name, &ref->oid);
	packed_snapshot_put(snap);
	ref->kind = r > 0 ? LOOSE_OID : LOOSE_ABSENT;
	return r < 0 ? r : 0;
}

int foreign_ref_read(const struct sys *sys, const struct repo *repo,
    const char *name, struct foreign_ref *ref)
{
	struct loose_value value;
	int r;

	*ref = (struct foreign_ref){ .kind = LOOSE_BROKEN };
	if (strlen(name) >= sizeof(ref->name))
		return -ENAMETOOLONG;
	strcpy(ref->name, name);
	if (repo->format == REPO_REFTABLE)
		return read_tables(repo, ref);
	r = loose_stays_inside(sys, repo->fd, name);
	if (r == 0)
		r = loose_read(sys, repo->fd, name, repo->object_format,
		    &value);
	if (r < 0)
		return r;
	set(ref, &value);
	if (ref->kind == LOOSE_ABSENT || ref->kind == LOOSE_DIR)
		return look_up_packed(repo, ref);
	return 0;
}

/* ---- names above and below ---- */

/* 1, 0, or negative errno. */
static int read_there(const struct sys *sys, const struct repo *repo,
    const char *name, struct foreign_ref *ref)
{
	int r;

	foreign_ref_done(ref);
	r = foreign_ref_read(sys, repo, name, ref);
	if (r < 0)
		return r;
	return ref->kind == LOOSE_OID || ref->kind == LOOSE_SYMREF ||
	    ref->kind == LOOSE_BROKEN;
}

static int find_above(const struct sys *sys, const struct repo *repo,
    const char *name, struct foreign_ref *ref)
{
	char above[REFD_REFNAME_MAX + 1];
	char *slash;
	int r = 0;

	snprintf(above, sizeof(above), "%s", name);
	while (r == 0 && (slash = strrchr(above, '/')) != NULL) {
		*slash = '\0';
		r = read_there(sys, repo, above, ref);
	}
	return r;
}

static int find_loose_below(const struct sys *sys, const struct repo *repo,
    const char *name, struct foreign_ref *ref)
{
	char *found = NULL;
	int r = loose_find_below(sys, repo->fd, name, &found);

	if (r > 0)
		r = read_there(sys, repo, found, ref);
	free(found);
	return r;
}

static int find_packed_below(const struct sys *sys, const struct repo *repo,
    const char *name, struct foreign_ref *ref)
{
	char below[REFD_REFNAME_MAX + 2], found[REFD_PATH_MAX];
	struct packed_snapshot *snap;
	int r = packed_snapshot(repo->packed, &snap);

	if (r < 0)
		return r;
	snprintf(below, sizeof(below), "%s/", name);
	r = packed_find_below(snap, below, found);
	packed_snapshot_put(snap);
	return r > 0 ? read_there(sys, repo, found, ref) : r;
}

static int find_in_tables(const struct sys *sys, const struct repo *repo,
    const char *name, struct foreign_ref *ref)
{
	char found[REFD_PATH_MAX];
	struct stack_look look;
	int r = look_into_tables(repo, &look);

	if (r == 0)
		r = stack_reader_conflict(&look.reader, name, NULL, NULL,
		    found);
	stack_look_end(&look);
	return r > 0 ? read_there(sys, repo, found, ref) : r;
}

int foreign_ref_find_blocker(const struct sys *sys, const struct repo *repo,
    const char *name, struct foreign_ref *ref)
{
	int r;

	*ref = (struct foreign_ref){ .kind = LOOSE_ABSENT };
	if (repo->format == REPO_REFTABLE)
		return find_in_tables(sys, repo, name, ref);
	r = find_above(sys, repo, name, ref);
	if (r == 0)
		r = find_loose_below(sys, repo, name, ref);
	if (r == 0)
		r = find_packed_below(sys, repo, name, ref);
	return r;
}
