/*
 * Statuses of a ref and outcomes of a transaction. The codes are on the wire
 * and in the journal forever, so no code is renumbered. A client hangs up on an
 * unknown code, so a new code needs a new version of the protocol (PROTOCOL.md,
 * "Versions"). A new detail (detail.h) needs none.
 *
 * A new code is the last row of the table here, and of "Codes" in PROTOCOL.md.
 * The clients in Go, Python and Rust have the codes too (status.go, errors.py
 * with a class for each, status.rs), and clients.sh compares them. With
 * WERROR=1 the compiler names every switch over all codes. test_proto_misc.c
 * has a second copy, and tests/lib/message_vectors.c a result with every code.
 * REFD_WRITE_VECTORS=1 test_message_vectors writes vectors.json, and
 * scripts/check-abi --write writes librefd.abi.
 *
 * Pure tables; any thread; nothing blocks or allocates.
 */
#ifndef PROTO_STATUS_H
#define PROTO_STATUS_H

#include <stdbool.h>
#include <stddef.h>

/* X(symbol, code, retry, wire name, text). RETRY: the same request may succeed
 * later without other action. */
#define REFD_STATUS_TABLE(X)                                                   \
	X(OK, 0, NO_RETRY, "ok", "updated; durable as the mode promises")      \
	X(STALE, 1, NO_RETRY, "stale", "is at a different value")              \
	X(EXISTS, 2, NO_RETRY, "exists", "reference already exists")           \
	X(MISSING, 3, NO_RETRY, "missing", "reference does not exist")         \
	X(LOCKED, 4, RETRY, "locked", "another writer holds the lock")         \
	X(CONFLICT, 5, NO_RETRY, "conflict", "refname conflict")               \
	X(BADNAME, 6, NO_RETRY, "badname", "refname is not valid")             \
	X(NOOBJECT, 7, NO_RETRY, "noobject", "object does not exist")          \
	X(NOTCOMMIT, 8, NO_RETRY, "notcommit", "object is not a commit")       \
	X(DENIED, 9, NO_RETRY, "denied", "not permitted")                      \
	X(HOOK_DECLINED, 10, NO_RETRY, "hook-declined", "hook declined")       \
	X(NOSPACE, 11, RETRY, "nospace", "no space left on the device")        \
	X(IO, 12, RETRY, "io", "input/output error")                           \
	X(BUSY, 13, RETRY, "busy", "the daemon is too busy")                   \
	X(DEADLINE, 14, RETRY, "deadline", "the deadline passed")              \
	X(ABORTED, 15, NO_RETRY, "aborted", "a sibling update failed")         \
	X(UNSUPPORTED, 16, NO_RETRY, "unsupported", "not supported by refd")   \
	X(UNKNOWN, 17, NO_RETRY, "unknown", "the outcome is not known")        \
	X(BROKEN, 18, NO_RETRY, "broken", "reference broken")                  \
	X(DUPLICATE, 19, NO_RETRY, "duplicate",                                \
	    "multiple updates for one ref")                                    \
	X(NOREPO, 20, NO_RETRY, "norepo", "not a repository refd may serve")   \
	X(BADREQUEST, 21, NO_RETRY, "badrequest", "malformed request")         \
	X(LIMIT, 22, NO_RETRY, "limit", "a limit was passed")                  \
	X(NOTSYMREF, 23, NO_RETRY, "notsymref",                                \
	    "expected symref but found regular ref")

enum refd_status {
#define X(symbol, code, retry, name, text) REFD_##symbol = code,
	REFD_STATUS_TABLE(X)
#undef X
	/* Not on the wire: not decided yet. */
	REFD_PENDING = 255
};

/* The number of codes, which count from 0 without a gap. */
enum {
#define X(symbol, code, retry, name, text) +1
	REFD_STATUSES = REFD_STATUS_TABLE(X)
#undef X
};

/* Wire name and human text, never NULL ("pending" for REFD_PENDING). */
const char *refd_status_name(enum refd_status status);
const char *refd_status_text(enum refd_status status);
bool refd_status_may_retry(enum refd_status status);
/* 0, or -1 for a name or code that this build does not know. */
int refd_status_from_name(const char *name, enum refd_status *status);
int refd_status_from_code(unsigned code, enum refd_status *status);

/* The outcome of a whole transaction. */
#define REFD_OUTCOME_TABLE(X)                                                  \
	X(COMMITTED, 0, "committed")     /* every ref ok */                    \
	X(PARTIAL, 1, "partial")         /* some ok, some not */               \
	X(REJECTED, 2, "rejected")       /* none ok, nothing changed */        \
	X(OUTCOME_UNKNOWN, 3, "unknown") /* at least one ref is unknown */

enum refd_outcome {
#define X(symbol, code, name) REFD_##symbol = code,
	REFD_OUTCOME_TABLE(X)
#undef X
};

const char *refd_outcome_name(enum refd_outcome outcome);
int refd_outcome_from_name(const char *name, enum refd_outcome *outcome);
/* From counts of refs, where no refs at all is COMMITTED. */
enum refd_outcome refd_outcome_of(size_t nr, size_t ok, size_t unknown);

#endif
