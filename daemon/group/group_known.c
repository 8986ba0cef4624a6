/*
 * Values that other nodes have, with all that these values reach: new values of
 * rows which this node has committed as the leader. The nodes that have applied
 * the rows have the values, and a row in the log has its objects. So the next
 * row needs only the objects that these values do not reach.
 *
 * A value counts only while it is reachable from a ref, because a node may
 * prune any other value. So every update that leaves its old value behind, or
 * deletes a ref, makes the node forget all values of the repository.
 *
 * The table may forget at any time, since the other nodes are asked then
 * (HOLD).
 */
#include <string.h>

#include "daemon/group/group_internal.h"

#define NEAR_NS   (5 * 1000000000LL)
#define NEAR_ROWS 20000
/* For a row whose objects are not in the log. */
#define NEAR_HELD_NS (60 * 1000000000LL)

/* The place of the repository itself has a null id. */
static struct group_value *place_of(struct group *g,
    const uint8_t repo[GROUP_UUID_BYTES], const struct refd_oid *oid)
{
	uint64_t of_repo, of_oid;

	memcpy(&of_repo, repo + 8, sizeof(of_repo));
	memcpy(&of_oid, oid->bytes, sizeof(of_oid));
	return &g->known[(of_repo ^ of_oid) % GROUP_KNOWN];
}

static bool is_at(const struct group *g, const struct group_value *v,
    const uint8_t repo[GROUP_UUID_BYTES], const struct refd_oid *oid)
{
	return v->nr > g->forgotten_nr &&
	    memcmp(v->repo, repo, sizeof(v->repo)) == 0 &&
	    refd_oid_eq(&v->oid, oid);
}

static void put(struct group *g, struct group_value *v,
    const uint8_t repo[GROUP_UUID_BYTES], const struct refd_oid *oid)
{
	memcpy(v->repo, repo, sizeof(v->repo));
	v->oid = *oid;
	v->nr = ++g->known_nr;
}

bool group_knows(struct group *g, const uint8_t repo[GROUP_UUID_BYTES],
    const struct refd_oid *oid)
{
	const struct refd_oid null = { .bytes = { 0 } };
	const struct group_value *of_repo = place_of(g, repo, &null);
	const struct group_value *v = place_of(g, repo, oid);
	bool is_known;

	mutex_lock(&g->known_mutex);
	is_known = is_at(g, of_repo, repo, &null) && is_at(g, v, repo, oid) &&
	    v->nr >= of_repo->nr;
	mutex_unlock(&g->known_mutex);
	return is_known;
}

void group_know(struct group *g, uint64_t epoch,
    const uint8_t repo[GROUP_UUID_BYTES], const struct refd_oid *oid)
{
	const struct refd_oid null = { .bytes = { 0 } };
	struct group_value *of_repo = place_of(g, repo, &null);

	mutex_lock(&g->known_mutex);
	if (epoch == g->known_epoch && !is_at(g, of_repo, repo, &null))
		put(g, of_repo, repo, &null);
	if (epoch == g->known_epoch && !refd_oid_is_null(oid))
		put(g, place_of(g, repo, oid), repo, oid);
	mutex_unlock(&g->known_mutex);
}

void group_forget(struct group *g, const uint8_t repo[GROUP_UUID_BYTES])
{
	const struct refd_oid null = { .bytes = { 0 } };

	mutex_lock(&g->known_mutex);
	put(g, place_of(g, repo, &null), repo, &null);
	mutex_unlock(&g->known_mutex);
}

void group_begin_known(struct group *g, uint64_t epoch)
{
	g->near_ns = 0;
	mutex_lock(&g->known_mutex);
	g->known_epoch = epoch;
	g->forgotten_nr = g->known_nr;
	mutex_unlock(&g->known_mutex);
}

/* ---- other nodes ---- */

void group_note_held(struct group *g)
{
	mutex_lock(&g->mutex);
	g->held_lsn = g->next_lsn - 1;
	mutex_unlock(&g->mutex);
}

void group_take_near(struct group *g, uint64_t lsn)
{
	g->near_lsn = lsn;
	g->near_ns = SYS(g->base.host->sys, now_boot);
	if (lsn >= g->awaited_lsn) {
		g->awaited_lsn = g->held_lsn;
		g->awaited_ns = g->near_ns;
	}
}

/* Are enough other nodes near, and have they applied the rows with held objects
 * soon enough? Until other nodes have applied such a row, only the nodes that
 * answered HELD have its objects. If this lasted, the group could lose the
 * objects together with these nodes. */
bool group_are_near(const struct group *g)
{
	const int64_t now_ns = SYS(g->base.host->sys, now_boot);

	return g->epoch != 0 && g->near_ns != 0 &&
	    now_ns - g->near_ns < NEAR_NS &&
	    g->near_lsn + NEAR_ROWS >= g->next_lsn - 1 &&
	    (g->near_lsn >= g->awaited_lsn ||
		now_ns - g->awaited_ns < NEAR_HELD_NS);
}

bool group_is_near(struct group *g)
{
	bool is_near;

	mutex_lock(&g->mutex);
	is_near = group_are_near(g);
	mutex_unlock(&g->mutex);
	return is_near;
}
