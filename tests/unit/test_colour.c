/*
 * Proves when output has colour. --color decides; without --color, a terminal
 * has colour unless TERM or NO_COLOR object. Text in colour keeps no control
 * character of its own.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "proto/lib/cli.h"
#include "proto/lib/colour.h"
#include "tests/lib/suite.h"

static int saved;

/* Standard output becomes a terminal. */
static void open_terminal(void)
{
	int fd = posix_openpt(O_RDWR | O_NOCTTY);

	ck_assert_int_ge(fd, 0);
	saved = dup(STDOUT_FILENO);
	ck_assert_int_ge(saved, 0);
	ck_assert_int_eq(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
	close(fd);
}

static void close_terminal(void)
{
	dup2(saved, STDOUT_FILENO);
	close(saved);
}

TEST(test_auto)
{
	static const struct {
		const char *term, *no_color;
		bool wanted;
	} cases[] = { { "xterm", NULL, true }, { "xterm", "", true },
		{ "xterm", "1", false }, { "xterm", "0", false },
		{ "dumb", NULL, false }, { NULL, NULL, false } };
	bool on[6], piped;
	size_t i;

	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	open_terminal();
	for (i = 0; i < 6; i++) {
		unsetenv("TERM");
		if (cases[i].term)
			setenv("TERM", cases[i].term, 1);
		unsetenv("NO_COLOR");
		if (cases[i].no_color)
			setenv("NO_COLOR", cases[i].no_color, 1);
		on[i] = colour_is_on();
	}
	close_terminal();
	for (i = 0; i < 6; i++)
		ck_assert_msg(on[i] == cases[i].wanted, "case %zu", i);
	setenv("TERM", "xterm", 1);
	saved = dup(STDOUT_FILENO);
	dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
	piped = colour_is_on();
	close_terminal();
	ck_assert(!piped);
}

TEST(test_option)
{
	struct text t = { 0 };

	setenv("TERM", "dumb", 1);
	setenv("NO_COLOR", "1", 1);
	ck_assert_str_eq(colour_take(NULL, "yes"), "always, never or auto");
	ck_assert_ptr_null(colour_take(NULL, "always"));
	ck_assert(colour_is_on());
	text_add_colour(&t, COLOUR_OK, "a\033[31mb");
	text_add_colour(&t, COLOUR_PLAIN, "c");
	ck_assert_str_eq(t.data, "\033[32ma?[31mb\033[mc");
	text_clear(&t);
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	ck_assert_ptr_null(colour_take(NULL, "never"));
	open_terminal();
	text_add_colour(&t, COLOUR_ERROR, "a");
	ck_assert_ptr_null(colour_take(NULL, "auto"));
	text_add_colour(&t, COLOUR_ERROR, "a");
	close_terminal();
	ck_assert_str_eq(t.data, "a\033[1;31ma\033[m");
	text_done(&t);
}
