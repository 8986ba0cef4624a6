#include "tests/lib/edit_rig.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/tmp.h"

const enum evidence er_all[ER_ALL] = { EVIDENCE_LIVE, EVIDENCE_CRASHED,
	EVIDENCE_FAILED_SYNC, EVIDENCE_POWER_LOSS, EVIDENCE_REPAIR };

static int repo_fd, stage_fd;
static struct token token;
static struct refd_oid one;
struct refd_oid er_two;
struct record_member er_member;
struct record er_plan;

/* The kernel's calls, some of which fail. */
static struct sys faulty;
int er_fails_with, er_places_with;

static int faulty_unlinkat(const struct sys *sys, int dirfd, const char *path)
{
	return er_fails_with < 0 ? er_fails_with :
				   sys_kernel.unlinkat(sys, dirfd, path);
}

typedef int two_names_fn(const struct sys *sys, int from_fd, const char *from,
    int to_fd, const char *to);

static int two_names(two_names_fn *call, int from_fd, const char *from,
    int to_fd, const char *to)
{
	int r = 0;

	if (er_places_with == 0 || er_places_with == -EIO)
		r = call(&sys_kernel, from_fd, from, to_fd, to);
	return r < 0 ? r : er_places_with;
}

static int faulty_renameat(const struct sys *sys, int from_fd, const char *from,
    int to_fd, const char *to)
{
	(void)sys;
	return two_names(sys_kernel.renameat, from_fd, from, to_fd, to);
}

static int faulty_linkat(const struct sys *sys, int from_fd, const char *from,
    int to_fd, const char *to)
{
	(void)sys;
	return two_names(sys_kernel.linkat, from_fd, from, to_fd, to);
}

static int faulty_write_all(const struct sys *sys, int fd, const void *buf,
    size_t len)
{
	return er_fails_with < 0 ? er_fails_with :
				   sys_kernel.write_all(sys, fd, buf, len);
}

void er_setup(void)
{
	tmp_setup();
	tmp_run("git init -q --bare r");
	tmp_mkdir("stage");
	repo_fd = openat(tmp_fd, "r", O_RDONLY | O_DIRECTORY);
	stage_fd = openat(tmp_fd, "stage", O_RDONLY | O_DIRECTORY);
	faulty = sys_kernel;
	faulty.unlinkat = faulty_unlinkat;
	faulty.write_all = faulty_write_all;
	faulty.renameat = faulty_renameat;
	faulty.linkat = faulty_linkat;
	er_fails_with = er_places_with = 0;
	ck_assert_int_eq(token_init(&token, &faulty, stage_fd, 0xab), 0);
	ck_assert_int_eq(refd_oid_parse(ER_ONE, REFD_FORMAT_SHA1, &one), 0);
	ck_assert_int_eq(refd_oid_parse(ER_TWO, REFD_FORMAT_SHA1, &er_two), 0);
	er_member = (struct record_member){ .name = ER_REF,
		.worktree = "",
		.action = RECORD_WRITE,
		.had_old = true,
		.old_oid = one,
		.new_oid = er_two,
		.log = true };
	er_plan = (struct record){ .committer = ER_WHO, .message = "m" };
}

void er_teardown(void)
{
	close(repo_fd);
	close(stage_fd);
	tmp_teardown();
}

struct edit er_edit(enum evidence evidence)
{
	return (struct edit){ .sys = &faulty,
		.token = evidence == EVIDENCE_REPAIR ? NULL : &token,
		.name = ER_REF,
		.dirfd = repo_fd,
		.value_nr = 3,
		.evidence = evidence };
}

struct edit er_locked(enum evidence evidence)
{
	struct edit e = er_edit(evidence);

	ck_assert_int_eq(edit_lock(&e, 0755), 0);
	ck_assert_int_eq(e.progress, PROGRESS_LOCKED);
	return e;
}

void er_stage(struct edit *e)
{
	int fd = edit_stage(e, &er_two, NULL, 0640);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

struct stat er_stat(const char *path)
{
	struct stat st;

	ck_assert_int_eq(fstatat(tmp_fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

bool er_is_same_file(const char *path, const char *other)
{
	return er_stat(path).st_ino == er_stat(other).st_ino;
}

void er_check_text(const char *path, const char *want)
{
	char *text = tmp_get(path);

	ck_assert_msg(text != NULL, "no %s", path);
	ck_assert_str_eq(text, want);
	free(text);
}
