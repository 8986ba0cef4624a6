/*
 * What refs were at a moment, from the changes that history tells of a
 * repository. Pure; one thread.
 *
 * History knows what was done through the daemon. What git did by itself shows
 * where the old value of a change is not the new one of the change before it,
 * or the present one not that of the last, and its time is not known. So a ref
 * was at the moment what it was right before its first change since; of one
 * that has no change since, all that is known is what it was after its last.
 */
#ifndef CLIENT_RESTORE_FORMER_H
#define CLIENT_RESTORE_FORMER_H

#include "proto/message.h"

/* Null oids: no such ref. */
struct former_ref {
	char *name;
	bool has_before, has_since; /* a change up to the moment, or later */
	struct refd_oid before;     /* by the last one up to the moment */
	struct refd_oid at;         /* when the first one since began */
	struct refd_oid last;       /* by the last of all */
	/* It was, or became, symbolic: where it led to before is not known. */
	bool is_symbolic;
};

/* Zero-initialised but for the moment is empty. Owns its refs. */
struct former {
	struct refd_position moment; /* behind this */
	struct former_ref **refs;    /* in the order they came up */
	size_t nr, size;
	void *tree;
};

/* Changes of one repository in their order, each once; what was rejected or
 * taken back is passed over. */
void former_add(struct former *p, const struct refd_change *c);
const struct former_ref *former_find(const struct former *p, const char *name);
void former_done(struct former *p);

#endif
