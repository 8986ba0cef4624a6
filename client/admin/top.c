/*
 * refd top: shows the load, once a second. A terminal is restored at the end.
 * Without a terminal, one frame is printed.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "client/admin/frame.h"
#include "client/admin/show.h"
#include "client/commands.h"
#include "client/request/output.h"
#include "client/request/question.h"
#include "proto/lib/cli.h"
#include "proto/lib/clock.h"

#define OTHER_SCREEN "\033[?1049h\033[?25l"
#define OWN_SCREEN   "\033[?25h\033[?1049l"
#define HOME         "\033[H"
#define END_OF_LINE  "\033[K\r\n"
#define CLEAR_BELOW  "\033[J"

static volatile sig_atomic_t resized, ended;
static struct termios found;

static void on_resize(int number)
{
	(void)number;
	resized = 1;
}

static void on_end(int number)
{
	(void)number;
	ended = 1;
}

/* False: the terminal is gone. */
static bool put(const char *s, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = write(STDOUT_FILENO, s, len);
		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0) {
			s += n;
			len -= (size_t)n;
		}
	}
	return true;
}

static bool take_screen(void)
{
	struct sigaction act = { .sa_handler = on_resize };
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &found) < 0)
		return false;
	sigaction(SIGWINCH, &act, NULL);
	act.sa_handler = on_end;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGHUP, &act, NULL);
	raw = found;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	return put(OTHER_SCREEN, strlen(OTHER_SCREEN));
}

static void give_back_screen(void)
{
	put(OWN_SCREEN, strlen(OWN_SCREEN));
	tcsetattr(STDIN_FILENO, TCSANOW, &found);
}

static void screen_size(size_t *lines, size_t *columns)
{
	struct winsize size;

	*lines = 24;
	*columns = 80;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 &&
	    size.ws_col > 0) {
		*lines = size.ws_row;
		*columns = size.ws_col;
	}
}

/* A cleared screen would flicker, so FRAME is written over the previous frame
 * line by line. */
static bool draw(const struct text *frame)
{
	struct text out = { 0 };
	const char *s = frame->data, *end;
	bool ok;

	text_adds(&out, HOME);
	for (; s && *s; s = end + 1) {
		end = strchr(s, '\n');
		text_add(&out, s, (size_t)(end - s));
		/* A newline at the end would scroll the screen. */
		text_adds(&out, end[1] ? END_OF_LINE : "\033[K");
	}
	text_adds(&out, CLEAR_BELOW);
	ok = put(out.data, out.len);
	text_done(&out);
	return ok;
}

static void fill(struct refd *r, struct text *frame)
{
	struct refd_request req = { .verb = REFD_VERB_TOP };
	struct text why = { 0 };
	struct refd_answer ans;
	size_t lines, columns;
	int err;

	screen_size(&lines, &columns);
	err = refd_call(r, &req, QUESTION_MS, &ans);
	if (err < 0) {
		text_addf(&why, "refd is away: %s", refd_error(r));
		show_lines(frame, COLOUR_ERROR, why.data, 0, columns);
		text_done(&why);
		return;
	}
	if (ans.kind == REFD_ANSWER_PAIRS)
		frame_render(&ans, lines, columns, frame);
	else
		show_lines(frame, COLOUR_ERROR,
		    ans.text ? ans.text : "that is no answer", 0, columns);
	refd_answer_done(&ans);
}

/* False if q was pressed, or a signal came. Other keys are ignored. */
static bool nap(uint64_t until)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	uint64_t now;
	char keys[64];
	ssize_t n;

	while (!ended && !resized && (now = clock_now_ms()) < until) {
		if (poll(&in, 1, (int)(until - now)) <= 0)
			continue;
		n = read(STDIN_FILENO, keys, sizeof(keys));
		if (n <= 0 || memchr(keys, 'q', (size_t)n) ||
		    memchr(keys, 'Q', (size_t)n))
			return false;
	}
	resized = 0;
	return !ended;
}

static int live(const struct question *q)
{
	struct refd *r = question_connect_admin(q->socket);
	struct text frame = { .is_shown = true };
	bool goes_on;

	if (!take_screen())
		die("there is no terminal to draw on");
	do {
		text_clear(&frame);
		fill(r, &frame);
		goes_on = draw(&frame) &&
		    nap(clock_now_ms() + (uint64_t)q->interval_s * 1000);
	} while (goes_on);
	give_back_screen();
	text_done(&frame);
	refd_free(r);
	return EXIT_DONE;
}

static int run_top(const struct command *c, int argc, char **argv)
{
	struct question q = { .interval_s = 1 };
	struct text frame = { .is_shown = true };
	struct refd_answer ans;
	size_t lines, columns;

	cli_parse(c, &q, argc, &argv);
	if (!q.once && !q.json && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO))
		return live(&q);
	question_ask(q.socket, REFD_VERB_TOP, QUESTION_MS, &ans);
	screen_size(&lines, &columns);
	if (q.json) {
		output_json_pairs(ans.pairs, ans.nr_pairs);
	} else {
		frame_render(&ans, 0, columns, &frame);
		text_print(&frame);
	}
	refd_answer_done(&ans);
	return EXIT_DONE;
}

static const struct command_option top_options[] = {
	{ OPTION_FLAG("once", 0, "print one screen and end", struct question,
	    once) },
	QUESTION_JSON, COLOUR_OPTION,
	{ OPTION_NUMBER("interval", 0, "SECONDS",
	    "refresh the screen every SECONDS (1)", struct question, interval_s,
	    1, 24 * 3600) },
	QUESTION_SOCKET, { 0 }
};

const struct command top_command = {
	.name = "top",
	.summary = "show the busiest repositories and users",
	.purpose =
	    "Shows the busiest repositories and users on a screen that is "
	    "refreshed. The key q ends the command.",
	.example = "refd top --once",
	.outcome = "Prints one screen and ends.",
	.manual = "refd-top(1)",
	.options = top_options,
	.run = run_top,
};
