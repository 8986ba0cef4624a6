#include "proto/lib/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/lib/array.h"
#include "proto/lib/name_key.h"
#include "proto/lib/progress.h"

#define CONFIG_BYTES (1 << 20)

static bool is_like_git;
static atomic_bool has_threads;

void cli_start(const struct command *c)
{
	is_like_git = c->is_like_git;
}

void cli_begin_threads(void)
{
	has_threads = true;
}

static const char *prefix_of(enum cli_kind kind)
{
	static const char *const of_git[] = { [CLI_NOTE] = "refd: ",
		[CLI_WARNING] = "warning: ",
		[CLI_ERROR] = "error: ",
		[CLI_FATAL] = "fatal: " };

	if (is_like_git)
		return of_git[kind];
	return kind == CLI_WARNING ? "refd: warning: " : "refd: ";
}

static void PRINTF_LIKE(2, 0)
    speak(enum cli_kind kind, const char *fmt, va_list ap)
{
	char line[4096];

	vsnprintf(line, sizeof(line), fmt, ap);
	fflush(stdout);
	/* A text that is also printed with git's prefixes may name refd itself
	 * by "refd: ". refd's own prefix is then not printed twice. */
	print_lines(stderr, "%s%s\n", prefix_of(kind),
	    !is_like_git && has_prefix(line, "refd: ") ? line + 6 : line);
}

void cli_say(enum cli_kind kind, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	speak(kind, fmt, ap);
	va_end(ap);
}

void cli_die(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	speak(code == EXIT_FATAL ? CLI_FATAL : CLI_ERROR, fmt, ap);
	va_end(ap);
	if (has_threads)
		_exit(code);
	exit(code);
}

/* Does anybody read standard output? errno does not tell, because stdio drops
 * the bytes of a failed write(2), and a later fflush(3) succeeds. */
static bool has_reader(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return poll(&out, 1, 0) <= 0 || !(out.revents & (POLLERR | POLLHUP));
}

/* As git's check_pipe(). */
static void __attribute__((noreturn)) die_of_sigpipe(void)
{
	signal(SIGPIPE, SIG_DFL);
	raise(SIGPIPE);
	exit(128 + SIGPIPE);
}

void cli_flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return;
	if (!has_reader())
		die_of_sigpipe();
	die("cannot write to standard output: %s", strerror(errno));
}

void cli_usage_exit(const struct command *c)
{
	char usage[COMMAND_HELP_MAX];

	command_usage(c, usage, sizeof(usage));
	print_lines(stderr, "%s", usage);
	exit(EXIT_USAGE);
}

int cli_parse(const struct command *c, void *values, int argc, char ***argv)
{
	char why[COMMAND_WHY_MAX], help[COMMAND_HELP_MAX];

	switch (command_parse(c, values, &argc, argv, why)) {
	case COMMAND_OK:
		break;
	case COMMAND_HELPS:
		command_help(c, NULL, help, sizeof(help));
		print_lines(stdout, "%s", help);
		cli_flush();
		exit(EXIT_DONE);
	case COMMAND_WRONG:
		cli_usage(c, "%s", why);
	case COMMAND_BAD_VALUE:
		say_error("%s", why);
		exit(EXIT_USAGE);
	}
	return argc;
}

void *xrealloc(void *old, size_t size)
{
	void *grown = realloc(old, size ? size : 1);

	if (!grown)
		die("out of memory");
	return grown;
}

void *xcalloc(size_t nr, size_t size)
{
	void *zeroed = calloc(nr ? nr : 1, size ? size : 1);

	if (!zeroed)
		die("out of memory");
	return zeroed;
}

void *xroom(void *items, size_t nr, size_t *size, size_t each)
{
	void *room = array_room(items, nr, size, each);

	if (!room)
		die("out of memory");
	return room;
}

char *xstrdup(const char *s)
{
	size_t size = strlen(s) + 1;

	return memcpy(xrealloc(NULL, size), s, size);
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		die("out of memory");
	va_end(ap);
	return s;
}

static void make_room(struct text *t, size_t more)
{
	if (t->size - t->len > more)
		return;
	t->size = 2 * t->size + more + 64;
	t->data = xrealloc(t->data, t->size);
}

static void add_bytes(void *to, const char *data, size_t len)
{
	struct text *t = to;

	make_room(t, len);
	if (len)
		memcpy(t->data + t->len, data, len);
	t->len += len;
	t->data[t->len] = '\0';
}

