/*
 * Admission in a group of nodes. Only the leader admits, because only the
 * leader can write to the log of the group. The leader admits only what every
 * node can do in the same way, since a row has to do the same everywhere.
 */
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/group/group_internal.h"
#include "daemon/store/admission/admit.h"
#include "daemon/store/objects/odb.h"
#include "daemon/store/objects/row_objects.h"
#include "daemon/store/repos/repo_id.h"

bool group_admit(struct replica *r, struct txn *txn)
{
	struct group *g = group_of(r);
	struct group_txn *kept;
	uint64_t epoch;

	if (txn->is_own || txn->req.verb == REFD_VERB_PACK || txn->readmitted)
		return true;
	epoch = group_epoch(g);
	kept = group_txn_of(txn);
	if (epoch != 0 && kept == NULL && (kept = group_txn_new()) != NULL)
		txn->replica = &kept->base;
	if (epoch != 0 && kept != NULL) {
		kept->epoch = epoch;
		return true;
	}
	txn_lay_out(txn);
	if (epoch != 0)
		admit_refuse(txn, busy_cause_count(BUSY_MEMORY),
		    strdup(busy_cause_text(BUSY_MEMORY)));
	else
		admit_refuse(txn, busy_cause_count(BUSY_GROUP),
		    group_refusal(g));
	return false;
}

/* Why a node of a group refuses TXN; NULL: the node does not. Every follower
 * must be able to do the same as the leader. But refs of worktrees, and values
 * that another program has written, are on the disk of one node only, so TXN
 * may change neither. */
static const char *not_in_group(const struct txn *txn)
{
	const struct repo *repo = txn->repo;
	size_t i, len = strlen(repo->path);

	if (txn->req.gate != REFD_GATE_NONE || txn->req.verb == REFD_VERB_LOOK)
		return "changes that other programs make";
	if (strncmp(txn->req.git_dir, repo->path, len) == 0 &&
	    txn->req.git_dir[len] != '\0')
		return "worktrees";
	for (i = 0; i < txn->nr_updates; i++)
		if (strncmp(txn->updates[i].ask->name, "worktrees/", 10) == 0 ||
		    strncmp(txn->updates[i].ask->name, "main-worktree/", 14) ==
			0)
			return "worktrees";
	return NULL;
}

/* Git leaves refs out of a fetch from a shallow repository, and says nothing.
 * So another node would count as a node with the objects, although it lacks
 * them. */
static bool is_shallow(const struct sys *sys, const struct repo *repo)
{
	struct sys_stat st;

	return SYS(sys, lstatat, repo->fd, "shallow", &st) == 0 && st.size > 0;
}

/* Can every node of the group do TXN in the same way? */
static bool may_all(const struct sys *sys, struct txn *txn)
{
	const char *what = NULL;

	if (!txn->is_own && txn->req.verb != REFD_VERB_PACK) {
		what = not_in_group(txn);
		if (what == NULL && is_shallow(sys, txn->repo))
			what = "shallow repositories (git fetch --unshallow)";
	}
	if (what != NULL)
		admit_refuse(txn, REFD_DENIED,
		    repo_why("'%s' is in a group of nodes, and groups have no "
			     "%s yet",
			txn->repo->path, what));
	if (txn->least < REFD_DURABILITY_JOURNAL)
		txn->least = REFD_DURABILITY_JOURNAL;
	return what == NULL;
}

bool group_check(struct replica *r, struct txn *txn)
{
	const struct sys *sys = r->host->sys;

	return may_all(sys, txn) && admit_import(sys, txn);
}

/* ---- objects ---- */

/* Bytes that a repository may put into the log of the group in a minute. */
#define IN_ROW_BYTES     (2 * 1024 * 1024)
#define IN_ROW_PERIOD_NS (60 * 1000000000LL)

struct known_in {
	struct group *group;
	const struct repo *repo;
};

static bool is_known(void *arg, const struct refd_oid *oid)
{
	const struct known_in *in = arg;

	return group_knows(in->group, in->repo->uuid, oid);
}

/* Objects of an alternate belong to a different repository, so no row has
 * them. */
static bool may_be_in_row(struct group *g, const struct txn *txn)
{
	const struct repo *repo = txn->repo;

	return !group_txn_of(txn)->imports &&
	    txn->nr_updates <= ROW_OBJECTS_TIPS && !repo->is_partial &&
	    odb_stores(repo->odb)->nr == 1 && group_is_near(g);
}

static size_t list_tips(const struct txn *txn, struct refd_oid *tips)
{
	size_t i, nr = 0;

	for (i = 0; i < txn->nr_updates; i++)
		if (admit_wants_object(&txn->updates[i]))
			tips[nr++] = txn->updates[i].ask->new_oid;
	return nr;
}

/* Charges the log's bytes of TXN to its repository. */
static bool pay(const struct sys *sys, const struct txn *txn)
{
	const int64_t now_ns = SYS(sys, now_mono);
	struct group_repo *kept = txn->repo->replica;

	if (now_ns - kept->in_row_since_ns > IN_ROW_PERIOD_NS) {
		kept->in_row_since_ns = now_ns;
		kept->in_row_bytes = 0;
	}
	kept->in_row_bytes += group_txn_of(txn)->objects->charged;
	return kept->in_row_bytes <= IN_ROW_BYTES;
}

/* Collects the objects of TXN that other nodes may lack, so that the rows can
 * contain them. Otherwise other nodes fetch the objects first. */
static void collect_objects(struct group *g, struct txn *txn)
{
	const struct sys *sys = g->base.host->sys;
	struct group_txn *kept = group_txn_of(txn);
	const struct refd_oid null = { .bytes = { 0 } };
	struct known_in in = { g, txn->repo };
	struct refd_oid tips[ROW_OBJECTS_TIPS];
	struct row_objects_need need = { .sys = sys,
		.odb = txn->repo->odb,
		.format = txn->repo->object_format,
		.is_known = is_known,
		.arg = &in,
		.tips = tips,
		.nr_rows = txn->nr_updates };

	group_txn_drop_objects(kept);
	if (!may_be_in_row(g, txn) || !is_known(&in, &null))
		return;
	need.nr_tips = list_tips(txn, tips);
	kept->is_in_row =
	    row_objects_collect(&need, &kept->objects) == 0 && pay(sys, txn);
	/* If the rows do not contain the objects, other nodes fetch them while
	 * TXN waits, so the memory can go. */
	if (!kept->is_in_row)
		group_txn_drop_objects(kept);
}

/* Are the objects there which the objects of the row TXN name? Git can have
 * pruned them while the row waited. If one is missing, the updates of TXN are
 * decided. The objects of the row itself were all read already. */
static void is_whole(struct txn *txn)
{
	const struct group_txn *kept = group_txn_of(txn);
	struct refd_oid missing;
	int r;

	if (kept->row_objects_len == 0)
		return;
	r = row_objects_missing(kept->row_objects, kept->row_objects_len,
	    txn->repo->odb, txn->repo->object_format, &missing);
	if (r != 0)
		admit_lacks(txn, r == 1 ? &missing : NULL);
}

void group_collect(struct replica *r, struct txn *txn)
{
	if (txn->is_own)
		is_whole(txn);
	else if (txn->replica != NULL)
		collect_objects(group_of(r), txn);
}
