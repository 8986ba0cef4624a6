/*
 * Happy path: the first byte of the id gives a range of the fan-out, which is
 * searched by reads of 4 KiB. Ids are evenly spread, so the first read is at
 * the position expected for the id. The position gives the offset.
 *
 * Failures: the file is not an index, or its numbers do not fit its size.
 */
#include "daemon/store/objects/pack_index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FANOUT      256
#define FANOUT_SIZE ((size_t)FANOUT * 4)
#define V2_HEADER   8
#define PART        4096

/* The check sum of the pack, then the check sum of the index. */
static size_t trailer_size(const struct pack *p)
{
	return 2 * p->id_bytes;
}

int pack_open_file(const struct sys *sys, int dirfd, const struct pack *p,
    const char *suffix, struct sys_stat *st)
{
	char name[512];
	int fd, r;

	if ((size_t)snprintf(name, sizeof(name), "%s%s", p->name, suffix) >=
	    sizeof(name))
		return -ENAMETOOLONG;
	fd = SYS(sys, openat, dirfd, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return fd;
	r = SYS(sys, fstat, fd, st);
	if (r == 0 && !S_ISREG(st->mode))
		r = -EBADMSG;
	if (r == 0)
		return fd;
	SYS(sys, close, fd);
	return r;
}

#define STEP_BYTES 4096

void pack_step(struct pack *p, size_t bytes)
{
	p->nr_steps += 1 + bytes / STEP_BYTES;
}

int pack_pread(const struct sys *sys, struct pack *p, int fd, void *buf,
    size_t len, uint64_t offset)
{
	ssize_t n = SYS(sys, pread, fd, buf, len, (off_t)offset);

	pack_step(p, len);
	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -EBADMSG;
}

uint32_t pack_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	    (uint32_t)p[2] << 8 | p[3];
}

/* ---- opening ---- */

static uint64_t header_size(const struct pack *p)
{
	return (p->version == 2 ? V2_HEADER : 0) + FANOUT_SIZE;
}

/* The size of a row that begins with an id, or in version 1 ends with an id. */
static size_t row_size(const struct pack *p)
{
	return p->id_bytes + (p->version == 2 ? 0 : 4);
}

/* The check of git's load_idx(). */
static bool does_size_fit(const struct pack *p, uint64_t size)
{
	uint64_t nr = p->fanout[FANOUT - 1], least;

	least = header_size(p) + nr * row_size(p) + trailer_size(p);
	if (p->version == 1)
		return size == least;
	least += nr * 8;
	return size >= least && size - least <= (nr > 0 ? (nr - 1) * 8 : 0);
}

static int read_fanout(const struct sys *sys, int fd, struct pack *p,
    uint64_t size)
{
	static const uint8_t v2[V2_HEADER] = { 0xff, 't', 'O', 'c', 0, 0, 0,
		2 };
	uint8_t head[V2_HEADER + FANOUT_SIZE];
	const uint8_t *table = head;
	size_t i;
	int r;

	if (size < sizeof(head))
		return -EBADMSG;
	r = pack_pread(sys, p, fd, head, sizeof(head), 0);
	if (r < 0)
		return r;
	p->version = 1;
	if (memcmp(head, v2, 4) == 0) {
		if (memcmp(head, v2, sizeof(v2)) != 0)
			return -EBADMSG;
		p->version = 2;
		table += V2_HEADER;
	}
	for (i = 0; i < FANOUT; i++) {
		p->fanout[i] = pack_be32(table + 4 * i);
		if (i > 0 && p->fanout[i] < p->fanout[i - 1])
			return -EBADMSG;
	}
	return does_size_fit(p, size) ? 0 : -EBADMSG;
}

static int open_index(const struct sys *sys, int dirfd, struct pack *p)
{
	struct sys_stat st;
	int fd, r = 0;

	fd = pack_open_file(sys, dirfd, p, ".idx", &st);
	if (fd < 0)
		return fd;
	if (p->fanout != NULL && st.ino == p->idx_ino &&
	    st.size == p->idx_size) {
		p->idx_fd = fd;
		return 0;
	}
	if (p->fanout == NULL)
		p->fanout = malloc(FANOUT * sizeof(*p->fanout));
	if (p->fanout == NULL)
		r = -ENOMEM;
	if (r == 0)
		r = read_fanout(sys, fd, p, st.size);
	if (r < 0) {
		SYS(sys, close, fd);
		free(p->fanout);
		p->fanout = NULL;
		return r;
	}
	p->idx_ino = st.ino;
	p->idx_size = st.size;
	p->idx_fd = fd;
	return 0;
}

