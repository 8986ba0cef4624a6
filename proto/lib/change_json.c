#include "proto/lib/change_json.h"

#include <string.h>

#include "proto/lib/json.h"
#include "proto/lib/time_text.h"

char *change_json_position(const struct refd_answer *ans, uint64_t lsn,
    uint32_t nr, char text[CHANGE_JSON_POSITION_MAX + 1])
{
	refd_token_text(ans->journal, lsn, text);
	if (nr)
		snprintf(text + strlen(text), 12, ".%u", nr);
	return text;
}

static void add_position(struct json *j, const struct refd_answer *ans,
    uint64_t lsn, uint32_t nr)
{
	char text[CHANGE_JSON_POSITION_MAX + 1];

	json_text(j, "position", change_json_position(ans, lsn, nr, text));
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

void change_json(FILE *to, const struct refd_answer *ans,
    const struct refd_change *c, const char *text)
{
	const struct refd_record *rec = c->record;
	struct json j = { .to = to };
	char hex[REFD_OID_MAX_HEX + 1], when[64], txid[REFD_TXID_HEX + 1];

	json_begin(&j, NULL, '{');
	add_position(&j, ans, rec->lsn, c->nr);
	json_count(&j, "lsn", rec->lsn);
	json_count(&j, "nr", c->nr);
	json_count(&j, "time_ms", rec->time_ms);
	json_text(&j, "time", time_text_local(rec->time_ms, when));
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
	json_text(&j, "text", text);
	json_text(&j, "message", rec->message);
	json_text(&j, "committer", rec->committer);
	add_who(&j, rec);
	if (rec->origin != REFD_ORIGIN_REFD)
		json_text(&j, "origin",
		    rec->origin == REFD_ORIGIN_SEEN ? "seen" : "gate");
	if (rec->voids)
		json_count(&j, "voids", rec->voids);
	json_end(&j, '}');
}

void change_json_gap(FILE *to, const struct refd_answer *ans)
{
	struct json j = { .to = to };

	json_begin(&j, NULL, '{');
	add_position(&j, ans, ans->gap, 0);
	json_count(&j, "gap", ans->gap);
	json_end(&j, '}');
}
