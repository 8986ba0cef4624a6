#include "tests/lib/reftable_help.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/format/reftable_merged.h"
#include "daemon/store/tables/format/reftable_zlib.h"

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "reftable_help: %s failed\n", what);
	abort();
}

struct reftable_budget *rh_budget(void)
{
	static _Thread_local struct reftable_budget budget;

	budget = (struct reftable_budget){ .memory = SIZE_MAX / 2,
		.work = UINT64_MAX / 2 };
	return &budget;
}

int rh_append(void *arg, const void *bytes, size_t len)
{
	struct rh_bytes *b = arg;

	if (b->len + len > b->size) {
		b->size = 2 * (b->len + len);
		b->data = realloc(b->data, b->size);
		need(b->data != NULL, "realloc");
	}
	if (len > 0)
		memcpy(b->data + b->len, bytes, len);
	b->len += len;
	return 0;
}

void rh_free(struct rh_bytes *bytes)
{
	free(bytes->data);
	memset(bytes, 0, sizeof(*bytes));
}

static struct reftable_text text(const char *s)
{
	return (struct reftable_text){ s, strlen(s) };
}

static struct refd_oid id_of(uint8_t byte)
{
	struct refd_oid oid;

	memset(oid.bytes, byte, sizeof(oid.bytes));
	return oid;
}

struct reftable_record rh_ref(const char *name, uint64_t index, uint8_t id)
{
	return (struct reftable_record){ .section = REFTABLE_REFS,
		.name = name,
		.update_index = index,
		.ref = { .kind = REFTABLE_REF_OID, .oid = id_of(id) } };
}

struct reftable_record rh_deleted(const char *name, uint64_t index)
{
	return (struct reftable_record){ .section = REFTABLE_REFS,
		.name = name,
		.update_index = index,
		.is_deletion = true };
}

struct reftable_record rh_symref(const char *name, uint64_t index,
    const char *target)
{
	return (struct reftable_record){ .section = REFTABLE_REFS,
		.name = name,
		.update_index = index,
		.ref = { .kind = REFTABLE_REF_SYMREF,
		    .target = text(target) } };
}

struct reftable_record rh_log(const char *name, uint64_t index, uint8_t from,
    uint8_t to, const char *message)
{
	return (struct reftable_record){ .section = REFTABLE_LOGS,
		.name = name,
		.update_index = index,
		.log = { .from = id_of(from),
		    .to = id_of(to),
		    .name = text("A U Thor"),
		    .email = text("a@example.org"),
		    .time_s = 1700000000,
		    .zone = -830,
		    .message = text(message) } };
}

struct rh_bytes rh_table(enum refd_object_format format, uint64_t min_index,
    uint64_t max_index, const struct reftable_record *records, size_t nr)
{
	struct rh_bytes bytes = { 0 };
	struct reftable_writer *writer = reftable_writer_new(format, min_index,
	    max_index, rh_append, &bytes);
	size_t i;

	need(writer != NULL, "reftable_writer_new");
	for (i = 0; i < nr; i++)
		need(reftable_writer_add(writer, &records[i]) == 0,
		    "reftable_writer_add");
	need(reftable_writer_finish(writer) == 0, "reftable_writer_finish");
	reftable_writer_free(writer);
	return bytes;
}

#define FOOTER_1 68

void rh_mend_crc(struct rh_bytes *table)
{
	uint8_t *footer = table->data + table->len - FOOTER_1;

	reftable_record_put(footer + FOOTER_1 - 4, 4,
	    reftable_zlib_crc(footer, FOOTER_1 - 4));
}

struct rh_bytes rh_one_block(uint64_t index, unsigned nr)
{
	uint8_t ends[FOOTER_1] = { 'R', 'E', 'F', 'T', 1 };
	uint8_t record[7] = { 0, 4 << 3 };
	struct rh_bytes bytes = { 0 };
	const unsigned step = 26 * 26 * 26 * 26 / nr;
	unsigned i, n;
	int k;

	reftable_record_put(ends + 8, 8, index);
	reftable_record_put(ends + 16, 8, index);
	rh_append(&bytes, ends, 24);
	rh_append(&bytes, "r\0\0\0", 4);
	for (i = 0; i < nr; i++) {
		for (k = 5, n = i * step; k > 1; k--, n /= 26)
			record[k] = (uint8_t)('a' + n % 26);
		rh_append(&bytes, record, sizeof(record));
	}
	rh_append(&bytes, "\0\0\x1c\0\1", 5);
	reftable_record_put(bytes.data + 25, 3, bytes.len);
	rh_append(&bytes, ends, FOOTER_1);
	rh_mend_crc(&bytes);
	return bytes;
}

void rh_put(const struct sys *sys, int dirfd, const char *path,
    const void *data, size_t len)
{
	int fd =
	    SYS(sys, openat, dirfd, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	need(fd >= 0, path);
	need(SYS(sys, write_all, fd, data, len) == 0, path);
	SYS(sys, close, fd);
}

void rh_add(const struct sys *sys, int dirfd, const struct rh_bytes *table,
    uint64_t min_index, uint64_t max_index, uint32_t random)
{
	char name[REFTABLE_WRITER_NAME], *list = NULL, *longer;
	size_t len;
	int r = sys_read_file(sys, dirfd, REFTABLE_LIST, REFTABLE_LIST_MAX,
	    &list, &len);

	need(r == 0 || r == -ENOENT, REFTABLE_LIST);
	reftable_writer_name(min_index, max_index, random, name);
	rh_put(sys, dirfd, name, table->data, table->len);
	need(asprintf(&longer, "%s%s\n", r == 0 ? list : "", name) > 0,
	    "asprintf");
	rh_put(sys, dirfd, REFTABLE_LIST, longer, strlen(longer));
	free(longer);
	free(list);
}

/* ---- merging ---- */

static int merge_section(const struct reftable_stack *stack, size_t first,
    size_t end, enum reftable_section section, struct reftable_writer *writer,
    struct reftable_fault *fault)
{
	const struct reftable_record *rec;
	struct reftable_stack part = *stack;
	struct reftable_merged *merged;
	int r;

	part.tables += first;
	part.nr = end - first;
	r = reftable_merged_open(&part, section, "", first > 0, rh_budget(),
	    &merged, fault);
	if (r < 0)
		return r;
	while ((r = reftable_merged_next(merged, &rec, fault)) > 0) {
		r = reftable_writer_add(writer, rec);
		if (r < 0)
			break;
	}
	reftable_merged_free(merged);
	return r;
}

int rh_merge(const struct reftable_stack *stack, size_t first, size_t end,
    struct rh_bytes *out, struct reftable_fault *fault)
{
	struct reftable_writer *writer = reftable_writer_new(stack->format,
	    reftable_stack_min_index(stack->tables + first, end - first),
	    reftable_stack_max_index(stack->tables + first, end - first),
	    rh_append, out);
	int r;

	if (writer == NULL)
		return -ENOMEM;
	r = merge_section(stack, first, end, REFTABLE_REFS, writer, fault);
	if (r == 0)
		r = merge_section(stack, first, end, REFTABLE_LOGS, writer,
		    fault);
	if (r == 0)
		r = reftable_writer_finish(writer);
	reftable_writer_free(writer);
	return r;
}
