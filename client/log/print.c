#include "client/log/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/log/when.h"
#include "proto/lib/json.h"
#include "proto/lib/print.h"
#include "client/request/git_messages.h"

/* Hex digits of a short object id. */
#define SHORT_OID 12

/* ---- the parts of a change ---- */

/* The user of the change: the value of the first variable that is set. */
static const char *who_text(const struct refd_record *rec, char buf[32])
{
	static const char *const names[] = { "GL_USER", "GITEA_PUSHER_NAME",
		"GL_USERNAME", "REMOTE_USER", "GL_ID" };
	size_t i, k;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (k = 0; k < rec->nr_identities; k++)
			if (!strcmp(rec->identities[k].name, names[i]))
				return rec->identities[k].value;
	snprintf(buf, 32, "uid=%u", rec->uid);
	return buf;
}

static const char *oid_text(bool given, const struct refd_oid *oid,
    enum refd_object_format format, char hex[REFD_OID_MAX_HEX + 1])
{
	return given ? refd_oid_hex_as(oid, format, hex) : "";
}

/* ---- forms ---- */

static void put_short(bool given, const struct refd_oid *oid)
{
	char hex[REFD_OID_HEX + 1];

	if (!given)
		putchar('?');
	else if (refd_oid_is_null(oid))
		putchar('-');
	else
		printf("%.*s", SHORT_OID, refd_oid_hex(oid, hex));
}

/* The reason of a failure, or the message of the log. */
static void put_reason(const struct refd_change *c)
{
	const char *message = c->record->message;
	struct text text = { 0 };

	if (c->status != REFD_OK && c->text)
		git_messages_text(c->status, c->text, &text);
	else
		text_adds(&text, message ? message : "");
	print_visible(stdout, text.data);
	text_done(&text);
}

static void print_line(const struct refd_change *c)
{
	const struct refd_record *rec = c->record;
	char when[64], who[32];

	printf("%s %" PRIu64 ".%u ", when_text(rec->time_ms, when), rec->lsn,
	    c->nr);
	print_visible(stdout, who_text(rec, who));
	putchar(' ');
	print_visible(stdout, *rec->repo ? rec->repo : "-");
	putchar(' ');
	print_visible(stdout, c->name);
	putchar(' ');
	if (c->status != REFD_OK)
		printf("%s%s", rec->voids ? "taken-back:" : "",
		    refd_status_name(c->status));
	else
		put_short(c->has_old, &c->old_oid);
	if (c->status == REFD_OK) {
		fputs("..", stdout);
		if (c->target)
			print_visible(stdout, c->target);
		else
			put_short(c->has_new, &c->new_oid);
	}
	putchar(' ');
	put_reason(c);
	putchar('\n');
}

static void put_field(const char *s)
{
	fputs(s ? s : "", stdout);
	putchar('\0');
}

static void print_nul(const struct refd_change *c)
{
	const struct refd_record *rec = c->record;
	char hex[REFD_OID_MAX_HEX + 1], txid[REFD_TXID_HEX + 1], who[32];

	printf("%" PRIu64 ".%u%c%" PRIu64 "%c", rec->lsn, c->nr, 0,
	    rec->time_ms, 0);
	put_field(refd_txid_hex(&rec->txid, txid));
	printf("%u%c", rec->uid, 0);
	put_field(who_text(rec, who));
	put_field(rec->repo);
	put_field(c->name);
	put_field(refd_status_name(c->status));
	put_field(oid_text(c->has_old, &c->old_oid, rec->object_format, hex));
	put_field(oid_text(c->has_new, &c->new_oid, rec->object_format, hex));
	put_field(c->target);
	put_field(rec->message);
	putchar('\0');
}

static void add_position(struct json *j, const struct refd_answer *ans,
    uint64_t lsn, uint32_t nr)
{
	char token[REFD_TOKEN_MAX + 16];

	refd_token_text(ans->journal, lsn, token);
	if (nr)
		snprintf(token + strlen(token), 16, ".%u", nr);
	json_text(j, "position", token);
}

static void add_who(struct json *j, const struct refd_record *rec)
{
	size_t i;

	json_count(j, "uid", rec->uid);
	json_count(j, "pid", rec->pid);
	json_begin(j, "who", '{');
	for (i = 0; i < rec->nr_identities; i++)
		json_text(j, rec->identities[i].name, rec->identities[i].value);
	json_end(j, '}');
}

static void print_json(const struct refd_answer *ans,
    const struct refd_change *c)
{
	const struct refd_record *rec = c->record;
	struct json j = { .to = stdout };
	struct text text = { 0 };
	char hex[REFD_OID_MAX_HEX + 1], when[64], txid[REFD_TXID_HEX + 1];

	json_begin(&j, NULL, '{');
	add_position(&j, ans, rec->lsn, c->nr);
	json_count(&j, "lsn", rec->lsn);
	json_count(&j, "nr", c->nr);
	json_count(&j, "time_ms", rec->time_ms);
	json_text(&j, "time", when_text(rec->time_ms, when));
	json_text(&j, "txn", refd_txid_hex(&rec->txid, txid));
	json_text(&j, "repo", rec->repo);
	json_text(&j, "ref", c->name);
	json_text(&j, "status", refd_status_name(c->status));
	if (c->has_old)
		json_text(&j, "old",
		    refd_oid_hex_as(&c->old_oid, rec->object_format, hex));
	if (c->has_new)
		json_text(&j, "new",
		    refd_oid_hex_as(&c->new_oid, rec->object_format, hex));
	json_text(&j, "target", c->target);
	if (c->text) {
		git_messages_text(c->status, c->text, &text);
		json_text(&j, "text", text.data);
	}
	text_done(&text);
	json_text(&j, "message", rec->message);
	json_text(&j, "committer", rec->committer);
	add_who(&j, rec);
	if (rec->voids)
		json_count(&j, "voids", rec->voids);
	json_end(&j, '}');
	putchar('\n');
}

void print_change(const struct refd_answer *ans, const struct refd_change *c,
    enum print_form form)
{
	switch (form) {
	case PRINT_LINES:
		print_line(c);
		break;
	case PRINT_NUL:
		print_nul(c);
		break;
	case PRINT_JSON:
		print_json(ans, c);
		break;
	}
}

void print_gap(const struct refd_answer *ans, enum print_form form)
{
	struct json j = { .to = stdout };

	if (form == PRINT_JSON) {
		json_begin(&j, NULL, '{');
		add_position(&j, ans, ans->gap, 0);
		json_count(&j, "gap", ans->gap);
		json_end(&j, '}');
		putchar('\n');
	}
	say_warning("what happened up to %" PRIu64
		    " is not known any more, and "
		    "some of it was asked for",
	    ans->gap);
}
