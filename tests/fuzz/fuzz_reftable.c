/*
 * Any bytes as a table in a stack of two. The first byte selects the object
 * format, and whether the footer gets a copy of the header and a correct check
 * sum, or whether the bytes are the list, beside two sound tables. An accepted
 * list names exactly the opened tables. If the check of the table finds no
 * fault, then every iterated ref is found by name, in any order of the names,
 * and merging both tables, or a new table with both, changes no record. A table
 * that is mended, because its footer is lost, passes the check. If a sound
 * table loses its footer and is mended, the positions in the footer are the old
 * ones.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/format/reftable_check.h"
#include "daemon/store/tables/format/reftable_mend.h"
#include "daemon/store/tables/format/reftable_merged.h"
#include "daemon/store/tables/format/reftable_zlib.h"
#include "daemon/store/tables/stack/stack_reader.h"
#include "daemon/store/tables/stack/stack_update.h"
#include "tests/lib/memfs.h"
#include "tests/lib/reftable_help.h"

#define FOOTER_REST 44
#define CRC         4
#define SECOND      UINT64_C(0x7fffffff) /* the index of the second table */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct reftable_fault fault;

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static void mend_footer(uint8_t *data, size_t size)
{
	const size_t header = size > 4 && data[4] == 2 ? 28 : 24;
	uint8_t *footer;

	if (size < 2 * header + FOOTER_REST)
		return;
	footer = data + size - header - FOOTER_REST;
	memcpy(footer, data, header);
	reftable_record_put(data + size - CRC, CRC,
	    reftable_zlib_crc(footer, header + FOOTER_REST - CRC));
}

/* A sum over all records; *NR of them. */
static uint32_t sum_up(const struct reftable_stack *stack,
    enum reftable_section section, size_t *nr)
{
	const struct reftable_record *rec;
	struct reftable_merged *merged;
	uint8_t value[REFTABLE_BLOCK_BYTES];
	uint32_t sum = 0;
	int len;

	*nr = 0;
	if (reftable_merged_open(stack, section, "", false, rh_budget(),
		&merged, &fault) < 0)
		return 0;
	while (reftable_merged_next(merged, &rec, &fault) > 0) {
		len = reftable_record_encode(rec, stack->format, 0, value,
		    sizeof(value));
		expect(len > 0 || len == -E2BIG);
		sum =
		    sum * 31 + reftable_zlib_crc(rec->name, strlen(rec->name));
		sum = sum * 31 + (uint32_t)rec->update_index;
		if (len > 0)
			sum = sum * 31 + reftable_zlib_crc(value, (size_t)len);
		++*nr;
	}
	reftable_merged_free(merged);
	return sum;
}

static void check_lookups(const struct reftable_stack *stack)
{
	struct reftable_iterator it = { .budget = rh_budget() };
	const struct reftable_record *rec;
	struct reftable_merged *merged;
	unsigned nr = 0;

	expect(reftable_merged_open(stack, REFTABLE_REFS, "refs/", false,
		   rh_budget(), &merged, &fault) == 0);
	while (nr++ < 100 && reftable_merged_next(merged, &rec, &fault) > 0) {
		expect(strcmp(rec->name, "refs/") >= 0);
		expect(reftable_stack_find(stack, rec->name, &it, &fault) == 1);
		expect(it.cursor.record.update_index == rec->update_index);
		expect(refd_oid_eq(&it.cursor.record.ref.oid, &rec->ref.oid) ||
		    rec->ref.kind == REFTABLE_REF_SYMREF);
	}
	reftable_merged_free(merged);
	reftable_iterator_done(&it);
}

/* ---- the stack ---- */

#define NAMES 100

static void get_new(void *arg, size_t i, struct reftable_record *record)
{
	const uint64_t index = record->update_index;

	(void)arg;
	(void)i;
	*record = rh_ref("refs/heads/zzz-new", index, 9);
}

/* A batch that folds as many tables as possible. False: the tables do not allow
 * one. */
static bool fold(struct stack *stack, int git_fd, struct token *token)
{
	struct stack_update u;
	int r;

	stack_update_init(&u, stack, git_fd, token, 0);
	expect(stack_update_begin(&u) == 0);
	u.may_fold = true;
	r = stack_table_make(&u, 1, get_new, NULL);
	if (r == 0) {
		expect(stack_update_lock(&u) == 0);
		expect(stack_base_check(&u) == 1);
		expect(stack_update_list(&u) == 0);
		expect(stack_update_place(&u) == 0);
	}
	expect(stack_update_end(&u) == 0);
	return r == 0;
}

