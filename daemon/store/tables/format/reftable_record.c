#include "daemon/store/tables/format/reftable_record.h"

#include <errno.h>
#include <string.h>

#define VARINT_MAX 10

/* ---- numbers ---- */

uint64_t reftable_record_get(const uint8_t *p, size_t size)
{
	uint64_t value = 0;

	while (size-- > 0)
		value = value << 8 | *p++;
	return value;
}

void reftable_record_put(uint8_t *p, size_t size, uint64_t value)
{
	while (size-- > 0) {
		p[size] = (uint8_t)value;
		value >>= 8;
	}
}

/* A number has seven bits per byte, the most significant bits first. Every
 * continuation adds one, so that each number has only one form. */
size_t reftable_record_get_varint(const uint8_t *p, size_t len, uint64_t *value)
{
	uint64_t v;
	size_t i;

	if (len == 0)
		return 0;
	v = p[0] & 0x7f;
	for (i = 0; p[i] & 0x80;) {
		if (++i == len || v >= UINT64_MAX >> 7)
			return 0;
		v = (v + 1) << 7 | (p[i] & 0x7f);
	}
	*value = v;
	return i + 1;
}

size_t reftable_record_put_varint(uint8_t *p, uint64_t value)
{
	uint8_t reversed[VARINT_MAX];
	size_t n = 0, i;

	reversed[n++] = value & 0x7f;
	while (value >>= 7)
		reversed[n++] = (uint8_t)(0x80 | (--value & 0x7f));
	for (i = 0; i < n; i++)
		p[i] = reversed[n - 1 - i];
	return n;
}

/* ---- decoding ---- */

struct input {
	const uint8_t *at;
	size_t len;
	bool is_bad;
};

static const uint8_t *take(struct input *in, uint64_t len)
{
	const uint8_t *at = in->at;

	if (in->is_bad || len > in->len) {
		in->is_bad = true;
		return NULL;
	}
	in->at += len;
	in->len -= (size_t)len;
	return at;
}

static uint64_t take_varint(struct input *in)
{
	uint64_t value = 0;
	size_t n = reftable_record_get_varint(in->at, in->len, &value);

	if (n == 0)
		in->is_bad = true;
	take(in, n);
	return value;
}

static void take_oid(struct input *in, enum refd_object_format format,
    struct refd_oid *oid)
{
	size_t len = refd_object_format_bytes(format);
	const uint8_t *at = take(in, len);

	memset(oid, 0, sizeof(*oid));
	if (at != NULL)
		memcpy(oid->bytes, at, len);
}

static void take_text(struct input *in, struct reftable_text *text)
{
	uint64_t len = take_varint(in);
	const uint8_t *at = take(in, len);

	text->at = at != NULL ? (const char *)at : "";
	text->len = at != NULL ? (size_t)len : 0;
}

static const char *take_ref(struct input *in,
    const struct reftable_context *context, unsigned type,
    struct reftable_record *rec)
{
	uint64_t delta = take_varint(in);

	if (type > REFTABLE_REF_SYMREF)
		return "a ref has an unknown type";
	if (delta > UINT64_MAX - context->min_index)
		return "the update index of a ref is too large";
	rec->update_index = context->min_index + delta;
	rec->is_deletion = type == REFTABLE_REF_DELETED;
	rec->ref.kind = (enum reftable_ref_kind)type;
	if (type == REFTABLE_REF_OID || type == REFTABLE_REF_PEELED)
		take_oid(in, context->format, &rec->ref.oid);
	if (type == REFTABLE_REF_PEELED)
		take_oid(in, context->format, &rec->ref.peeled);
	if (type == REFTABLE_REF_SYMREF)
		take_text(in, &rec->ref.target);
	if (type == REFTABLE_REF_SYMREF &&
	    rec->ref.target.len > REFTABLE_NAME_MAX)
		return "the target of a symbolic ref is too long for refd";
	return NULL;
}

static const char *take_log(struct input *in, enum refd_object_format format,
    unsigned type, struct reftable_record *rec)
{
	const uint8_t *zone;

	if (type > 1)
		return "an entry of a log has an unknown type";
	rec->is_deletion = type == 0;
	if (rec->is_deletion)
		return NULL;
	take_oid(in, format, &rec->log.from);
	take_oid(in, format, &rec->log.to);
	take_text(in, &rec->log.name);
	take_text(in, &rec->log.email);
	rec->log.time_s = take_varint(in);
	zone = take(in, 2);
	rec->log.zone =
	    zone != NULL ? (int16_t)reftable_record_get(zone, 2) : 0;
	take_text(in, &rec->log.message);
	return NULL;
}

