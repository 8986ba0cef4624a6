/*
 * Filter of recently seen transaction ids. Answers "certainly new" without a
 * query of the journal.
 *
 * An id begins with the time of its birth, so young ids compare greater than
 * old ids. The filter has a floor, and a set of the ids above the floor that it
 * has seen. An id above the floor and outside of the set is new. If the set is
 * full, the floor rises over the older half of the set. A client that sends ids
 * from the future raises the floor above the ids of all clients. Then the
 * filter answers "perhaps seen", and the journal is queried as without it.
 *
 * One thread at a time; nothing blocks. Zero-initialised: no id is new.
 */
#ifndef STORE_TXID_FILTER_H
#define STORE_TXID_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/txid.h"

struct txid_filter_half {
	struct refd_txid *slots; /* owned, or NULL; all zeroes: empty */
	size_t nr;
};

struct txid_filter {
	bool is_begun;
	uint32_t key[4];
	struct refd_txid floor;
	/* Each seen id above the floor is in one of the halves. The second half
	 * is the older half. */
	struct txid_filter_half halves[2];
};

/* No id greater than NEWEST is in the journal. SECRET is a random id that no
 * client knows. */
void txid_filter_begin(struct txid_filter *f, const struct refd_txid *newest,
    const struct refd_txid *secret);
void txid_filter_done(struct txid_filter *f);
/* Adds ID. True: ID was never added before, and is not in the journal. */
bool txid_filter_add(struct txid_filter *f, const struct refd_txid *id);

#endif
