/*
 * The body of a journal row as bytes.
 *
 *	u8 version, u8 flags (atomic, SHA-256, indices, objects, gated, seen,
 *	continues),
 *	u32 file_mode, dir_mode, nr_updates, u64 digest, strings committer,
 *	message, u8 number of identities, each two strings, u32 number of
 *	members
 *	each member: u32 index, u8 status, u8 action (0 unless the status is
 *	ok; a line of packed-refs has its own), u8 flags, string name, then the
 *	fields named by the flags: text, found, worktree, target, old_oid (with
 *	u64 old_mtime_ns, except of a record with indices), packed_oid; if the
 *	status is ok, new_oid, and of a record with indices u64 update_index,
 *	old_index, base_index, and of a gated record u8 1 and the oid before, or
 *	u8 0
 *
 * Little-endian; an oid is 20 or 32 bytes; a string is u32 length, bytes, NUL,
 * so that a decoded string can point into the copy. A record has exactly one
 * encoding, and the decoder accepts no other, so encoding a decoded record
 * gives the same bytes.
 *
 * Happy path: one allocation to encode, one to decode, for the members and a
 * copy of the input.
 *
 * Failure modes:
 *	too few bytes, or too many; an unknown version, flag, status or action;
 *	a string with a NUL inside, a target without a write: -EBADMSG
 *	more members than the remaining bytes can hold: -EBADMSG before the
 *	allocation
 */
#include "daemon/store/journal/record.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 5
/* A member with an empty name and nothing announced. */
#define MEMBER_BYTES_MIN 12

#define FLAG_ATOMIC    0x01
#define FLAG_SHA256    0x02 /* of all oids */
#define FLAG_INDICES   0x04
#define FLAG_OBJECTS   0x08
#define FLAG_GATED     0x10
#define FLAG_SEEN      0x20 /* with FLAG_GATED */
#define FLAG_CONTINUES 0x40
#define FLAGS          0x7f

/* Of a member; those in OK_FLAGS only if the status is ok. */
#define FLAG_TEXT     0x01
#define FLAG_FOUND    0x02
#define FLAG_OLD      0x04
#define FLAG_PACKED   0x08
#define FLAG_LOG      0x10
#define FLAG_ANSWERS  0x20
#define FLAG_WORKTREE 0x40
#define FLAG_TARGET   0x80
#define OK_FLAGS                                                               \
	(FLAG_OLD | FLAG_PACKED | FLAG_LOG | FLAG_WORKTREE | FLAG_TARGET)

/* ---- encoding: measured with P == NULL, then written ---- */

struct record_output {
	uint8_t *p;
	size_t len;
	size_t oid_bytes;
	bool has_indices, is_gated;
};

static void put_bytes(struct record_output *o, const void *data, size_t len)
{
	if (o->p != NULL && len > 0)
		memcpy(o->p + o->len, data, len);
	o->len += len;
}

static void put_int(struct record_output *o, uint64_t value, unsigned bytes)
{
	uint8_t le[8];
	unsigned i;

	for (i = 0; i < bytes; i++)
		le[i] = (uint8_t)(value >> (8 * i));
	put_bytes(o, le, bytes);
}

static void put_string(struct record_output *o, const char *s)
{
	size_t len = strlen(s);

	assert(len <= UINT32_MAX);
	put_int(o, len, 4);
	put_bytes(o, s, len + 1);
}

static void put_oid(struct record_output *o, const struct refd_oid *oid)
{
	put_bytes(o, oid->bytes, o->oid_bytes);
}

static unsigned member_flags(const struct record_member *m)
{
	unsigned flags = 0;

	if (m->text != NULL)
		flags |= FLAG_TEXT;
	if (m->has_found)
		flags |= FLAG_FOUND;
	if (m->answers)
		flags |= FLAG_ANSWERS;
	if (m->status != REFD_OK)
		return flags;
	if (m->had_old)
		flags |= FLAG_OLD;
	if (m->had_packed)
		flags |= FLAG_PACKED;
	if (m->log)
		flags |= FLAG_LOG;
	if (m->worktree != NULL && m->worktree[0] != '\0')
		flags |= FLAG_WORKTREE;
	if (m->target != NULL)
		flags |= FLAG_TARGET;
	return flags;
}

