/*
 * The record of a ref in a stack, for the rule of recovery and for refd verify.
 */
#ifndef STORE_STACK_FOUND_H
#define STORE_STACK_FOUND_H

#include "daemon/store/stack/stack_reader.h"

struct stack_found {
	uint64_t index;   /* 0: no record */
	uint64_t earlier; /* the largest index of the tables before */
	bool exists;      /* false: no record, or a deletion */
	struct refd_oid oid;
	char *target; /* of a symbolic ref; else NULL; owned */
};

/* Fills in *FOUND. Blocks on the disk. 0, or a negative errno as READER has. */
int stack_found_read(struct stack_found *found, struct stack_reader *reader,
    const char *name);
void stack_found_done(struct stack_found *found);

#endif
