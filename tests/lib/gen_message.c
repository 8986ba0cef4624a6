#include <stdlib.h>
#include <string.h>

#include "tests/lib/gen_message_internal.h"

#include "proto/arena.h"
#include "proto/detail.h"
#include "proto/verb.h"

uint64_t gen_u64(struct gen *g)
{
	/* xorshift64* (Vigna) */
	g->state ^= g->state >> 12;
	g->state ^= g->state << 25;
	g->state ^= g->state >> 27;
	return g->state * 0x2545f4914f6cdd1du;
}

uint32_t gen_below(struct gen *g, uint32_t n)
{
	return (uint32_t)((gen_u64(g) >> 32) % n);
}

bool gen_bool(struct gen *g)
{
	return gen_below(g, 2) == 0;
}

uint64_t gen_number(struct gen *g)
{
	return gen_u64(g) >> gen_below(g, 64);
}

uint32_t gen_u32(struct gen *g)
{
	return (uint32_t)(gen_number(g) >> 32);
}

void gen_bytes(struct gen *g, uint8_t *bytes, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		bytes[i] = (uint8_t)gen_u64(g);
}

struct refd_oid gen_oid(struct gen *g, enum refd_object_format format)
{
	struct refd_oid oid = { 0 };

	if (gen_below(g, 4) != 0)
		gen_bytes(g, oid.bytes, refd_object_format_bytes(format));
	return oid;
}