/* Stable numbers, because the enum may change. */
static uint8_t action_code(const struct record_member *m)
{
	switch (m->action) {
	case RECORD_WRITE:
		return m->is_line ? 5 : 1;
	case RECORD_DELETE:
		return 2;
	case RECORD_NOTHING:
		return 3;
	case RECORD_LOG:
		return 4;
	}
	return 0;
}

static void put_member(struct record_output *o, const struct record_member *m)
{
	unsigned flags = member_flags(m);
	bool is_ok = m->status == REFD_OK;

	assert(m->status != REFD_PENDING);
	assert(!(flags & FLAG_TARGET) ||
	    (m->action == RECORD_WRITE && !m->is_line));
	put_int(o, m->index, 4);
	put_int(o, m->status, 1);
	put_int(o, is_ok ? action_code(m) : 0, 1);
	put_int(o, flags, 1);
	put_string(o, m->name);
	if (flags & FLAG_TEXT)
		put_string(o, m->text);
	if (flags & FLAG_FOUND)
		put_oid(o, &m->found);
	if (flags & FLAG_WORKTREE)
		put_string(o, m->worktree);
	if (flags & FLAG_TARGET)
		put_string(o, m->target);
	if (flags & FLAG_OLD)
		put_oid(o, &m->old_oid);
	if (flags & FLAG_OLD && !o->has_indices)
		put_int(o, (uint64_t)m->old_mtime_ns, 8);
	if (flags & FLAG_PACKED)
		put_oid(o, &m->packed_oid);
	if (is_ok)
		put_oid(o, &m->new_oid);
	if (is_ok && o->has_indices) {
		put_int(o, m->update_index, 8);
		put_int(o, m->old_index, 8);
		put_int(o, m->base_index, 8);
	}
	if (is_ok && o->is_gated)
		put_int(o, m->has_before, 1);
	if (is_ok && o->is_gated && m->has_before)
		put_oid(o, &m->before);
}

static unsigned record_flags(const struct record *rec)
{
	unsigned flags = 0;

	if (rec->atomic)
		flags |= FLAG_ATOMIC;
	if (rec->object_format == REFD_FORMAT_SHA256)
		flags |= FLAG_SHA256;
	if (rec->has_indices)
		flags |= FLAG_INDICES;
	if (rec->has_objects)
		flags |= FLAG_OBJECTS;
	if (rec->is_gated)
		flags |= FLAG_GATED;
	if (rec->is_seen)
		flags |= FLAG_SEEN;
	if (rec->continues)
		flags |= FLAG_CONTINUES;
	return flags;
}

static void put_record(struct record_output *o, const struct record *rec)
{
	size_t i;

	put_int(o, VERSION, 1);
	put_int(o, record_flags(rec), 1);
	put_int(o, rec->file_mode, 4);
	put_int(o, rec->dir_mode, 4);
	put_int(o, rec->nr_updates, 4);
	put_int(o, rec->digest, 8);
	put_string(o, rec->committer);
	put_string(o, rec->message);
	assert(rec->nr_identities <= REFD_IDENTITIES_MAX);
	put_int(o, rec->nr_identities, 1);
	for (i = 0; i < rec->nr_identities; i++) {
		put_string(o, rec->identities[i].name);
		put_string(o, rec->identities[i].value);
	}
	assert(rec->nr_members <= UINT32_MAX);
	put_int(o, rec->nr_members, 4);
	for (i = 0; i < rec->nr_members; i++)
		put_member(o, &rec->members[i]);
}

uint8_t *record_encode(const struct record *rec, size_t *len)
{
	struct record_output o = {
		.oid_bytes = refd_object_format_bytes(rec->object_format),
		.has_indices = rec->has_indices,
		.is_gated = rec->is_gated,
	};

	put_record(&o, rec);
	o.p = malloc(o.len);
	if (o.p == NULL)
		return NULL;
	o.len = 0;
	put_record(&o, rec);
	*len = o.len;
	return o.p;
}

