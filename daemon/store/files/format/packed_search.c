/*
 * Look-ups by name in a snapshot of packed-refs.
 *
 * Happy path: the file is divided into blocks of 4 KB. No record is longer than
 * a block, so every block holds the start of a record, and a comparison with
 * the name of this record halves the range. The records of the last block are
 * read. The names of the first eight halvings are remembered, and the last
 * block as well, so look-ups in order seldom read from the file.
 *
 * Failure modes:
 *	a malformed record, or a block without a record: -EBADMSG
 *	the file was shortened meanwhile: the same
 *	the file is not sorted, though its header says so: names are not found,
 *	as git does not find them
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mutex.h"
#include "daemon/store/files/format/packed_internal.h"

/* Remembered nodes of the tree of halvings, numbered as in a heap. Longer names
 * are not remembered. */
#define FENCES         256
#define FENCE_NAME_MAX 255

/* A line has two bytes and a name besides its id. */
#define RECORDS_MAX (PACKED_BLOCK / (REFD_SHA1_HEX + 3) + 1)

/* One read: a block, the byte before the block, and the last record, which may
 * reach far into the next block. */
#define READ_BYTES (1 + PACKED_BLOCK + PACKED_RECORD_MAX)

#define NO_BLOCK SIZE_MAX

struct packed_search {
	struct mutex lock;
	enum refd_object_format format;
	size_t nr_blocks;
	char *fences[FENCES];

	size_t block; /* in BUF, or NO_BLOCK */
	char buf[READ_BYTES];
	size_t len;
	size_t start; /* of the block's first record */
	bool has_records;
	struct packed_record records[RECORDS_MAX];
	size_t nr; /* 0: not parsed yet, or there are none */
};

struct packed_search *packed_search_new(const struct packed_snapshot *snap)
{
	struct packed_search *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	mutex_init(&s->lock, MUTEX_INNER);
	s->format = snap->format;
	s->block = NO_BLOCK;
	s->nr_blocks = (snap->size + PACKED_BLOCK - 1) / PACKED_BLOCK;
	return s;
}

void packed_search_free(struct packed_search *s)
{
	size_t i;

	if (s == NULL)
		return;
	for (i = 0; i < FENCES; i++)
		free(s->fences[i]);
	mutex_destroy(&s->lock);
	free(s);
}

/* ---- a block ---- */

static int record_at(const struct packed_search *s, size_t start,
    struct packed_record *rec)
{
	return packed_record(s->buf + start, s->len - start, s->format, rec);
}

/* Behind the first line end: the first byte of BUF may be a line end. */
static size_t behind_line(const struct packed_search *s, size_t from)
{
	const char *eol = memchr(s->buf + from, '\n', s->len - from);

	return eol != NULL ? (size_t)(eol - s->buf) + 1 : s->len;
}

/* Reads BLOCK and finds the first record, but in the last block no record may
 * start. */
static int read_block(const struct packed_snapshot *snap,
    struct packed_search *s, size_t block)
{
	size_t at = block * PACKED_BLOCK, start = snap->header_len;
	ssize_t n;

	if (block == s->block)
		return 0;
	s->block = NO_BLOCK;
	n = packed_read(snap, s->buf, READ_BYTES - (block == 0),
	    at - (block > 0));
	if (n < 0)
		return (int)n;
	s->len = (size_t)n;
	if (block > 0) {
		start = behind_line(s, 0);
		if (start < s->len && s->buf[start] == '^')
			start = behind_line(s, start);
	}
	s->nr = 0;
	s->start = start;
	s->has_records = start < s->len && start < PACKED_BLOCK + (block > 0);
	if (!s->has_records && block + 1 < s->nr_blocks)
		return -EBADMSG;
	s->block = block;
	return 0;
}

static int find_records(struct packed_search *s)
{
	size_t end = PACKED_BLOCK + (s->block > 0);
	size_t start, nr = 0;
	int r;

	if (s->nr > 0 || !s->has_records)
		return 0;
	for (start = s->start; start < end && start < s->len;
	    start += s->records[nr++].len) {
		r = record_at(s, start, &s->records[nr]);
		if (r < 0)
			return r;
	}
	s->nr = nr;
	return 0;
}

/* ---- the tree ---- */

static void remember(struct packed_search *s, size_t node,
    const struct packed_record *rec)
{
	if (node < FENCES && rec->name_len <= FENCE_NAME_MAX)
		s->fences[node] = strndup(rec->name, rec->name_len);
}

