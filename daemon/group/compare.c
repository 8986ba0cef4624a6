/*
 * Compares the value of a ref on the disk of this node with the value that the
 * group gave the ref last. The value of the group counts, because the group has
 * acknowledged it, and the disk can be an older copy.
 *
 * The happy path: the values are the same.
 *
 * Failures: the values differ. The follower gives the ref the value of the
 * group back (mend.h), and the update waits, so that it meets this value.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/group/group_internal.h"
#include "daemon/store/batch/pass.h"
#include "proto/refname.h"

/* ---- what no node may do alone ---- */

/* Values of other programs are kept below REFD_DIVERGED, on one node alone. A
 * ref whose name is a part of this path would leave no room for the kept
 * values, so no client makes such a ref. Nor does a client delete a kept value,
 * because the other nodes would first need the same ref, beside their own kept
 * values. */
static void check_kept(struct change *c)
{
	const char *name = c->edit.name;

	if (refd_refname_is_kept(name))
		change_fail(c, REFD_DENIED,
		    "refs below " REFD_DIVERGED " belong to one node: "
		    "delete '%s' there by plain git (git update-ref -d)",
		    name);
	else if (!change_only_looks(c) &&
	    (strcmp(name, "refs/refd") == 0 ||
		strcmp(name, "refs/refd/diverged") == 0))
		change_fail(c, REFD_DENIED,
		    "'%s' would leave no room for the refs below " REFD_DIVERGED
		    ", which each node of a group may need: "
		    "choose another name",
		    name);
	else if (c->action == CHANGE_WRITE && !c->exists &&
	    strncmp(name, "refs/refd/", strlen("refs/refd/")) == 0)
		/* group.md lets each node hide them from fetches. */
		change_fail(c, REFD_DENIED,
		    "'%s': refs below refs/refd/ are refd's own, and a node "
		    "that joins the group would not get them: choose another "
		    "name",
		    name);
}

/* HEAD is a symbolic ref on every node, so it can have no value of its own. Any
 * other ref outside refs/ belongs to the worktree of one node, so other nodes
 * could not make the same change. */
static void check_outside(struct change *c)
{
	if (strncmp(c->edit.name, "refs/", 5) != 0 && !change_only_looks(c) &&
	    c->u->ask->action != REFD_SYMREF_UPDATE)
		change_fail(c, REFD_DENIED,
		    "cannot update ref '%s': in a group of nodes, a ref "
		    "outside refs/ only gets a new target: update the branch "
		    "itself, or give '%s' a target (refd update --no-deref "
		    "--stdin, 'symref-update')",
		    c->u->ask->name, c->edit.name);
}

/* A row can't be taken back after its commit, so a clash of names must be found
 * before the commit. But the scheduler orders only the names that it knows. A
 * new ref C at the end of a symbolic ref is not among them. So the update goes
 * back to the scheduler with the name of C, and gets its place among the other
 * names. */
static void check_place(struct change *c)
{
	char **final = &c->u->final_name;

	if (c->is_asked || c->exists || c->action != CHANGE_WRITE ||
	    (*final != NULL && strcmp(*final, c->edit.name) == 0))
		return;
	free(*final);
	*final = strdup(c->edit.name);
	if (*final == NULL)
		change_fail_errno(c, -ENOMEM, "can't follow a reference");
	else
		change_again(c, TXN_AGAIN_REOPEN);
}

/* The value of a symbolic ref is read without a lock, so nodes could find
 * different old values. Therefore nothing may replace the symbolic ref by a
 * value. */
static void check_replaced(struct change *c)
{
	if (c->target != NULL && c->action != CHANGE_NOTHING &&
	    change_new_target(c) == NULL)
		change_fail(c, REFD_DENIED,
		    "cannot update ref '%s': in a group of nodes, a symbolic "
		    "ref only gets a new target",
		    c->u->ask->name);
}

static void check_names(struct change *c)
{
	const struct txn *txn = c->slice->txn;

	if (!group_txn_is_of_node(txn))
		check_replaced(c);
	if (txn->is_own)
		return;
	check_kept(c);
	check_outside(c);
	check_place(c);
}

/* ---- values ---- */

/* Has the ref of C, which a row makes, the value of the row already? */
static bool is_done(const struct change *c)
{
	const struct refd_update *ask = c->u->ask;

	return ask->action == REFD_UPDATE && refd_oid_is_null(&ask->old_oid) &&
	    c->action == CHANGE_WRITE && c->exists && c->target == NULL &&
	    refd_oid_eq(&c->old_oid, &ask->new_oid);
}

/* May C find a value of the ref, although its transaction has no old value? The
 * first row of a ref has none, because the ref is new on the other nodes. But a
 * node can have the value of the row already: the leader imports its refs, or
 * this node has sent the row before its daemon died. */
