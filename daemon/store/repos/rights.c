/*
 * The happy path:
 *	set	copies the rules and replaces the old rules
 *	allow	the rule of the longest matching directory counts
 *
 * Out of memory, the old rules stay.
 */
#include "daemon/store/repos/rights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_id(const uint32_t *ids, size_t nr, uint32_t id)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (ids[i] == id)
			return true;
	return false;
}

bool rights_peer_is_among(const struct rights_peers *peers,
    const struct txn_peer *peer)
{
	size_t i;

	if (peer->uid == 0 || peer->uid == geteuid() ||
	    has_id(peers->uids, peers->nr_uids, peer->uid))
		return true;
	for (i = 0; i < peer->nr_gids; i++)
		if (has_id(peers->gids, peers->nr_gids, peer->gids[i]))
			return true;
	return false;
}

/* ---- life ---- */

static void free_list(struct rights_rule *list, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		free((char *)list[i].dir);
		free((uint32_t *)list[i].peers.uids);
		free((uint32_t *)list[i].peers.gids);
	}
	free(list);
}

static uint32_t *copy_ids(const uint32_t *ids, size_t nr)
{
	uint32_t *copy = calloc(nr + 1, sizeof(*copy));

	if (copy != NULL && nr > 0)
		memcpy(copy, ids, nr * sizeof(*copy));
	return copy;
}

static bool copy_rule(struct rights_rule *to, const struct rights_rule *from)
{
	*to = *from;
	to->dir = strdup(from->dir);
	to->peers.uids = copy_ids(from->peers.uids, from->peers.nr_uids);
	to->peers.gids = copy_ids(from->peers.gids, from->peers.nr_gids);
	return to->dir != NULL && to->peers.uids != NULL &&
	    to->peers.gids != NULL;
}

static void free_prefixes(char **list, size_t nr)
{
	while (nr > 0)
		free(list[--nr]);
	free(list);
}

void rights_init(struct rights *rules, enum refd_durability general)
{
	*rules = (struct rights){ .general = general };
	mutex_init(&rules->mutex, MUTEX_INNER);
}

void rights_done(struct rights *rules)
{
	free_list(rules->list, rules->nr);
	free_prefixes(rules->reserved, rules->nr_reserved);
	mutex_destroy(&rules->mutex);
}

int rights_set(struct rights *rules, enum refd_durability general,
    const struct rights_rule *list, size_t nr)
{
	struct rights_rule *copy = calloc(nr + 1, sizeof(*copy)), *before;
	size_t i, nr_before;

	if (copy == NULL)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		if (!copy_rule(&copy[i], &list[i])) {
			free_list(copy, i + 1);
			return -ENOMEM;
		}
	mutex_lock(&rules->mutex);
	before = rules->list;
	nr_before = rules->nr;
	rules->list = copy;
	rules->nr = nr;
	rules->general = general;
	mutex_unlock(&rules->mutex);
	free_list(before, nr_before);
	return 0;
}

int rights_reserve(struct rights *rules, const char *const *prefixes, size_t nr)
{
	char **copy = calloc(nr + 1, sizeof(*copy)), **before;
	size_t i, nr_before;

	if (copy == NULL)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		copy[i] = strdup(prefixes[i]);
		if (copy[i] == NULL) {
			free_prefixes(copy, i);
			return -ENOMEM;
		}
	}
	mutex_lock(&rules->mutex);
	before = rules->reserved;
	nr_before = rules->nr_reserved;
	rules->reserved = copy;
	rules->nr_reserved = nr;
	mutex_unlock(&rules->mutex);
	free_prefixes(before, nr_before);
	return 0;
}

/* ---- questions ---- */

/* "refs/pull" matches "refs/pull/" too, because a file with this name would
 * block all refs below. */
static bool is_below(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	while (len > 0 && prefix[len - 1] == '/')
		len--;
	return strncmp(name, prefix, len) == 0 &&
	    (name[len] == '/' || name[len] == '\0');
}

bool rights_is_reserved(struct rights *rules, const char *name)
{
	bool is = false;
	size_t i;

	mutex_lock(&rules->mutex);
	for (i = 0; i < rules->nr_reserved && !is; i++)
		is = is_below(name, rules->reserved[i]);
	mutex_unlock(&rules->mutex);
	return is;
}

static const struct rights_rule *find(const struct rights *rules,
    const char *path)
{
	const struct rights_rule *best = NULL;
	size_t i, len, best_len = 0;
	const char *dir;

	for (i = 0; i < rules->nr; i++) {
		dir = rules->list[i].dir;
		len = strlen(dir);
		while (len > 0 && dir[len - 1] == '/')
			len--;
		if (strncmp(path, dir, len) == 0 &&
		    (path[len] == '/' || path[len] == '\0') &&
		    (best == NULL || len > best_len)) {
			best = &rules->list[i];
			best_len = len;
		}
	}
	return best;
}

bool rights_allow(struct rights *rules, const char *path,
    const struct txn_peer *peer, struct rights_given *given)
{
	const struct rights_rule *rule;
	bool may = true;

	mutex_lock(&rules->mutex);
	*given = (struct rights_given){ .least = rules->general };
	rule = find(rules, path);
	if (rule != NULL) {
		given->least = rule->durability;
		given->limits = rule->limits;
		may = rights_peer_is_among(&rule->peers, peer);
	}
	mutex_unlock(&rules->mutex);
	return may;
}

enum refd_durability rights_weakest(struct rights *rules)
{
	enum refd_durability weakest;
	size_t i;

	mutex_lock(&rules->mutex);
	weakest = rules->general;
	for (i = 0; i < rules->nr; i++)
		if (rules->list[i].durability < weakest)
			weakest = rules->list[i].durability;
	mutex_unlock(&rules->mutex);
	return weakest;
}
