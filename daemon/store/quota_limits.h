/*
 * How much of what is in the daemon's care may be one user's, or one
 * repository's: how much waits, or is prepared, at once. 0 is no limit.
 */
#ifndef STORE_QUOTA_LIMITS_H
#define STORE_QUOTA_LIMITS_H

#include <stdint.h>

#define SHARE_LIMITS(X)                                                          \
	X(requests) /* transactions and sessions */                              \
	X(refs)     /* of all of them */                                         \
	X(bytes)    /* their memory */                                           \
	X(sessions)                                                              \
	X(locks)   /* refs of sessions */                                        \
	X(clients) /* connections: a user's; a repository's, by what they      \
		      have there */ \
	X(wait_ms) /* how long one may wait, and then be prepared */

struct quota_limits {
#define X(field) uint64_t field;
	SHARE_LIMITS(X)
#undef X
};

#endif
