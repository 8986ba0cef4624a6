#include "tests/lib/tables_rig.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/reftable_rig.h"

#define WORKTREE WORLD_REPO "/worktrees/wt"

static int main_dir, worktree_dir = -1;

static int open_stack(struct memfs *fs, const char *dir)
{
	int fd = SYS(memfs_other(fs), openat, AT_FDCWD, dir,
	    O_RDONLY | O_DIRECTORY, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static int make_stack(struct memfs *fs, const char *dir)
{
	memfs_mkdirs(fs, dir);
	return open_stack(fs, dir);
}

static void make_worktree(struct memfs *fs)
{
	const struct reftable_record head =
	    rh_symref("HEAD", 1, "refs/heads/side");

	worktree_dir = make_stack(fs, WORKTREE "/reftable");
	memfs_write(fs, WORKTREE "/HEAD", "ref: refs/heads/.invalid\n");
	memfs_write(fs, WORKTREE "/commondir", "../..\n");
	memfs_write(fs, WORKTREE "/gitdir", "/srv/wt/.git\n");
	tbl_use("wt");
	stk_git(1, &head, 1);
	SYS(stk.other, syncfs, worktree_dir);
	tbl_use("");
}

struct world *tbl_make(struct memfs *fs, bool worktree)
{
	const struct reftable_record first[] = {
		rh_symref("HEAD", 1, "refs/heads/main"),
		rh_ref("refs/heads/keep", 1, '1'),
		rh_log("refs/heads/keep", 1, 0, '1', "first\n"),
	};

	w = world_new(fs, false);
	memset(&stk, 0, sizeof(stk));
	stk.fs = fs;
	stk.other = memfs_other(fs);
	stk.format = world_format();
	main_dir = make_stack(fs, WORLD_REPO "/reftable");
	worktree_dir = -1;
	tbl_use("");
	stk_git(1, first, 3);
	SYS(stk.other, syncfs, main_dir);
	if (worktree)
		make_worktree(fs);
	return w;
}

void tbl_reopen(void)
{
	main_dir = open_stack(stk.fs, WORLD_REPO "/reftable");
	if (worktree_dir >= 0)
		worktree_dir = open_stack(stk.fs, WORKTREE "/reftable");
	tbl_use("");
}

void tbl_free(void)
{
	SYS(stk.other, close, main_dir);
	if (worktree_dir >= 0)
		SYS(stk.other, close, worktree_dir);
	world_free(w);
	w = NULL;
}

void tbl_setup(void)
{
	tbl_make(memfs_new(), false);
	wr_start();
}

void tbl_setup_worktree(void)
{
	tbl_make(memfs_new(), true);
	wr_start();
}

void tbl_teardown(void)
{
	ck_assert_ptr_null(world_litter(w));
	ck_assert_uint_eq(memfs_bad_fds(w->fs), 0);
	ck_assert_uint_eq(memfs_bad_syncs(w->fs), 0);
	ck_assert_int_eq(world_stop(w), 0);
	ck_assert_uint_eq(memfs_open_fds(w->fs), 0);
	tbl_free();
}

void tbl_use(const char *worktree)
{
	stk.other_dir = *worktree == '\0' ? main_dir : worktree_dir;
}

char tbl_ref(const char *name)
{
	char *full = world_full_name(name), key[512];
	const char *list = stk_list(REFTABLE_REFS), *at;
	size_t len;

	len = (size_t)snprintf(key, sizeof(key), "%s", full);
	free(full);
	if (strncmp(list, "FAULT", 5) == 0)
		return '!';
	for (at = list; (at = strstr(at, key)) != NULL; at += len) {
		if (at != list && at[-1] != ' ')
			continue;
		if (at[len] == '>')
			return '>';
		if (at[len] == '=')
			return (char)atoi(at + len + 1);
	}
	return '0';
}

int tbl_log_count(const char *name, char old, char new_c)
{
	char *full = world_full_name(name), key[512];
	const char *at = stk_list(REFTABLE_LOGS);
	const size_t len = (size_t)snprintf(key, sizeof(key), "%s@", full);
	unsigned from, to;
	int nr = 0;

	free(full);
	for (; at != NULL && *at != '\0'; at = strchr(at, ' ') + 1)
		if (strncmp(at, key, len) == 0 &&
		    sscanf(strchr(at, ':') + 1, "%u,%u", &from, &to) == 2 &&
		    from == (old == '0' ? 0 : (unsigned)old) &&
		    to == (new_c == '0' ? 0 : (unsigned)new_c))
			nr++;
	return nr;
}

void tbl_git(const char *name, char value)
{
	char *full = world_full_name(name);
	struct reftable_record rec;
	struct reftable_stack stack;

	ck_assert_int_eq(reftable_stack_open(stk.other, stk.other_dir,
			     stk.format, NULL, &stack, &stk.fault),
	    0);
	rec = value == '0' ? rh_deleted(full, 0) :
			     rh_ref(full, 0, (uint8_t)value);
	rec.update_index = stack.tables[stack.nr - 1].max_index + 1;
	reftable_stack_close(&stack);
	stk_git(rec.update_index, &rec, 1);
	free(full);
}