/* ---- searching ---- */

/* The expected position of an id in [LO, HI) if all ids were spread evenly. */
static uint32_t guess(const struct refd_oid *oid, uint32_t lo, uint32_t hi)
{
	return lo +
	    (uint32_t)((uint64_t)pack_be32(oid->bytes + 1) * (hi - lo) >> 32);
}

/* NR rows at ROWS. 0 and the position of OID, or -1 if OID sorts before the
 * rows, 1 if after the rows, or 2 if between two rows, but absent. */
static int search_rows(const struct pack *p, const uint8_t *rows, uint32_t nr,
    const struct refd_oid *oid, uint32_t *at)
{
	const size_t size = row_size(p), skip = size - p->id_bytes;
	uint32_t lo = 0, hi = nr, mid;
	int order;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		order =
		    memcmp(oid->bytes, rows + mid * size + skip, p->id_bytes);
		if (order == 0) {
			*at = mid;
			return 0;
		}
		if (order < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return hi == 0 ? -1 : lo == nr ? 1 : 2;
}

/* Returns 1 and the position of OID, or 0 if absent. Every read leaves a
 * smaller range, so the search ends even if a hostile file has its ids in any
 * order. */
static int find_row(const struct sys *sys, struct pack *p,
    const struct refd_oid *oid, uint32_t *at)
{
	const uint32_t most = (uint32_t)(PART / row_size(p));
	uint8_t rows[PART];
	uint32_t lo, hi, from, nr, mid;
	int r;

	lo = oid->bytes[0] == 0 ? 0 : p->fanout[oid->bytes[0] - 1];
	hi = p->fanout[oid->bytes[0]];
	mid = guess(oid, lo, hi);
	while (lo < hi) {
		nr = hi - lo < most ? hi - lo : most;
		from = mid - lo > nr / 2 ? mid - nr / 2 : lo;
		if (from > hi - nr)
			from = hi - nr;
		r = pack_pread(sys, p, p->idx_fd, rows, nr * row_size(p),
		    header_size(p) + (uint64_t)from * row_size(p));
		if (r < 0)
			return r;
		r = search_rows(p, rows, nr, oid, at);
		if (r == 0) {
			*at += from;
			return 1;
		}
		if (r == 2)
			return 0;
		if (r < 0)
			hi = from;
		else
			lo = from + nr;
		mid = lo + (hi - lo) / 2;
	}
	return 0;
}

static int offset_of(const struct sys *sys, struct pack *p, uint32_t at,
    uint64_t *offset)
{
	uint64_t nr = p->fanout[FANOUT - 1], where, end;
	uint8_t value[8];
	uint32_t small;
	int r;

	where = header_size(p) + at * (uint64_t)row_size(p);
	if (p->version == 2)
		where = header_size(p) + nr * (p->id_bytes + 4) + 4ULL * at;
	r = pack_pread(sys, p, p->idx_fd, value, 4, where);
	if (r < 0)
		return r;
	small = pack_be32(value);
	*offset = small;
	if (p->version == 1 || (small & 0x80000000) == 0)
		return 0;
	end = p->idx_size - trailer_size(p);
	where = header_size(p) + nr * (p->id_bytes + 8) +
	    8ULL * (small & 0x7fffffff);
	if (where > end - 8)
		return -EBADMSG;
	r = pack_pread(sys, p, p->idx_fd, value, 8, where);
	*offset = (uint64_t)pack_be32(value) << 32 | pack_be32(value + 4);
	return r;
}

int pack_find(const struct sys *sys, int dirfd, struct pack *p,
    const struct refd_oid *oid, uint64_t *offset)
{
	uint8_t first = oid->bytes[0];
	uint32_t at;
	int r;

	if (p->fanout != NULL &&
	    p->fanout[first] == (first > 0 ? p->fanout[first - 1] : 0))
		return 0;
	r = p->idx_fd >= 0 ? 0 : open_index(sys, dirfd, p);
	if (r == 0)
		r = find_row(sys, p, oid, &at);
	if (r == 1 && (r = offset_of(sys, p, at, offset)) == 0)
		r = 1;
	return r;
}
