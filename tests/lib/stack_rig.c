#include "tests/lib/stack_rig.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/reftable_rig.h"
#include "tests/lib/world.h"

struct stack_rig stk;

static int open_dir(const struct sys *sys, const char *path)
{
	return SYS(sys, openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
}

void stk_make(struct memfs *fs)
{
	static const char *const dirs[] = { "/repo", "/repo/reftable",
		"/repo/refd", "/repo/refd/stage" };
	const struct reftable_record first[] = {
		rh_symref("HEAD", 1, "refs/heads/main"),
		rh_ref("refs/heads/main", 1, 1),
		rh_log("refs/heads/main", 1, 0, 1, "first\n"),
	};
	size_t i;

	ck_assert_ptr_nonnull(fs);
	memset(&stk, 0, sizeof(stk));
	stk.format = world_format();
	stk.fs = fs;
	stk.sys = memfs_sys(fs);
	stk.other = memfs_other(fs);
	for (i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
		ck_assert_int_eq(
		    SYS(stk.other, mkdirat, AT_FDCWD, dirs[i], 0777), 0);
	stk.other_dir = open_dir(stk.other, "/repo/reftable");
	stk_git(1, first, 3);
	SYS(stk.other, syncfs, stk.other_dir);
}

int stk_open(void)
{
	stk.git_fd = open_dir(stk.sys, "/repo");
	stk.stage_fd = open_dir(stk.sys, "/repo/refd/stage");
	if (stk.git_fd < 0 || stk.stage_fd < 0)
		return -EIO;
	return stack_open(stk.sys, stk.git_fd, &stk.format, &stk.stack);
}

void stk_close(void)
{
	stack_put(stk.stack);
	stk.stack = NULL;
	SYS(stk.sys, close, stk.git_fd);
	SYS(stk.sys, close, stk.stage_fd);
}

void stk_setup(void)
{
	stk_make(memfs_new());
	ck_assert_int_eq(stk_open(), 0);
}

void stk_teardown(void)
{
	stk_close();
	SYS(stk.other, close, stk.other_dir);
	ck_assert_uint_eq(memfs_open_fds(stk.fs), 0);
	ck_assert_uint_eq(memfs_bad_fds(stk.fs), 0);
	ck_assert_uint_eq(memfs_bad_syncs(stk.fs), 0);
	memfs_free(stk.fs);
}

/* ---- the other writer ---- */

static void rename_list(const char *list)
{
	rh_put(stk.other, stk.other_dir, "tables.new", list, strlen(list));
	ck_assert_int_eq(SYS(stk.other, renameat, stk.other_dir, "tables.new",
			     stk.other_dir, REFTABLE_LIST),
	    0);
}

void stk_git(uint64_t index, const struct reftable_record *records, size_t nr)
{
	struct rh_bytes table = rh_table(stk.format, index, index, records, nr);
	char name[REFTABLE_WRITER_NAME], *list = NULL, *longer;
	size_t len;

	sys_read_file(stk.other, stk.other_dir, REFTABLE_LIST,
	    REFTABLE_LIST_MAX, &list, &len);
	reftable_writer_name(index, index, ++stk.random, name);
	rh_put(stk.other, stk.other_dir, name, table.data, table.len);
	ck_assert_int_gt(
	    asprintf(&longer, "%s%s\n", list != NULL ? list : "", name), 0);
	rename_list(longer);
	free(longer);
	free(list);
	rh_free(&table);
}

static void read_stack(struct reftable_stack *stack)
{
	ck_assert_int_eq(reftable_stack_open(stk.other, stk.other_dir,
			     stk.format, NULL, stack, &stk.fault),
	    0);
}

void stk_git_merge(size_t first, size_t end)
{
	struct rh_bytes bytes = { 0 }, list = { 0 };
	char name[REFTABLE_WRITER_NAME];
	struct reftable_stack stack;
	const char *line;
	size_t i;

	read_stack(&stack);
	if (end > stack.nr)
		end = stack.nr;
	if (first >= end) {
		reftable_stack_close(&stack);
		return;
	}
	ck_assert_int_eq(rh_merge(&stack, first, end, &bytes, &stk.fault), 0);
	reftable_writer_name(reftable_stack_min_index(stack.tables + first,
				 end - first),
	    reftable_stack_max_index(stack.tables + first, end - first),
	    ++stk.random, name);
	rh_put(stk.other, stk.other_dir, name, bytes.data, bytes.len);
	for (i = 0; i < stack.nr; i++) {
		line = i == first ? name : stack.tables[i].name;
		if (i > first && i < end)
			continue;
		rh_append(&list, line, strlen(line));
		rh_append(&list, "\n", 1);
	}
	rh_append(&list, "", 1);
	rename_list((const char *)list.data);
	for (i = first; i < end; i++)
		SYS(stk.other, unlinkat, stk.other_dir, stack.tables[i].name);
	reftable_stack_close(&stack);
	rh_free(&bytes);
	rh_free(&list);
}

static void clean_one(const struct reftable_stack *stack, const char *name)
{
	struct reftable_table table;
	struct reftable_fault fault;
	uint64_t max_index;
	size_t i;

	for (i = 0; i < stack->nr; i++)
		if (strcmp(stack->tables[i].name, name) == 0)
			return;
	if (strstr(name, ".ref") == NULL ||
	    reftable_table_open(stk.other, stk.other_dir, name, &table,
		&fault) < 0)
		return;
	max_index = table.max_index;
	reftable_table_close(&table);
	if (max_index <= reftable_stack_max_index(stack->tables, stack->nr))
		SYS(stk.other, unlinkat, stk.other_dir, name);
}

void stk_git_clean(void)
{
	struct reftable_stack stack;
	struct sys_dirent entry;
	struct sys_dir *dir;

	read_stack(&stack);
	ck_assert_int_eq(SYS(stk.other, dir_open, stk.other_dir, ".", &dir), 0);
	while (SYS(stk.other, dir_next, dir, &entry) > 0)
		clean_one(&stack, entry.name);
	SYS(stk.other, dir_close, dir);
	reftable_stack_close(&stack);
}

/* ---- the process under test ---- */

void stk_record(void *arg, size_t i, struct reftable_record *record)
{
	const struct stk_records *records = arg;
	const uint64_t index = record->update_index;

	*record = records->records[i];
	if (record->update_index == 0)
		record->update_index = index;
}

int stk_begin(struct stack_update *u)
{
	int r;

	memset(u, 0, sizeof(*u));
	r = token_init(&stk.token, stk.sys, stk.stage_fd, ++stk.batch);
	stack_update_init(u, stk.stack, stk.git_fd, &stk.token, 0);
	return r < 0 ? r : stack_update_begin(u);
}

int stk_table(struct stack_update *u, const struct reftable_record *records,
    size_t nr)
{
	struct stk_records all = { records, nr };

	return stack_table_make(u, nr, stk_record, &all);
}

int stk_publish(struct stack_update *u)
{
	int r = stack_update_lock(u);

	if (r < 0)
		return r;
	r = stack_base_check(u);
	if (r == 0)
		r = -EAGAIN;
	if (r > 0)
		r = stack_update_list(u);
	if (r == 0)
		r = stack_sync_all(u, NULL, INT64_MIN, false);
	return r < 0 ? r : stack_update_place(u);
}

int stk_end(struct stack_update *u)
{
	int r = stack_update_unlock(u), err = stack_update_end(u);

	r = r < 0 ? r : err;
	err = token_done(&stk.token);
	return r < 0 ? r : err;
}

int stk_write(const struct reftable_record *records, size_t nr)
{
	struct stack_update u;
	int r = stk_begin(&u), err;

	if (r == 0)
		r = stk_table(&u, records, nr);
	if (r == 0)
		r = stk_publish(&u);
	err = stk_end(&u);
	return r < 0 ? r : err;
}

/* ---- the result ---- */

const char *stk_list(enum reftable_section section)
{
	static char text[REFTABLE_FAULT_TEXT + 16];
	char fault[REFTABLE_FAULT_TEXT];
	struct reftable_stack stack;
	const char *list;
	int r = reftable_stack_open(stk.other, stk.other_dir, stk.format, NULL,
	    &stack, &stk.fault);

	if (r < 0) {
		snprintf(text, sizeof(text), "FAULT %s",
		    reftable_stack_fault_text(&stk.fault, r, fault));
		return text;
	}
	list = rr_list(&stack, section, false);
	reftable_stack_close(&stack);
	return list;
}

static size_t count(const char *path)
{
	int fd = open_dir(stk.other, path);
	struct sys_dirent entry;
	struct sys_dir *dir;
	size_t nr = 0;

	ck_assert_int_eq(SYS(stk.other, dir_open, fd, ".", &dir), 0);
	while (SYS(stk.other, dir_next, dir, &entry) > 0)
		nr++;
	SYS(stk.other, dir_close, dir);
	SYS(stk.other, close, fd);
	return nr;
}

size_t stk_nr_files(void)
{
	return count("/repo/reftable");
}

size_t stk_nr_staged(void)
{
	return count("/repo/refd/stage");
}
