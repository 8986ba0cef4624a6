/* Body of an answer with records of history: encoding and decoding. */
#include "proto/wire.h"

#include <assert.h>

#include "proto/arena.h"

static const char no_memory[] = "out of memory";
static const char malformed[] = "malformed answer";

/* Packets of a record, in their order. */
#define SEEN_VOIDS     0x01u
#define SEEN_ORIGIN    0x02u
#define SEEN_COMMITTER 0x04u
#define SEEN_MESSAGE   0x08u
#define SEEN_IDENTITY  0x10u

/* ---- decoding; functions return NULL, or the reason for rejecting ---- */

/* Copies S, which must not contain NUL, into the arena. */
static const char *keep(struct refd_answer *ans, struct refd_slice s,
    const char **copy)
{
	if (refd_slice_has_nul(s))
		return malformed;
	*copy = refd_arena_string(ans->arena, s.data, s.len);
	return *copy != NULL ? NULL : no_memory;
}

/* As keep(), for fields that are absent if they would be empty. */
static const char *keep_some(struct refd_answer *ans, struct refd_slice s,
    const char **copy)
{
	return s.len == 0 ? malformed : keep(ans, s, copy);
}

static const char *read_record(struct refd_records_decoder *dec,
    struct refd_answer *ans, struct refd_slice rest)
{
	struct refd_slice lsn, time, uid, pid, txid;
	struct refd_record *rec;

	rec = refd_arena_zalloc(ans->arena, sizeof(*rec));
	if (rec == NULL)
		return no_memory;
	if (!refd_slice_cut(&rest, ' ', &lsn) ||
	    !refd_slice_cut(&rest, ' ', &time) ||
	    !refd_slice_cut(&rest, ' ', &uid) ||
	    !refd_slice_cut(&rest, ' ', &pid) ||
	    !refd_slice_cut(&rest, ' ', &txid) || rest.data == NULL ||
	    !refd_slice_u64(lsn, &rec->lsn) || rec->lsn == 0 ||
	    !refd_slice_u64(time, &rec->time_ms) ||
	    !refd_slice_u32(uid, &rec->uid) ||
	    !refd_slice_u64(pid, &rec->pid) ||
	    !refd_slice_txid(txid, &rec->txid))
		return "malformed record";
	dec->record = rec;
	dec->seen = 0;
	dec->has_format = false;
	dec->step = REFD_RECORDS_RECORD;
	return keep(ans, rest, &rec->repo);
}

static const char *read_voids(struct refd_record *rec, struct refd_slice value)
{
	return refd_slice_u64(value, &rec->voids) && rec->voids != 0 ?
	    NULL :
	    "malformed record";
}

static const char *const
    origins[] = { [REFD_ORIGIN_GATE] = "gate", [REFD_ORIGIN_SEEN] = "seen" };

static const char *read_origin(struct refd_record *rec, struct refd_slice value)
{
	rec->origin = REFD_ORIGIN_SEEN;
	while (!refd_slice_is(value, origins[rec->origin]))
		if (--rec->origin == REFD_ORIGIN_REFD)
			return malformed;
	return NULL;
}

static const char *read_identity(struct refd_answer *ans,
    struct refd_record *rec, struct refd_slice value)
{
	const struct refd_refusal *refusal;

	refusal = refd_identity_decode(ans->arena, rec->identities,
	    &rec->nr_identities, value);
	return refusal == NULL ? NULL : refusal->why;
}

/* An oid, or nothing. */
static bool read_oid(struct refd_records_decoder *dec, struct refd_slice s,
    bool *has, struct refd_oid *oid)
{
	*has = s.len > 0;
	return !*has ||
	    refd_slice_any_oid(s, &dec->has_format, &dec->record->object_format,
		oid);
}