/* Finds the NR names, forward, backward and in turn. */
static void find_all(struct stack *stack, char names[][64], size_t nr)
{
	struct stack_snapshot *snap;
	struct stack_reader reader;
	struct reftable_iterator it = { .budget = rh_budget() };
	const struct reftable_record *ref;
	size_t i, n;

	expect(stack_snapshot(stack, &snap, &fault) == 0);
	expect(stack_reader_init(&reader, snap, rh_budget()) == 0);
	for (n = 0; n < 3 * nr; n++) {
		i = n < nr ? n : n < 2 * nr ? 2 * nr - 1 - n : n * 7 % nr;
		expect(stack_reader_find(&reader, names[i], &ref) == 1);
		expect(reftable_stack_find(&snap->tables, names[i], &it,
			   &fault) == 1);
		expect(ref->update_index == it.cursor.record.update_index);
	}
	reftable_iterator_done(&it);
	stack_reader_done(&reader);
	stack_snapshot_put(snap);
}

static void check_stack(const struct sys *sys, int git_fd,
    enum refd_object_format format, const struct reftable_stack *tables)
{
	const struct reftable_record *rec;
	struct reftable_merged *merged;
	static char names[NAMES][64];
	struct token token;
	struct stack *stack;
	size_t nr = 0;

	expect(reftable_merged_open(tables, REFTABLE_REFS, "", false,
		   rh_budget(), &merged, &fault) == 0);
	while (nr < NAMES && reftable_merged_next(merged, &rec, &fault) > 0)
		if (strlen(rec->name) < sizeof(names[0]))
			strcpy(names[nr++], rec->name);
	reftable_merged_free(merged);
	expect(stack_open(sys, git_fd, &format, &stack) == 0);
	find_all(stack, names, nr);
	expect(token_init(&token, sys, git_fd, 1) == 0);
	if (fold(stack, git_fd, &token))
		find_all(stack, names, nr);
	expect(token_done(&token) == 0);
	stack_put(stack);
}

static void check_merge(const struct sys *sys, int dirfd,
    const struct reftable_stack *stack)
{
	struct reftable_stack one = { .format = stack->format, .nr = 1 };
	size_t nr[2], merged_nr[2];
	struct rh_bytes bytes = { 0 };
	struct reftable_table table;
	uint32_t sum[2];
	int r;

	r = rh_merge(stack, 0, stack->nr, &bytes, &fault);
	expect(r == 0 || r == -E2BIG);
	if (r == 0) {
		rh_put(sys, dirfd, "merged", bytes.data, bytes.len);
		expect(reftable_table_open(sys, dirfd, "merged", &table,
			   &fault) == 0);
		expect(reftable_check(&table, rh_budget(), &fault) == 0);
		one.tables = &table;
		sum[0] = sum_up(stack, REFTABLE_REFS, &nr[0]);
		sum[1] = sum_up(stack, REFTABLE_LOGS, &nr[1]);
		expect(sum_up(&one, REFTABLE_REFS, &merged_nr[0]) == sum[0]);
		expect(sum_up(&one, REFTABLE_LOGS, &merged_nr[1]) == sum[1]);
		expect(nr[0] == merged_nr[0] && nr[1] == merged_nr[1]);
		reftable_table_close(&table);
	}
	rh_free(&bytes);
}

/* ---- lost footers ---- */

/* Mends LEN bytes of DATA. False: refused. */
static bool mend(const struct sys *sys, int dirfd, const uint8_t *data,
    size_t len, bool git_syncs, struct reftable_table *table)
{
	struct rh_bytes bytes = { 0 };
	struct reftable_mend m;

	rh_put(sys, dirfd, "cut", data, len);
	if (reftable_mend_open(sys, dirfd, "cut", git_syncs, &m, &fault) < 0)
		return false;
	expect(m.table.end <= len);
	rh_append(&bytes, data, (size_t)m.table.end);
	rh_append(&bytes, m.footer, m.footer_len);
	rh_put(sys, dirfd, "mended", bytes.data, bytes.len);
	rh_free(&bytes);
	reftable_mend_close(&m);
	expect(reftable_table_open(sys, dirfd, "mended", table, &fault) == 0);
	expect(reftable_check(table, rh_budget(), &fault) == 0);
	return true;
}