static bool begins(const struct change *c)
{
	const struct txn *txn = c->slice->txn;

	if (!txn->is_own)
		return txn->replica != NULL && group_txn_of(txn)->imports &&
		    group_repo_awaits_import(c->slice->repo);
	return group_txn_is_row(txn) && is_done(c);
}

static bool has_value_of_group(const struct change *c,
    const struct journal_value *value)
{
	if (value->target != NULL)
		return c->target != NULL &&
		    strcmp(c->target, value->target) == 0;
	if (value->exists)
		return c->target == NULL && c->exists &&
		    refd_oid_eq(&c->old_oid, &value->oid);
	/* A file with the null id is an absent ref, too. */
	return c->target == NULL &&
	    (!c->exists || refd_oid_is_null(&c->old_oid));
}

static bool gives_value_of_group(const struct refd_update *ask,
    const struct journal_value *value)
{
	if (value->target != NULL)
		return ask->target != NULL &&
		    strcmp(ask->target, value->target) == 0;
	if (value->exists)
		return ask->action == REFD_UPDATE &&
		    refd_oid_eq(&ask->new_oid, &value->oid);
	return ask->action == REFD_DELETE || ask->action == REFD_SYMREF_DELETE;
}

/* Is C compared with the journal? Rows are not compared, because a row has the
 * old values of the group. Of this node's own transactions, only those that
 * mend a ref have values that can be older than the journal's (mend.h). Even
 * these are not compared if they are brief, because a row of the group replaces
 * the values at once (group_txn.h). */
static bool is_compared(const struct change *c)
{
	const struct txn *txn = c->slice->txn;

	return !txn->is_own ||
	    (group_txn_is_of_node(txn) && !group_txn_of(txn)->is_brief &&
		!refd_refname_is_kept(c->edit.name));
}

static void journal_unreadable(struct change *c)
{
	change_fail(c, busy_cause_count(BUSY_GROUP),
	    "cannot update ref '%s': the journal can't be read",
	    c->u->ask->name);
}

/*
 * Compares C with the value of the group. On the leader, too, this value
 * counts, and not the value on disk, because the disk can be an older copy. An
 * update that begins at the older value would take acknowledged updates back.
 * If the journal has no value of the ref, the value on disk counts. The rows of
 * a follower have the old value of the group already.
 *
 * A transaction that mends a ref is compared, too, because another update may
 * have ended since the value was read. Without the comparison, this other
 * update would be taken back for a while.
 */
static void compare(struct group *g, struct journal *j, struct change *c)
{
	const struct repo *repo = c->slice->repo;
	const bool mends = c->slice->txn->is_own;
	struct journal_value value;
	int found;

	if (!is_compared(c))
		return;
	/* The symbolic refs that lead to C are compared, too. */
	for (; c != NULL && change_is_live(c); c = c->from) {
		found = journal_find_value(j, repo->id, c->edit.name, &value);
		if (found < 0) {
			journal_unreadable(c);
		} else if (found > 0 && mends &&
		    !gives_value_of_group(c->u->ask, &value)) {
			change_again(c, TXN_AGAIN_DIVERGED);
		} else if (found > 0 && !mends &&
		    !has_value_of_group(c, &value)) {
			g->diverged(g->follower, repo, c->edit.name);
			change_again(c, TXN_AGAIN_DIVERGED);
		}
		free(value.target);
	}
}

void group_permit(struct replica *r, struct pass *p, struct change *c)
{
	const bool is_own = c->slice->txn->is_own;

	compare(group_of(r), p->ap->journal, c);
	if (!change_is_live(c))
		return;
	check_names(c);
	c->hides_old = begins(c);
	/* A row gives a symbolic ref a new target. Nodes may find different
	 * values behind the old target, so any value will do. */
	c->takes_any = is_own &&
	    (c->hides_old ||
		(c->target != NULL && change_new_target(c) != NULL));
}

/*
 * If the group has a ref above or below the name of C, and only this disk lacks
 * this ref, then the ref was acknowledged. The other nodes would remove the ref
 * to make room for the row. So the ref comes back first, and then the names
 * conflict.
 */
void group_compare_around(struct replica *replica, struct pass *p,
    struct change *c)
{
	struct group *g = group_of(replica);
	const struct repo *repo = c->slice->repo;
	char found[REFD_REFNAME_MAX + 1];
	int r;

	if (c->slice->txn->is_own || c->action != CHANGE_WRITE)
		return;
	r = journal_find_value_around(p->ap->journal, repo->id, c->edit.name,
	    found);
	if (r > 0) {
		g->diverged(g->follower, repo, found);
		change_again(c, TXN_AGAIN_DIVERGED);
	} else if (r < 0) {
		journal_unreadable(c);
	}
}
