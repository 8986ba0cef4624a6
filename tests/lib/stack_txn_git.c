/*
 * The other writer of stack_txn.h, and the looks at the result.
 */
#include "tests/lib/stack_txn.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/format/reftable_merged.h"

static const char *const dirs[] = { STACK_DIR,
	WORLD_REPO "/worktrees/wt/reftable" };

int stack_txn_dir(struct world *w, int place)
{
	int fd = SYS(memfs_other(w->fs), openat, AT_FDCWD, dirs[place],
	    O_RDONLY | O_DIRECTORY, 0);

	assert(fd >= 0);
	return fd;
}

static void write_file(const struct sys *sys, int dirfd, const char *name,
    const void *data, size_t len, bool sync)
{
	int fd =
	    SYS(sys, openat, dirfd, name, O_WRONLY | O_CREAT | O_EXCL, 0666);

	assert(fd >= 0);
	assert(SYS(sys, write_all, fd, data, len) == 0);
	assert(!sync || SYS(sys, fsync, fd) == 0);
	SYS(sys, close, fd);
}

/* As git: the lock becomes the list. */
static void write_list(const struct sys *sys, int dirfd, const char *list,
    bool sync)
{
	write_file(sys, dirfd, "tables.list.lock", list, strlen(list), sync);
	assert(SYS(sys, renameat, dirfd, "tables.list.lock", dirfd,
		   "tables.list") == 0);
}

static void add_table(struct world *w, int dirfd, const struct rh_bytes *table,
    uint64_t min_index, uint64_t max_index, bool keeps_list, bool sync)
{
	static uint32_t random;
	const struct sys *sys = memfs_other(w->fs);
	char name[REFTABLE_WRITER_NAME], *list = NULL, *longer;
	size_t len;

	reftable_writer_name(min_index, max_index, ++random, name);
	write_file(sys, dirfd, name, table->data, table->len, sync);
	if (keeps_list)
		assert(sys_read_file(sys, dirfd, "tables.list",
			   REFTABLE_LIST_MAX, &list, &len) == 0);
	assert(asprintf(&longer, "%s%s\n", list != NULL ? list : "", name) > 0);
	write_list(sys, dirfd, longer, sync);
	free(longer);
	free(list);
}

static void open_stack(struct world *w, int dirfd, struct reftable_stack *stack)
{
	struct reftable_fault fault;

	assert(reftable_stack_open(memfs_other(w->fs), dirfd, world_format(),
		   NULL, stack, &fault) == 0);
}

uint64_t stack_txn_last(struct world *w)
{
	int dirfd = stack_txn_dir(w, 0);
	struct reftable_stack stack;
	uint64_t max;

	open_stack(w, dirfd, &stack);
	max = stack.tables[stack.nr - 1].max_index;
	reftable_stack_close(&stack);
	SYS(memfs_other(w->fs), close, dirfd);
	return max;
}

static void append(struct world *w, bool sync, uint64_t index,
    const struct reftable_record *records, size_t nr)
{
	struct reftable_record own[8];
	int dirfd = stack_txn_dir(w, 0);
	struct rh_bytes table;
	size_t i;

	assert(nr <= 8);
	memfs_advance(w->fs, 1000000000);
	memcpy(own, records, nr * sizeof(*own));
	for (i = 0; i < nr; i++)
		if (own[i].update_index == 0)
			own[i].update_index = index;
	table = rh_table(world_format(), index, index, own, nr);
	add_table(w, dirfd, &table, index, index, true, sync);
	rh_free(&table);
	SYS(memfs_other(w->fs), close, dirfd);
}

void stack_txn_git(struct world *w, bool sync,
    const struct reftable_record *records, size_t nr)
{
	append(w, sync, stack_txn_last(w) + 1, records, nr);
}

void stack_txn_git_ref(struct world *w, const char *name, char old, char new_c)
{
	stack_txn_jgit_ref(w, stack_txn_last(w) + 1, name, old, new_c);
}

void stack_txn_jgit_ref(struct world *w, uint64_t index, const char *name,
    char old, char new_c)
{
	struct reftable_record records[] = { rh_ref(name, 0, (uint8_t)new_c),
		rh_log(name, 0, (uint8_t)old, (uint8_t)new_c, "git\n") };

	records[0].ref.oid = world_oid(new_c);
	records[1].log.from = world_oid(old);
	records[1].log.to = world_oid(new_c);
	if (new_c == '0')
		records[0] = rh_deleted(name, 0);
	append(w, true, index, records, new_c == '0' ? 1 : 2);
}

void stack_txn_git_merge(struct world *w)
{
	const struct sys *sys = memfs_other(w->fs);
	struct reftable_fault fault;
	struct rh_bytes table = { 0 };
	struct reftable_stack stack;
	int dirfd = stack_txn_dir(w, 0);
	size_t i;

	open_stack(w, dirfd, &stack);
	assert(rh_merge(&stack, 0, stack.nr, &table, &fault) == 0);
	add_table(w, dirfd, &table,
	    reftable_stack_min_index(stack.tables, stack.nr),
	    reftable_stack_max_index(stack.tables, stack.nr), false, true);
	for (i = 0; i < stack.nr; i++)
		SYS(sys, unlinkat, dirfd, stack.tables[i].name);
	reftable_stack_close(&stack);
	rh_free(&table);
	SYS(sys, close, dirfd);
}

