/*
 * One function describes the body of each frame, for reading, writing and
 * counting, so the two directions cannot differ.
 */
#include "proto/group_frame.h"

#include <assert.h>
#include <string.h>

#include "proto/utf8.h"

#define LENGTH 4 /* bytes of a length */
/* The least bytes of a row: one byte of path, no record, and no objects. */
#define ROW_LEAST (3 * GROUP_UUID_BYTES + 4 + 8 + 1 + 3 * LENGTH + 1)

/* Reads IN, or writes to OUT, or counts without both. */
struct codec {
	const uint8_t *in;
	uint8_t *out;
	size_t at;  /* bytes until here */
	size_t end; /* of IN */
	struct refd_arena *arena;
	const char *why; /* the first reason for rejecting */
};

static void reject(struct codec *c, const char *why)
{
	if (!c->why)
		c->why = why;
}

/* Are there LEN bytes to read? */
static bool has(struct codec *c, uint64_t len)
{
	if (len > c->end - c->at)
		reject(c, "the frame is shorter than its content");
	return !c->why;
}

/* ---- parts of a body ---- */

static uint64_t read_number(const uint8_t *in, unsigned len)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < len; i++)
		n |= (uint64_t)in[i] << (8 * i);
	return n;
}

static void number(struct codec *c, uint64_t *value, unsigned len)
{
	unsigned i;

	if (c->in)
		*value = has(c, len) ? read_number(c->in + c->at, len) : 0;
	for (i = 0; c->out && i < len; i++)
		c->out[c->at + i] = (uint8_t)(*value >> (8 * i));
	c->at += c->why ? 0 : len;
}

static void u64(struct codec *c, uint64_t *value)
{
	number(c, value, 8);
}

static void u32(struct codec *c, uint32_t *value)
{
	uint64_t n = *value;

	number(c, &n, 4);
	*value = (uint32_t)n;
}

static void boolean(struct codec *c, bool *value)
{
	uint64_t n = !c->in && *value;

	number(c, &n, 1);
	if (n > 1)
		reject(c, "a truth value is neither 0 nor 1");
	*value = n == 1;
}

/* A bigint of PostgreSQL from LEAST on. */
static void bigint(struct codec *c, uint64_t *value, uint64_t least)
{
	u64(c, value);
	if (*value < least || *value > INT64_MAX)
		reject(c, "a number is out of range");
}

static void length(struct codec *c, size_t *len)
{
	uint64_t n = *len;

	number(c, &n, LENGTH);
	if (n > GROUP_FRAME_MAX)
		reject(c, "the content is too long");
	*len = c->why ? 0 : (size_t)n;
}

static void raw(struct codec *c, void *data, size_t len)
{
	if (c->in && has(c, len))
		memcpy(data, c->in + c->at, len);
	if (c->out)
		memcpy(c->out + c->at, data, len);
	c->at += c->why ? 0 : len;
}

static void uuid(struct codec *c, uint8_t id[GROUP_UUID_BYTES])
{
	raw(c, id, GROUP_UUID_BYTES);
}

/* Borrows the bytes when it reads. */
static void bytes(struct codec *c, struct group_bytes *b)
{
	length(c, &b->len);
	if (c->in)
		b->data = c->in + c->at;
	if (c->in && !has(c, b->len))
		return;
	if (c->out && b->len > 0)
		memcpy(c->out + c->at, b->data, b->len);
	c->at += c->why ? 0 : b->len;
}

/* A string of at most MAX bytes, in an array with one byte more. */
static void string(struct codec *c, char *s, size_t max)
{
	size_t len = c->in ? 0 : strnlen(s, max + 1);

	length(c, &len);
	if (len > max)
		reject(c, "a string is too long");
	if (c->why)
		return;
	raw(c, s, len);
	if (c->in && !c->why) {
		s[len] = '\0';
		if (memchr(s, '\0', len))
			reject(c, "a string has a NUL");
	}
}

bool group_frame_is_name(const char *name)
{
	size_t len = strspn(name,
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	    "0123456789._-");

	return len > 0 && len <= GROUP_NAME_MAX && name[len] == '\0';
}

static void name(struct codec *c, char s[GROUP_NAME_MAX + 1])
{
	string(c, s, GROUP_NAME_MAX);
	if (!c->why && !group_frame_is_name(s))
		reject(c, "a name has a character that is not permitted");
}

static bool is_control(char byte)
{
	return (unsigned char)byte < ' ' || byte == 0x7f;
}

