/*
 * The update packets of a request, like git update-ref --stdin -z: a command, a
 * space, and fields separated by NUL. The encoder and the decoder use one
 * table, so they cannot differ.
 */
#include "proto/wire.h"

#include <string.h>

#include "proto/arena.h"

enum old_form {
	OLD_NONE,
	OLD_OID,    /* a field; empty: not given */
	OLD_TARGET, /* a field; empty: not given */
	OLD_EITHER  /* none, or two fields: "oid" or "ref", and the value */
};

static const struct form {
	const char *command;
	bool has_new_oid, has_target;
	enum old_form old;
} forms[] = {
	[REFD_UPDATE] = { "update", true, false, OLD_OID },
	[REFD_CREATE] = { "create", true, false, OLD_NONE },
	[REFD_DELETE] = { "delete", false, false, OLD_OID },
	[REFD_VERIFY] = { "verify", false, false, OLD_OID },
	[REFD_SYMREF_UPDATE] = { "symref-update", false, true, OLD_EITHER },
	[REFD_SYMREF_CREATE] = { "symref-create", false, true, OLD_NONE },
	[REFD_SYMREF_DELETE] = { "symref-delete", false, false, OLD_TARGET },
	[REFD_SYMREF_VERIFY] = { "symref-verify", false, false, OLD_TARGET },
};

#define NR_FORMS (sizeof(forms) / sizeof(forms[0]))

/* An update whose strings are still in the packet. */
struct parsed {
	struct refd_update update;
	struct refd_slice name, target, old_target;
};

static const struct form *find_form(struct refd_slice command)
{
	size_t i;

	for (i = 0; i < NR_FORMS; i++) {
		if (refd_slice_is(command, forms[i].command))
			return &forms[i];
	}
	return NULL;
}

static bool parse_old(struct refd_slice *rest, enum old_form form,
    enum refd_object_format format, struct parsed *p)
{
	struct refd_slice kind, old;

	switch (form) {
	case OLD_NONE:
		return true;
	case OLD_OID:
		if (!refd_slice_cut(rest, '\0', &old))
			return false;
		p->update.has_old = old.len > 0;
		return old.len == 0 ||
		    refd_slice_oid(old, format, &p->update.old_oid);
	case OLD_TARGET:
		if (!refd_slice_cut(rest, '\0', &old))
			return false;
		p->update.has_old = old.len > 0;
		if (old.len > 0)
			p->old_target = old;
		return true;
	case OLD_EITHER:
		if (!refd_slice_cut(rest, '\0', &kind))
			return true;
		if (!refd_slice_cut(rest, '\0', &old) || old.len == 0)
			return false;
		p->update.has_old = true;
		if (refd_slice_is(kind, "oid"))
			return refd_slice_oid(old, format, &p->update.old_oid);
		p->old_target = old;
		return refd_slice_is(kind, "ref");
	}
	return false;
}

static bool parse(struct refd_slice rest, const struct form *form,
    enum refd_object_format format, struct parsed *p)
{
	struct refd_slice oid;

	if (!refd_slice_cut(&rest, '\0', &p->name))
		return false;
	if (form->has_new_oid &&
	    (!refd_slice_cut(&rest, '\0', &oid) ||
		!refd_slice_oid(oid, format, &p->update.new_oid)))
		return false;
	if (form->has_target && !refd_slice_cut(&rest, '\0', &p->target))
		return false;
	return parse_old(&rest, form->old, format, p) && rest.data == NULL;
}

/* Copies S if it is present. */
static bool keep(struct refd_arena *arena, struct refd_slice s,
    const char **copy)
{
	if (s.data == NULL)
		return true;
	*copy = refd_arena_string(arena, s.data, s.len);
	return *copy != NULL;
}

static const struct refd_refusal *append(struct refd_request *req,
    struct parsed *p)
{
	struct refd_update *updates;

	updates =
	    refd_arena_array(req->arena, req->nr_updates + 1, sizeof(*updates));
	if (updates == NULL)
		return &refd_refusal_no_memory;
	req->updates = updates;
	if (!keep(req->arena, p->name, &p->update.name) ||
	    !keep(req->arena, p->target, &p->update.target) ||
	    !keep(req->arena, p->old_target, &p->update.old_target))
		return &refd_refusal_no_memory;
	updates[req->nr_updates++] = p->update;
	return NULL;
}

const struct refd_refusal *refd_update_decode(struct refd_request *req,
    struct refd_slice packet, bool no_deref)
{
	static const struct refd_refusal unknown = { REFD_BADREQUEST,
		"unknown update command" },
					 malformed = { REFD_BADREQUEST,
						 "malformed update" },
					 too_many = { REFD_LIMIT,
						 "too many updates" },
					 too_long = { REFD_LIMIT,
						 "a refname is too long" };
	struct parsed p = { .update = { .no_deref = no_deref } };
	const struct form *form;
	struct refd_slice command;

	if (req->nr_updates == REFD_UPDATES_MAX)
		return &too_many;
	refd_slice_cut(&packet, ' ', &command);
	form = find_form(command);
	if (form == NULL)
		return &unknown;
	p.update.action = (enum refd_action)(form - forms);
	if (!parse(packet, form, req->object_format, &p))
		return &malformed;
	if (p.name.len > REFD_REFNAME_MAX || p.target.len > REFD_REFNAME_MAX ||
	    p.old_target.len > REFD_REFNAME_MAX)
		return &too_long;
	return append(req, &p);
}

/* Adds a NUL, and FIELD. Returns the new number of PARTS. */
static size_t add_field(const char **parts, size_t nr, const char *field)
{
	parts[nr] = NULL;
	parts[nr + 1] = field;
	return nr + 2;
}

void refd_update_encode(const struct refd_update *u,
    enum refd_object_format format, struct pkt_buf *out)
{
	const struct form *form = &forms[u->action];
	char new_hex[REFD_OID_MAX_HEX + 1] = "";
	char old_hex[REFD_OID_MAX_HEX + 1] = "";
	const char *value = u->target, *old = old_hex, *kind = "oid";
	const char *parts[9] = { form->command, " ", u->name };
	size_t nr = 3;

	if (u->no_deref)
		pkt_putf(out, "option no-deref");
	if (form->has_new_oid)
		value = refd_oid_hex(&u->new_oid, format, new_hex);
	if (u->has_old && u->old_target != NULL) {
		old = u->old_target;
		kind = "ref";
	} else if (u->has_old) {
		refd_oid_hex(&u->old_oid, format, old_hex);
	}
	/* An empty field means that there is no condition. The caller has a
	 * condition, which would be lost, so the encoding fails. */
	if (u->has_old && form->old != OLD_NONE && *old == '\0')
		out->failed = true;
	if (form->has_new_oid || form->has_target)
		nr = add_field(parts, nr, value);
	if (form->old == OLD_EITHER && u->has_old)
		nr = add_field(parts, nr, kind);
	if (form->old == OLD_OID || form->old == OLD_TARGET ||
	    (form->old == OLD_EITHER && u->has_old))
		nr = add_field(parts, nr, old);
	pkt_puts(out, parts, nr);
}
