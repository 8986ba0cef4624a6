/*
 * Any bytes as packed-refs. The first byte selects the refs that a rewrite
 * removes. A second, plainer reader must agree on the validity of the file, on
 * every value, and on the result of the rewrite. In one input of three, the
 * bytes are the end of a file too large to be read whole: this covers the
 * search in blocks and the rewrite of large files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/files/format/packed.h"
#include "tests/lib/memfs.h"

#define REFS_MAX   512
#define HEADER_MAX 1024
#define RECORD_MAX 4096

/* The beginning of a large file: refs/!0000 and so on. */
#define FILLER_HEADER "# pack-refs with: peeled fully-peeled sorted \n"
#define FILLER_LINE   "%040x refs/!%04u\n"
#define FILLER_BYTES  (40 + 1 + 10 + 1)
#define NR_FILLERS    1500u
#define LAST_FILLER   "refs/!1499"

struct ref {
	const char *line; /* with LF and the peeled line */
	size_t len;
	const char *name;
	bool taken_out;
};

struct fuzzed_file {
	size_t header;
	struct ref refs[REFS_MAX];
	size_t nr;
	bool sorted; /* in the file, and behind the fillers */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static int by_name(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static bool starts_with_hex(const char *s, const char *end)
{
	return end - s >= REFD_SHA1_HEX &&
	    strspn(s, "0123456789abcdefABCDEF") >= REFD_SHA1_HEX;
}

/* Reads one ref from *P. The name is written to NAMES. */
static bool read_ref(const char **p, const char *end, struct ref *ref,
    char **names)
{
	const char *eol = memchr(*p, '\n', (size_t)(end - *p));
	size_t len;

	if (eol == NULL || !starts_with_hex(*p, eol))
		return false;
	len = (size_t)(eol - *p);
	if (len < REFD_SHA1_HEX + 2 || (*p)[REFD_SHA1_HEX] != ' ' ||
	    eol[-1] == '\r' || memchr(*p, '\0', len) != NULL)
		return false;
	ref->line = *p;
	ref->name = *names;
	memcpy(*names, *p + REFD_SHA1_HEX + 1, len - REFD_SHA1_HEX - 1);
	*names += len - REFD_SHA1_HEX - 1;
	*(*names)++ = '\0';
	*p = eol + 1;
	if (*p < end && **p == '^') {
		eol = memchr(*p, '\n', (size_t)(end - *p));
		if (eol == NULL || eol - *p != REFD_SHA1_HEX + 1 ||
		    !starts_with_hex(*p + 1, eol))
			return false;
		*p = eol + 1;
	}
	ref->len = (size_t)(*p - ref->line);
	return ref->len <= RECORD_MAX;
}

/* 0: malformed; 1: well formed; -1: more than REFS_MAX refs. */
static int read_slowly(const char *text, size_t len, char *names,
    struct fuzzed_file *file)
{
	const char *p = text, *end = text + len;

	if (len > 0 && *p == '#') {
		p = memchr(text, '\n', len);
		if (p == NULL || strncmp(text, "# pack-refs with:", 17) != 0)
			return 0;
		p++;
	}
	file->header = (size_t)(p - text);
	if (file->header > HEADER_MAX ||
	    memchr(text, '\0', file->header) != NULL)
		return 0;
	file->sorted = true;
	for (file->nr = 0; p < end; file->nr++) {
		if (file->nr == REFS_MAX)
			return -1;
		if (!read_ref(&p, end, &file->refs[file->nr], &names))
			return 0;
		file->sorted = file->sorted &&
		    strcmp(file->nr > 0 ? file->refs[file->nr - 1].name :
					  LAST_FILLER,
			file->refs[file->nr].name) <= 0;
	}
	qsort(file->refs, file->nr, sizeof(file->refs[0]), by_name);
	return 1;
}

static bool is_single(const struct fuzzed_file *file, size_t i)
{
	return (i == 0 ||
		   strcmp(file->refs[i - 1].name, file->refs[i].name) != 0) &&
	    (i + 1 == file->nr ||
		strcmp(file->refs[i + 1].name, file->refs[i].name) != 0);
}

static void check_lookups(const struct packed_snapshot *snap,
    const struct fuzzed_file *file)
{
	struct refd_oid want, got;
	const struct ref *ref;
	char found[REFD_PATH_MAX];
	size_t i;

	expect(packed_check(snap) == 0);
	for (i = 0; i < file->nr; i++) {
		ref = &file->refs[i];
		expect(packed_lookup(snap, ref->name, &got) == !ref->taken_out);
		if (ref->taken_out)
			continue;
		expect(packed_find_below(snap, ref->name, found) == 1);
		expect(strcmp(found, ref->name) == 0);
		expect(refd_oid_parse(ref->line, REFD_FORMAT_SHA1, &want) == 0);
		expect(!is_single(file, i) || refd_oid_eq(&want, &got));
	}
}

/* Takes out the refs whose position has a bit in PATTERN. */
static size_t choose(struct fuzzed_file *file, uint8_t pattern,
    struct packed_edit *edits)
{
	size_t i, j, nr = 0;

	for (i = 0; i < file->nr; i = j) {
		for (j = i; j < file->nr &&
		    strcmp(file->refs[j].name, file->refs[i].name) == 0;
		    j++)
			file->refs[j].taken_out = pattern >> i % 8 & 1;
		if (file->refs[i].taken_out)
			edits[nr++] =
			    (struct packed_edit){ .name = file->refs[i].name };
	}
	return nr;
}

static bool says_fully_peeled(const char *text, size_t header)
{
	static const char word[] = "fully-peeled";
	const char *end = text + header, *at = text;
	size_t len;

	for (; at < end; at += len + 1) {
		len = strcspn(at, " \n");
		if (len == strlen(word) && memcmp(at, word, len) == 0)
			return true;
	}
	return false;
}

/* If the old file was fully peeled, the new header is git's own; otherwise the
 * header stays. Refs with equal names have no defined order, so only the length
 * is compared then. */
static void check_file(const struct sys *sys, int dirfd, const char *text,
    const struct fuzzed_file *file)
{
	static const char git_header[] =
	    "# pack-refs with: peeled fully-peeled sorted \n";
	size_t i, len, at = file->header;
	bool same = true;
	char *got;

	if (says_fully_peeled(text, at)) {
		text = git_header;
		at = strlen(git_header);
	}
	expect(
	    sys_read_file(sys, dirfd, "packed-refs", 1 << 24, &got, &len) == 0);
	expect(len >= at && memcmp(got, text, at) == 0);
	for (i = 0; i < file->nr; i++) {
		if (file->refs[i].taken_out)
			continue;
		same = same && is_single(file, i);
		expect(len - at >= file->refs[i].len);
		expect(!same ||
		    memcmp(got + at, file->refs[i].line, file->refs[i].len) ==
			0);
		at += file->refs[i].len;
	}
	expect(at == len);
	free(got);
}

static void rewrite(const struct sys *sys, int dirfd, struct packed *packed,
    uint8_t pattern, const char *text, struct fuzzed_file *file)
{
	struct packed_edit edits[REFS_MAX];
	struct packed_snapshot *snap;
	bool changed;
	size_t nr;

	nr = choose(file, pattern, edits);
	expect(packed_rewrite_begin(packed, edits, nr, 0644, true, INT64_MAX,
		   &changed) == 0);
	expect(changed == (nr > 0));
	if (!changed)
		return;
	expect(packed_rewrite_finish(packed) == 0);
	expect(packed_snapshot(packed, &snap) == 0);
	check_lookups(snap, file);
	packed_snapshot_put(snap);
	check_file(sys, dirfd, text, file);
}

/* ---- the end of a large file ---- */

static const char *filler(unsigned i)
{
	static char name[16];

	snprintf(name, sizeof(name), "refs/!%04u", i);
	return name;
}

static char *with_fillers(const char *text, size_t len, size_t *total)
{
	const size_t header = strlen(FILLER_HEADER);
	char *large = malloc(header + NR_FILLERS * FILLER_BYTES + len + 1), *p;
	unsigned i;

	expect(large != NULL);
	strcpy(large, FILLER_HEADER);
	p = large + header;
	for (i = 0; i < NR_FILLERS; i++)
		p += sprintf(p, FILLER_LINE, i, i);
	memcpy(p, text, len);
	*total = (size_t)(p - large) + len;
	return large;
}

static void check_fillers(const struct packed_snapshot *snap, bool all,
    unsigned gone)
{
	unsigned i;
	int r;

	for (i = 0; i < NR_FILLERS; i += 7) {
		r = packed_lookup(snap, filler(i), NULL);
		expect(all ? r == (i != gone) : r >= -EBADMSG && r <= 1);
	}
}

static void rewrite_large(struct packed *packed, unsigned gone,
    const struct fuzzed_file *file, int verdict)
{
	struct packed_edit edit = { .name = filler(gone) };
	struct packed_snapshot *snap;
	bool changed;
	int r;

	r = packed_rewrite_begin(packed, &edit, 1, 0644, false, INT64_MAX,
	    &changed);
	if (verdict == 0)
		expect(r == -EBADMSG || r == -EILSEQ);
	else if (!file->sorted)
		expect(r == -EILSEQ || r == -EBADMSG);
	else
		expect(r == 0 && changed);
	if (r < 0)
		return;
	expect(packed_rewrite_finish(packed) == 0);
	expect(packed_snapshot(packed, &snap) == 0);
	check_lookups(snap, file);
	check_fillers(snap, true, gone);
	packed_snapshot_put(snap);
}

static void run_large(struct packed *packed, uint8_t pattern,
    const struct fuzzed_file *file, int verdict)
{
	const unsigned gone = pattern * 5u / 7 * 7;
	struct packed_snapshot *snap;
	int r;

	r = packed_snapshot(packed, &snap);
	expect(r == 0 || (r == -EBADMSG && verdict == 0));
	if (r < 0)
		return;
	expect((packed_check(snap) == 0) == (verdict == 1));
	if (verdict == 1 && file->sorted)
		check_lookups(snap, file);
	check_fillers(snap, verdict == 1 && file->sorted, NR_FILLERS);
	packed_snapshot_put(snap);
	rewrite_large(packed, gone, file, verdict);
}

static void run(struct memfs *fs, uint8_t pattern, const char *text, size_t len,
    char *names)
{
	const struct sys *sys = memfs_sys(fs);
	struct packed_snapshot *snap;
	bool is_large = pattern % 3 == 2 && *text != '#' &&
	    *text != '^'; /* otherwise the last filler is peeled */
	const enum refd_object_format format = REFD_FORMAT_SHA1;
	struct fuzzed_file file = { 0 };
	struct packed *packed;
	int dirfd, fd, verdict, r;
	size_t total = len;
	char *large = NULL;

	dirfd = SYS(sys, openat, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY, 0);
	fd = SYS(sys, openat, dirfd, "packed-refs", O_WRONLY | O_CREAT, 0644);
	expect(dirfd >= 0 && fd >= 0);
	if (is_large)
		large = with_fillers(text, len, &total);
	expect(SYS(sys, write_all, fd, is_large ? large : text, total) == 0);
	SYS(sys, close, fd);
	free(large);
	packed = packed_new(sys, dirfd, &format);
	expect(packed != NULL);
	verdict = read_slowly(text, len, names, &file);
	if (is_large) {
		if (verdict >= 0)
			run_large(packed, pattern, &file, verdict);
	} else {
		r = packed_snapshot(packed, &snap);
		expect(verdict < 0 || (r == 0) == (verdict == 1));
		if (r == 0 && verdict == 1)
			check_lookups(snap, &file);
		if (r == 0)
			packed_snapshot_put(snap);
		if (r == 0 && verdict == 1)
			rewrite(sys, dirfd, packed, pattern, text, &file);
	}
	packed_free(packed);
	SYS(sys, close, dirfd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memfs *fs;
	char *text, *names;

	if (size == 0)
		return 0;
	text = malloc(size);
	names = malloc(size);
	fs = memfs_new();
	expect(text != NULL && names != NULL && fs != NULL);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	run(fs, data[0], text, size - 1, names);
	memfs_free(fs);
	free(names);
	free(text);
	return 0;
}
