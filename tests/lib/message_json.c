#include "tests/lib/message_json.h"

#include <string.h>

#include "proto/detail.h"
#include "proto/verb.h"

static void put_some(struct json_out *j, const char *key, const char *value)
{
	if (value != NULL)
		json_string(j, key, value);
}

static void put_flag(struct json_out *j, const char *key, bool is_set)
{
	if (is_set)
		json_true(j, key);
}

static void put_given(struct json_out *j, const char *key, bool is_given,
    uint64_t number)
{
	if (is_given)
		json_number(j, key, number);
}

static void put_txid(struct json_out *j, const struct refd_txid *txid)
{
	char hex[REFD_TXID_HEX + 1];

	json_string(j, "txid", refd_txid_hex(txid, hex));
}

static void put_oid(struct json_out *j, const char *key, bool is_given,
    const struct refd_oid *oid, enum refd_object_format format)
{
	char hex[REFD_OID_MAX_HEX + 1];

	if (is_given)
		json_string(j, key, refd_oid_hex(oid, format, hex));
}

static void put_id(struct json_out *j, const char *key,
    const uint8_t id[REFD_JOURNAL_ID_BYTES])
{
	char hex[2 * REFD_JOURNAL_ID_BYTES + 1];
	size_t i;

	for (i = 0; i < REFD_JOURNAL_ID_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	json_string(j, key, hex);
}

static void put_position(struct json_out *j, const char *key,
    const struct refd_position *at)
{
	json_open_inline(j, key, '{');
	json_number(j, "lsn", at->lsn);
	put_given(j, "change", at->nr != 0, at->nr);
	json_close(j, '}');
}

static void put_identities(struct json_out *j, const struct refd_identity *list,
    size_t nr)
{
	size_t i;

	if (nr == 0)
		return;
	json_open_inline(j, "identity", '{');
	for (i = 0; i < nr; i++)
		json_string(j, list[i].name, list[i].value);
	json_close(j, '}');
}

/* ---- hello ---- */

void message_json_hello(struct json_out *j, const struct refd_hello *hello)
{
	json_number(j, "version", hello->version);
	json_string(j, "software", hello->software);
	json_string(j, "state", refd_server_state_name(hello->state));
	json_number(j, "horizon", hello->horizon_ms);
	json_number(j, "pid", hello->pid);
	json_open_inline(j, "limit", '{');
	json_number(j, "updates", hello->max_updates);
	json_number(j, "bytes", hello->max_bytes);
	json_close(j, '}');
	if (hello->total == 0)
		return;
	json_open_inline(j, "progress", '{');
	json_number(j, "done", hello->done);
	json_number(j, "total", hello->total);
	json_close(j, '}');
}

/* ---- requests ---- */

static void put_level(struct json_out *j, const struct refd_level *level)
{
	static const char *const levels[] = { [REFD_LEVEL_LOCAL] = "local",
		[REFD_LEVEL_LOGGED] = "logged",
		[REFD_LEVEL_HELD] = "held",
		[REFD_LEVEL_APPLIED] = "applied" };

	if (level->kind == REFD_LEVEL_DEFAULT)
		return;
	json_open_inline(j, "level", '{');
	json_string(j, "kind", levels[level->kind]);
	put_given(j, "nodes", level->nodes != 0, level->nodes);
	json_close(j, '}');
}

static void put_update(struct json_out *j, const struct refd_update *u,
    enum refd_object_format format)
{
	static const char *const commands[] = { "update", "create", "delete",
		"verify", "symref-update", "symref-create", "symref-delete",
		"symref-verify" };

	json_open_inline(j, NULL, '{');
	json_string(j, "command", commands[u->action]);
	put_flag(j, "no-deref", u->no_deref);
	json_string(j, "ref", u->name);
	put_oid(j, "oid", u->action <= REFD_CREATE, &u->new_oid, format);
	put_some(j, "target", u->target);
	put_oid(j, "old-oid", u->has_old && u->old_target == NULL, &u->old_oid,
	    format);
	put_some(j, "old-target", u->old_target);
	json_close(j, '}');
}

static void put_transaction(struct json_out *j, const struct refd_request *req)
{
	char umask[8];
	size_t i;

	json_string(j, "object-format",
	    refd_object_format_name(req->object_format));
	put_flag(j, "atomic", req->atomic);
	put_flag(j, "create-reflog", req->create_reflog);
	put_flag(j, "push", req->push);
	if (req->durability != REFD_DURABILITY_DEFAULT)
		json_string(j, "durability",
		    refd_durability_name(req->durability));
	put_level(j, &req->level);
	put_given(j, "deadline", req->deadline_ms != 0, req->deadline_ms);
	snprintf(umask, sizeof(umask), "%04o", (unsigned)req->umask & 0777);
	json_string(j, "umask", umask);
	put_some(j, "message", req->message);
	put_some(j, "committer", req->committer);
	put_some(j, "log-all-ref-updates", req->log_all_ref_updates);
	put_some(j, "shared-repository", req->shared_repository);
	put_given(j, "ref-lock-timeout", req->has_ref_lock_timeout,
	    req->ref_lock_timeout_ms);
	put_given(j, "packed-refs-timeout", req->has_packed_refs_timeout,
	    req->packed_refs_timeout_ms);
	put_some(j, "trace2-sid", req->trace2_sid);
	put_identities(j, req->identities, req->nr_identities);
	json_open(j, "updates", '[');
	for (i = 0; i < req->nr_updates; i++)
		put_update(j, &req->updates[i], req->object_format);
	json_close(j, ']');
}

static void put_question(struct json_out *j, const struct refd_request *req)
{
	const struct refd_selection *s = &req->select;
	size_t i;

	put_given(j, "deadline", req->deadline_ms != 0, req->deadline_ms);
	if (s->nr_patterns > 0) {
		json_open_inline(j, "ref", '[');
		for (i = 0; i < s->nr_patterns; i++)
			json_string(j, NULL, s->patterns[i]);
		json_close(j, ']');
	}
	put_given(j, "uid", s->has_uid, s->uid);
	put_some(j, "user", s->user);
	put_given(j, "since", s->since_ms != 0, s->since_ms);
	put_given(j, "until", s->until_ms != 0, s->until_ms);
	if (s->has_journal)
		put_id(j, "journal", s->journal);
	if (s->has_after)
		put_position(j, "after", &s->after);
	if (s->has_before)
		put_position(j, "before", &s->before);
	put_given(j, "limit", s->limit != 0, s->limit);
	put_flag(j, "reverse", s->reverse);
	put_flag(j, "all", s->all);
	put_flag(j, "origin", s->origin);
}

void message_json_request(struct json_out *j, const struct refd_request *req)
{
	static const struct refd_txid none;
	bool has_updates = refd_verb_has_updates(req->verb);

	json_string(j, "verb", refd_verbs[req->verb].word);
	json_number(j, "id", req->request_id);
	if (!refd_txid_eq(&req->txid, &none))
		put_txid(j, &req->txid);
	put_some(j, "git-dir", req->git_dir);
	if (has_updates || req->common_ino != 0) {
		json_open_inline(j, "common-dir", '{');
		json_number(j, "dev", req->common_dev);
		json_number(j, "ino", req->common_ino);
		json_close(j, '}');
	}
	if (has_updates)
		put_transaction(j, req);
	else
		put_question(j, req);
}

/* ---- answers ---- */

static void put_text(struct json_out *j, const char *text)
{
	static const char mark[] = { REFD_DETAIL_MARK, '\0' };
	size_t len;

	if (text == NULL || *text != REFD_DETAIL_MARK) {
		put_some(j, "text", text);
		return;
	}
	json_open_inline(j, "detail", '[');
	for (; *text != '\0'; text += len) {
		len = strcspn(++text, mark);
		json_bytes(j, NULL, text, len);
	}
	json_close(j, ']');
}

static void put_results(struct json_out *j, const struct refd_answer *ans)
{
	const struct refd_result *res;
	size_t i;

	put_txid(j, &ans->txid);
	json_open(j, "results", '[');
	for (i = 0; i < ans->nr_results; i++) {
		res = &ans->results[i];
		json_open_inline(j, NULL, '{');
		json_string(j, "status", refd_status_name(res->status));
		json_string(j, "ref", res->name);
		put_oid(j, "oid", res->has_found, &res->found,
		    ans->object_format);
		put_text(j, res->text);
		json_close(j, '}');
	}
	json_close(j, ']');
	if (ans->kind == REFD_ANSWER_PREPARED) {
		put_flag(j, "rewrites-packed", ans->rewrites_packed);
		return;
	}
	json_string(j, "outcome", refd_outcome_name(ans->outcome));
	json_number(j, "updates", ans->nr_updates);
	if (ans->lsn == 0)
		return;
	json_open_inline(j, "token", '{');
	put_id(j, "log", ans->journal);
	json_number(j, "lsn", ans->lsn);
	json_close(j, '}');
}

static void put_record(struct json_out *j, const struct refd_record *rec)
{
	json_number(j, "lsn", rec->lsn);
	json_number(j, "time", rec->time_ms);
	json_number(j, "uid", rec->uid);
	json_number(j, "pid", rec->pid);
	put_txid(j, &rec->txid);
	json_string(j, "path", rec->repo);
	put_given(j, "voids", rec->voids != 0, rec->voids);
	put_some(j, "origin",
	    rec->origin == REFD_ORIGIN_SEEN     ? "seen" :
		rec->origin == REFD_ORIGIN_GATE ? "gate" :
						  NULL);
	put_some(j, "committer", rec->committer);
	put_some(j, "message", rec->message);
	put_identities(j, rec->identities, rec->nr_identities);
}

static void put_change(struct json_out *j, const struct refd_change *c)
{
	enum refd_object_format format = c->record->object_format;

	json_open_inline(j, NULL, '{');
	json_number(j, "change", c->nr);
	json_string(j, "status", refd_status_name(c->status));
	json_string(j, "ref", c->name);
	put_oid(j, "old-oid", c->has_old, &c->old_oid, format);
	put_oid(j, "oid", c->has_new, &c->new_oid, format);
	put_some(j, "target", c->target);
	put_text(j, c->text);
	json_close(j, '}');
}

static void put_records(struct json_out *j, const struct refd_answer *ans)
{
	const struct refd_change *c = ans->changes;
	const struct refd_change *end = c + ans->nr_changes;
	const struct refd_record *rec;

	put_id(j, "journal", ans->journal);
	put_given(j, "gap", ans->has_gap, ans->gap);
	json_open(j, "records", '[');
	while (c < end) {
		rec = c->record;
		json_open(j, NULL, '{');
		put_record(j, rec);
		json_open(j, "changes", '[');
		for (; c < end && c->record == rec; c++)
			put_change(j, c);
		json_close(j, ']');
		json_close(j, '}');
	}
	json_close(j, ']');
	put_position(j, "next", &ans->next);
	put_flag(j, "more", ans->more);
}

static void put_refused(struct json_out *j, const struct refd_answer *ans)
{
	static const struct refd_txid none;

	if (!refd_txid_eq(&ans->txid, &none))
		put_txid(j, &ans->txid);
	json_string(j, "status", refd_status_name(ans->status));
	put_some(j, "text", ans->text);
	put_given(j, "retry-after", ans->retry_after_ms != 0,
	    ans->retry_after_ms);
}

void message_json_answer(struct json_out *j, const struct refd_answer *ans)
{
	static const char *const kinds[] = { "results", "prepared", "pending",
		"never-seen", "expired", "refused", "pong", "pairs",
		"records" };
	size_t i;

	json_string(j, "kind", kinds[ans->kind]);
	json_number(j, "id", ans->request_id);
	switch (ans->kind) {
	case REFD_ANSWER_RESULTS:
	case REFD_ANSWER_PREPARED:
		put_results(j, ans);
		break;
	case REFD_ANSWER_PENDING:
	case REFD_ANSWER_NEVER_SEEN:
	case REFD_ANSWER_EXPIRED:
		put_txid(j, &ans->txid);
		break;
	case REFD_ANSWER_REFUSED:
		put_refused(j, ans);
		break;
	case REFD_ANSWER_PONG:
		break;
	case REFD_ANSWER_PAIRS:
		json_open(j, "pairs", '[');
		for (i = 0; i < ans->nr_pairs; i++) {
			json_open_inline(j, NULL, '[');
			json_string(j, NULL, ans->pairs[i].key);
			json_string(j, NULL, ans->pairs[i].value);
			json_close(j, ']');
		}
		json_close(j, ']');
		break;
	case REFD_ANSWER_RECORDS:
		put_records(j, ans);
		break;
	}
}