void text_add(struct text *t, const void *data, size_t len)
{
	if (t->is_shown && len)
		print_through(PRINT_AS_LINES, data, len, add_bytes, t);
	else
		add_bytes(t, data, len);
}

void text_addc(struct text *t, char c)
{
	text_add(t, &c, 1);
}

void text_adds(struct text *t, const char *s)
{
	text_add(t, s, strlen(s));
}

void text_addf(struct text *t, const char *fmt, ...)
{
	char some[128], *all = some;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(some, sizeof(some), fmt, ap);
	va_end(ap);
	if (len < 0)
		die("cannot format a message");
	if ((size_t)len >= sizeof(some)) {
		all = xrealloc(NULL, (size_t)len + 1);
		va_start(ap, fmt);
		vsnprintf(all, (size_t)len + 1, fmt, ap);
		va_end(ap);
	}
	text_add(t, all, (size_t)len);
	if (all != some)
		free(all);
}

void text_add_visible(struct text *t, const char *s)
{
	print_through(PRINT_AS_LINE, s, strlen(s), add_bytes, t);
}

/* The sequences of refd itself reach the terminal. */
void text_add_colour(struct text *t, enum colour colour, const char *s)
{
	const char *begin = colour_begin(colour), *end = colour_end(colour);

	add_bytes(t, begin, strlen(begin));
	text_add_visible(t, s);
	add_bytes(t, end, strlen(end));
}

void text_print(struct text *t)
{
	if (t->is_shown)
		print_bytes(stdout, t->data, t->len);
	else
		print_text(stdout, PRINT_AS_LINES, t->data, t->len);
	text_done(t);
}

void text_clear(struct text *t)
{
	t->len = 0;
	if (t->data)
		t->data[0] = '\0';
}

void text_done(struct text *t)
{
	free(t->data);
	memset(t, 0, sizeof(*t));
}

int text_read(struct text *t, int fd, size_t max)
{
	ssize_t n;

	for (;;) {
		make_room(t, 4096);
		n = read(fd, t->data + t->len, t->size - t->len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		t->len += (size_t)n;
		t->data[t->len] = '\0';
		if (t->len > max)
			return -EFBIG;
		if (n == 0)
			return 0;
	}
}

static int read_limited(struct text *t, const char *path, int flags, size_t max)
{
	int fd =
	    open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
	struct stat st;
	int err;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	else if ((uintmax_t)st.st_size > max)
		err = -EFBIG;
	else
		err = text_read(t, fd, max);
	close(fd);
	return err;
}

int text_read_file(struct text *t, const char *path, size_t max)
{
	return read_limited(t, path, 0, max);
}

int text_read_regular(struct text *t, const char *path, size_t max)
{
	return read_limited(t, path, geteuid() == 0 ? O_NOFOLLOW : 0, max);
}

int text_read_config(const char *path, config_entry_fn *fn, void *arg,
    struct text *why)
{
	struct text file = { 0 };
	const char *wrong = NULL;
	unsigned line = 0;
	int err = text_read_regular(&file, path, CONFIG_BYTES);

	if (err < 0)
		text_addf(why, "cannot read '%s': %s", path, strerror(-err));
	else
		err = config_file_parse(file.data ? file.data : "", file.len,
		    fn, arg, &line, &wrong);
	if (wrong)
		text_addf(why, "%s:%u: %s", path, line, wrong);
	text_done(&file);
	return err;
}

bool cli_number(const char *s, uint64_t max, uint64_t *number)
{
	uint64_t n = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		unsigned digit = (unsigned char)*s - (unsigned)'0';

		if (digit > 9 || n > (max - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	if (n > max)
		return false;
	*number = n;
	return true;
}

bool has_prefix(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

static int compare_keys(const void *a, const void *b)
{
	return name_key_compare(a, b);
}

const char *cli_duplicate(const char **names, size_t nr)
{
	struct name_key *keys = xcalloc(nr, sizeof(*keys));
	const char *found = NULL;
	size_t i, common = SIZE_MAX;

	for (i = 1; i < nr; i++)
		common = name_key_common(names[0], names[i], common);
	for (i = 0; i < nr; i++)
		name_key_set(&keys[i], names[i], nr > 1 ? common : 0);
	qsort(keys, nr, sizeof(*keys), compare_keys);
	for (i = 1; i < nr && !found; i++)
		if (!compare_keys(&keys[i - 1], &keys[i]))
			found = keys[i].name;
	free(keys);
	return found;
}
