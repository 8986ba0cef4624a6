/* Looks for refs, in both formats, and for git refs migrate. */
#include <string.h>

#include "daemon/store/repos/repo_internal.h"
#include "daemon/store/tables/stack/stack_look.h"

/* packed_each() */
static int is_line(void *arg, const char *name, const struct refd_oid *oid)
{
	(void)arg;
	(void)name;
	(void)oid;
	return 1;
}

static int has_lines(const struct repo *repo)
{
	struct packed_snapshot *snap;
	int r = packed_snapshot(repo->packed, &snap);

	if (r < 0)
		return r;
	r = packed_each(snap, is_line, NULL);
	packed_snapshot_put(snap);
	return r;
}

static int has_files(const struct sys *sys, const struct repo *repo)
{
	int r = loose_dir_holds_file(sys, repo->fd, "refs");

	return r == 0 ? has_lines(repo) : r;
}

/* stack_record_fn */
static int is_ref(void *arg, const struct reftable_record *rec)
{
	(void)arg;
	return rec->ref.kind != REFTABLE_REF_DELETED;
}

static int has_tables(const struct repo *repo)
{
	struct stack_look look;
	int r =
	    stack_look_begin(&look, repo->stacks, "", repo->fd, STACK_WORK_MAX);

	if (r == 0)
		r = stack_reader_each(&look.reader, REFTABLE_REFS, "refs/",
		    is_ref, NULL);
	stack_look_end(&look);
	return r;
}

int repo_has_refs(const struct sys *sys, const struct repo *repo)
{
	return repo->format == REPO_REFTABLE ? has_tables(repo) :
					       has_files(sys, repo);
}

/* A git directory has about 15 entries. */
#define ENTRIES_MAX 1000

bool repo_has_migration(const struct sys *sys, int fd,
    char name[REPO_MIGRATION_MAX])
{
	static const char prefix[] = "ref_migration.";
	struct sys_dirent entry;
	struct sys_dir *dir;
	bool found = false;
	unsigned nr = 0;

	if (SYS(sys, dir_open, fd, ".", &dir) < 0)
		return false;
	while (!found && nr++ < ENTRIES_MAX &&
	    SYS(sys, dir_next, dir, &entry) > 0) {
		found = strncmp(entry.name, prefix, strlen(prefix)) == 0 &&
		    strlen(entry.name) < REPO_MIGRATION_MAX;
		if (found)
			strcpy(name, entry.name);
	}
	SYS(sys, dir_close, dir);
	return found;
}
