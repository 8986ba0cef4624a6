#include "client/reftx_list.h"

#include <stdlib.h>
#include <string.h>

static void add_value(struct text *out, bool given, const char *target,
    const struct refd_oid *oid)
{
	static const struct refd_oid none;
	char hex[REFD_OID_HEX + 1];

	if (given && target)
		text_addf(out, "ref:%s ", target);
	else
		text_addf(out, "%s ", refd_oid_hex(given ? oid : &none, hex));
}

static void add_line(struct text *out, const struct refd_update *u,
    const char *name)
{
	add_value(out, u->has_old, u->old_target, &u->old_oid);
	add_value(out, true, u->target, &u->new_oid);
	text_addf(out, "%s\n", name);
}

void reftx_list_asked(const struct changes *changes, struct text *out)
{
	size_t i;

	for (i = 0; i < changes->nr; i++)
		add_line(out, &changes->updates[i], changes->updates[i].name);
}

/* The ref that a symbolic one led to; NULL: it did not. */
static const char *led_to(const struct refd_answer *ans, size_t i)
{
	const struct refd_result *res = &ans->results[i];

	if (res->status != REFD_OK || !res->text || !*res->text ||
	    !strcmp(res->text, res->name))
		return NULL;
	return res->text;
}

/* ---- 2.39's way ---- */

/* git's list grows while it is walked: what one entry leads to, and the HEAD
 * that points to one, come behind all that are there by then. */
struct entry {
	const struct refd_update *u;
	const char *name, *leads_to;
	bool via_head;
};

static void list_all(const struct changes *changes,
    const struct refd_answer *ans, const char *head_target, struct text *out)
{
	struct entry *list = xcalloc(4 * changes->nr, sizeof(*list));
	size_t i, nr = 0;

	for (i = 0; i < changes->nr; i++) {
		list[nr].u = &changes->updates[i];
		list[nr].name = list[nr].u->name;
		list[nr++].leads_to = led_to(ans, i);
	}
	for (i = 0; i < nr; i++) {
		struct entry *e = &list[i];

		if (!strcmp(e->name, head_target) && !e->via_head) {
			list[nr].u = e->u;
			list[nr++].name = "HEAD";
		}
		if (e->leads_to) {
			list[nr].u = e->u;
			list[nr].name = e->leads_to;
			list[nr++].via_head = !strcmp(e->name, "HEAD");
		}
		add_line(out, e->u, e->name);
	}
	free(list);
}

/* ---- the present way ---- */

void reftx_list_prepared(const struct changes *changes,
    const struct refd_answer *ans, const char *head_target, struct text *out)
{
	const struct refd_update *u = changes->updates;
	size_t i;

	if (head_target) {
		list_all(changes, ans, head_target, out);
		return;
	}
	for (i = 0; i < changes->nr; i++)
		if (!led_to(ans, i))
			add_line(out, &u[i], u[i].name);
	for (i = 0; i < changes->nr; i++)
		if (led_to(ans, i))
			add_line(out, &u[i], led_to(ans, i));
}

static bool is_deleted(const struct changes *changes,
    const struct refd_answer *ans, size_t i)
{
	enum refd_action action = changes->updates[i].action;

	return ans->results[i].status == REFD_OK &&
	    (action == REFD_DELETE || action == REFD_SYMREF_DELETE);
}

bool reftx_list_deleted(const struct changes *changes,
    const struct refd_answer *ans, struct text *out)
{
	static const struct refd_update deletion = { .action = REFD_DELETE };
	bool any = false;
	size_t i;

	for (i = 0; i < changes->nr; i++) {
		if (!is_deleted(changes, ans, i))
			continue;
		any = true;
		if (!led_to(ans, i))
			add_line(out, &deletion, changes->updates[i].name);
	}
	for (i = 0; i < changes->nr; i++)
		if (is_deleted(changes, ans, i) && led_to(ans, i))
			add_line(out, &deletion, led_to(ans, i));
	return any;
}
