#include "daemon/store/following/node_txn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/arena.h"
#include "proto/refname.h"

static const char *copy(struct refd_arena *arena, const char *text, bool *ok)
{
	const char *made = NULL;

	if (text != NULL) {
		made = refd_arena_string(arena, text, strlen(text));
		*ok = *ok && made != NULL;
	}
	return made;
}

static int make_request(const struct repo *repo,
    const struct refd_update *updates, size_t nr, struct refd_request *req)
{
	struct refd_update *u;
	bool ok = true;

	*req = (struct refd_request){ .verb = REFD_VERB_TRANSACTION,
		.object_format = repo->object_format,
		.atomic = true,
		.umask = 022,
		.message = "refd: written by another program",
		.nr_updates = nr,
		.arena = refd_arena_new() };
	if (req->arena == NULL)
		return -ENOMEM;
	if (refd_txid_make(&req->txid) < 0)
		return -EIO;
	req->git_dir = copy(req->arena, repo->path, &ok);
	req->updates = refd_arena_array(req->arena, nr, sizeof(*req->updates));
	for (u = req->updates; ok && u != NULL && u < req->updates + nr; u++) {
		*u = updates[u - req->updates];
		u->name = copy(req->arena, u->name, &ok);
		u->old_target = copy(req->arena, u->old_target, &ok);
		u->target = copy(req->arena, u->target, &ok);
	}
	return ok && req->updates != NULL ? 0 : -ENOMEM;
}

static int make_batch(struct node_txn *nt)
{
	struct batch *b = calloc(1, sizeof(*b));
	struct txn *txn = nt->txn;
	struct txn_slice *slice;
	size_t i;

	nt->batch = b;
	if (b == NULL || (b->slices = calloc(1, sizeof(*slice))) == NULL)
		return -ENOMEM;
	slice = b->slices;
	slice->txn = txn;
	b->nr_slices = 1;
	slice->updates = calloc(txn->nr_updates, sizeof(*slice->updates));
	if (slice->updates == NULL)
		return -ENOMEM;
	for (i = 0; i < txn->nr_updates; i++)
		slice->updates[i] = &txn->updates[i];
	slice->nr = txn->nr_updates;
	return 0;
}

/* A kept value stays, and every other one may be replaced at once. */
static void lay_out(struct txn *txn, bool is_brief)
{
	struct txn_update *u;

	txn_lay_out(txn);
	for (u = txn->updates; u < txn->updates + txn->nr_updates; u++)
		u->is_brief = is_brief &&
		    strncmp(u->ask->name, REFD_DIVERGED,
			strlen(REFD_DIVERGED)) != 0;
}

int node_txn_init(struct node_txn *nt, const struct repo *repo,
    const struct refd_update *updates, size_t nr, bool is_brief)
{
	struct refd_request req;
	int r;

	*nt = (struct node_txn){ .kept = { .is_final = true,
				     .is_brief = is_brief } };
	r = make_request(repo, updates, nr, &req);
	if (r == 0 && (nt->txn = txn_new(&req)) == NULL)
		r = -ENOMEM;
	if (nt->txn == NULL) {
		refd_request_done(&req);
		return r;
	}
	group_txn_lend(nt->txn, &nt->kept);
	nt->txn->peer.uid = geteuid();
	nt->txn->peer.pid = getpid();
	/* The id is new. */
	nt->txn->readmitted = true;
	lay_out(nt->txn, is_brief);
	r = make_batch(nt);
	if (r < 0)
		node_txn_done(nt);
	return r;
}

void node_txn_done(struct node_txn *nt)
{
	batch_free(nt->batch);
	txn_free(nt->txn);
	*nt = (struct node_txn){ .txn = NULL };
}
