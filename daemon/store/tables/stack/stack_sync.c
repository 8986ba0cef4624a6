/*
 * Happy path: refd wrote the stack last, and only the new files are flushed.
 *
 * Git's own tables and lists may be in memory alone. A flush of the directory
 * makes their names durable, and after a power loss an empty table or an empty
 * list would make the repository unreadable. So these files are flushed before
 * the directory. On XFS the fsync of one file makes all names durable, so the
 * data of all these files goes to the drive before the first fsync.
 *
 * The name of a list by git becomes durable as well, before the journal gets a
 * row. Then every row in the journal had its base, and recovery need not ask
 * whether another writer's change was lost with the base. If the fsync of the
 * list does not make the name durable, the directory is flushed, but only under
 * the lock: without the lock, the name could already be that of a later list by
 * git, whose bytes are in memory alone.
 *
 * If one fsync makes all earlier changes durable (fs->fsync_covers_all), the
 * new table is written out beside the fsync of the list. The table itself
 * becomes durable with the rename, or earlier. Such a file system has one log,
 * in which size and place of the table precede the rename, and flushes the
 * drive before a commit of the log. If the rename is lost, the list is the list
 * before, and the journal has the records of the table. The new list gets an
 * fsync in any case, because recovery relies on a durable list under the lock.
 *
 * Failures: a failed fsync is never repeated, because the kernel may have
 * dropped the data, and the second fsync would succeed.
 */
#include "daemon/store/tables/stack/stack_update.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is it the list that is known to be durable? */
static bool is_known_list(struct stack_update *u)
{
	struct stack *stack = u->stack;
	bool is;

	mutex_lock(&stack->mutex);
	is = stack->durable_list != NULL &&
	    strcmp(stack->durable_list, u->base->tables.list) == 0 &&
	    stack_is_same_file(&stack->durable_stat,
		&u->base->tables.list_stat);
	mutex_unlock(&stack->mutex);
	return is;
}

/* A descriptor of the list of the base, or a negative errno. */
static int open_list(struct stack_update *u)
{
	const struct sys_stat *was = &u->base->tables.list_stat;
	const struct sys *sys = u->stack->sys;
	struct sys_stat st;
	int fd, r;

	snprintf(u->fault.table, sizeof(u->fault.table), "%s", REFTABLE_LIST);
	fd = SYS(sys, openat, u->stack->dirfd, REFTABLE_LIST, O_RDONLY, 0);
	if (fd < 0)
		return fd == -ENOENT ? -ESTALE : fd;
	r = SYS(sys, fstat, fd, &st);
	if (r == 0 && (st.ino != was->ino || st.dev != was->dev))
		r = -ESTALE;
	if (r == 0)
		return fd;
	SYS(sys, close, fd);
	return r;
}

/* Flushes a file of the base, which other writers may have written. For
 * -ESTALE, which means a changed list, the caller repeats the flush. A failed
 * flush must not be repeated, so its error is never -ESTALE. */
static int flush_shared(struct stack_update *u, int fd, enum flush_how how)
{
	const struct sys *sys = u->stack->sys;
	int r = how == FLUSH_WRITE_OUT ? SYS(sys, write_out_wait, fd) :
					 SYS(sys, fsync, fd);

	if (r < 0)
		u->is_fs_lost = true;
	return r == -ESTALE ? -EIO : r;
}

/* All tables of the base that may not be durable. */
static int sync_tables(struct stack_update *u, int64_t before_ns,
    enum flush_how how)
{
	const struct stack_snapshot *base = u->base;
	const struct reftable_table *t;
	size_t i;
	int r;

	for (i = 0; i < base->tables.nr; i++) {
		if (stack_snapshot_is_durable(base, i, before_ns))
			continue;
		t = &base->tables.tables[i];
		snprintf(u->fault.table, sizeof(u->fault.table), "%s", t->name);
		r = flush_shared(u, t->fd, how);
		if (r < 0)
			return r;
		if (how == FLUSH_FSYNC)
			atomic_store(&base->is_durable[i], true);
	}
	return 0;
}

/* From now on the base counts as durable, so the next update need not flush
 * it. */
static void note_base(struct stack_update *u)
{
	stack_note_durable(u->stack, strdup(u->base->tables.list),
	    &u->base->tables.list_stat);
}