static void text(struct codec *c, char s[GROUP_TEXT_MAX + 1])
{
	string(c, s, GROUP_TEXT_MAX);
	for (; !c->why && *s; s++)
		if (is_control(*s))
			reject(c, "a text has a control character");
}

void group_frame_reason(char reason[GROUP_TEXT_MAX + 1], const char *from)
{
	size_t len = utf8_cut(from, GROUP_TEXT_MAX), i;

	for (i = 0; i < len; i++)
		reason[i] = is_control(from[i]) ? ' ' : from[i];
	reason[len] = '\0';
}

static bool is_component(const uint8_t *data, size_t len)
{
	return len > 0 && (len > 2 || memcmp(data, "..", len) != 0);
}

bool group_frame_is_path(struct group_bytes path)
{
	const uint8_t *at = path.data, *slash;
	size_t rest = path.len;

	if (rest == 0 || rest > GROUP_PATH_MAX || memchr(at, '\0', rest))
		return false;
	while ((slash = memchr(at, '/', rest))) {
		if (!is_component(at, (size_t)(slash - at)))
			return false;
		rest -= (size_t)(slash - at) + 1;
		at = slash + 1;
	}
	return is_component(at, rest);
}

static void path(struct codec *c, struct group_bytes *b)
{
	bytes(c, b);
	if (!c->why && !group_frame_is_path(*b))
		reject(c, "a path does not name a repository below a root");
}

/* The array has NR elements of LEAST bytes or more each. Returns room for the
 * elements of SIZE bytes when it reads, or else NULL. */
static void *array(struct codec *c, size_t *nr, size_t least, size_t size)
{
	void *room;

	length(c, nr);
	if (!c->in || *nr == 0 || !has(c, (uint64_t)*nr * least))
		return NULL;
	room = refd_arena_zalloc(c->arena, *nr * size);
	if (!room)
		reject(c, "out of memory");
	return room;
}

/* ---- bodies ---- */

static void row(struct codec *c, struct group_row *r)
{
	uuid(c, r->id);
	uuid(c, r->repo);
	raw(c, r->txid.bytes, sizeof(r->txid.bytes));
	u32(c, &r->uid);
	bigint(c, &r->time_ms, 0);
	boolean(c, &r->is_final);
	path(c, &r->path);
	bytes(c, &r->record);
	bytes(c, &r->objects);
	if (!c->why &&
	    r->path.len + r->record.len + r->objects.len > GROUP_ROW_MAX)
		reject(c, "a row is too long");
}

static void rows(struct codec *c, const struct group_row **list, size_t *nr)
{
	struct group_row *room = array(c, nr, ROW_LEAST, sizeof(*room)), one;
	size_t i;

	if (*nr == 0)
		reject(c, "a batch has no row");
	for (i = 0; !c->why && i < *nr; i++) {
		if (!c->in)
			one = (*list)[i];
		row(c, room ? &room[i] : &one);
	}
	if (c->in)
		*list = room;
}

/* SHA-1 is 1, and SHA-256 is 2. */
static void format(struct codec *c, enum refd_object_format *value)
{
	uint64_t n = c->in ? 0 : (uint64_t)*value + 1;

	number(c, &n, 1);
	if (n != 1 && n != 2)
		reject(c, "an unknown object format");
	*value = n == 2 ? REFD_FORMAT_SHA256 : REFD_FORMAT_SHA1;
}

static void oids(struct codec *c, enum refd_object_format of,
    const struct refd_oid **list, size_t *nr)
{
	size_t len = refd_object_format_bytes(of), i;
	struct refd_oid *room = array(c, nr, len, sizeof(*room)), one, *oid;

	for (i = 0; !c->why && i < *nr; i++) {
		if (!c->in)
			one = (*list)[i];
		oid = room ? &room[i] : &one;
		raw(c, oid->bytes, len);
		if (refd_oid_is_null(oid))
			reject(c, "an object id is null");
	}
	if (c->in)
		*list = room;
}

static void hold(struct codec *c, struct group_frame *f)
{
	u64(c, &f->hold.number);
	uuid(c, f->hold.repo);
	path(c, &f->hold.path);
	boolean(c, &f->hold.is_new);
	boolean(c, &f->hold.is_fetch);
	format(c, &f->hold.object_format);
	oids(c, f->hold.object_format, &f->hold.oids, &f->hold.nr_oids);
	oids(c, f->hold.object_format, &f->hold.bases, &f->hold.nr_bases);
}