/* 1: BLOCK begins with a name before KEY. */
static int begins_before(const struct packed_snapshot *snap,
    struct packed_search *s, size_t node, size_t block, const char *key)
{
	struct packed_record rec;
	int r;

	if (node < FENCES && s->fences[node] != NULL)
		return strcmp(s->fences[node], key) < 0;
	r = read_block(snap, s, block);
	if (r < 0 || !s->has_records)
		return r;
	r = record_at(s, s->start, &rec);
	if (r < 0)
		return r;
	remember(s, node, &rec);
	return packed_record_order(&rec, key) < 0;
}

/* Is the first name not before KEY in the current block? */
static bool is_in_block(const struct packed_search *s, const char *key)
{
	return s->block != NO_BLOCK && s->nr > 0 &&
	    packed_record_order(&s->records[0], key) < 0 &&
	    packed_record_order(&s->records[s->nr - 1], key) >= 0;
}

/* The last block that begins before KEY, or the first block. */
static int find_block(const struct packed_snapshot *snap,
    struct packed_search *s, const char *key)
{
	size_t low = 0, high = s->nr_blocks, node = 1, mid;
	int r;

	if (is_in_block(s, key))
		return 0;
	while (low < high) {
		mid = low + (high - low) / 2;
		r = begins_before(snap, s, node, mid, key);
		if (r < 0)
			return r;
		if (r > 0)
			low = mid + 1;
		else
			high = mid;
		node = node < FENCES ? 2 * node + (r > 0) : node;
	}
	r = read_block(snap, s, low > 0 ? low - 1 : 0);
	return r < 0 ? r : find_records(s);
}

/* 1: REC is the first record not before KEY. The search is locked. */
static int lower_bound(const struct packed_snapshot *snap,
    struct packed_search *s, const char *key, struct packed_record *rec)
{
	size_t low = 0, high, mid;
	int r;

	r = find_block(snap, s, key);
	if (r < 0)
		return r;
	for (high = s->nr; low < high;) {
		mid = low + (high - low) / 2;
		if (packed_record_order(&s->records[mid], key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < s->nr) {
		*rec = s->records[low];
		return 1;
	}
	if (s->block + 1 >= s->nr_blocks)
		return 0;
	r = read_block(snap, s, s->block + 1);
	if (r < 0 || !s->has_records)
		return r;
	r = record_at(s, s->start, rec);
	return r < 0 ? r : 1;
}

int packed_lookup(const struct packed_snapshot *snap, const char *name,
    struct refd_oid *oid)
{
	struct packed_search *s = snap->search;
	struct packed_record rec;
	int r;

	if (s == NULL)
		return 0;
	mutex_lock(&s->lock);
	r = lower_bound(snap, s, name, &rec);
	if (r > 0)
		r = packed_record_order(&rec, name) == 0;
	if (r > 0 && oid != NULL)
		refd_oid_parse(rec.start, s->format, oid);
	mutex_unlock(&s->lock);
	return r;
}

int packed_find_below(const struct packed_snapshot *snap, const char *dir,
    char found[REFD_PATH_MAX])
{
	struct packed_search *s = snap->search;
	size_t len = strlen(dir);
	struct packed_record rec;
	int r;

	if (s == NULL)
		return 0;
	mutex_lock(&s->lock);
	r = lower_bound(snap, s, dir, &rec);
	if (r > 0)
		r = rec.name_len >= len && memcmp(rec.name, dir, len) == 0;
	if (r > 0) {
		memcpy(found, rec.name, rec.name_len);
		found[rec.name_len] = '\0';
	}
	mutex_unlock(&s->lock);
	return r;
}

int packed_find_above(const struct packed_snapshot *snap, const char *name,
    size_t clear_len, char found[REFD_PATH_MAX])
{
	char *slash;
	int r = 0;

	snprintf(found, REFD_PATH_MAX, "%s", name);
	while (r == 0 && (slash = strrchr(found, '/')) != NULL &&
	    (size_t)(slash - found) > clear_len) {
		*slash = '\0';
		r = packed_lookup(snap, found, NULL);
	}
	return r;
}

int packed_find_conflict(const struct packed_snapshot *snap, const char *name,
    char found[REFD_PATH_MAX])
{
	char dir[REFD_PATH_MAX];
	int r = packed_find_above(snap, name, 0, found);

	if (r != 0)
		return r;
	snprintf(dir, sizeof(dir), "%s/", name);
	return packed_find_below(snap, dir, found);
}
