/*
 * Happy path: read the list, open every table.
 *
 * Failure modes:
 *	a table vanished, because git merged tables: the list is read again
 *	a table is missing, and the list stays the same: refused
 *	the list is empty, but a table stays beside the list: refused, because
 *	a power loss can empty a list, and leaves the tables. When every ref is
 *	deleted, git leaves an empty list, but no table. A writer at work has a
 *	table beside an empty list for a moment only
 *	a list or a number of tables beyond a bound: refused
 *	the list names a table twice, so a merge of one would remove both:
 *	refused
 */
#include "daemon/store/tables/format/reftable_stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_NS INT64_C(5000000)
#define TRIES    100
/* A table beside an empty list. */
#define EMPTY_TRIES 10
/* Of a directory beside an empty list. */
#define ENTRIES_MAX 1000

static int list_bad(int error, const char *why, struct reftable_fault *fault)
{
	snprintf(fault->table, sizeof(fault->table), "%s", REFTABLE_LIST);
	fault->at = 0;
	fault->why = why;
	return error;
}

int reftable_stack_read_list(const struct sys *sys, int dirfd,
    struct reftable_stack *stack, struct reftable_fault *fault)
{
	int fd = SYS(sys, openat, dirfd, REFTABLE_LIST, O_RDONLY, 0), r;

	stack->list = NULL;
	if (fd < 0)
		return list_bad(fd, NULL, fault);
	r = SYS(sys, fstat, fd, &stack->list_stat);
	if (r == 0)
		r = sys_read_fd(sys, fd, REFTABLE_LIST_MAX, &stack->list,
		    &stack->list_len);
	SYS(sys, close, fd);
	if (r == -EFBIG)
		return list_bad(r, "the list is larger than 256 KiB", fault);
	if (r == -EISDIR || r == -EINVAL)
		return list_bad(-EBADMSG, "not a regular file", fault);
	return r < 0 ? list_bad(r, NULL, fault) : 0;
}

/* ---- an empty list ---- */

static bool ends_with(const char *name, const char *end)
{
	const size_t len = strlen(name), end_len = strlen(end);

	return len >= end_len && strcmp(name + len - end_len, end) == 0;
}

/* Can NAME have been in a list? Git gives a table its name only when the table
 * is written, so temporary files and locks do not count. */
static bool may_be_listed(const char *name)
{
	return name[0] != '.' && strcmp(name, REFTABLE_LIST) != 0 &&
	    !ends_with(name, ".lock") && strstr(name, ".temp") == NULL;
}

/* -EAGAIN: tables are in the directory. */
static int expect_no_table(const struct sys *sys, int dirfd,
    struct reftable_fault *fault)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	unsigned nr = 0;
	int r = SYS(sys, dir_open, dirfd, ".", &dir);

	if (r < 0)
		return list_bad(r, NULL, fault);
	while ((r = SYS(sys, dir_next, dir, &entry)) > 0)
		if (++nr > ENTRIES_MAX || may_be_listed(entry.name)) {
			r = -EAGAIN;
			break;
		}
	SYS(sys, dir_close, dir);
	return r < 0 ?
	    list_bad(r, "the list is empty, and tables are there", fault) :
	    0;
}

/* ---- tables ---- */

bool reftable_stack_lists(const char *list, const char *name)
{
	const size_t len = strlen(name);
	const char *end;

	for (; (end = strchr(list, '\n')) != NULL; list = end + 1)
		if ((size_t)(end - list) == len && memcmp(list, name, len) == 0)
			return true;
	return false;
}

/* A name with a carriage return is refused, because a carriage return is a sign
 * of an edited list. A blank, which no git writes, is refused for safety: refd
 * copies the names of a list to a new file, whose lines could otherwise look
 * like the lines of refd/id or refd/checkpoint (own_file.h). */
bool reftable_stack_is_name(const char *name)
{
	size_t len = strlen(name);

	/* The list and its lock are no tables. */
	return len > 0 && len <= REFTABLE_TABLE_NAME_MAX && name[0] != '.' &&
	    strpbrk(name, "/\r ") == NULL &&
	    strncmp(name, REFTABLE_LIST, strlen(REFTABLE_LIST)) != 0;
}

static const struct reftable_table *open_already(
    const struct reftable_stack *before, const char *name)
{
	size_t i;

	for (i = 0; before != NULL && i < before->nr; i++)
		if (strcmp(before->tables[i].name, name) == 0)
			return &before->tables[i];
	return NULL;
}

uint64_t reftable_stack_min_index(const struct reftable_table *tables,
    size_t nr)
{
	uint64_t min = UINT64_MAX;

	for (; nr-- > 0; tables++)
		if (tables->context.min_index < min)
			min = tables->context.min_index;
	return min;
}

uint64_t reftable_stack_max_index(const struct reftable_table *tables,
    size_t nr)
{
	uint64_t max = 0;

	for (; nr-- > 0; tables++)
		if (tables->max_index > max)
			max = tables->max_index;
	return max;
}

/* Opens the table NAME as the newest one. */
static int add_table(const struct sys *sys, int dirfd, const char *name,
    const struct reftable_stack *before, struct reftable_stack *stack,
    struct reftable_fault *fault)
{
	struct reftable_table *t = &stack->tables[stack->nr];
	const struct reftable_table *again = open_already(before, name);
	int r = 0;

