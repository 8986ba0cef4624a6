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

struct rights_settings {
	enum refd_durability general; /* if no rule fits */
	const struct rights_rule *rules;
	size_t nr_rules;
	/* Prefixes of refs: nobody may push to these refs, and only root and
	 * the daemon's own user may write them through the store. */
	const char *const *reserved;
	size_t nr_reserved;
};

struct rights {
	struct mutex mutex;
	struct rights_settings now; /* owns all its lists */
};

void rights_init(struct rights *rules, enum refd_durability general);
void rights_done(struct rights *rules);

/* A copy of SETTINGS replaces all rules and prefixes. -ENOMEM: all old ones
 * stay. */
int rights_set(struct rights *rules, const struct rights_settings *settings);
/* Is NAME below a reserved prefix? */
bool rights_is_reserved(struct rights *rules, const char *name);

/* May PEER use the repository at PATH, with the least durability and the limits
 * of *GIVEN? Without a rule, every user of the daemon may, without limits. */
bool rights_allow(struct rights *rules, const char *path,
    const struct txn_peer *peer, struct rights_given *given);

/* The weakest mode in all rules. */
enum refd_durability rights_weakest(struct rights *rules);

#endif
