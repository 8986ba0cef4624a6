#include "client/hooks/reftx_list.h"

#include <stdlib.h>
#include <string.h>

#include "client/git/symref.h"

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

void reftx_list_asked(const struct changes *changes,
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

/* The target of E. If the link can't be read, the final ref. For a rejected
 * update, the final ref is unknown. NULL: not symbolic. */
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

/* As in git, the list grows during the walk: the target of an entry, and the
 * HEAD that points to an entry, are appended at the end. */
void reftx_list_make(struct reftx_list *list, const struct gitdir *gd,
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

void reftx_list_done(struct reftx_list *list)
{
	size_t i;

	for (i = 0; i < list->nr; i++)
		free(list->entries[i].name);
	free(list->entries);
	memset(list, 0, sizeof(*list));
}

void reftx_list_all(const struct reftx_list *list, struct text *out)
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

void reftx_list_deleted(const struct reftx_list *list, struct text *out)
{
	static const struct refd_update deletion = { .action = REFD_DELETE };
	size_t i;

	for (i = 0; i < list->nr; i++) {
		const struct reftx_entry *e = &list->entries[i];

		if (deletes(e->u) && !e->only_log && !e->is_rejected)
			add_line(out, &deletion, list->object_format, e->name);
	}
}
