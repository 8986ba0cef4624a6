/*
 * Proves that refd accepts exactly the values of HEAD that git accepts. A HEAD
 * that the machine cannot read does not count as missing. The repositories are
 * made by git.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/repos/repo.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static char *why;

static void teardown(void)
{
	free(why);
	tmp_teardown();
}

static enum refd_status look_at(const char *name)
{
	int fd = openat(tmp_fd, name, O_RDONLY | O_DIRECTORY);
	enum refd_status status;

	free(why);
	why = NULL;
	status = repo_check_git_dir(&sys_kernel, fd, name, &why);
	close(fd);
	return status;
}

CASE(.setup = tmp_setup, .teardown = teardown, .seconds = 60);

TEST(a_head_is_as_git_has_it)
{
	static const struct {
		const char *text;
		bool ok;
	} heads[] = {
		{ "ref: refs/heads/x\n", true },
		{ "ref:refs/heads/x", true },
		{ "ref:\t refs/\n", true },
		{ "0123456789012345678901234567890123456789\n", true },
		{ "ref: heads/x\n", false },
		{ "", false },
		{ "012345\n", false },
	};
	size_t i;

	tmp_run("git init -q --bare r");
	for (i = 0; i < COUNT(heads); i++) {
		tmp_put("r/HEAD", heads[i].text);
		ck_assert_msg((look_at("r") == REFD_OK) == heads[i].ok, "%s",
		    heads[i].text);
		ck_assert_msg((tmp_status("git --git-dir=r rev-parse "
					  "--git-dir") == 0) == heads[i].ok,
		    "%s", heads[i].text);
	}
	tmp_run("rm r/HEAD && ln -s refs/heads/x r/HEAD");
	ck_assert_int_eq(look_at("r"), REFD_OK);
	tmp_run("rm r/HEAD && ln -s ../elsewhere r/HEAD");
	ck_assert_int_eq(look_at("r"), REFD_NOREPO);
}

static int openat_without_room(const struct sys *sys, int dirfd,
    const char *path, int flags, mode_t mode)
{
	(void)sys;
	(void)dirfd;
	(void)path;
	(void)flags;
	(void)mode;
	return -EMFILE;
}

TEST(a_head_that_cannot_be_read_is_not_missing)
{
	struct sys sys = sys_kernel;
	char words[128];
	int fd;

	tmp_run("git init -q --bare r");
	fd = openat(tmp_fd, "r", O_RDONLY | O_DIRECTORY);
	sys.openat = openat_without_room;
	ck_assert_int_eq(repo_check_git_dir(&sys, fd, "r", &why), REFD_BUSY);
	snprintf(words, sizeof(words),
	    "can't look at HEAD and objects/ of 'r': %s", strerror(EMFILE));
	ck_assert_str_eq(why, words);
	close(fd);
}