bool oid_eq(const struct refd_oid *a, const struct refd_oid *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

const char *gen_string(struct gen *g, struct refd_arena *arena, size_t min,
    size_t max)
{
	static const char spice[] = " \n\t/.=@0";
	size_t i, len = min + gen_below(g, 24);
	char *s, *copy;

	if (gen_below(g, 50) == 0)
		len = min + gen_below(g, (uint32_t)(max - min) + 1);
	if (gen_below(g, 50) == 0 || len > max)
		len = max;
	s = malloc(len + 1);
	if (s == NULL)
		abort();
	for (i = 0; i < len; i++) {
		s[i] = (char)(1 + gen_below(g, 255));
		if (gen_below(g, 4) == 0)
			s[i] = spice[gen_below(g, sizeof(spice) - 1)];
	}
	copy = refd_arena_string(arena, s, len);
	free(s);
	return copy;
}

const char *gen_text(struct gen *g, struct refd_arena *arena)
{
	char *text = (char *)gen_string(g, arena, 2, REFD_MESSAGE_MAX);

	if (gen_below(g, 3) == 0)
		text[0] = REFD_DETAIL_MARK;
	else if (text[0] == REFD_DETAIL_MARK)
		text[0] = 't';
	if (text[1] == REFD_DETAIL_MARK)
		text[1] = 'w';
	return text;
}

static void gen_update(struct gen *g, const struct refd_request *req,
    struct refd_update *u)
{
	struct refd_arena *arena = req->arena;

	memset(u, 0, sizeof(*u));
	u->action = (enum refd_action)gen_below(g, REFD_SYMREF_VERIFY + 1);
	u->no_deref = gen_bool(g);
	u->has_old = gen_bool(g);
	u->name = gen_string(g, arena, 0, REFD_REFNAME_MAX);
	switch (u->action) {
	case REFD_CREATE:
		u->has_old = false;
		u->new_oid = gen_oid(g, req->object_format);
		break;
	case REFD_UPDATE:
		u->new_oid = gen_oid(g, req->object_format);
		break;
	case REFD_DELETE:
	case REFD_VERIFY:
		break;
	case REFD_SYMREF_CREATE:
		u->has_old = false;
		u->target = gen_string(g, arena, 0, REFD_REFNAME_MAX);
		break;
	case REFD_SYMREF_UPDATE:
		u->target = gen_string(g, arena, 0, REFD_REFNAME_MAX);
		if (u->has_old && gen_bool(g))
			u->old_target =
			    gen_string(g, arena, 1, REFD_REFNAME_MAX);
		break;
	case REFD_SYMREF_DELETE:
	case REFD_SYMREF_VERIFY:
		if (u->has_old)
			u->old_target =
			    gen_string(g, arena, 1, REFD_REFNAME_MAX);
		break;
	}
	if (u->has_old && u->old_target == NULL)
		u->old_oid = gen_oid(g, req->object_format);
}

static void gen_place(struct gen *g, struct refd_request *req)
{
	char *dir = (char *)gen_string(g, req->arena, 1, REFD_PATH_MAX - 1);

	dir[0] = '/';
	req->git_dir = dir;
	req->common_dev = gen_number(g);
	req->common_ino = gen_number(g);
}

static void gen_transaction(struct gen *g, struct refd_request *req)
{
	struct refd_arena *arena = req->arena;
	size_t i, nr = gen_below(g, 12);

	gen_place(g, req);
	req->object_format = (enum refd_object_format)gen_below(g, 2);
	req->atomic = gen_bool(g);
	req->create_reflog = gen_bool(g);
	req->push = gen_bool(g);
	if (req->verb == REFD_VERB_TRANSACTION && !req->atomic && !req->push) {
		req->gate = (enum refd_gate)gen_below(g, REFD_GATE_ABORTED + 1);
		if (req->gate != REFD_GATE_NONE)
			gen_bytes(g, req->gate_key.bytes,
			    sizeof(req->gate_key.bytes));
	}
	req->durability =
	    (enum refd_durability)gen_below(g, REFD_DURABILITY_FSYNC + 1);
	req->level.kind =
	    (enum refd_level_kind)gen_below(g, REFD_LEVEL_APPLIED + 1);
	if (req->level.kind >= REFD_LEVEL_HELD)
		req->level.nodes = 1 + gen_below(g, REFD_LEVEL_NODES_MAX);
	req->deadline_ms = gen_below(g, REFD_DEADLINE_MAX_MS + 1);
	if (gen_bool(g))
		req->deadline_ms = 0;
	req->umask = gen_below(g, 01000);
	if (gen_bool(g))
		req->message = gen_string(g, arena, 0, REFD_MESSAGE_MAX);
	if (gen_bool(g))
		req->committer = gen_string(g, arena, 0, REFD_IDENT_MAX);
	if (gen_bool(g))
		req->log_all_ref_updates = gen_string(g, arena, 0, 64);
	if (gen_bool(g))
		req->shared_repository = gen_string(g, arena, 0, 64);
	req->has_ref_lock_timeout = gen_bool(g);
	if (req->has_ref_lock_timeout)
		req->ref_lock_timeout_ms =
		    gen_below(g, REFD_DEADLINE_MAX_MS + 1);
	req->has_packed_refs_timeout = gen_bool(g);
	if (req->has_packed_refs_timeout)
		req->packed_refs_timeout_ms =
		    gen_below(g, REFD_DEADLINE_MAX_MS + 1);
	if (gen_bool(g))
		req->trace2_sid = gen_string(g, arena, 0, REFD_IDENT_MAX);
	req->nr_identities = gen_identities(g, arena, req->identities);
	req->nr_updates = nr;
	req->updates = refd_arena_array(arena, nr, sizeof(*req->updates));
	for (i = 0; i < nr; i++)
		gen_update(g, req, &req->updates[i]);
}

void gen_request(struct gen *g, struct refd_request *req)
{
	memset(req, 0, sizeof(*req));
	req->arena = refd_arena_new();
	/* Transactions and sessions are as frequent as all other verbs
	 * together. */
	req->verb = (enum refd_verb)gen_below(g, 2);
	if (gen_bool(g))
		req->verb = (enum refd_verb)gen_below(g, REFD_VERBS);
	req->request_id = 1 + gen_u32(g) % (UINT32_MAX - 1);
	if (req->verb < REFD_VERB_PING)
		gen_bytes(g, req->txid.bytes, sizeof(req->txid.bytes));
	if (req->verb <= REFD_VERB_SESSION)
		gen_transaction(g, req);
	if (refd_verbs[req->verb].class == REFD_CLASS_REPO)
		gen_place(g, req);
	if (req->verb == REFD_VERB_LOG || req->verb == REFD_VERB_WATCH)
		gen_selection(g, req);
}

static void gen_results(struct gen *g, struct refd_answer *ans)
{
	size_t i;
	struct refd_result *res;

	/* Without an oid, the wire does not show the format. */
	enum refd_object_format format =
	    (enum refd_object_format)gen_below(g, 2);

	ans->nr_results = gen_below(g, 12);
	ans->results = refd_arena_array(ans->arena, ans->nr_results,
	    sizeof(*ans->results));
	for (i = 0; i < ans->nr_results; i++) {
		res = &ans->results[i];
		memset(res, 0, sizeof(*res));
		res->name = gen_string(g, ans->arena, 0, REFD_REFNAME_MAX);
		refd_status_from_code(gen_below(g, REFD_STATUSES),
		    &res->status);
		res->has_found = gen_bool(g);
		if (res->has_found) {
			res->found = gen_oid(g, format);
			ans->object_format = format;
		}
		if (gen_bool(g))
			res->text = gen_text(g, ans->arena);
	}
}

static void gen_pairs(struct gen *g, struct refd_answer *ans)
{
	static const char *const keys[] = { "k", "batches", "a.b{c=\"d\"}" };
	size_t i;

	ans->nr_pairs = gen_below(g, 12);
	ans->pairs =
	    refd_arena_array(ans->arena, ans->nr_pairs, sizeof(*ans->pairs));
	for (i = 0; i < ans->nr_pairs; i++) {
		ans->pairs[i].key = keys[gen_below(g, 3)];
		ans->pairs[i].value = gen_string(g, ans->arena, 0, 60000);
	}
}

void gen_answer(struct gen *g, struct refd_answer *ans)
{
	memset(ans, 0, sizeof(*ans));
	ans->arena = refd_arena_new();
	ans->kind =
	    (enum refd_answer_kind)gen_below(g, REFD_ANSWER_RECORDS + 1);
	ans->request_id = 1 + gen_u32(g) % (UINT32_MAX - 1);
	if (ans->kind <= REFD_ANSWER_EXPIRED ||
	    (ans->kind == REFD_ANSWER_REFUSED && gen_bool(g)))
		gen_bytes(g, ans->txid.bytes, sizeof(ans->txid.bytes));
	if (ans->kind <= REFD_ANSWER_PREPARED)
		gen_results(g, ans);
	if (ans->kind == REFD_ANSWER_PREPARED)
		ans->rewrites_packed = gen_bool(g);
	if (ans->kind == REFD_ANSWER_RESULTS) {
		ans->nr_updates = ans->nr_results + gen_below(g, 1000);
		ans->outcome = (enum refd_outcome)gen_below(g, 4);
		ans->lsn = gen_number(g);
		if (ans->lsn != 0)
			gen_bytes(g, ans->journal, sizeof(ans->journal));
	}
	if (ans->kind == REFD_ANSWER_REFUSED) {
		refd_status_from_code(1 + gen_below(g, REFD_STATUSES - 1),
		    &ans->status);
		if (gen_bool(g))
			ans->text =
			    gen_string(g, ans->arena, 0, REFD_MESSAGE_MAX);
		if (ans->status == REFD_BUSY && gen_bool(g))
			ans->retry_after_ms =
			    1 + gen_below(g, REFD_DEADLINE_MAX_MS);
	}
	if (ans->kind == REFD_ANSWER_PAIRS)
		gen_pairs(g, ans);
	if (ans->kind == REFD_ANSWER_RECORDS)
		gen_records(g, ans);
}

bool string_eq(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return strcmp(a, b) == 0;
}

static bool update_eq(const struct refd_update *a, const struct refd_update *b)
{
	return a->action == b->action && a->no_deref == b->no_deref &&
	    a->has_old == b->has_old && string_eq(a->name, b->name) &&
	    oid_eq(&a->new_oid, &b->new_oid) &&
	    oid_eq(&a->old_oid, &b->old_oid) &&
	    string_eq(a->target, b->target) &&
	    string_eq(a->old_target, b->old_target);
}

static bool settings_eq(const struct refd_request *a,
    const struct refd_request *b)
{
	return string_eq(a->log_all_ref_updates, b->log_all_ref_updates) &&
	    string_eq(a->shared_repository, b->shared_repository) &&
	    a->has_ref_lock_timeout == b->has_ref_lock_timeout &&
	    a->ref_lock_timeout_ms == b->ref_lock_timeout_ms &&
	    a->has_packed_refs_timeout == b->has_packed_refs_timeout &&
	    a->packed_refs_timeout_ms == b->packed_refs_timeout_ms;
}

bool request_eq(const struct refd_request *a, const struct refd_request *b)
{
	size_t i;

	if (a->verb != b->verb || a->request_id != b->request_id ||
	    !refd_txid_eq(&a->txid, &b->txid) ||
	    !string_eq(a->git_dir, b->git_dir) ||
	    a->common_dev != b->common_dev || a->common_ino != b->common_ino ||
	    a->object_format != b->object_format || a->atomic != b->atomic ||
	    a->create_reflog != b->create_reflog || a->push != b->push ||
	    a->gate != b->gate || !refd_txid_eq(&a->gate_key, &b->gate_key) ||
	    a->durability != b->durability || a->level.kind != b->level.kind ||
	    a->level.nodes != b->level.nodes ||
	    a->deadline_ms != b->deadline_ms || a->umask != b->umask ||
	    !string_eq(a->message, b->message) ||
	    !string_eq(a->committer, b->committer) || !settings_eq(a, b) ||
	    !string_eq(a->trace2_sid, b->trace2_sid) ||
	    !identities_eq(a->identities, a->nr_identities, b->identities,
		b->nr_identities) ||
	    !selection_eq(&a->select, &b->select) ||
	    a->nr_updates != b->nr_updates)
		return false;
	for (i = 0; i < a->nr_updates; i++) {
		if (!update_eq(&a->updates[i], &b->updates[i]))
			return false;
	}
	return true;
}

static bool result_eq(const struct refd_result *a, const struct refd_result *b)
{
	return string_eq(a->name, b->name) && a->status == b->status &&
	    a->has_found == b->has_found && oid_eq(&a->found, &b->found) &&
	    string_eq(a->text, b->text);
}

bool answer_eq(const struct refd_answer *a, const struct refd_answer *b)
{
	size_t i;

	if (a->kind != b->kind || a->request_id != b->request_id ||
	    !refd_txid_eq(&a->txid, &b->txid) ||
	    a->object_format != b->object_format ||
	    a->nr_results != b->nr_results || a->nr_updates != b->nr_updates ||
	    a->outcome != b->outcome || a->lsn != b->lsn ||
	    a->rewrites_packed != b->rewrites_packed ||
	    a->status != b->status || !string_eq(a->text, b->text) ||
	    a->nr_pairs != b->nr_pairs || !history_eq(a, b))
		return false;
	for (i = 0; i < a->nr_results; i++) {
		if (!result_eq(&a->results[i], &b->results[i]))
			return false;
	}
	for (i = 0; i < a->nr_pairs; i++) {
		if (!string_eq(a->pairs[i].key, b->pairs[i].key) ||
		    !string_eq(a->pairs[i].value, b->pairs[i].value))
			return false;
	}
	return true;
}