/* ---- decoding ---- */

struct in {
	const uint8_t *p;
	size_t len;
	size_t oid_bytes;
	bool has_indices, is_gated;
	bool is_bad;
};

/* The next LEN bytes; NULL if fewer are left. */
static const uint8_t *get_bytes(struct in *in, size_t len)
{
	const uint8_t *p = in->p;

	if (in->is_bad || len > in->len) {
		in->is_bad = true;
		return NULL;
	}
	in->p += len;
	in->len -= len;
	return p;
}

static uint64_t get_int(struct in *in, unsigned bytes)
{
	const uint8_t *p = get_bytes(in, bytes);
	uint64_t value = 0;
	unsigned i;

	for (i = 0; i < bytes && p != NULL; i++)
		value |= (uint64_t)p[i] << (8 * i);
	return value;
}

static const char *get_string(struct in *in)
{
	size_t len = (size_t)get_int(in, 4);
	const char *s = (const char *)get_bytes(in, len + 1);

	if (s == NULL || memchr(s, '\0', len + 1) != s + len) {
		in->is_bad = true;
		return NULL;
	}
	return s;
}

static void get_oid(struct in *in, struct refd_oid *oid)
{
	const uint8_t *p = get_bytes(in, in->oid_bytes);

	if (p != NULL)
		memcpy(oid->bytes, p, in->oid_bytes);
}

static void get_action(struct in *in, struct record_member *m)
{
	uint64_t code = get_int(in, 1);

	if (m->status != REFD_OK) {
		in->is_bad = in->is_bad || code != 0;
		return;
	}
	m->is_line = code == 5;
	if (code == 1 || m->is_line)
		m->action = RECORD_WRITE;
	else if (code == 2)
		m->action = RECORD_DELETE;
	else if (code == 3)
		m->action = RECORD_NOTHING;
	else if (code == 4)
		m->action = RECORD_LOG;
	else
		in->is_bad = true;
}

static void get_before(struct in *in, struct record_member *m)
{
	uint64_t has = get_int(in, 1);

	m->has_before = has == 1;
	if (has > 1)
		in->is_bad = true;
	if (m->has_before)
		get_oid(in, &m->before);
}

/* The fields of a member with status ok. */
static void get_published(struct in *in, struct record_member *m,
    uint64_t flags)
{
	m->had_old = flags & FLAG_OLD;
	m->had_packed = flags & FLAG_PACKED;
	m->log = flags & FLAG_LOG;
	m->worktree = "";
	if (flags & FLAG_WORKTREE) {
		m->worktree = get_string(in);
		if (m->worktree != NULL && m->worktree[0] == '\0')
			in->is_bad = true;
	}
	if (flags & FLAG_TARGET)
		m->target = get_string(in);
	if (m->target != NULL && (m->action != RECORD_WRITE || m->is_line))
		in->is_bad = true;
	if (m->had_old)
		get_oid(in, &m->old_oid);
	if (m->had_old && !in->has_indices)
		m->old_mtime_ns = (int64_t)get_int(in, 8);
	if (m->had_packed)
		get_oid(in, &m->packed_oid);
	get_oid(in, &m->new_oid);
	if (in->has_indices) {
		m->update_index = get_int(in, 8);
		m->old_index = get_int(in, 8);
		m->base_index = get_int(in, 8);
	}
	if (in->is_gated)
		get_before(in, m);
}

static void get_member(struct in *in, struct record_member *m)
{
	uint64_t flags;

	memset(m, 0, sizeof(*m));
	m->index = (uint32_t)get_int(in, 4);
	if (refd_status_from_code((unsigned)get_int(in, 1), &m->status) < 0)
		in->is_bad = true;
	get_action(in, m);
	flags = get_int(in, 1);
	if (m->status != REFD_OK && flags & OK_FLAGS)
		in->is_bad = true;
	m->name = get_string(in);
	m->answers = flags & FLAG_ANSWERS;
	m->has_found = flags & FLAG_FOUND;
	if (flags & FLAG_TEXT)
		m->text = get_string(in);
	if (m->has_found)
		get_oid(in, &m->found);
	if (m->status == REFD_OK)
		get_published(in, m, flags);
}

