/*
 * Happy path:
 *	open	header, number of objects and check sum fit the index
 *	type	the header of the entry, and of its bases
 *	read	the base is inflated, the deltas are applied to the base
 *
 * Failures: a number leads out of the file; a base does not lie before its
 * delta, or is not in the pack; a chain has no end. A delta can name its base
 * by id, so a chain can be a circle, and is followed for PACK_CHAIN steps at
 * most.
 */
#include "daemon/store/objects/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/objects/delta.h"
#include "daemon/store/objects/inflate.h"
#include "daemon/store/objects/pack_index.h"

#define PACK_HEADER 12
#define OFS_DELTA   6
#define REF_DELTA   7
/* Ten bytes of type and size, then at most an id. */
#define ENTRY_HEADER (10 + REFD_OID_MAX_BYTES)

struct pack_entry {
	unsigned type;
	uint64_t size; /* inflated */
	uint64_t data; /* offset of the compressed data */
	uint64_t base; /* offset of the base of a delta */
};

int pack_init(struct pack *p, const char *name, size_t len,
    enum refd_object_format format)
{
	memset(p, 0, sizeof(*p));
	p->idx_fd = p->pack_fd = -1;
	p->id_bytes = refd_object_format_bytes(format);
	p->name = strndup(name, len);
	return p->name != NULL ? 0 : -ENOMEM;
}

void pack_close_pack(const struct sys *sys, struct pack *p)
{
	if (p->pack_fd >= 0)
		SYS(sys, close, p->pack_fd);
	p->pack_fd = -1;
}

void pack_close(const struct sys *sys, struct pack *p)
{
	pack_close_pack(sys, p);
	if (p->idx_fd >= 0)
		SYS(sys, close, p->idx_fd);
	p->idx_fd = -1;
}

void pack_forget(const struct sys *sys, struct pack *p)
{
	pack_close(sys, p);
	free(p->fanout);
	p->fanout = NULL;
}

void pack_done(const struct sys *sys, struct pack *p)
{
	pack_forget(sys, p);
	free(p->name);
}

/* ---- the file ---- */

/* The checks of git's open_packed_git_1(). */
static int check_pack(const struct sys *sys, struct pack *p, int fd,
    uint64_t size)
{
	uint8_t ours[REFD_OID_MAX_BYTES], theirs[REFD_OID_MAX_BYTES];
	uint8_t head[PACK_HEADER];
	int r;

	if (size < PACK_HEADER + p->id_bytes)
		return -EBADMSG;
	r = pack_pread(sys, p, fd, head, sizeof(head), 0);
	if (r == 0)
		r = pack_pread(sys, p, fd, ours, p->id_bytes,
		    size - p->id_bytes);
	if (r == 0)
		r = pack_pread(sys, p, p->idx_fd, theirs, p->id_bytes,
		    p->idx_size - 2 * p->id_bytes);
	if (r < 0)
		return r;
	if (memcmp(head, "PACK", 4) != 0 || pack_be32(head + 4) < 2 ||
	    pack_be32(head + 4) > 3 || pack_be32(head + 8) != p->fanout[255] ||
	    memcmp(ours, theirs, p->id_bytes) != 0)
		return -EBADMSG;
	return 0;
}

/* Only after pack_find() has found an object in the pack, because the checks
 * need the index. */
static int open_pack(const struct sys *sys, int dirfd, struct pack *p)
{
	struct sys_stat st;
	int fd, r;

	if (p->pack_fd >= 0)
		return 0;
	fd = pack_open_file(sys, dirfd, p, ".pack", &st);
	if (fd < 0)
		return fd;
	r = check_pack(sys, p, fd, st.size);
	if (r < 0) {
		SYS(sys, close, fd);
		return r;
	}
	p->pack_fd = fd;
	p->pack_size = st.size;
	return 0;
}

/* ---- entries ---- */

/* The distance to the base (git's get_delta_base()). -1: malformed. */
static int parse_distance(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
	uint64_t n = 0;

	for (; *at < end; n++) {
		if (n >> 56 != 0)
			return -1;
		n = n << 7 | (**at & 0x7f);
		if ((*(*at)++ & 0x80) == 0) {
			*out = n;
			return 0;
		}
	}
	return -1;
}

static int parse_head(const uint8_t **at, const uint8_t *end,
    struct pack_entry *e)
{
	unsigned shift = 4;
	uint8_t c;

	if (*at == end)
		return -1;
	c = *(*at)++;
	e->type = c >> 4 & 7;
	e->size = c & 15;
	for (; c & 0x80; shift += 7) {
		if (*at == end || shift > 56)
			return -1;
		c = *(*at)++;
		e->size |= (uint64_t)(c & 0x7f) << shift;
	}
	return 0;
}

