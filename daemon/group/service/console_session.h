/*
 * A session for the commands of the administrator: a failure ends the program.
 * Blocking; one thread.
 */
#ifndef GROUP_SERVICE_CONSOLE_SESSION_H
#define GROUP_SERVICE_CONSOLE_SESSION_H

#include "daemon/group/service/session.h"

/* A node that runs writes more often (hold_thread.c). */
#define CONSOLE_SEEN "interval '15 s'"
/* When a node was seen that is being made (join.c), and has never run. */
#define CONSOLE_JOINS "'epoch'::timestamptz"

/* Ends the program because S has failed. */
void console_session_die(const struct session *s, enum session_result result)
    __attribute__((noreturn));
/* Opens S, and finds the group of its configuration. */
void console_session_open(struct session *s);

struct console_node {
	uint64_t applied;
	uint64_t last;   /* LSN of the group's log */
	uint64_t seen_s; /* seconds since the node wrote to the database */
	bool is_seen;    /* lately, so refd-group runs there */
	uint64_t now_ms; /* by the database; since 1970 */
	bool lacks_repo; /* since its join (damage.h) */
};

/* False: the group has no such node. */
bool console_session_find_node(struct session *s, const char *name,
    struct console_node *node);
/* Ends the program if no commit could be proven: the role may not see the
 * standbys, or too few of them are synchronous (console.c). */
void console_check_server(struct session *s);

#endif
