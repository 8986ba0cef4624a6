#include "client/hooks/reftx.h"

#include <string.h>

#include "client/hooks/reftx_list.h"

#define HOOK "reference-transaction"

/* ---- finding the hook ---- */

static void find(struct reftx *tx, const struct gitdir *gd,
    const struct gitconfig *config, bool as_2_39)
{
	tx->gd = gd;
	tx->as_2_39 = as_2_39;
	githook_find(&tx->hook, HOOK, gd, config, &tx->place, !as_2_39);
	if (!reftx_exists(tx))
		return;
	tx->object_format = gitconfig_object_format(config, gd);
	place_make_environment(&tx->place);
}

void reftx_find(struct reftx *tx, const struct gitdir *gd,
    const struct gitconfig *config, const char *named, bool as_2_39)
{
	memset(tx, 0, sizeof(*tx));
	place_find(&tx->place, gd, named);
	find(tx, gd, config, as_2_39);
}

void reftx_find_here(struct reftx *tx, const struct gitdir *gd,
    const struct gitconfig *config)
{
	memset(tx, 0, sizeof(*tx));
	place_here(&tx->place);
	find(tx, gd, config, false);
	if (reftx_exists(tx) && !tx->hook.by_git)
		tx->as_2_39 = !githook_git_lists(gd, HOOK);
}

void reftx_done(struct reftx *tx)
{
	githook_done(&tx->hook);
	place_done(&tx->place);
	text_done(&tx->all);
	text_done(&tx->deleted);
	memset(tx, 0, sizeof(*tx));
}

bool reftx_exists(const struct reftx *tx)
{
	return tx->hook.exists;
}

void reftx_warn(struct reftx *tx)
{
	githook_warn(&tx->hook, tx->as_2_39);
}

/* ---- running the hook ---- */

/* Returns whether the hook agrees. */
static bool run(struct reftx *tx, const char *phase, const struct text *input)
{
	const char *args[] = { phase, NULL };

	return githook_run(&tx->hook, &tx->place, args, input);
}

/* The same, for a phase in which the hook may refuse. */
static bool ask(struct reftx *tx, const char *phase, const struct text *input)
{
	if (run(tx, phase, input))
		return true;
	tx->failed_in = phase;
	return false;
}

/* ---- a transaction ---- */

bool reftx_preparing(struct reftx *tx, const struct changes *changes)
{
	struct text asked = { 0 };
	bool ok;

	if (!reftx_exists(tx) || tx->as_2_39)
		return true;
	reftx_list_asked(changes, tx->object_format, &asked);
	ok = ask(tx, "preparing", &asked);
	if (!ok)
		run(tx, "aborted", &asked);
	text_done(&asked);
	return ok;
}

/* packed-refs' own transaction, if there is any. */
static bool prepare_packed(struct reftx *tx)
{
	if (tx->deleted.len && !tx->rewrites_packed)
		run(tx, "aborted", &tx->deleted);
	if (!tx->deleted.len || !tx->rewrites_packed)
		return true;
	return (tx->as_2_39 || ask(tx, "preparing", &tx->deleted)) &&
	    ask(tx, "prepared", &tx->deleted);
}

bool reftx_prepared(struct reftx *tx, const struct changes *changes,
    const struct refd_answer *ans)
{
	struct reftx_list list;

	if (!reftx_exists(tx))
		return true;
	text_clear(&tx->all);
	text_clear(&tx->deleted);
	reftx_list_make(&list, tx->gd, tx->object_format, changes, ans,
	    tx->as_2_39);
	reftx_list_all(&list, &tx->all);
	/* Reftables have no packed-refs. */
	if (!tx->gd->is_reftable)
		reftx_list_deleted(&list, &tx->deleted);
	reftx_list_done(&list);
	tx->rewrites_packed = ans->rewrites_packed;
	tx->in_packed = !prepare_packed(tx);
	return !tx->in_packed && ask(tx, "prepared", &tx->all);
}

static void finish_packed(struct reftx *tx, const char *phase)
{
	if (tx->rewrites_packed && tx->deleted.len)
		run(tx, phase, &tx->deleted);
}

void reftx_committed(struct reftx *tx)
{
	if (!reftx_exists(tx))
		return;
	finish_packed(tx, "committed");
	run(tx, "committed", &tx->all);
}

void reftx_aborted(struct reftx *tx)
{
	if (!reftx_exists(tx))
		return;
	finish_packed(tx, "aborted");
	/* After a refusal of packed-refs' transaction, git makes no final call
	 * for the whole transaction. */
	if (!tx->in_packed)
		run(tx, "aborted", &tx->all);
}

void reftx_ended(struct reftx *tx, const struct refd_answer *ans, bool was_held)
{
	bool is_known = true, is_done = false;

	if (ans->kind == REFD_ANSWER_RESULTS) {
		is_known = ans->outcome != REFD_OUTCOME_UNKNOWN;
		is_done = ans->outcome != REFD_REJECTED || !was_held;
	} else if (ans->kind == REFD_ANSWER_REFUSED) {
		is_known = ans->status != REFD_UNKNOWN;
	}
	if (is_known && is_done)
		reftx_committed(tx);
	else if (is_known)
		reftx_aborted(tx);
}

void reftx_given_up(struct reftx *tx, const struct changes *changes)
{
	struct text asked = { 0 };

	if (!reftx_exists(tx))
		return;
	reftx_list_asked(changes, tx->object_format, &asked);
	run(tx, "aborted", &asked);
	text_done(&asked);
}

void reftx_why(const struct reftx *tx, struct text *why)
{
	if (tx->as_2_39)
		text_adds(why, "ref updates aborted by hook");
	else
		text_addf(why,
		    "in '%s' phase, update aborted by the "
		    "reference-transaction hook",
		    tx->failed_in);
}
