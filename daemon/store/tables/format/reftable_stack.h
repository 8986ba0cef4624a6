/*
 * The tables of a repository or of a worktree, from the oldest to the newest,
 * as listed in reftable/tables.list. A record of a later table hides the
 * records with the same key of earlier tables. The place in the list alone
 * decides, as in git, and not the update index: a writer that took its index
 * from an older list may have added a table whose update indices were used
 * before.
 *
 * open takes a snapshot with one descriptor per table, so later changes of the
 * list, and the removal of tables, do not matter.
 *
 * Any number of threads may read a snapshot, every call may block, and nothing
 * logs. Results as in reftable_table.h. -EBADMSG also means that a table is
 * missing, is listed twice, or has ids of a different object format.
 */
#ifndef STORE_REFTABLE_STACK_H
#define STORE_REFTABLE_STACK_H

#include "daemon/store/tables/format/reftable_iterator.h"

#define REFTABLE_LIST "tables.list"
/* Git keeps about as many tables as the logarithm of their size, so git's lists
 * are far below this bound. */
#define REFTABLE_TABLES_MAX 500
#define REFTABLE_LIST_MAX   ((size_t)256 * 1024)

struct reftable_stack {
	enum refd_object_format format;
	char *list; /* the bytes of tables.list, then NUL; owned */
	size_t list_len;
	struct sys_stat list_stat;
	struct reftable_table *tables;
	size_t nr;
};

/* DIRFD is the directory reftable/. BEFORE is an earlier snapshot, whose open
 * tables are used again, or NULL. -ENOENT if the list is missing. Tables vanish
 * when git merges them, so the list is then read again, for half a second. An
 * empty list beside tables is -EBADMSG, but only after 50 ms, because a writer
 * at work has a table beside an empty list for a moment. After a failure *STACK
 * is empty. */
int reftable_stack_open(const struct sys *sys, int dirfd,
    enum refd_object_format format, const struct reftable_stack *before,
    struct reftable_stack *stack, struct reftable_fault *fault);
void reftable_stack_close(struct reftable_stack *stack);

/* Can NAME be a line of the list: one component of a path? Pure. */
bool reftable_stack_is_name(const char *name);
/* Is NAME a line of LIST, the text of a list? Pure. */
bool reftable_stack_lists(const char *list, const char *name);

/* Reads the list into stack->list and list_stat, and opens no table. */
int reftable_stack_read_list(const struct sys *sys, int dirfd,
    struct reftable_stack *stack, struct reftable_fault *fault);

/* The number of lines of stack->list. -EBADMSG if the list is cut off or has
 * NUL bytes, and -EFBIG if it is too long. */
int reftable_stack_count(const struct reftable_stack *stack,
    struct reftable_fault *fault);

/* The least and the largest update index in the headers of NR tables, or
 * UINT64_MAX and 0 without a table. Pure. */
uint64_t reftable_stack_min_index(const struct reftable_table *tables,
    size_t nr);
uint64_t reftable_stack_max_index(const struct reftable_table *tables,
    size_t nr);

/* Finds a ref. 1 if it->cursor.record is the ref, until the next use of IT; 0
 * if the ref is absent or deleted. */
int reftable_stack_find(const struct reftable_stack *stack, const char *name,
    struct reftable_iterator *it, struct reftable_fault *fault);

/* "<table> at byte N: <reason>" for a failure R of these modules. */
#define REFTABLE_FAULT_TEXT (REFTABLE_TABLE_NAME_MAX + 128)
const char *reftable_stack_fault_text(const struct reftable_fault *fault, int r,
    char buf[REFTABLE_FAULT_TEXT]);

#endif
