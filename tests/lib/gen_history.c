/* Random requests for history, and answers. */
#include <string.h>

#include "proto/arena.h"
#include "tests/lib/gen_message_internal.h"

size_t gen_identities(struct gen *g, struct refd_arena *arena,
    struct refd_identity *list)
{
	static const char *const names[] = { "A", "GITEA_PUSHER_NAME", "GL_ID",
		"GL_USER", "REMOTE_USER", "SSH_CONNECTION", "X_9", "_" };
	size_t i, nr = 0;

	for (i = 0; i < REFD_IDENTITIES_MAX; i++) {
		if (gen_below(g, 3) != 0)
			continue;
		list[nr].name = names[i];
		list[nr++].value = gen_string(g, arena, 1, REFD_IDENT_MAX);
	}
	return nr;
}

static struct refd_position gen_position(struct gen *g)
{
	struct refd_position position = { .lsn = gen_number(g) };

	if (gen_bool(g))
		position.nr = gen_u32(g);
	return position;
}

void gen_selection(struct gen *g, struct refd_request *req)
{
	struct refd_selection *s = &req->select;
	bool is_log = req->verb == REFD_VERB_LOG;
	size_t i;
	char *dir;

	if (is_log && gen_bool(g))
		gen_bytes(g, req->txid.bytes, sizeof(req->txid.bytes));
	if (gen_bool(g)) {
		dir = (char *)gen_string(g, req->arena, 1, REFD_PATH_MAX - 1);
		dir[0] = '/';
		req->git_dir = dir;
		req->common_dev = gen_number(g);
	}
	if (!is_log)
		req->deadline_ms = gen_below(g, REFD_DEADLINE_MAX_MS + 1);
	s->nr_patterns = gen_below(g, REFD_PATTERNS_MAX + 1);
	for (i = 0; i < s->nr_patterns; i++)
		s->patterns[i] = gen_string(g, req->arena, 0, REFD_REFNAME_MAX);
	s->has_uid = gen_bool(g);
	if (s->has_uid)
		s->uid = gen_u32(g);
	if (gen_bool(g))
		s->user = gen_string(g, req->arena, 0, REFD_IDENT_MAX);
	s->has_journal = gen_bool(g);
	if (s->has_journal)
		gen_bytes(g, s->journal, sizeof(s->journal));
	s->has_after = gen_bool(g);
	if (s->has_after)
		s->after = gen_position(g);
	s->limit = gen_below(g, REFD_CHANGES_MAX + 1);
	s->all = !is_log && gen_bool(g);
	s->origin = gen_bool(g);
	if (!is_log)
		return;
	s->since_ms = gen_number(g);
	s->until_ms = gen_number(g);
	s->has_before = gen_bool(g);
	if (s->has_before)
		s->before = gen_position(g);
	s->reverse = gen_bool(g);
}

static struct refd_record *gen_record(struct gen *g, struct refd_arena *arena)
{
	struct refd_record *rec = refd_arena_zalloc(arena, sizeof(*rec));

	rec->lsn = 1 + gen_number(g) / 2;
	rec->time_ms = gen_number(g);
	rec->uid = gen_u32(g);
	rec->pid = gen_number(g);
	gen_bytes(g, rec->txid.bytes, sizeof(rec->txid.bytes));
	rec->repo = gen_string(g, arena, 0, REFD_PATH_MAX);
	if (gen_bool(g))
		rec->voids = 1 + gen_number(g) / 2;
	rec->origin = (enum refd_origin)gen_below(g, REFD_ORIGIN_SEEN + 1);
	if (gen_bool(g))
		rec->committer = gen_string(g, arena, 1, REFD_IDENT_MAX);
	if (gen_bool(g))
		rec->message = gen_string(g, arena, 1, REFD_MESSAGE_MAX);
	rec->nr_identities = gen_identities(g, arena, rec->identities);
	return rec;
}

static void gen_change(struct gen *g, struct refd_arena *arena,
    enum refd_object_format format, struct refd_change *c)
{
	c->nr = 1 + gen_u32(g) / 2;
	refd_status_from_code(gen_below(g, REFD_STATUSES), &c->status);
	c->name = gen_string(g, arena, 0, REFD_REFNAME_MAX);
	c->has_old = gen_bool(g);
	if (c->has_old)
		c->old_oid = gen_oid(g, format);
	c->has_new = gen_bool(g);
	if (c->has_new)
		c->new_oid = gen_oid(g, format);
	if (gen_bool(g))
		c->target = gen_string(g, arena, 1, REFD_REFNAME_MAX);
	if (gen_bool(g))
		c->text = gen_text(g, arena);
}

