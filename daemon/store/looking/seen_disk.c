/*
 * Reads the refs of a repository from the disk, without locks.
 *
 * Happy path: all loose refs, then packed-refs, because git packs a ref before
 * the loose file goes; or one snapshot of the reftables. The files are hostile
 * input, so paths are resolved beneath a descriptor, without links, and the
 * search has bounds.
 *
 * Failure modes:
 *	a directory or file goes meanwhile	passed over: the ref is looked
 *						at again under its lock
 *	a file is empty, torn, or no ref	the value is unknown
 *	too many entries or levels		-EFBIG: a part of the refs would
 *						make the others look deleted
 *	packed-refs, tables, the disk		the error is returned
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/files/format/loose.h"
#include "daemon/store/looking/seen_refs.h"
#include "daemon/store/tables/stack/stack_look.h"
#include "proto/refname.h"

/* The maximum of entries below refs/, for each ref that has room and in all,
 * and of levels. Levels are few, because each level has a descriptor open. */
#define ENTRIES_PER_REF 4
#define ENTRIES_MAX     (2 * SEEN_REFS_MAX)
#define DEPTH_MAX       24

/* The work that a look at reftables may do (struct reftable_budget), enough for
 * some ten million refs. */
#define TABLES_WORK ((uint64_t)2 * 1024 * 1024 * 1024)

struct seen_search {
	const struct sys *sys;
	struct repo *repo;
	struct seen_refs *refs;
	size_t nr;
	unsigned depth;
	char path[REFD_PATH_MAX];
};

bool seen_refs_has_place(const char *name)
{
	const char *id, *bare;
	size_t id_len;

	return strcmp(name, "HEAD") == 0 ||
	    (strncmp(name, "refs/", 5) == 0 && refd_refname_may_write(name) &&
		refd_refname_place(name, &id, &id_len, &bare) ==
		    REFD_PLACE_COMMON);
}

/* ---- loose refs ---- */

static int add_loose(struct seen_search *s, const char *name)
{
	struct loose_value value;
	struct seen_ref ref = { .name = name };
	int r;

	if (!seen_refs_has_place(name))
		return 0;
	r = loose_read(s->sys, s->repo->fd, name, s->repo->object_format,
	    &value);
	if (r == -ENOMEM)
		return r;
	if (r < 0 || value.kind == LOOSE_BROKEN)
		ref.is_unknown = true;
	if (r == 0 && value.kind == LOOSE_OID)
		ref.oid = value.oid;
	if (r == 0 && value.kind == LOOSE_SYMREF) {
		ref.target = value.target;
		ref.is_unknown = !refd_refname_may_write(ref.target);
	}
	if (ref.is_unknown || seen_ref_exists(&ref))
		r = seen_refs_set(s->refs, SEEN_DISK, &ref);
	else
		r = 0;
	loose_value_done(&value);
	return r;
}

static int search(struct seen_search *s);

static int look_at(struct seen_search *s, size_t len,
    const struct sys_dirent *entry)
{
	const size_t n = strlen(entry->name);
	int r;

	if (len + 1 + n >= sizeof(s->path) || ++s->nr > ENTRIES_MAX ||
	    s->nr > ENTRIES_PER_REF * seen_refs_max(s->refs))
		return -EFBIG;
	s->path[len] = '/';
	memcpy(s->path + len + 1, entry->name, n + 1);
	if (entry->type == DT_DIR)
		r = search(s);
	else
		r = add_loose(s, s->path);
	/* Not every file system tells the type, so the entry may be a
	 * directory, too. */
	if (r == 0 && entry->type == DT_UNKNOWN)
		r = search(s);
	s->path[len] = '\0';
	return r;
}

static int search(struct seen_search *s)
{
	const size_t len = strlen(s->path);
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r;

	if (s->depth == DEPTH_MAX)
		return -EFBIG;
	r = SYS(s->sys, dir_open, s->repo->fd, s->path, &dir);
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? 0 : r;
	s->depth++;
	while ((r = SYS(s->sys, dir_next, dir, &entry)) > 0 &&
	    (r = look_at(s, len, &entry)) == 0)
		;
	s->depth--;
	SYS(s->sys, dir_close, dir);
	return r;
}

/* ---- packed-refs ---- */

static int add_packed(void *arg, const char *name, const struct refd_oid *oid)
{
	struct seen_search *s = arg;
	const struct seen_ref ref = { .name = name, .oid = *oid };
	struct seen_ref loose;

	if (!seen_refs_has_place(name) ||
	    seen_refs_find(s->refs, SEEN_DISK, name, &loose))
		return 0;
	return seen_refs_set(s->refs, SEEN_DISK, &ref);
}

static int read_files(struct seen_search *s)
{
	struct packed_snapshot *snap;
	int r;

	strcpy(s->path, "refs");
	r = search(s);
	if (r == 0)
		r = add_loose(s, "HEAD");
	if (r == 0)
		r = packed_snapshot(s->repo->packed, &snap);
	if (r < 0)
		return r;
	r = packed_each(snap, add_packed, s);
	packed_snapshot_put(snap);
	return r;
}

/* ---- reftables ---- */

static int add_record(void *arg, const struct reftable_record *rec)
{
	struct seen_search *s = arg;
	struct seen_ref ref = { .name = rec->name };
	char *target = NULL;
	int r;

	if (!seen_refs_has_place(rec->name))
		return 0;
	switch (rec->ref.kind) {
	case REFTABLE_REF_DELETED:
		return 0;
	case REFTABLE_REF_OID:
	case REFTABLE_REF_PEELED:
		ref.oid = rec->ref.oid;
		break;
	case REFTABLE_REF_SYMREF:
		target = strndup(rec->ref.target.at, rec->ref.target.len);
		if (target == NULL)
			return -ENOMEM;
		ref.target = target;
		ref.is_unknown = !refd_refname_may_write(target);
		break;
	}
	r = seen_refs_set(s->refs, SEEN_DISK, &ref);
	free(target);
	return r;
}

static int read_tables(struct seen_search *s)
{
	struct stack_look look;
	int r = stack_look_begin(&look, s->repo->stacks, "", s->repo->fd,
	    TABLES_WORK);

	if (r == 0)
		r = stack_reader_each(&look.reader, REFTABLE_REFS, "",
		    add_record, s);
	stack_look_end(&look);
	return r;
}

int seen_refs_read(const struct sys *sys, struct repo *repo,
    struct seen_refs *refs)
{
	struct seen_search s = { .sys = sys, .repo = repo, .refs = refs };

	return repo->format == REPO_REFTABLE ? read_tables(&s) : read_files(&s);
}

uint32_t seen_refs_owner(const struct sys *sys, const struct repo *repo,
    const char *name)
{
	const char *shared = repo->format == REPO_REFTABLE ?
	    "reftable/tables.list" :
	    "packed-refs";
	struct sys_stat st;

	if ((repo->format == REPO_FILES &&
		SYS(sys, lstatat, repo->fd, name, &st) == 0) ||
	    SYS(sys, lstatat, repo->fd, shared, &st) == 0)
		return st.uid;
	return repo->owner;
}