static bool read_change_head(struct refd_slice head, struct refd_change *c)
{
	struct refd_slice nr;
	char code[32];

	return refd_slice_cut(&head, ' ', &nr) && head.data != NULL &&
	    refd_slice_u32(nr, &c->nr) && c->nr != 0 &&
	    refd_slice_word(head, code, sizeof(code)) &&
	    refd_status_from_name(code, &c->status) == 0;
}

static const char *read_change(struct refd_records_decoder *dec,
    struct refd_answer *ans, struct refd_slice rest)
{
	struct refd_slice head, name, old, new, target;
	struct refd_change c = { .record = dec->record }, *changes;
	const char *why = NULL;

	if (!refd_slice_cut(&rest, '\0', &head) ||
	    !refd_slice_cut(&rest, '\0', &name) ||
	    !refd_slice_cut(&rest, '\0', &old) ||
	    !refd_slice_cut(&rest, '\0', &new) ||
	    !refd_slice_cut(&rest, '\0', &target) || rest.data == NULL ||
	    !read_change_head(head, &c) ||
	    !read_oid(dec, old, &c.has_old, &c.old_oid) ||
	    !read_oid(dec, new, &c.has_new, &c.new_oid))
		return "malformed change";
	if (ans->nr_changes == REFD_CHANGES_MAX)
		return "more changes than an answer holds";
	changes =
	    refd_arena_array(ans->arena, ans->nr_changes + 1, sizeof(*changes));
	if (changes == NULL)
		return no_memory;
	ans->changes = changes;
	why = keep(ans, name, &c.name);
	if (why == NULL && target.len > 0)
		why = keep(ans, target, &c.target);
	if (why == NULL)
		why = refd_slice_text(rest, ans->arena, &c.text);
	if (why == NULL)
		changes[ans->nr_changes++] = c;
	dec->step = REFD_RECORDS_CHANGES;
	return why;
}

/* One packet of a record, whose packets must come in their order. */
static const char *read_line(struct refd_records_decoder *dec,
    struct refd_answer *ans, struct refd_slice key, struct refd_slice rest)
{
	struct refd_record *rec = dec->record;
	unsigned line = SEEN_IDENTITY;

	if (refd_slice_is(key, "voids"))
		line = SEEN_VOIDS;
	else if (refd_slice_is(key, "origin"))
		line = SEEN_ORIGIN;
	else if (refd_slice_is(key, "committer"))
		line = SEEN_COMMITTER;
	else if (refd_slice_is(key, "message"))
		line = SEEN_MESSAGE;
	else if (!refd_slice_is(key, "identity"))
		return malformed;
	if (dec->seen >= line &&
	    !(line == SEEN_IDENTITY && dec->seen < 2 * SEEN_IDENTITY))
		return malformed;
	dec->seen |= line;
	if (line == SEEN_VOIDS)
		return read_voids(rec, rest);
	if (line == SEEN_ORIGIN)
		return read_origin(rec, rest);
	if (line == SEEN_COMMITTER)
		return keep_some(ans, rest, &rec->committer);
	if (line == SEEN_MESSAGE)
		return keep_some(ans, rest, &rec->message);
	return read_identity(ans, rec, rest);
}

static const char *read_next(struct refd_records_decoder *dec,
    struct refd_answer *ans, struct refd_slice rest)
{
	dec->step = REFD_RECORDS_NEXT;
	return refd_slice_position(rest, &ans->next) ? NULL : malformed;
}

static const char *read_gap(struct refd_answer *ans, struct refd_slice rest)
{
	if (ans->has_gap || !refd_slice_u64(rest, &ans->gap))
		return malformed;
	ans->has_gap = true;
	return NULL;
}

static const char *read_more(struct refd_records_decoder *dec,
    struct refd_answer *ans, struct refd_slice packet)
{
	if (!refd_slice_is(packet, "more"))
		return malformed;
	ans->more = true;
	dec->step = REFD_RECORDS_END;
	return NULL;
}

