#include "daemon/server/handover.h"

#include <string.h>

static void hand_admit(void *ctx, struct txn *txn)
{
	store_admit(ctx, txn);
}

static void hand_give_up(void *ctx, struct txn *txn)
{
	store_give_up(ctx, txn);
}

static void hand_apply(void *ctx, struct batch *b)
{
	store_apply(ctx, b);
}

static bool hand_takes(void *ctx)
{
	return store_takes(ctx);
}

static void hand_lookup(void *ctx, struct store_query *query)
{
	store_lookup(ctx, query);
}

static void hand_checkpoint(void *ctx, struct store_checkpoint *cp)
{
	store_checkpoint(ctx, cp);
}

static void hand_pack(void *ctx, struct store_pack *pack)
{
	store_pack(ctx, pack);
}

static void hand_look(void *ctx, struct store_look *look)
{
	store_look(ctx, look);
}

static void hand_pack_allow(void *ctx, bool allowed)
{
	store_pack_allow(ctx, allowed);
}

static void hand_history(void *ctx, struct store_history *ask)
{
	store_history(ctx, ask);
}

static void hand_history_stop(void *ctx)
{
	store_history_stop(ctx);
}

static bool hand_reap(void *ctx, struct store_done *done)
{
	return store_reap(ctx, done);
}

static void hand_discard(void *ctx, struct txn *txn)
{
	store_discard(ctx, txn);
}

static void hand_release(void *ctx, struct repo *repo)
{
	store_release(ctx, repo);
}

static void hand_token_log(void *store, uint8_t id[REFD_JOURNAL_ID_BYTES])
{
	store_token_log(store, id);
}

struct scheduler_store handover(struct store *store)
{
	struct scheduler_store handed = { .ctx = store,
		.admit = hand_admit,
		.give_up = hand_give_up,
		.apply = hand_apply,
		.takes = hand_takes,
		.lookup = hand_lookup,
		.history = hand_history,
		.history_stop = hand_history_stop,
		.checkpoint = hand_checkpoint,
		.pack = hand_pack,
		.look = hand_look,
		.pack_allow = hand_pack_allow,
		.reap = hand_reap,
		.release = hand_release,
		.discard = hand_discard,
		.token_log = hand_token_log,
		.repo_key = store_repo_key,
		.writes_alone = store_writes_alone,
		.repo_path = store_repo_path,
		.max_batches = store_max_batches(store) };

	memcpy(handed.journal, store_journal_id(store), sizeof(handed.journal));
	return handed;
}
