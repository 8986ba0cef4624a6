/*
 * Admission in a group of nodes. Only the leader admits, and only what every
 * node can do in the same way.
 */
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/admission/admissions_internal.h"
#include "daemon/store/objects/row_objects.h"
#include "proto/refname.h"

static void refuse(struct txn *txn, enum refd_status status, char *why)
{
	txn->refused = status;
	txn->why = why;
}

static bool admit_without_group(struct admissions *a, struct txn *txn)
{
	char *why = a->cfg.refusal != NULL && txn->req.verb != REFD_VERB_LOOK ?
	    a->cfg.refusal(a->cfg.refusal_arg) :
	    NULL;

	if (why == NULL)
		return true;
	txn_lay_out(txn);
	refuse(txn, REFD_DENIED, why);
	return false;
}

bool admit_in_epoch(struct admissions *a, struct txn *txn)
{
	if (txn->row != NULL || txn->req.verb == REFD_VERB_PACK ||
	    txn->readmitted)
		return true;
	if (a->cfg.group == NULL)
		return admit_without_group(a, txn);
	txn->group_epoch = group_epoch(a->cfg.group);
	if (txn->group_epoch != 0)
		return true;
	txn_lay_out(txn);
	refuse(txn, busy_cause_count(BUSY_GROUP), group_refusal(a->cfg.group));
	return false;
}

/* A follower must do the same as the leader. So there are no values that
 * another writer has written, and no worktrees. The locks of a session could
 * hold the rows of the next leader up. */
static const char *not_in_group(const struct txn *txn)
{
	const struct repo *repo = txn->repo;
	size_t i, len = strlen(repo->path);

	if (txn->req.gate != REFD_GATE_NONE || txn->req.verb == REFD_VERB_LOOK)
		return "changes that other programs make";
	if (txn->req.verb == REFD_VERB_SESSION)
		return "sessions";
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

/* A ref with a name above REFD_DIVERGED would leave no name for kept values.
 * Its deletion would need the ref on the other nodes first, beside their kept
 * values. */
static bool blocks_kept(const struct refd_update *ask)
{
	if (ask->action == REFD_VERIFY || ask->action == REFD_SYMREF_VERIFY)
		return false;
	return strcmp(ask->name, "refs/refd") == 0 ||
	    strcmp(ask->name, "refs/refd/diverged") == 0;
}

/* Values of other programs are kept below REFD_DIVERGED on one node. No other
 * node has these refs. */
static void deny_kept(struct txn_update *u)
{
	if (strncmp(u->ask->name, REFD_DIVERGED, strlen(REFD_DIVERGED)) == 0)
		txn_decidef(u, REFD_DENIED,
		    "refs below " REFD_DIVERGED " belong to one node: "
		    "delete '%s' there by plain git (git update-ref -d)",
		    u->ask->name);
	else if (blocks_kept(u->ask))
		txn_decidef(u, REFD_DENIED,
		    "'%s' would leave no room for the refs below " REFD_DIVERGED
		    ", which each node of a group may need: "
		    "choose another name",
		    u->ask->name);
}

/* HEAD is a symbolic ref on every node, so it can have no value of its own. Any
 * other ref outside refs/ belongs to the worktree of one node. */
static void deny_value(struct txn_update *u)
{
	switch (u->ask->action) {
	case REFD_VERIFY:
	case REFD_SYMREF_VERIFY:
	case REFD_SYMREF_UPDATE:
		return;
	case REFD_UPDATE:
	case REFD_CREATE:
	case REFD_DELETE:
	case REFD_SYMREF_CREATE:
	case REFD_SYMREF_DELETE:
		break;
	}
	if (strncmp(u->ask->name, "refs/", 5) != 0)
		txn_decidef(u, REFD_DENIED,
		    "cannot update ref '%s': in a group of nodes, a ref "
		    "outside refs/ only gets a new target, and is not followed:"
		    " update the branch itself, or give '%s' a target (refd "
		    "update --no-deref --stdin, 'symref-update')",
		    u->ask->name, u->ask->name);
}

static void deny_names(struct txn *txn)
{
	struct txn_update *u;

	for (u = txn->updates; u < txn->updates + txn->nr_updates; u++)
		if (u->status == REFD_PENDING) {
			deny_value(u);
			deny_kept(u);
		}
}

bool admit_to_group(struct txn *txn)
{
	const char *what = NULL;

	if (txn->row == NULL && txn->req.verb != REFD_VERB_PACK) {
		what = not_in_group(txn);
		deny_names(txn);
	}
	if (what != NULL)
		refuse(txn, REFD_DENIED,
		    repo_why("'%s' is in a group of nodes, and groups have no "
			     "%s yet",
			txn->repo->path, what));
	if (txn->least < REFD_DURABILITY_JOURNAL)
		txn->least = REFD_DURABILITY_JOURNAL;
	return what == NULL;
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

/* Objects of an alternate belong to a different repository. */
static bool may_be_in_row(struct admission_worker *w, const struct repo *repo,
    const struct txn *txn)
{
	return txn->row == NULL && !txn->imports &&
	    txn->nr_updates <= ROW_OBJECTS_TIPS && !repo->is_partial &&
	    odb_stores(repo->odb)->nr == 1 && group_is_near(w->cfg->group);
}

static size_t list_tips(const struct txn *txn, struct refd_oid *tips)
{
	size_t i, nr = 0;

	for (i = 0; i < txn->nr_updates; i++)
		if (admit_wants_object(&txn->updates[i]))
			tips[nr++] = txn->updates[i].ask->new_oid;
	return nr;
}

/* Charges the log's bytes of TXN to REPO. */
static bool pay(struct admission_worker *w, struct repo *repo,
    const struct txn *txn)
{
	const int64_t now_ns = SYS(w->cfg->sys, now_mono);

	if (now_ns - repo->in_row_since_ns > IN_ROW_PERIOD_NS) {
		repo->in_row_since_ns = now_ns;
		repo->in_row_bytes = 0;
	}
	repo->in_row_bytes += txn->row_objects->charged;
	return repo->in_row_bytes <= IN_ROW_BYTES;
}

void admit_row_objects(struct admission_worker *w, struct txn *txn)
{
	struct repo *repo = txn->repo;
	const struct refd_oid null = { .bytes = { 0 } };
	struct known_in in = { w->cfg->group, repo };
	struct refd_oid tips[ROW_OBJECTS_TIPS];
	struct row_objects_need need = { .sys = w->cfg->sys,
		.odb = repo->odb,
		.format = repo->object_format,
		.is_known = is_known,
		.arg = &in,
		.tips = tips,
		.nr_rows = txn->nr_updates };

	txn_drop_row_objects(txn);
	if (in.group == NULL || !may_be_in_row(w, repo, txn) ||
	    !is_known(&in, &null))
		return;
	need.nr_tips = list_tips(txn, tips);
	txn->is_in_row = row_objects_collect(&need, &txn->row_objects) == 0 &&
	    pay(w, repo, txn);
	/* A waiting transaction has its objects fetched. */
	if (!txn->is_in_row)
		txn_drop_row_objects(txn);
}

void admit_row_is_whole(struct txn *txn)
{
	const struct txn_row *row = txn->row;
	struct refd_oid missing;
	int r;

	if (row == NULL || row->objects_len == 0)
		return;
	r = row_objects_missing(row->objects, row->objects_len, txn->repo->odb,
	    txn->repo->object_format, &missing);
	if (r != 0)
		admit_lacks(txn, r == 1 ? &missing : NULL);
}