static void take_object(struct input *in, unsigned type)
{
	uint64_t nr = type != 0 ? type : take_varint(in);

	while (nr-- > 0 && !in->is_bad)
		take_varint(in);
}

static const char *check_key(enum reftable_section section, const uint8_t *key,
    size_t len)
{
	const size_t suffix =
	    section == REFTABLE_LOGS ? REFTABLE_LOG_SUFFIX : 0;

	if (section != REFTABLE_REFS && section != REFTABLE_LOGS)
		return NULL;
	if (len <= suffix ||
	    strnlen((const char *)key, len) !=
		(suffix > 0 ? len - suffix : len))
		return "a name is empty or contains NUL";
	return NULL;
}

int reftable_record_decode(const struct reftable_context *context,
    const struct reftable_raw *raw, struct reftable_record *rec,
    const char **why)
{
	struct input in = { raw->value, raw->len, false };

	rec->section = raw->section;
	rec->name = (const char *)raw->key;
	*why = check_key(raw->section, raw->key, raw->key_len);
	if (*why != NULL)
		return -EBADMSG;
	switch (raw->section) {
	case REFTABLE_REFS:
		*why = take_ref(&in, context, raw->type, rec);
		break;
	case REFTABLE_LOGS:
		rec->update_index =
		    ~reftable_record_get(raw->key + raw->key_len - 8, 8);
		*why = take_log(&in, context->format, raw->type, rec);
		break;
	case REFTABLE_INDEX:
		rec->position = take_varint(&in);
		if (raw->type != 0)
			*why = "a record of an index has an unknown type";
		break;
	case REFTABLE_OBJECTS:
		take_object(&in, raw->type);
		break;
	}
	if (*why == NULL && in.is_bad)
		*why = "a record is cut off";
	return *why != NULL ? -EBADMSG : (int)(raw->len - in.len);
}

/* ---- encoding ---- */

struct output {
	uint8_t *at;
	size_t room;
	bool is_full;
};

static void give(struct output *out, const void *bytes, size_t len)
{
	if (out->is_full || len > out->room) {
		out->is_full = true;
		return;
	}
	if (len > 0)
		memcpy(out->at, bytes, len);
	out->at += len;
	out->room -= len;
}

static void give_varint(struct output *out, uint64_t value)
{
	uint8_t bytes[VARINT_MAX];

	give(out, bytes, reftable_record_put_varint(bytes, value));
}

static void give_text(struct output *out, const struct reftable_text *text)
{
	give_varint(out, text->len);
	give(out, text->at, text->len);
}

static void give_log(struct output *out, size_t oid,
    const struct reftable_log *log)
{
	uint8_t zone[2];

	give(out, log->from.bytes, oid);
	give(out, log->to.bytes, oid);
	give_text(out, &log->name);
	give_text(out, &log->email);
	give_varint(out, log->time_s);
	reftable_record_put(zone, sizeof(zone), (uint16_t)log->zone);
	give(out, zone, sizeof(zone));
	give_text(out, &log->message);
}

size_t reftable_record_key(const struct reftable_record *rec,
    uint8_t key[REFTABLE_KEY_MAX])
{
	size_t len = strnlen(rec->name, REFTABLE_NAME_MAX + 1);

	if (len == 0 || len > REFTABLE_NAME_MAX)
		return 0;
	memcpy(key, rec->name, len);
	if (rec->section != REFTABLE_LOGS)
		return len;
	key[len] = '\0';
	reftable_record_put(key + len + 1, 8, ~rec->update_index);
	return len + REFTABLE_LOG_SUFFIX;
}

unsigned reftable_record_type(const struct reftable_record *rec)
{
	return rec->section == REFTABLE_LOGS ? !rec->is_deletion :
	    rec->is_deletion                 ? REFTABLE_REF_DELETED :
					       rec->ref.kind;
}

int reftable_record_encode(const struct reftable_record *rec,
    enum refd_object_format format, uint64_t min_index, uint8_t *at,
    size_t room)
{
	const size_t oid = refd_object_format_bytes(format);
	struct output out = { at, room, false };
	const unsigned type = reftable_record_type(rec);

	if (rec->section == REFTABLE_LOGS) {
		if (!rec->is_deletion)
			give_log(&out, oid, &rec->log);
	} else {
		give_varint(&out, rec->update_index - min_index);
		if (type == REFTABLE_REF_OID || type == REFTABLE_REF_PEELED)
			give(&out, rec->ref.oid.bytes, oid);
		if (type == REFTABLE_REF_PEELED)
			give(&out, rec->ref.peeled.bytes, oid);
		if (type == REFTABLE_REF_SYMREF)
			give_text(&out, &rec->ref.target);
	}
	return out.is_full ? -E2BIG : (int)(room - out.room);
}
