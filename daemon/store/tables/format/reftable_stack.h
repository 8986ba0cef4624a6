/*
 * The tables of a repository or of a worktree, from the oldest to the newest,
 * as listed in reftable/tables.list. A record of a later table hides the
 * records with the same key of earlier tables. The place in the list alone
 * decides, as in git: a writer that counted on from an older list may have
 * added a table whose update indices were used before.
 *
 * open takes a snapshot. Later changes of the list, and the removal of tables,
 * do not matter. A snapshot holds one descriptor per table.
 *
 * Any number of threads may read a snapshot. Every call may block; nothing
 * logs. Results as in reftable_table.h. -EBADMSG also means: a table is
 * missing, is listed twice, or has ids of another object format.
 */
#ifndef STORE_REFTABLE_STACK_H
#define STORE_REFTABLE_STACK_H

#include "daemon/store/tables/format/reftable_iterator.h"

#define REFTABLE_LIST "tables.list"
/* Git keeps about as many tables as the logarithm of their size. */
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

/* DIRFD: the directory reftable/. BEFORE: an earlier snapshot, whose open
 * tables are used again, or NULL. -ENOENT: the list is missing. A list whose
 * tables vanish is read again, for half a second. An empty list beside tables
 * is -EBADMSG, after 50 ms for a writer at work. After a failure *STACK is
 * empty. */
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

/* The number of lines of stack->list. -EBADMSG, -EFBIG: a list that is cut off,
 * has NUL bytes, or is too long. */
int reftable_stack_count(const struct reftable_stack *stack,
    struct reftable_fault *fault);

/* The least and the largest update index in the headers of NR tables; without
 * a table UINT64_MAX and 0. Pure. */
uint64_t reftable_stack_min_index(const struct reftable_table *tables,
    size_t nr);
uint64_t reftable_stack_max_index(const struct reftable_table *tables,
    size_t nr);

/* Finds a ref. 1: it->cursor.record, until the next use of IT; 0: absent or
 * deleted. */
int reftable_stack_find(const struct reftable_stack *stack, const char *name,
    struct reftable_iterator *it, struct reftable_fault *fault);

/* "<table> at byte N: <reason>" for a failure R of these modules. */
#define REFTABLE_FAULT_TEXT (REFTABLE_TABLE_NAME_MAX + 128)
const char *reftable_stack_fault_text(const struct reftable_fault *fault, int r,
    char buf[REFTABLE_FAULT_TEXT]);

#endif
