/*
 * What this node keeps with a repository, and the marks that other programs and
 * the next start find in <common-dir>/refd/:
 *
 *	group	clients never let git write (client/request/connect.h)
 *	import	the repository had refs before its first row. The other nodes
 *		do not have these refs. Until one transaction has given every
 *		ref the value that the ref has, nothing else is admitted
 *		(admit_import.c).
 *
 * The journal keeps a value of each ref that a row has changed, also of a
 * deleted one. So a repository without values has had no row. A row of the
 * leader says whether there were values before, because a node may lack the
 * repository although it has all rows: the leader did not list the repository
 * when the node joined. Such a node must not begin it with the later rows.
 *
 * The happy path: the import mark is durable before the id. The first row of
 * the repository that writes a ref has all its refs, and takes the mark away.
 * The import mark comes first, because after a power loss an id without it
 * would look like that of a repository whose refs all nodes have. The mark of
 * the group is not synced, because every opening makes it again.
 *
 * Failures: the disk. Without its marks a repository would let git write, so it
 * is not opened. If the import mark stays after the row, the import is done
 * again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "daemon/group/group_internal.h"
#include "daemon/store/tables/stack/stack_look.h"

#define IMPORT "import"

/* ---- does a repository have a ref below refs/? ---- */

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

/* A file that is no ref counts, too. */
static int has_refs(const struct sys *sys, const struct repo *repo)
{
	return repo->format == REPO_REFTABLE ? has_tables(repo) :
					       has_files(sys, repo);
}

/* ---- the marks ---- */

static int make_mark(const struct sys *sys, const struct repo *repo,
    const char *name)
{
	int fd = SYS(sys, openat, repo->refd_fd, name,
	    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0644);

	if (fd < 0)
		return fd;
	SYS(sys, close, fd);
	return 0;
}

/* The rows of a repository with a new uuid have all its refs, because the refs
 * of the moment are imported first. So another node may make the repository,
 * and the version of the uuid says this (8: RFC 9562, "custom"). */
static int begin(const struct sys *sys, const struct repo *repo, uint8_t *uuid)
{
	int r = has_refs(sys, repo);

	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x80);
	if (r == 0)
		return repo_unmark(sys, repo, IMPORT);
	if (r > 0)
		r = make_mark(sys, repo, IMPORT);
	return r == 0 ? SYS(sys, fsync, repo->refd_fd) : r;
}

int group_claim(struct replica *r, const struct sys *sys, struct repo *repo,
    uint8_t *uuid)
{
	struct group_repo *kept = calloc(1, sizeof(*kept));
	struct sys_stat st;
	int err = kept == NULL ? -ENOMEM : 0;

	(void)r;
	repo->replica = kept;
	if (err == 0 && uuid != NULL)
		err = begin(sys, repo, uuid);
	if (err == 0)
		err = make_mark(sys, repo, "group");
	if (err != 0)
		return err;
	err = SYS(sys, lstatat, repo->refd_fd, IMPORT, &st);
	if (err == 0)
		atomic_init(&kept->awaits_import, true);
	return err == -ENOENT ? 0 : err;
}

int group_repo_has_values(const struct store_parts *host,
    const struct repo *repo)
{
	struct group_repo *kept = repo->replica;
	struct journal_place at = { .repo = repo->id };
	struct journal_value value;
	int r;

	if (atomic_load(&kept->has_values))
		return 1;
	r = journal_next_value(host->journal, &at, &value);
	free(value.target);
	if (r == 1 && at.repo != repo->id)
		r = 0;
	if (r == 1)
		atomic_store(&kept->has_values, true);
	return r == JOURNAL_UNKNOWN ? -EIO : r;
}

int group_repo_has_refs(const struct store_parts *host, const struct repo *repo)
{
	return has_refs(host->sys, repo);
}

bool group_repo_awaits_import(const struct repo *repo)
{
	struct group_repo *kept = repo->replica;

	return kept != NULL && atomic_load(&kept->awaits_import);
}

void group_repo_imported(const struct sys *sys, const struct repo *repo)
{
	struct group_repo *kept = repo->replica;

	if (group_repo_awaits_import(repo)) {
		repo_unmark(sys, repo, IMPORT);
		atomic_store(&kept->awaits_import, false);
	}
}