static int parse_base(const struct sys *sys, int dirfd, struct pack *p,
    const uint8_t **at, const uint8_t *end, uint64_t offset,
    struct pack_entry *e)
{
	struct refd_oid base = { 0 };
	uint64_t distance;
	int r;

	if (e->type == OFS_DELTA) {
		if (parse_distance(at, end, &distance) < 0 || distance == 0 ||
		    distance > offset)
			return -EBADMSG;
		e->base = offset - distance;
		return 0;
	}
	if (e->type != REF_DELTA)
		return e->type >= OBJECT_COMMIT && e->type <= OBJECT_TAG ?
		    0 :
		    -EBADMSG;
	if ((size_t)(end - *at) < p->id_bytes)
		return -EBADMSG;
	memcpy(base.bytes, *at, p->id_bytes);
	*at += p->id_bytes;
	r = pack_find(sys, dirfd, p, &base, &e->base);
	return r == 1 ? 0 : r < 0 ? r : -EBADMSG;
}

static int read_entry(const struct sys *sys, int dirfd, struct pack *p,
    uint64_t offset, struct pack_entry *e)
{
	uint64_t end = p->pack_size - p->id_bytes;
	uint8_t head[ENTRY_HEADER];
	const uint8_t *at = head;
	size_t len = sizeof(head);
	int r;

	if (offset < PACK_HEADER || offset >= end)
		return -EBADMSG;
	if (len > end - offset)
		len = (size_t)(end - offset);
	r = pack_pread(sys, p, p->pack_fd, head, len, offset);
	if (r < 0)
		return r;
	if (parse_head(&at, head + len, e) < 0)
		return -EBADMSG;
	r = parse_base(sys, dirfd, p, &at, head + len, offset, e);
	e->data = offset + (uint64_t)(at - head);
	return r;
}

static bool is_delta(const struct pack_entry *e)
{
	return e->type == OFS_DELTA || e->type == REF_DELTA;
}

int pack_type(const struct sys *sys, int dirfd, struct pack *p, uint64_t offset,
    enum object_type *type)
{
	struct pack_entry e;
	unsigned steps;
	int r;

	r = open_pack(sys, dirfd, p);
	for (steps = 0; r == 0 && steps < PACK_CHAIN; steps++) {
		r = read_entry(sys, dirfd, p, offset, &e);
		if (r == 0 && !is_delta(&e)) {
			*type = (enum object_type)e.type;
			return 0;
		}
		offset = e.base;
	}
	return r < 0 ? r : -EBADMSG;
}

/* ---- contents ---- */

static int read_data(const struct sys *sys, struct pack *p,
    const struct pack_entry *e, uint8_t **data)
{
	int r;

	pack_step(p, (size_t)e->size);
	*data = malloc((size_t)e->size + 1);
	if (*data == NULL)
		return -ENOMEM;
	r = inflate_file(sys, p->pack_fd, e->data, *data, (size_t)e->size);
	if (r < 0)
		free(*data);
	return r;
}

/* ENTRIES, from the object to its base. */
static int apply_all(const struct sys *sys, struct pack *p,
    const struct pack_entry *entries, unsigned nr, size_t max,
    struct object_content *out)
{
	uint8_t *delta, *next;
	size_t next_len;
	int r;

	r = read_data(sys, p, &entries[nr - 1], &out->data);
	if (r < 0)
		return r;
	out->len = (size_t)entries[nr - 1].size;
	while (--nr > 0) {
		r = read_data(sys, p, &entries[nr - 1], &delta);
		if (r == 0) {
			r = delta_apply(out->data, out->len, delta,
			    (size_t)entries[nr - 1].size, max, &next,
			    &next_len);
			free(delta);
		}
		free(out->data);
		if (r < 0)
			return r;
		pack_step(p, next_len);
		out->data = next;
		out->len = next_len;
	}
	return 0;
}

int pack_read(const struct sys *sys, int dirfd, struct pack *p, uint64_t offset,
    size_t max, struct object_content *out)
{
	struct pack_entry entries[PACK_READ_CHAIN];
	size_t rest = 4 * max;
	unsigned nr;
	int r;

	r = open_pack(sys, dirfd, p);
	for (nr = 0; r == 0 && nr < PACK_READ_CHAIN; nr++) {
		r = read_entry(sys, dirfd, p, offset, &entries[nr]);
		if (r < 0)
			return r;
		if (entries[nr].size > max || entries[nr].size > rest)
			return -EFBIG;
		rest -= (size_t)entries[nr].size;
		if (!is_delta(&entries[nr])) {
			out->type = (enum object_type)entries[nr].type;
			return apply_all(sys, p, entries, nr + 1, max, out);
		}
		offset = entries[nr].base;
	}
	return r < 0 ? r : -EFBIG;
}