/* All but the members. */
static void get_head(struct in *in, struct record *rec)
{
	uint64_t version = get_int(in, 1), flags = get_int(in, 1);
	size_t i;

	if (version != VERSION || flags & ~(uint64_t)FLAGS)
		in->is_bad = true;
	rec->atomic = flags & FLAG_ATOMIC;
	rec->has_indices = in->has_indices = flags & FLAG_INDICES;
	rec->has_objects = flags & FLAG_OBJECTS;
	rec->is_gated = in->is_gated = flags & FLAG_GATED;
	rec->is_seen = flags & FLAG_SEEN;
	rec->continues = flags & FLAG_CONTINUES;
	if (rec->is_seen && !rec->is_gated)
		in->is_bad = true;
	rec->object_format =
	    flags & FLAG_SHA256 ? REFD_FORMAT_SHA256 : REFD_FORMAT_SHA1;
	in->oid_bytes = refd_object_format_bytes(rec->object_format);
	rec->file_mode = (uint32_t)get_int(in, 4);
	rec->dir_mode = (uint32_t)get_int(in, 4);
	rec->nr_updates = (uint32_t)get_int(in, 4);
	rec->digest = get_int(in, 8);
	rec->committer = get_string(in);
	rec->message = get_string(in);
	rec->nr_identities = (size_t)get_int(in, 1);
	if (rec->nr_identities > REFD_IDENTITIES_MAX) {
		in->is_bad = true;
		return;
	}
	for (i = 0; i < rec->nr_identities; i++) {
		rec->identities[i].name = get_string(in);
		rec->identities[i].value = get_string(in);
	}
	rec->nr_members = (size_t)get_int(in, 4);
	if (rec->nr_members > in->len / MEMBER_BYTES_MIN)
		in->is_bad = true;
}

int record_decode(const uint8_t *bytes, size_t len, struct record *rec)
{
	struct record decoded = { 0 };
	struct in in = { .p = bytes, .len = len };
	uint8_t *copy;
	size_t i, members_bytes;

	get_head(&in, &decoded);
	if (in.is_bad)
		return -EBADMSG;
	members_bytes = decoded.nr_members * sizeof(*decoded.members);
	decoded.memory = malloc(members_bytes + len);
	if (decoded.memory == NULL)
		return -ENOMEM;
	decoded.members = decoded.memory;
	copy = (uint8_t *)decoded.memory + members_bytes;
	memcpy(copy, bytes, len);
	in = (struct in){ .p = copy, .len = len };
	get_head(&in, &decoded);
	for (i = 0; i < decoded.nr_members && !in.is_bad; i++)
		get_member(&in, &decoded.members[i]);
	if (in.is_bad || in.len > 0) {
		free(decoded.memory);
		return -EBADMSG;
	}
	*rec = decoded;
	return 0;
}

void record_done(struct record *rec)
{
	free(rec->memory);
	memset(rec, 0, sizeof(*rec));
}

void record_strip(struct record *rec)
{
	struct record_member *m;
	size_t i, nr = 0;

	rec->committer = rec->message = "";
	rec->nr_identities = 0;
	rec->has_objects = rec->is_gated = rec->is_seen = false;
	for (i = 0; i < rec->nr_members; i++) {
		m = &rec->members[i];
		if (!m->answers)
			continue;
		rec->members[nr++] = (struct record_member){ .index = m->index,
			.status = m->status,
			.answers = true,
			.name = m->name,
			.text = m->text,
			.has_found = m->has_found,
			.found = m->found,
			.worktree = "" };
	}
	rec->nr_members = nr;
}

bool record_changes_ref(const struct record_member *m)
{
	return m->status == REFD_OK &&
	    (m->action == RECORD_WRITE || m->action == RECORD_DELETE);
}

bool record_has_value(const struct record *rec)
{
	size_t i;

	for (i = 0; i < rec->nr_members; i++)
		if (rec->members[i].action == RECORD_WRITE)
			return true;
	return false;
}
