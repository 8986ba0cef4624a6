/*
 * The causes of the answer "busy": one table with the name of every cause, the
 * text for the client, and a counter. refd-stats(1) lists the names, and
 * test_busy_cause.c compares both lists.
 *
 * Any thread; nothing blocks or allocates.
 */
#ifndef BASE_BUSY_CAUSE_H
#define BASE_BUSY_CAUSE_H

#include <stdint.h>

#include "proto/status.h"

/* X(symbol, name, text) */
#define BUSY_TABLE(X)                                                          \
	X(MEMORY, "memory", "the daemon is out of memory")                     \
	X(FILES, "files", "the daemon has too many open files")                \
	X(CONNECTIONS, "connections",                                          \
	    "too many connections (limits.connections)")                       \
	X(USER_CLIENTS, "user-clients",                                        \
	    "too many connections of yours (limits.user-clients)")             \
	X(HALF_SENT, "half-sent", "too many large requests at once")           \
	X(WAITING, "waiting",                                                  \
	    "the memory for requests that wait is full: refd top")             \
	X(NAMES, "names", "too many names wait")                               \
	X(QUESTIONS, "questions", "too many questions wait")                   \
	X(USER, "user", "too much of yours waits already (limits.user-*)")     \
	X(REPOSITORY, "repository",                                            \
	    "too much of this repository waits already "                       \
	    "(limits.repository-*)")                                           \
	X(REPLACED, "replaced",                                                \
	    "the repository is being replaced over and over")                  \
	X(MIGRATING, "migrating", "refd migrate is at work in the repository") \
	X(RECOVERING, "recovering", "the daemon is recovering")                \
	X(PAUSED, "paused", "the daemon is paused: refd resume")               \
	X(DRAINED, "drained", "the daemon was drained: refd resume")           \
	X(GROUP, "group", "this node takes no writes now: refd group status")  \
	X(ABANDONED, "abandoned", "its client is gone")                        \
	X(STOPPING, "stopping", "the daemon is stopping")

enum busy_cause {
#define X(symbol, name, text) BUSY_##symbol,
	BUSY_TABLE(X)
#undef X
	    BUSY_CAUSES
};

/* Status and text of an answer, as two arguments, with a count of CAUSE. */
#define BUSY(cause)                                                            \
	busy_cause_count(BUSY_##cause), busy_cause_text(BUSY_##cause)

/* Counts a decision about a ref or a request, and returns REFD_BUSY. */
enum refd_status busy_cause_count(enum busy_cause cause);
const char *busy_cause_text(enum busy_cause cause);
const char *busy_cause_name(enum busy_cause cause);
/* The counts of all causes since the start. */
void busy_cause_counts(uint64_t counts[BUSY_CAUSES]);

#endif
