#include "client/log/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/log/when.h"
#include "client/log/who.h"
#include "proto/lib/json.h"
#include "client/request/git_messages.h"

static const char *oid_text(bool given, const struct refd_oid *oid,
    enum refd_object_format format, char hex[REFD_OID_MAX_HEX + 1])
{
	return given ? refd_oid_hex(oid, format, hex) : "";
}

static void put_field(const char *s)
{
	fputs(s ? s : "", stdout);
	putchar('\0');
}

static void print_nul(const struct refd_change *c)
{
	const struct refd_record *rec = c->record;
	char hex[REFD_OID_MAX_HEX + 1], txid[REFD_TXID_HEX + 1];
	const char *person = who_person(rec);

	printf("%" PRIu64 ".%u%c%" PRIu64 "%c", rec->lsn, c->nr, 0,
	    rec->time_ms, 0);
	put_field(refd_txid_hex(&rec->txid, txid));
	printf("%u%c", rec->uid, 0);
	if (person)
		put_field(person);
	else
		printf("uid=%u%c", rec->uid, 0);
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
		    refd_oid_hex(&c->old_oid, rec->object_format, hex));
	if (c->has_new)
		json_text(&j, "new",
		    refd_oid_hex(&c->new_oid, rec->object_format, hex));
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

static void print_gap(const struct refd_answer *ans, enum print_form form)
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

static uint64_t wall_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void print_changes(const struct refd_answer *ans, enum print_form form,
    struct lines *lines)
{
	struct text out = { 0 };
	size_t i;

	if (ans->has_gap)
		print_gap(ans, form);
	switch (form) {
	case PRINT_LINES:
		lines_add(lines, ans, wall_ms(), &out);
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