static void hello(struct codec *c, struct group_frame *f)
{
	u32(c, &f->hello.version);
	if (f->hello.version != GROUP_FRAME_VERSION)
		reject(c, "the daemon and refd-group have different versions");
	uuid(c, f->hello.group);
	name(c, f->hello.node);
	bigint(c, &f->hello.applied, 0);
	bigint(c, &f->hello.last, f->hello.applied);
}

static void role(struct codec *c, struct group_frame *f)
{
	boolean(c, &f->role.is_leader);
	bigint(c, &f->role.epoch, 1);
	bigint(c, &f->role.lsn, 0);
	uuid(c, f->role.group);
	name(c, f->role.leader);
}

/* Nanoseconds fit into 63 bits. */
static void moment(struct codec *c, uint64_t *ms)
{
	bigint(c, ms, 0);
	if (*ms > INT64_MAX / 1000000)
		reject(c, "a time is out of range");
}

static void body(struct codec *c, struct group_frame *f)
{
	switch (f->type) {
	case GROUP_HELLO:
		hello(c, f);
		return;
	case GROUP_BATCH:
		u64(c, &f->batch.number);
		bigint(c, &f->batch.epoch, 1);
		rows(c, &f->batch.rows, &f->batch.nr);
		return;
	case GROUP_HOLD:
		hold(c, f);
		return;
	case GROUP_APPLIED:
		bigint(c, &f->applied.lsn, 0);
		bigint(c, &f->applied.last, f->applied.lsn);
		return;
	case GROUP_FOLLOWS:
		bigint(c, &f->follows.epoch, 1);
		return;
	case GROUP_STOP:
		return;
	case GROUP_ROLE:
		role(c, f);
		return;
	case GROUP_COMMITTED:
		u64(c, &f->committed.number);
		bigint(c, &f->committed.lsn, 1);
		return;
	case GROUP_REFUSED:
	case GROUP_DOUBTFUL:
	case GROUP_NOT_HELD:
		u64(c, &f->refused.number);
		text(c, f->refused.reason);
		return;
	case GROUP_ROW:
		bigint(c, &f->row.lsn, 1);
		bigint(c, &f->row.epoch, 1);
		row(c, &f->row.row);
		return;
	case GROUP_HELD:
		u64(c, &f->held.number);
		return;
	case GROUP_CURRENT:
		moment(c, &f->current.ms);
		return;
	case GROUP_NEAR:
		bigint(c, &f->near.lsn, 0);
		return;
	}
	reject(c, "an unknown type of frame");
}

/* ---- whole frames ---- */

static bool is_from(uint8_t type, enum group_frame_side from)
{
	switch (from) {
	case GROUP_FROM_DAEMON:
		return type >= GROUP_HELLO && type <= GROUP_FOLLOWS;
	case GROUP_FROM_GROUP:
		return type >= GROUP_ROLE && type <= GROUP_NEAR;
	}
	return false;
}

long group_frame_parse(const uint8_t *data, size_t len,
    enum group_frame_side from)
{
	uint64_t n;

	if (len < LENGTH)
		return 0;
	n = read_number(data, LENGTH);
	if (n == 0 || n > GROUP_FRAME_MAX - LENGTH ||
	    (len > LENGTH && !is_from(data[LENGTH], from)))
		return -1;
	return len < LENGTH + n ? 0 : (long)(LENGTH + n);
}

const char *group_frame_decode(const uint8_t *data, size_t len,
    struct refd_arena *arena, struct group_frame *frame)
{
	struct codec c = { .in = data,
		.at = GROUP_FRAME_HEAD,
		.end = len,
		.arena = arena };

	memset(frame, 0, sizeof(*frame));
	frame->type = (enum group_frame_type)data[LENGTH];
	body(&c, frame);
	if (c.at != c.end)
		reject(&c, "the frame is longer than its content");
	return c.why;
}

size_t group_frame_bytes(const struct group_frame *frame)
{
	struct codec c = { .at = GROUP_FRAME_HEAD };
	struct group_frame copy = *frame;

	body(&c, &copy);
	return c.why || c.at > GROUP_FRAME_MAX ? 0 : c.at;
}

void group_frame_encode(const struct group_frame *frame, uint8_t *out)
{
	struct codec c = { .out = out };
	struct group_frame copy = *frame;
	uint64_t n = group_frame_bytes(frame) - LENGTH,
		 type = (uint64_t)frame->type;

	number(&c, &n, LENGTH);
	number(&c, &type, 1);
	body(&c, &copy);
	assert(!c.why && c.at == n + LENGTH);
}
