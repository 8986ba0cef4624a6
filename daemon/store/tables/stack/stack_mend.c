/*
 * Happy path: find the table, write the new file, publish the new list.
 *
 * Failures: the new file goes, and the list is unchanged. If a failed rename of
 * the list may have happened, all files stay, because the list may name the new
 * file. A failed fsync is never repeated, because the second fsync would
 * succeed without the lost data. A killed process leaves its lock, and the new
 * or the old file without a line in the list. Recovery, or the first batch,
 * removes the file (stack_sweep.h).
 */
#include "daemon/store/tables/stack/stack_mend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES ((size_t)64 * 1024)

struct stack_mending {
	struct stack_update *u;
	const struct sys *sys;
	bool git_syncs;
	struct reftable_stack list; /* only the list */
	struct reftable_mend mend;
};

/* ---- the damaged table ---- */

/* 1 if m->mend is of NAME, or 0 if NAME is sound or cannot be read. */
static int look_at(struct stack_mending *m, const char *name)
{
	const int dirfd = m->u->stack->dirfd;
	struct reftable_fault ignored;
	struct reftable_table table;
	int r;

	if (!reftable_stack_is_name(name))
		return 0;
	r = reftable_table_open(m->sys, dirfd, name, &table, &ignored);
	if (r == 0)
		reftable_table_close(&table);
	if (r != -EBADMSG)
		return r == -ENOMEM || r == -EIO ? r : 0;
	r = reftable_mend_open(m->sys, dirfd, name, m->git_syncs, &m->mend,
	    &m->u->fault);
	if (r < 0)
		return r;
	if (m->mend.table.context.format == *m->u->stack->format)
		return 1;
	return reftable_table_bad(&m->mend.table, 0,
	    "the ids have another object format", &m->u->fault);
}

/* *LINE: the line of the table in the list. */
static int find(struct stack_mending *m, char **line)
{
	char *end;
	int r = 0;

	for (*line = m->list.list; (end = strchr(*line, '\n')) != NULL;
	    *line = end + 1) {
		*end = '\0';
		r = look_at(m, *line);
		*end = '\n';
		if (r != 0)
			break;
	}
	return r;
}

/* ---- the new file ---- */

static int copy(struct stack_mending *m)
{
	const struct reftable_table *t = &m->mend.table;
	uint8_t *buffer = malloc(BUFFER_BYTES);
	uint64_t at = 0;
	ssize_t n = 0;
	int r = buffer != NULL ? 0 : -ENOMEM;

	while (r == 0 && at < t->end) {
		n = reftable_table_bytes(t, at, buffer,
		    t->end - at < BUFFER_BYTES ? (size_t)(t->end - at) :
						 BUFFER_BYTES,
		    &m->u->fault);
		if (n == 0)
			n = reftable_table_bad(t, at, "the file became shorter",
			    &m->u->fault);
		r = n < 0 ?
		    (int)n :
		    SYS(m->sys, write_all, m->u->table_fd, buffer, (size_t)n);
		at += (uint64_t)n;
	}
	free(buffer);
	if (r == 0)
		r = SYS(m->sys, write_all, m->u->table_fd, m->mend.footer,
		    m->mend.footer_len);
	return r == 0 ? stack_sync_table(m->u) : r;
}

static int make_file(struct stack_mending *m)
{
	const struct reftable_table *t = &m->mend.table;
	struct stack_update *u = m->u;
	int r = stack_table_create(u, t->context.min_index, t->max_index);

	if (r == 0)
		r = copy(m);
	return r == 0 ?
	    stack_table_name(u, t->context.min_index, t->max_index) :
	    r;
}

/* ---- the list ---- */

static int stage_list(struct stack_mending *m, const char *line)
{
	const char *rest = strchr(line, '\n');
	char *list;
	int r;

	if (asprintf(&list, "%.*s%s%s", (int)(line - m->list.list),
		m->list.list, m->u->table, rest) < 0)
		return -ENOMEM;
	r = stack_update_stage(m->u, list);
	return r == 0 ? SYS(m->sys, fsync, m->u->list_fd) : r;
}

/* The sync of the directory makes the names of all listed tables durable, and
 * tables of git may be in memory alone. So their bytes are synced first. */
static int sync_tables(struct stack_mending *m)
{
	char *line = m->u->new_list, *end;
	int fd, r = 0;

	for (; r == 0 && (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		fd = SYS(m->sys, openat, m->u->stack->dirfd, line,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
		*end = '\n';
		r = fd < 0 ? fd : SYS(m->sys, fsync, fd);
		if (fd >= 0)
			SYS(m->sys, close, fd);
	}
	return r == 0 ? SYS(m->sys, fsync, m->u->stack->dirfd) : r;
}

static int publish(struct stack_mending *m)
{
	struct stack_update *u = m->u;
	int r = sync_tables(m);

	if (r == 0)
		r = stack_update_place(u);
	/* The lock by token still stands, so further changes can follow. */
	if (u->list.progress == PROGRESS_PUBLISHED)
		u->list.progress = PROGRESS_LOCKED;
	if (r == 0)
		r = SYS(m->sys, fsync, u->stack->dirfd);
	/* Git never removes an unreadable table, so the old file goes here. */
	if (r == 0)
		SYS(m->sys, unlinkat, u->stack->dirfd, m->mend.table.name);
	return r;
}

static void clean_up(struct stack_mending *m)
{
	stack_table_drop(m->u);
	if (m->u->list.progress != PROGRESS_DEFERRED)
		edit_discard(&m->u->list);
	reftable_mend_close(&m->mend);
	free(m->list.list);
}

int stack_mend(struct stack_update *u, bool git_syncs,
    struct stack_mended *mended)
{
	struct stack_mending m = { .u = u,
		.sys = u->stack->sys,
		.git_syncs = git_syncs,
		.mend.table.fd = -1 };
	const mode_t mode = u->mode;
	char *line;
	int r = reftable_stack_read_list(m.sys, u->stack->dirfd, &m.list,
	    &u->fault);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = reftable_stack_count(&m.list, &u->fault);
	if (r > 0)
		r = find(&m, &line);
	if (r > 0) {
		u->mode = m.list.list_stat.mode & 0666;
		r = make_file(&m);
		if (r == 0)
			r = stage_list(&m, line);
		if (r == 0)
			r = publish(&m);
		if (r == 0) {
			snprintf(mended->was, sizeof(mended->was), "%s",
			    m.mend.table.name);
			snprintf(mended->is, sizeof(mended->is), "%s",
			    u->table);
			mended->may_lack_logs = m.mend.may_lack_logs;
			r = 1;
		}
	}
	u->mode = mode;
	clean_up(&m);
	return r;
}