void gen_records(struct gen *g, struct refd_answer *ans)
{
	enum refd_object_format format = REFD_FORMAT_SHA1;
	struct refd_record *rec = NULL;
	struct refd_change *c;
	size_t i;

	gen_bytes(g, ans->journal, sizeof(ans->journal));
	ans->has_gap = gen_bool(g);
	if (ans->has_gap)
		ans->gap = gen_number(g);
	ans->nr_changes = gen_below(g, 12);
	ans->changes = refd_arena_array(ans->arena, ans->nr_changes,
	    sizeof(*ans->changes));
	for (i = 0; i < ans->nr_changes; i++) {
		if (rec == NULL || gen_bool(g)) {
			rec = gen_record(g, ans->arena);
			format = (enum refd_object_format)gen_below(g, 2);
		}
		c = &ans->changes[i];
		*c = (struct refd_change){ .record = rec };
		gen_change(g, ans->arena, format, c);
		/* Without an oid, the wire does not show the format. */
		if (c->has_old || c->has_new)
			rec->object_format = format;
	}
	ans->next = gen_position(g);
	ans->more = gen_bool(g);
}

bool identities_eq(const struct refd_identity *a, size_t nr_a,
    const struct refd_identity *b, size_t nr_b)
{
	size_t i;

	if (nr_a != nr_b)
		return false;
	for (i = 0; i < nr_a; i++) {
		if (!string_eq(a[i].name, b[i].name) ||
		    !string_eq(a[i].value, b[i].value))
			return false;
	}
	return true;
}

static bool position_eq(const struct refd_position *a,
    const struct refd_position *b)
{
	return a->lsn == b->lsn && a->nr == b->nr;
}

bool selection_eq(const struct refd_selection *a,
    const struct refd_selection *b)
{
	size_t i;

	if (a->nr_patterns != b->nr_patterns || a->has_uid != b->has_uid ||
	    a->uid != b->uid || !string_eq(a->user, b->user) ||
	    a->since_ms != b->since_ms || a->until_ms != b->until_ms ||
	    a->has_journal != b->has_journal ||
	    memcmp(a->journal, b->journal, sizeof(a->journal)) != 0 ||
	    a->has_after != b->has_after ||
	    !position_eq(&a->after, &b->after) ||
	    a->has_before != b->has_before ||
	    !position_eq(&a->before, &b->before) || a->limit != b->limit ||
	    a->reverse != b->reverse || a->all != b->all)
		return false;
	for (i = 0; i < a->nr_patterns; i++) {
		if (!string_eq(a->patterns[i], b->patterns[i]))
			return false;
	}
	return true;
}

static bool record_eq(const struct refd_record *a, const struct refd_record *b)
{
	return a->lsn == b->lsn && a->time_ms == b->time_ms &&
	    a->uid == b->uid && a->pid == b->pid &&
	    a->object_format == b->object_format &&
	    refd_txid_eq(&a->txid, &b->txid) && string_eq(a->repo, b->repo) &&
	    a->voids == b->voids && a->origin == b->origin &&
	    string_eq(a->committer, b->committer) &&
	    string_eq(a->message, b->message) &&
	    identities_eq(a->identities, a->nr_identities, b->identities,
		b->nr_identities);
}

static bool change_eq(const struct refd_change *a, const struct refd_change *b)
{
	return record_eq(a->record, b->record) && a->nr == b->nr &&
	    a->status == b->status && string_eq(a->name, b->name) &&
	    a->has_old == b->has_old && a->has_new == b->has_new &&
	    oid_eq(&a->old_oid, &b->old_oid) &&
	    oid_eq(&a->new_oid, &b->new_oid) &&
	    string_eq(a->target, b->target) && string_eq(a->text, b->text);
}

bool history_eq(const struct refd_answer *a, const struct refd_answer *b)
{
	size_t i;

	if (memcmp(a->journal, b->journal, sizeof(a->journal)) != 0 ||
	    a->has_gap != b->has_gap || a->gap != b->gap ||
	    a->nr_changes != b->nr_changes ||
	    !position_eq(&a->next, &b->next) || a->more != b->more)
		return false;
	for (i = 0; i < a->nr_changes; i++) {
		if (!change_eq(&a->changes[i], &b->changes[i]))
			return false;
	}
	return true;
}
