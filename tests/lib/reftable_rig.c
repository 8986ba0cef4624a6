#include "tests/lib/reftable_rig.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/store/tables/format/reftable_merged.h"

struct memfs *rr_fs;
const struct sys *rr_sys;
int rr_dir;
struct reftable_fault rr_fault;

void rr_setup(void)
{
	rr_fs = memfs_new();
	ck_assert_ptr_nonnull(rr_fs);
	rr_sys = memfs_sys(rr_fs);
	rr_dir = SYS(rr_sys, openat, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_ge(rr_dir, 0);
}

void rr_teardown(void)
{
	SYS(rr_sys, close, rr_dir);
	memfs_free(rr_fs);
}

void rr_add(uint64_t index, const struct reftable_record *records, size_t nr)
{
	struct rh_bytes table =
	    rh_table(REFD_FORMAT_SHA1, index, index, records, nr);

	rh_add(rr_sys, rr_dir, &table, index, index, (uint32_t)index);
	rh_free(&table);
}

const char *rr_name(unsigned i)
{
	static char name[64];

	snprintf(name, sizeof(name), "refs/heads/b%07u/a-long-name-of-a-branch",
	    i);
	return name;
}

struct rh_bytes rr_many(enum refd_object_format format, unsigned nr,
    bool with_logs)
{
	struct rh_bytes bytes = { 0 };
	struct reftable_writer *w =
	    reftable_writer_new(format, 1, 1, rh_append, &bytes);
	struct reftable_record rec;
	unsigned i;

	for (i = 0; i < nr; i++) {
		rec = rh_ref(rr_name(i), 1, (uint8_t)i);
		ck_assert_int_eq(reftable_writer_add(w, &rec), 0);
	}
	for (i = 0; with_logs && i < nr; i++) {
		rec = rh_log(rr_name(i), 1, 0, (uint8_t)i, "created\n");
		ck_assert_int_eq(reftable_writer_add(w, &rec), 0);
	}
	ck_assert_int_eq(reftable_writer_finish(w), 0);
	reftable_writer_free(w);
	return bytes;
}

int rr_open(const struct rh_bytes *data, struct reftable_table *table)
{
	rh_put(rr_sys, rr_dir, "t", data->data, data->len);
	return reftable_table_open(rr_sys, rr_dir, "t", table, &rr_fault);
}

static int add_text(char *at, const struct reftable_record *rec)
{
	if (rec->is_deletion)
		return sprintf(at, "%s- ", rec->name);
	if (rec->section == REFTABLE_LOGS)
		return sprintf(at, "%s@%llu:%u,%u ", rec->name,
		    (unsigned long long)rec->update_index,
		    rec->log.from.bytes[0], rec->log.to.bytes[0]);
	if (rec->ref.kind == REFTABLE_REF_SYMREF)
		return sprintf(at, "%s>%.*s ", rec->name,
		    (int)rec->ref.target.len, rec->ref.target.at);
	return sprintf(at, "%s=%u ", rec->name, rec->ref.oid.bytes[0]);
}

const char *rr_list(const struct reftable_stack *stack,
    enum reftable_section section, bool with_deletions)
{
	static char list[131072];
	const struct reftable_record *rec;
	struct reftable_merged *merged;
	size_t len = 0;

	list[0] = '\0';
	ck_assert_int_eq(reftable_merged_open(stack, section, "",
			     with_deletions, rh_budget(), &merged, &rr_fault),
	    0);
	while (reftable_merged_next(merged, &rec, &rr_fault) > 0) {
		ck_assert_uint_lt(len, sizeof(list) - 8192);
		len += (size_t)add_text(list + len, rec);
	}
	reftable_merged_free(merged);
	return list;
}
