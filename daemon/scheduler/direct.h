/*
 * The direct way: while nothing else is at work, a transaction goes to the
 * store together with its batch. One thread of the store then admits and
 * applies the transaction, so two hand-overs between threads are saved.
 *
 * A batch needs the number of its repository, and only admission knows the
 * number. Therefore the scheduler remembers the numbers of admitted
 * repositories by path. The store compares the number, so a wrong number costs
 * only the direct way.
 *
 * Loop thread only; nothing blocks.
 */
#ifndef SCHEDULER_DIRECT_H
#define SCHEDULER_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

/* Remembered paths: the latest path for each hash modulo this number. */
#define DIRECT_PATHS 256

struct entry;

struct direct {
	struct entry *entry; /* DIRECT; NULL: none */
	bool is_stopped;     /* ENTRY is not applied any more */
	struct direct_path {
		uint64_t hash; /* of the path as the client wrote it */
		uint64_t key;  /* of the repository; 0: nothing is remembered */
		bool writes_alone; /* store_writes_alone() */
	} paths[DIRECT_PATHS];
};

struct txn;

/* TXN was admitted. Remembers its repository for the path of TXN. */
void direct_learn(struct direct *d, const struct txn *txn);

#endif