/* DATA of LEN bytes, and without a footer. */
static void check_mend(const struct sys *sys, int dirfd, const uint8_t *data,
    size_t len)
{
	struct reftable_table table, sound;
	size_t end;

	if (mend(sys, dirfd, data, len, false, &table))
		reftable_table_close(&table);
	if (mend(sys, dirfd, data, len, true, &table))
		reftable_table_close(&table);
	rh_put(sys, dirfd, "sound", data, len);
	if (reftable_table_open(sys, dirfd, "sound", &sound, &fault) < 0)
		return;
	end = (size_t)sound.end;
	if (reftable_check(&sound, rh_budget(), &fault) == 0 &&
	    mend(sys, dirfd, data, end, true, &table)) {
		expect(table.ref_index == sound.ref_index);
		expect(table.objects == sound.objects);
		expect(table.object_index == sound.object_index);
		expect(table.logs == sound.logs);
		expect(table.log_index == sound.log_index);
		reftable_table_close(&table);
	}
	reftable_table_close(&sound);
}

static void look(const struct sys *sys, int git_fd, int dirfd,
    enum refd_object_format format)
{
	struct reftable_iterator it = { .budget = rh_budget() };
	struct reftable_stack stack;
	size_t nr;

	if (reftable_stack_open(sys, dirfd, format, NULL, &stack, &fault) < 0)
		return;
	if (reftable_check(&stack.tables[0], rh_budget(), &fault) == 0) {
		check_lookups(&stack);
		check_merge(sys, dirfd, &stack);
		check_stack(sys, git_fd, format, &stack);
	} else {
		sum_up(&stack, REFTABLE_REFS, &nr);
		sum_up(&stack, REFTABLE_LOGS, &nr);
		reftable_stack_find(&stack, "refs/heads/b1", &it, &fault);
		reftable_stack_find(&stack, "HEAD", &it, &fault);
		reftable_iterator_done(&it);
	}
	reftable_stack_close(&stack);
}

/* DATA of LEN bytes as the list. */
static void check_list(const struct sys *sys, int dirfd,
    enum refd_object_format format, const uint8_t *data, size_t len)
{
	struct reftable_stack stack;
	size_t i, name;

	rh_put(sys, dirfd, REFTABLE_LIST, data, len);
	if (reftable_stack_open(sys, dirfd, format, NULL, &stack, &fault) < 0)
		return;
	for (i = 0; i < stack.nr; i++) {
		name = strlen(stack.tables[i].name);
		expect(name < len);
		expect(memcmp(data, stack.tables[i].name, name) == 0);
		expect(data[name] == '\n');
		data += name + 1;
		len -= name + 1;
	}
	expect(len == 0);
	reftable_stack_close(&stack);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct reftable_record records[] = {
		rh_deleted("refs/heads/b0", SECOND),
		rh_ref("refs/heads/b1", SECOND, 1),
		rh_symref("refs/heads/b2", SECOND, "refs/heads/b1"),
		rh_log("refs/heads/b1", SECOND, 0, 1, "m\n"),
	};
	enum refd_object_format format;
	struct rh_bytes first = { 0 }, second;
	const struct sys *sys;
	struct memfs *fs;
	int git_fd, dirfd;

	if (size == 0)
		return 0;
	format = data[0] & 1 ? REFD_FORMAT_SHA256 : REFD_FORMAT_SHA1;
	fs = memfs_new();
	expect(fs != NULL);
	sys = memfs_sys(fs);
	git_fd = SYS(sys, openat, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY, 0);
	expect(SYS(sys, mkdirat, git_fd, "reftable", 0777) == 0);
	dirfd = SYS(sys, openat, git_fd, "reftable", O_RDONLY | O_DIRECTORY, 0);
	expect(dirfd >= 0);
	if (data[0] & 4)
		first = rh_table(format, 1, 1, NULL, 0);
	else
		rh_append(&first, data + 1, size - 1);
	if (data[0] & 2)
		mend_footer(first.data, first.len);
	rh_add(sys, dirfd, &first, 1, 1, 1);
	second = rh_table(format, SECOND, SECOND, records, 4);
	rh_add(sys, dirfd, &second, SECOND, SECOND, 2);
	look(sys, git_fd, dirfd, format);
	if (data[0] & 4)
		check_list(sys, dirfd, format, data + 1, size - 1);
	check_mend(sys, dirfd, first.data, first.len);
	rh_free(&first);
	rh_free(&second);
	SYS(sys, close, dirfd);
	SYS(sys, close, git_fd);
	memfs_free(fs);
	return 0;
}
