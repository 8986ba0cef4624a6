/*
 * Proves that the messages of a command have refd's prefix, or git's if the
 * command is like git, and that control characters do not reach a terminal.
 */
#include <fcntl.h>
#include <unistd.h>

#include "proto/lib/cli.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static int saved_stderr;

static void setup(void)
{
	int fd;

	tmp_setup();
	fd = openat(tmp_fd, "said", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	saved_stderr = dup(STDERR_FILENO);
	ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
	close(fd);
}

static void teardown(void)
{
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	tmp_teardown();
}

static void say_all(bool is_like_git)
{
	cli_start(&(const struct command){ .is_like_git = is_like_git });
	say("a %s", "note");
	say_warning("a warning");
	say_error("an error");
	say_fatal("the end");
	say_error("refd: denied");
	say("/srv/\033[31m\xc2\x9bx\x7f\x9b\xe2\x80\xae\n\tx");
}

static void expect(const char *wanted)
{
	struct text said = { 0 };

	ck_assert_int_eq(lseek(STDERR_FILENO, 0, SEEK_SET), 0);
	ck_assert_int_eq(text_read(&said, STDERR_FILENO, SIZE_MAX), 0);
	ck_assert_str_eq(said.data, wanted);
	text_done(&said);
}

CASE(.setup = setup, .teardown = teardown);

TEST(prefix_of_refd)
{
	say_all(false);
	expect("refd: a note\n"
	       "refd: warning: a warning\n"
	       "refd: an error\n"
	       "refd: the end\n"
	       "refd: denied\n"
	       "refd: /srv/?[31m?x???\n\tx\n");
}

TEST(prefixes_of_git)
{
	say_all(true);
	expect("refd: a note\n"
	       "warning: a warning\n"
	       "error: an error\n"
	       "fatal: the end\n"
	       "error: refd: denied\n"
	       "refd: /srv/?[31m?x???\n\tx\n");
}