struct world *stack_txn_world(struct memfs *fs)
{
	struct reftable_record first[] = {
		rh_symref("HEAD", 1, "refs/heads/main"),
		rh_ref("refs/heads/main", 1, '1'),
		rh_ref("refs/heads/x", 1, '1'),
		rh_log("refs/heads/main", 1, 0, '1', "first\n"),
		rh_log("refs/heads/x", 1, 0, '1', "first\n"),
	};
	struct reftable_record head = rh_ref("HEAD", 1, '1');
	struct world *w = world_new(fs, true);
	struct rh_bytes table;
	int i, dirfd;

	for (i = 1; i < 5; i++) {
		first[i].ref.oid = world_oid('1');
		if (i > 2) {
			first[i] = rh_log(first[i].name, 1, 0, 0, "first\n");
			first[i].log.from = world_oid('0');
			first[i].log.to = world_oid('1');
		}
	}
	head.ref.oid = world_oid('1');
	for (i = 0; i < STACK_TXN_PLACES; i++) {
		memfs_mkdirs(fs, dirs[i]);
		dirfd = stack_txn_dir(w, i);
		table = i == 0 ? rh_table(world_format(), 1, 1, first, 5) :
				 rh_table(world_format(), 1, 1, &head, 1);
		add_table(w, dirfd, &table, 1, 1, false, true);
		rh_free(&table);
		SYS(memfs_other(fs), close, dirfd);
	}
	scripted_sync(w);
	return w;
}

/* ---- looks ---- */

char stack_txn_value(struct world *w, const char *worktree, const char *name,
    uint64_t *index)
{
	struct reftable_iterator it = { .budget = rh_budget() };
	int dirfd = stack_txn_dir(w, worktree[0] != '\0'), r;
	const struct reftable_record *rec = &it.cursor.record;
	struct reftable_fault fault;
	struct reftable_stack stack;
	char value = '!';

	r = reftable_stack_open(memfs_other(w->fs), dirfd, world_format(), NULL,
	    &stack, &fault);
	if (r == 0)
		r = reftable_stack_find(&stack, name, &it, &fault);
	if (r == 0)
		value = '0';
	if (r > 0)
		value = rec->ref.kind == REFTABLE_REF_SYMREF ?
		    '>' :
		    (char)rec->ref.oid.bytes[0];
	if (index != NULL)
		*index = r > 0 ? rec->update_index : 0;
	reftable_iterator_done(&it);
	reftable_stack_close(&stack);
	SYS(memfs_other(w->fs), close, dirfd);
	return value;
}

static char letter(const struct refd_oid *oid)
{
	return oid->bytes[0] == 0 ? '0' : (char)oid->bytes[0];
}

const char *stack_txn_log(struct world *w, const char *worktree,
    const char *name)
{
	static char text[4096];
	int dirfd = stack_txn_dir(w, worktree[0] != '\0');
	const struct reftable_record *rec;
	struct reftable_merged *merged;
	struct reftable_stack stack;
	struct reftable_fault fault;
	size_t len = 0;

	text[0] = '\0';
	open_stack(w, dirfd, &stack);
	assert(reftable_merged_open(&stack, REFTABLE_LOGS, name, false,
		   rh_budget(), &merged, &fault) == 0);
	while (reftable_merged_next(merged, &rec, &fault) > 0 &&
	    strcmp(rec->name, name) == 0)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "%c>%c@%llu ", letter(&rec->log.from), letter(&rec->log.to),
		    (unsigned long long)rec->update_index);
	reftable_merged_free(merged);
	reftable_stack_close(&stack);
	SYS(memfs_other(w->fs), close, dirfd);
	return text;
}

const char *stack_txn_litter(struct world *w)
{
	static char text[300];
	const struct sys *sys = memfs_other(w->fs);
	const char *what = world_litter(w);
	struct sys_dirent entry;
	struct sys_dir *dir;
	char *list;
	size_t len;
	int i;

	for (i = 0; i < STACK_TXN_PLACES && what == NULL; i++) {
		int dirfd = stack_txn_dir(w, i);

		assert(sys_read_file(sys, dirfd, "tables.list",
			   REFTABLE_LIST_MAX, &list, &len) == 0);
		assert(SYS(sys, dir_open, dirfd, ".", &dir) == 0);
		while (SYS(sys, dir_next, dir, &entry) > 0)
			if (strcmp(entry.name, "tables.list") != 0 &&
			    strstr(list, entry.name) == NULL) {
				snprintf(text, sizeof(text), "%s is not listed",
				    entry.name);
				what = text;
			}
		SYS(sys, dir_close, dir);
		SYS(sys, close, dirfd);
		free(list);
	}
	return what;
}
