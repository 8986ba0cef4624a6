/*
 * Which transaction ids the journal can't know, so that it need not be asked:
 * those that are younger than all it had at the start, and were not seen
 * since.
 *
 * Ids begin with their birth, so the young ones are the large ones. All above
 * a floor are in a set of those that were seen; when that is full, the floor
 * rises over the older half of it. Whoever sends ids from the future makes the
 * floor rise over everybody's, and the journal is asked as if this were not
 * here.
 *
 * One thread; nothing blocks. Zero-initialised knows of no id that it is fresh.
 */
#ifndef STORE_FRESH_H
#define STORE_FRESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/txid.h"

struct fresh_half {
	struct refd_txid *slots; /* owned, or NULL; all zeroes: empty */
	size_t nr;
};

struct fresh {
	bool is_begun;
	uint32_t key[4];
	struct refd_txid floor;
	/* What was seen is in either; the second is the older one. */
	struct fresh_half halves[2];
};

/* Nobody was asked to remember an id beyond NEWEST yet. SECRET is a random one
 * that no client knows. */
void fresh_begin(struct fresh *fresh, const struct refd_txid *newest,
    const struct refd_txid *secret);
void fresh_done(struct fresh *fresh);
/* True: ID was never seen, nor is it in the journal. From now on it was. */
bool fresh_see(struct fresh *fresh, const struct refd_txid *id);

#endif
