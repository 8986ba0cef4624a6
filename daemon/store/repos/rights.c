/*
 * The happy path:
 *	set	copies the settings, which replace the old ones at once
 *	allow	the rule of the longest matching directory counts
 *
 * Out of memory, all old settings stay.
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

static void free_settings(const struct rights_settings *settings)
{
	size_t i;

	for (i = 0; i < settings->nr_rules; i++) {
		free((char *)settings->rules[i].dir);
		free((uint32_t *)settings->rules[i].peers.uids);
		free((uint32_t *)settings->rules[i].peers.gids);
	}
	free((struct rights_rule *)settings->rules);
	for (i = 0; i < settings->nr_reserved; i++)
		free((char *)settings->reserved[i]);
	free((char **)settings->reserved);
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

/* False: without memory; TO has what was copied, to be freed. */
static bool copy_settings(struct rights_settings *to,
    const struct rights_settings *from)
{
	struct rights_rule *rules = calloc(from->nr_rules + 1, sizeof(*rules));
	const char **reserved =
	    calloc(from->nr_reserved + 1, sizeof(*reserved));
	bool ok = rules != NULL && reserved != NULL;
	size_t i;

	*to = (struct rights_settings){ .general = from->general,
		.rules = rules,
		.reserved = reserved };
	for (i = 0; ok && i < from->nr_rules; i++) {
		ok = copy_rule(&rules[i], &from->rules[i]);
		to->nr_rules++;
	}
	for (i = 0; ok && i < from->nr_reserved; i++) {
		reserved[i] = strdup(from->reserved[i]);
		ok = reserved[i] != NULL;
		to->nr_reserved++;
	}
	return ok;
}

void rights_init(struct rights *rules, enum refd_durability general)
{
	*rules = (struct rights){ .now = { .general = general } };
	mutex_init(&rules->mutex, MUTEX_INNER);
}

void rights_done(struct rights *rules)
{
	free_settings(&rules->now);
	mutex_destroy(&rules->mutex);
}

int rights_set(struct rights *rules, const struct rights_settings *settings)
{
	struct rights_settings copy, before;

	if (!copy_settings(&copy, settings)) {
		free_settings(&copy);
		return -ENOMEM;
	}
	mutex_lock(&rules->mutex);
	before = rules->now;
	rules->now = copy;
	mutex_unlock(&rules->mutex);
	free_settings(&before);
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
	for (i = 0; i < rules->now.nr_reserved && !is; i++)
		is = is_below(name, rules->now.reserved[i]);
	mutex_unlock(&rules->mutex);
	return is;
}

static const struct rights_rule *find(const struct rights *rules,
    const char *path)
{
	const struct rights_rule *best = NULL;
	size_t i, len, best_len = 0;
	const char *dir;

	for (i = 0; i < rules->now.nr_rules; i++) {
		dir = rules->now.rules[i].dir;
		len = strlen(dir);
		while (len > 0 && dir[len - 1] == '/')
			len--;
		if (strncmp(path, dir, len) == 0 &&
		    (path[len] == '/' || path[len] == '\0') &&
		    (best == NULL || len > best_len)) {
			best = &rules->now.rules[i];
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
	*given = (struct rights_given){ .least = rules->now.general };
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
	weakest = rules->now.general;
	for (i = 0; i < rules->now.nr_rules; i++)
		if (rules->now.rules[i].durability < weakest)
			weakest = rules->now.rules[i].durability;
	mutex_unlock(&rules->mutex);
	return weakest;
}
