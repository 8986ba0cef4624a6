#include "client/log/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/log/who.h"
#include "client/request/git_messages.h"
#include "proto/lib/change_json.h"
#include "proto/lib/clock.h"

static const char *oid_text(bool given, const struct refd_oid *oid,
    enum refd_object_format format, char hex[REFD_OID_MAX_HEX + 1])
{
	return given ? refd_oid_hex(oid, format, hex) : "";
}

static void add_field(struct text *t, const char *s)
{
	text_add(t, s ? s : "", s ? strlen(s) + 1 : 1);
}

static void print_nul(const struct refd_change *c)
{
	const struct refd_record *rec = c->record;
	struct text t = { 0 };
	char hex[REFD_OID_MAX_HEX + 1], txid[REFD_TXID_HEX + 1];
	const char *person =
	    refd_identity_person(rec->identities, rec->nr_identities);

	text_addf(&t, "%" PRIu64 ".%u%c%" PRIu64 "%c", rec->lsn, c->nr, 0,
	    rec->time_ms, 0);
	add_field(&t, refd_txid_hex(&rec->txid, txid));
	text_addf(&t, "%u%c", rec->uid, 0);
	if (person)
		add_field(&t, person);
	else
		text_addf(&t, "uid=%u%c", rec->uid, 0);
	add_field(&t, rec->repo);
	add_field(&t, c->name);
	add_field(&t, refd_status_name(c->status));
	add_field(&t,
	    oid_text(c->has_old, &c->old_oid, rec->object_format, hex));
	add_field(&t,
	    oid_text(c->has_new, &c->new_oid, rec->object_format, hex));
	add_field(&t, c->target);
	add_field(&t, rec->message);
	add_field(&t, NULL);
	print_bytes(stdout, t.data, t.len);
	text_done(&t);
}

static void print_gap(const struct refd_answer *ans, enum print_form form)
{
	if (form == PRINT_JSON) {
		change_json_gap(stdout, ans);
		print_lines(stdout, "\n");
	}
	say_warning("what happened up to %" PRIu64
		    " is not known any more, and "
		    "some of it was asked for",
	    ans->gap);
}

static void print_json(const struct refd_answer *ans,
    const struct refd_change *c)
{
	struct text why = { 0 };

	if (c->text)
		git_messages_text(c->status, c->text, &why);
	change_json(stdout, ans, c, why.data);
	print_lines(stdout, "\n");
	text_done(&why);
}

void print_changes(const struct refd_answer *ans, enum print_form form,
    struct lines *lines)
{
	struct text out = { .is_shown = true };
	size_t i;

	if (ans->has_gap)
		print_gap(ans, form);
	switch (form) {
	case PRINT_LINES:
		lines_add(lines, ans, clock_wall_ms(), &out);
		text_print(&out);
		break;
	case PRINT_NUL:
		for (i = 0; i < ans->nr_changes; i++)
			print_nul(&ans->changes[i]);
		break;
	case PRINT_JSON:
		for (i = 0; i < ans->nr_changes; i++)
			print_json(ans, &ans->changes[i]);
		break;
	}
}
