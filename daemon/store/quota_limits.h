/*
 * Limits of how much may wait, or be prepared, at once for one user or one
 * repository. 0: no limit.
 */
#ifndef STORE_QUOTA_LIMITS_H
#define STORE_QUOTA_LIMITS_H

#include <stdint.h>

#define SHARE_LIMITS(X)                                                        \
	X(requests) /* transactions and sessions */                            \
	X(refs)     /* their refs */                                           \
	X(bytes)    /* their memory */                                         \
	X(sessions)                                                            \
	X(locks)   /* refs of sessions */                                      \
	X(clients) /* connections with requests */

struct quota_limits {
#define X(field) uint64_t field;
	SHARE_LIMITS(X)
#undef X
};

#endif