const char *refd_records_decode(struct refd_records_decoder *dec,
    struct refd_answer *ans, struct refd_slice packet)
{
	struct refd_slice rest = packet, key;

	refd_slice_cut(&rest, ' ', &key);
	if (dec->step == REFD_RECORDS_NEXT)
		return read_more(dec, ans, packet);
	if (rest.data == NULL || dec->step == REFD_RECORDS_END)
		return malformed;
	if (dec->step == REFD_RECORDS_BEGIN) {
		dec->step = REFD_RECORDS_FIRST;
		return refd_slice_is(key, "journal") &&
			refd_slice_journal(rest, ans->journal) ?
		    NULL :
		    malformed;
	}
	if (refd_slice_is(key, "change") && dec->step >= REFD_RECORDS_RECORD)
		return read_change(dec, ans, rest);
	if (dec->step == REFD_RECORDS_RECORD)
		return read_line(dec, ans, key, rest);
	if (refd_slice_is(key, "record"))
		return read_record(dec, ans, rest);
	if (refd_slice_is(key, "next"))
		return read_next(dec, ans, rest);
	if (refd_slice_is(key, "gap") && dec->step == REFD_RECORDS_FIRST)
		return read_gap(ans, rest);
	return malformed;
}

bool refd_records_may_end(const struct refd_records_decoder *dec)
{
	return dec->step == REFD_RECORDS_NEXT || dec->step == REFD_RECORDS_END;
}

/* ---- encoding ---- */

static void put_record(const struct refd_record *rec, struct pkt_buf *out)
{
	char txid[REFD_TXID_HEX + 1];

	pkt_putf(out, "record %llu %llu %u %llu %s %s",
	    (unsigned long long)rec->lsn, (unsigned long long)rec->time_ms,
	    (unsigned)rec->uid, (unsigned long long)rec->pid,
	    refd_txid_hex(&rec->txid, txid), rec->repo);
	if (rec->voids != 0)
		pkt_putf(out, "voids %llu", (unsigned long long)rec->voids);
	if (rec->origin != REFD_ORIGIN_REFD)
		pkt_putf(out, "origin %s", origins[rec->origin]);
	if (rec->committer != NULL)
		pkt_putf(out, "committer %s", rec->committer);
	if (rec->message != NULL)
		pkt_putf(out, "message %s", rec->message);
	refd_identity_encode(rec->identities, rec->nr_identities, out);
}

static void put_change(const struct refd_change *c, struct pkt_buf *out)
{
	enum refd_object_format format = c->record->object_format;
	const char *text = c->text != NULL ? c->text : "";
	char old[REFD_OID_MAX_HEX + 1] = "", new[REFD_OID_MAX_HEX + 1] = "";

	assert(c->status != REFD_PENDING);
	if (c->has_old)
		refd_oid_hex(&c->old_oid, format, old);
	if (c->has_new)
		refd_oid_hex(&c->new_oid, format, new);
	pkt_putf(out, "change %u %s%c%s%c%s%c%s%c%s%c%.*s", (unsigned)c->nr,
	    refd_status_name(c->status), 0, c->name, 0, old, 0, new, 0,
	    c->target != NULL ? c->target : "", 0, REFD_MESSAGE_MAX, text);
	refd_wire_put_text(out, text);
}

void refd_records_encode(const struct refd_answer *ans, struct pkt_buf *out)
{
	const struct refd_record *rec = NULL;
	size_t i;

	refd_wire_put_journal(out, ans->journal);
	if (ans->has_gap)
		pkt_putf(out, "gap %llu", (unsigned long long)ans->gap);
	for (i = 0; i < ans->nr_changes; i++) {
		if (ans->changes[i].record != rec)
			put_record(ans->changes[i].record, out);
		rec = ans->changes[i].record;
		put_change(&ans->changes[i], out);
	}
	refd_position_put(out, "next", &ans->next);
	if (ans->more)
		pkt_putf(out, "more");
}
