/*
 * The rules for each root, or for a directory below a root: the allowed users,
 * the least durability, and the limits for each repository. Also the refs that
 * are reserved everywhere. The rules may change while the store works, so they
 * have a mutex.
 *
 * Any thread. A call blocks only for as long as another thread reads or
 * exchanges a few lists.
 */
#ifndef STORE_RIGHTS_H
#define STORE_RIGHTS_H

#include <stdbool.h>

#include "daemon/base/mutex.h"
#include "daemon/store/txn.h"

/* The users and groups of a list; borrowed. */
struct rights_peers {
	const uint32_t *uids, *gids;
	size_t nr_uids, nr_gids;
};

/* True also for root and for the daemon's own uid. */
bool rights_peer_is_among(const struct rights_peers *peers,
    const struct txn_peer *peer);

struct rights_rule {
	const char *dir; /* absolute, resolved; the longest match counts */
	enum refd_durability durability;
	struct rights_peers peers;
	struct quota_limits limits; /* of every repository there */
};

/* The parts of a rule that a repository gets. */
struct rights_given {
	enum refd_durability least;
	struct quota_limits limits;
};

struct rights {
	struct mutex mutex;
	struct rights_rule *list; /* owns all its members */
	size_t nr;
	enum refd_durability general; /* if no rule fits */
	char **reserved;              /* owned */
	size_t nr_reserved;
};

void rights_init(struct rights *rules, enum refd_durability general);
void rights_done(struct rights *rules);

/* Copies LIST, which replaces all rules. -ENOMEM: the old rules stay. */
int rights_set(struct rights *rules, enum refd_durability general,
    const struct rights_rule *list, size_t nr);

/* Replaces the reserved prefixes of refs. Copies; -ENOMEM as above. */
int rights_reserve(struct rights *rules, const char *const *prefixes,
    size_t nr);
/* Is NAME below a reserved prefix? */
bool rights_is_reserved(struct rights *rules, const char *name);

/* May PEER use the repository at PATH, with the least durability and the limits
 * of *GIVEN? Without a rule, every user of the daemon may, without limits. */
bool rights_allow(struct rights *rules, const char *path,
    const struct txn_peer *peer, struct rights_given *given);

/* The weakest mode in all rules. */
enum refd_durability rights_weakest(struct rights *rules);

#endif
