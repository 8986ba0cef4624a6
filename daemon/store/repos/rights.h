/*
 * What is different in a root, or below a directory of one: who may use its
 * repositories, what is durable there at the least, and how much may wait for
 * each; and which refs are reserved everywhere. An administrator may
 * change it while the store works.
 *
 * Any thread; no call blocks for longer than it takes to copy a few lists.
 */
#ifndef STORE_RIGHTS_H
#define STORE_RIGHTS_H

#include <pthread.h>
#include <stdbool.h>

#include "daemon/store/txn.h"

/* Those of a list; borrowed. */
struct rights_peers {
	const uint32_t *uids, *gids;
	size_t nr_uids, nr_gids;
};

/* The daemon's own uid and root always are. */
bool rights_peer_is_among(const struct rights_peers *peers,
    const struct txn_peer *peer);

struct rights_rule {
	const char *dir; /* absolute, resolved; of two that fit the longer
			    one counts */
	enum refd_durability durability;
	struct rights_peers peers;
	struct quota_limits limits; /* of each repository there */
};

/* What a repository has of its rule. */
struct rights_given {
	enum refd_durability least;
	struct quota_limits limits;
};

struct rights {
	pthread_mutex_t mutex;
	struct rights_rule *list; /* owned, and all in it */
	size_t nr;
	enum refd_durability general; /* where no rule fits */
	char **reserved;              /* the same */
	size_t nr_reserved;
};

void rights_init(struct rights *rules, enum refd_durability general);
void rights_done(struct rights *rules);

/* Takes the place of all there was; copied. -ENOMEM: all stays as it was. */
int rights_set(struct rights *rules, enum refd_durability general,
    const struct rights_rule *list, size_t nr);

/* Prefixes of refs; the same. */
int rights_reserve(struct rights *rules, const char *const *prefixes,
    size_t nr);
/* Is NAME below one of them? */
bool rights_is_reserved(struct rights *rules, const char *name);

/* May PEER use the repository at PATH? *GIVEN: what is durable there, and how
 * much may wait. Where no rule fits everybody may whom the daemon lets in, and
 * there are no limits. */
bool rights_allow(struct rights *rules, const char *path,
    const struct txn_peer *peer, struct rights_given *given);

/* Of all of them. */
enum refd_durability rights_weakest(struct rights *rules);

#endif
