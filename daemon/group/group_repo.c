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
 * A node may lack a repository although it has all rows, because the leader
 * did not list it when the node joined. The later rows alone would look whole
 * there, and the older refs would be gone as soon as the node leads. So a row
 * of the leader says that its repository has values already. A node lets such a
 * row wait if its journal has no value of the repository, and nobody has copied
 * refs. A node that joins gets a value for each listed repository, also for an
 * empty one. On the leader only values of refs that exist count, since nobody
 * misses the others.
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

/* The refs of a new repository are imported before any other row, so the rows
 * of the repository bring all its refs, and another node may make the
 * repository when a row comes, without a copy. The version of the uuid tells
 * the other nodes that the repository is new (8: RFC 9562, "custom"). */
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

/* ---- its values ---- */

static bool is_known(const struct repo *repo)
{
	struct group_repo *kept = repo->replica;

	return kept != NULL && atomic_load(&kept->has_values);
}

/* R: whether there are values. */
static int note(const struct repo *repo, int r)
{
	struct group_repo *kept = repo->replica;

	if (r == 1 && kept != NULL)
		atomic_store(&kept->has_values, true);
	return r;
}

int group_repo_continues(const struct store_parts *host,
    const struct repo *repo)
{
	return is_known(repo) ?
	    1 :
	    note(repo, journal_has_living_value(host->journal, repo->id));
}

static int has_values(struct journal *j, const struct repo *repo)
{
	struct journal_place at = { .repo = repo->id };
	struct journal_value value;
	int r = journal_next_value(j, &at, &value);

	free(value.target);
	return r == 1 ? at.repo == repo->id : r;
}

/* A git that the hook refuses holds a lock for a moment, and its lock file is
 * no copied ref. So only a file counts whose name a ref can have. */
static int has_copied_refs(const struct sys *sys, const struct repo *repo)
{
	char *found = NULL;
	int r;

	if (repo->format == REPO_REFTABLE)
		return has_tables(repo);
	r = loose_find_below(sys, repo->fd, "refs", &found);
	free(found);
	return r == 0 ? has_lines(repo) : r;
}

int group_repo_may_continue(const struct store_parts *host,
    const struct repo *repo)
{
	int r;

	if (is_known(repo))
		return 1;
	r = has_values(host->journal, repo);
	if (r == 0)
		r = has_copied_refs(host->sys, repo);
	return note(repo, r);
}

/* ---- the import ---- */

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
