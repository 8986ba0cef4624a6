#include "client/hooks/reftx.h"

#include <stdlib.h>
#include <string.h>

#include "client/git/gitdir.h"
#include "client/git/symref.h"
#include "client/request/changes.h"
#include "proto/lib/cli.h"

/* ---- the lines for the hook ---- */

/*
 * The input of the reference-transaction hook: a line for each ref of a
 * transaction, "<old> SP <new> SP <ref>", in the order of git's files backend.
 * One thread.
 */

/*
 * The updates as prepared, in the form in which git lists them. A symbolic ref
 * is replaced by its target, at the end of the list. The daemon names only the
 * final ref of a chain of links, so the links between are read here, one by
 * one, while the locks are held. git 2.39 lists all links, too, and appends
 * HEAD if HEAD points to a listed branch.
 */
struct reftx_list {
	struct reftx_entry *entries; /* owned */
	size_t nr, size;
	enum refd_object_format object_format;
	bool as_2_39;
};

struct reftx_entry {
	const struct refd_update *u;
	char *name;           /* owned */
	const char *leads_to; /* final ref; NULL: not symbolic */
	unsigned links;       /* links before this ref */
	bool via_head;        /* HEAD is one of these links */
	bool only_log;        /* only the log is written */
	bool is_rejected;
};

/* ---- lines ---- */

static void add_value(struct text *out, bool given, const char *target,
    const struct refd_oid *oid, enum refd_object_format format)
{
	static const struct refd_oid none;
	char hex[REFD_OID_MAX_HEX + 1];

	if (given && target)
		text_addf(out, "ref:%s ", target);
	else
		text_addf(out, "%s ",
		    refd_oid_hex(given ? oid : &none, format, hex));
}

static void add_line(struct text *out, const struct refd_update *u,
    enum refd_object_format format, const char *name)
{
	add_value(out, u->has_old, u->old_target, &u->old_oid, format);
	add_value(out, true, u->target, &u->new_oid, format);
	text_addf(out, "%s\n", name);
}

/* The updates as requested. */
static void reftx_list_asked(const struct changes *changes,
    enum refd_object_format format, struct text *out)
{
	size_t i;

	for (i = 0; i < changes->nr; i++)
		add_line(out, &changes->updates[i], format,
		    changes->updates[i].name);
}

/* ---- the list ---- */

static struct reftx_entry *append(struct reftx_list *list,
    const struct refd_update *u, char *name)
{
	struct reftx_entry *e;

	list->entries =
	    xroom(list->entries, list->nr, &list->size, sizeof(*list->entries));
	e = &list->entries[list->nr++];
	memset(e, 0, sizeof(*e));
	e->u = u;
	e->name = name;
	return e;
}

static void append_asked(struct reftx_list *list, const struct refd_update *u,
    const struct refd_result *res)
{
	struct reftx_entry *e = append(list, u, xstrdup(u->name));

	e->is_rejected = res->status != REFD_OK;
	if (!e->is_rejected && res->text && *res->text)
		e->leads_to = res->text;
}

/* The next link after E, or NULL if E is not symbolic. If the link can't be
 * read, the final ref is returned, as the daemon names it. The daemon names no
 * final ref for a rejected update, so the links of such an update can only be
 * read. */
static char *next_link(const struct gitdir *gd, const struct reftx_entry *e)
{
	bool may_read = e->links < SYMREF_LINKS_MAX;
	char *next = NULL;

	if (e->is_rejected)
		return may_read && !e->u->no_deref ?
		    symref_target(gd, e->name) :
		    NULL;
	if (!e->leads_to || !strcmp(e->name, e->leads_to))
		return NULL;
	if (may_read)
		next = symref_target(gd, e->name);
	return next ? next : xstrdup(e->leads_to);
}

static void append_next(struct reftx_list *list, const struct gitdir *gd,
    size_t i)
{
	char *next = next_link(gd, &list->entries[i]);
	struct reftx_entry *e, from;

	if (!next)
		return;
	list->entries[i].only_log = true;
	from = list->entries[i];
	e = append(list, from.u, next);
	e->leads_to = from.leads_to;
	e->links = from.links + 1;
	e->via_head = from.via_head || !strcmp(from.name, "HEAD");
	e->is_rejected = from.is_rejected;
}

/* Blocks. ANS has a result for each of CHANGES, and the list borrows from ANS
 * and CHANGES. As in git, the list grows during the walk: the target of an
 * entry is appended at the end, and so is HEAD, if HEAD points to the entry. */
static void reftx_list_make(struct reftx_list *list, const struct gitdir *gd,
    enum refd_object_format format, const struct changes *changes,
    const struct refd_answer *ans, bool as_2_39)
{
	char *head = as_2_39 ? symref_target(gd, "HEAD") : NULL;
	size_t i;

	memset(list, 0, sizeof(*list));
	list->as_2_39 = as_2_39;
	list->object_format = format;
	for (i = 0; i < changes->nr; i++)
		append_asked(list, &changes->updates[i], &ans->results[i]);
	for (i = 0; i < list->nr; i++) {
		const struct reftx_entry *e = &list->entries[i];

		if (head && !e->via_head && !strcmp(e->name, head))
			append(list, e->u, xstrdup("HEAD"))->only_log = true;
		append_next(list, gd, i);
	}
	free(head);
}

static void reftx_list_done(struct reftx_list *list)
{
	size_t i;

	for (i = 0; i < list->nr; i++)
		free(list->entries[i].name);
	free(list->entries);
	memset(list, 0, sizeof(*list));
}

static void reftx_list_all(const struct reftx_list *list, struct text *out)
{
	size_t i;

	for (i = 0; i < list->nr; i++)
		if (list->as_2_39 || !list->entries[i].only_log)
			add_line(out, list->entries[i].u, list->object_format,
			    list->entries[i].name);
}

static bool deletes(const struct refd_update *u)
{
	return u->action == REFD_DELETE || u->action == REFD_SYMREF_DELETE ||
	    (u->action == REFD_UPDATE && refd_oid_is_null(&u->new_oid));
}

/* Only the deletions. */
static void reftx_list_deleted(const struct reftx_list *list, struct text *out)
{
	static const struct refd_update deletion = { .action = REFD_DELETE };
	size_t i;

	for (i = 0; i < list->nr; i++) {
		const struct reftx_entry *e = &list->entries[i];

		if (deletes(e->u) && !e->only_log && !e->is_rejected)
			add_line(out, &deletion, list->object_format, e->name);
	}
}

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

/* Calls the hook for the inner transaction in which git rewrites packed-refs,
 * if refs are deleted. If packed-refs need not be rewritten, git aborts the
 * inner transaction, so the hook is called with "aborted". */
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
	/* Reftables have no packed-refs, so there is no second transaction. */
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