	if (!reftable_stack_is_name(name))
		return list_bad(-EBADMSG, "a line is no name of a table",
		    fault);
	if (open_already(stack, name) != NULL)
		return list_bad(-EBADMSG, "a table is listed twice", fault);
	if (again != NULL)
		reftable_table_share(again, t);
	else
		r = reftable_table_open(sys, dirfd, name, t, fault);
	if (r < 0)
		return r;
	stack->nr++;
	if (t->context.format != stack->format)
		return reftable_table_bad(t, 0,
		    "the ids have another object format", fault);
	return 0;
}

int reftable_stack_count(const struct reftable_stack *stack,
    struct reftable_fault *fault)
{
	const char *list = stack->list, *line;
	const size_t len = stack->list_len;
	int nr = 0;

	if (memchr(list, '\0', len) != NULL)
		return list_bad(-EBADMSG, "the list contains NUL bytes", fault);
	if (len > 0 && list[len - 1] != '\n')
		return list_bad(-EBADMSG, "the last line is cut off", fault);
	for (line = list; (line = strchr(line, '\n')) != NULL; line++)
		nr++;
	if (nr > REFTABLE_TABLES_MAX)
		return list_bad(-EFBIG, "the list has more than 500 tables",
		    fault);
	return nr;
}

static int open_listed(const struct sys *sys, int dirfd,
    const struct reftable_stack *before, struct reftable_stack *stack,
    struct reftable_fault *fault)
{
	char *list = stack->list, *line, *end;
	int nr = reftable_stack_count(stack, fault), r = 0;

	if (nr < 0)
		return nr;
	stack->tables = calloc((size_t)nr + 1, sizeof(*stack->tables));
	if (stack->tables == NULL)
		return list_bad(-ENOMEM, NULL, fault);
	for (line = list; r == 0 && *line != '\0'; line = end + 1) {
		end = strchr(line, '\n');
		*end = '\0';
		r = add_table(sys, dirfd, line, before, stack, fault);
		*end = '\n';
	}
	return r;
}

/* After a failure STACK has no table, but perhaps the list, because the caller
 * compares the lists of two tries. */
static int try_open(const struct sys *sys, int dirfd,
    const struct reftable_stack *before, struct reftable_stack *stack,
    struct reftable_fault *fault)
{
	char *list;
	int r = reftable_stack_read_list(sys, dirfd, stack, fault);

	if (r == 0 && stack->list_len == 0)
		r = expect_no_table(sys, dirfd, fault);
	if (r == 0)
		r = open_listed(sys, dirfd, before, stack, fault);
	if (r < 0) {
		list = stack->list;
		stack->list = NULL;
		reftable_stack_close(stack);
		stack->list = list;
	}
	return r;
}

int reftable_stack_open(const struct sys *sys, int dirfd,
    enum refd_object_format format, const struct reftable_stack *before,
    struct reftable_stack *stack, struct reftable_fault *fault)
{
	char *list = NULL; /* of the try before */
	bool is_same = false;
	unsigned tries;
	int r;

	memset(fault, 0, sizeof(*fault));
	memset(stack, 0, sizeof(*stack));
	stack->format = format;
	for (tries = 0;; tries++) {
		r = try_open(sys, dirfd, before, stack, fault);
		if (stack->list != NULL && list != NULL)
			is_same = strcmp(stack->list, list) == 0;
		free(list);
		list = NULL;
		if (r != -EAGAIN &&
		    (r != -ENOENT || stack->list == NULL || is_same))
			break;
		if (tries == (r == -EAGAIN ? EMPTY_TRIES : TRIES))
			break;
		list = stack->list;
		SYS(sys, sleep_ns, PAUSE_NS);
	}
	if (r == -ENOENT && stack->list != NULL) {
		fault->why = "the table is missing";
		r = -EBADMSG;
	}
	if (r == -EAGAIN)
		r = -EBADMSG;
	if (r < 0)
		reftable_stack_close(stack);
	return r;
}

void reftable_stack_close(struct reftable_stack *stack)
{
	size_t i;

	for (i = 0; i < stack->nr; i++)
		reftable_table_close(&stack->tables[i]);
	free(stack->tables);
	free(stack->list);
	stack->tables = NULL;
	stack->list = NULL;
	stack->nr = 0;
}

int reftable_stack_find(const struct reftable_stack *stack, const char *name,
    struct reftable_iterator *it, struct reftable_fault *fault)
{
	const size_t len = strlen(name);
	size_t i = stack->nr;
	int r = 0;

	if (len == 0 || len > REFTABLE_NAME_MAX)
		return 0;
	while (r == 0 && i-- > 0) {
		r = reftable_iterator_seek(it, &stack->tables[i], REFTABLE_REFS,
		    (const uint8_t *)name, len, fault);
		if (r == 0)
			r = reftable_iterator_next(it, fault);
		if (r > 0 && strcmp(it->cursor.record.name, name) != 0)
			r = 0;
	}
	return r > 0 ? !it->cursor.record.is_deletion : r;
}

const char *reftable_stack_fault_text(const struct reftable_fault *fault, int r,
    char buf[REFTABLE_FAULT_TEXT])
{
	const char *why = fault->why != NULL ? fault->why : strerror(-r);

	if (fault->at > 0)
		snprintf(buf, REFTABLE_FAULT_TEXT, "%s at byte %llu: %s",
		    fault->table, (unsigned long long)fault->at, why);
	else
		snprintf(buf, REFTABLE_FAULT_TEXT, "%s: %s", fault->table, why);
	return buf;
}