/* Flushes the files of the base. */
static int sync_files(struct stack_update *u, int64_t before_ns)
{
	int list, r;

	if (is_known_list(u) || u->base->tables.list_stat.ctime_ns < before_ns)
		return sync_tables(u, before_ns, FLUSH_FSYNC);
	list = open_list(u);
	if (list < 0)
		return list;
	r = flush_shared(u, list, FLUSH_WRITE_OUT);
	if (r == 0)
		r = sync_tables(u, before_ns, FLUSH_WRITE_OUT);
	if (r == 0)
		r = sync_tables(u, before_ns, FLUSH_FSYNC);
	if (r == 0)
		r = flush_shared(u, list, FLUSH_FSYNC);
	SYS(u->stack->sys, close, list);
	u->is_base_unnamed = true;
	return r;
}

static int sync_names(struct stack_update *u, bool covers_all)
{
	int r = 0;

	if (!covers_all && u->has_table && !edit_is_locked(&u->list))
		return 0;
	if (!covers_all)
		r = flush_shared(u, u->stack->dirfd, FLUSH_FSYNC);
	if (r < 0)
		return r;
	u->is_base_unnamed = false;
	note_base(u);
	return 0;
}

int stack_sync_base(struct stack_update *u, int64_t before_ns, bool covers_all)
{
	int r = 0;

	memset(&u->fault, 0, sizeof(u->fault));
	if (!u->is_base_synced) {
		u->is_base_unnamed = false;
		r = sync_files(u, before_ns);
	}
	if (r == 0 && u->is_base_unnamed)
		r = sync_names(u, covers_all);
	u->err = r;
	u->is_base_synced = r == 0;
	return r;
}

int stack_sync_table(struct stack_update *u)
{
	int r = SYS(u->stack->sys, fsync, u->table_fd);

	u->is_flushed = r == 0;
	if (r < 0) {
		memset(&u->fault, 0, sizeof(u->fault));
		snprintf(u->fault.table, sizeof(u->fault.table), "%s",
		    u->table);
		u->err = r;
	}
	return r;
}

static void begin_one(struct stack_update *u, struct flusher *flusher, int fd,
    enum flush_how how)
{
	flush_ahead(&u->flushes[u->nr_flushes++], u->stack->sys, flusher, fd,
	    how);
}

void stack_sync_begin(struct stack_update *u, struct flusher *flusher,
    bool covers_all)
{
	const bool has_list = u->list_fd >= 0;
	const bool has_table = u->has_table && !u->is_flushed;

	assert(u->nr_flushes == 0 && u->err == 0);
	if (has_table)
		begin_one(u, flusher, u->table_fd,
		    covers_all ? FLUSH_WRITE_OUT : FLUSH_FSYNC);
	if (has_list)
		begin_one(u, flusher, u->list_fd, FLUSH_FSYNC);
	if (covers_all && has_list)
		return;
	begin_one(u, flusher, u->stack->dirfd, FLUSH_FSYNC);
	u->has_dir_flush = true;
}

int stack_sync_end(struct stack_update *u)
{
	size_t i;
	int r;

	for (i = 0; i < u->nr_flushes; i++) {
		r = flush_wait(&u->flushes[i]);
		if (u->err == 0)
			u->err = r;
		/* The last flush is of the directory, which has names of other
		 * writers too. */
		if (r < 0 && u->has_dir_flush && i + 1 == u->nr_flushes)
			u->is_fs_lost = true;
	}
	u->nr_flushes = 0;
	u->has_dir_flush = false;
	if (u->err < 0) {
		memset(&u->fault, 0, sizeof(u->fault));
		snprintf(u->fault.table, sizeof(u->fault.table), "%s",
		    STACK_DIRECTORY);
		return u->err;
	}
	u->is_flushed = u->has_table;
	u->is_list_flushed = u->list_fd >= 0;
	return 0;
}

int stack_sync_all(struct stack_update *u, struct flusher *flusher,
    int64_t before_ns, bool covers_all)
{
	int r = stack_sync_base(u, before_ns, covers_all);

	if (r < 0)
		return r;
	stack_sync_begin(u, flusher, covers_all);
	return stack_sync_end(u);
}
