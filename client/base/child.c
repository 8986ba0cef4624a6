#include "client/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/lib/worker.h"

static void start(struct launched *c, const struct launch *l)
{
	int err;

	fflush(stdout);
	err = launch_start(c, l);
	if (err)
		die("cannot run %s: %s", l->argv[0], strerror(-err));
}

static void make_pipe(int ends[2])
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		die("cannot make a pipe: %s", strerror(errno));
}

static void set_nonblocking(int fd)
{
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		die("cannot set up a pipe: %s", strerror(errno));
}

/* A child that was killed at its limit. */
static int too_much(const char *name)
{
	say_error("%s took too long, or printed too much", name);
	worker_held_up();
	return 128 + SIGKILL;
}

static int run(const char *const argv[], int out, int err)
{
	struct launched c;
	int status;

	start(&c,
	    &(struct launch){ .argv = argv,
		.in = LAUNCH_NULL,
		.out = out,
		.err = err,
		.seconds = CHILD_SECONDS });
	status = launch_wait(&c);
	return status < 0 ? too_much(argv[0]) : status;
}

int child_run(const char *const argv[])
{
	return run(argv, STDOUT_FILENO, STDERR_FILENO);
}

int child_status(const char *const argv[])
{
	return run(argv, LAUNCH_NULL, LAUNCH_NULL);
}

bool child_succeeds(const char *const argv[])
{
	return child_status(argv) == 0;
}

/* ---- output ---- */

/* A pipe from the child, where END is -1 after the end of the output. */
struct stream_end {
	int end;
	struct text *to;
	size_t max;
};

static int open_stream(struct stream_end *s, struct text *to, size_t max)
{
	int ends[2];

	make_pipe(ends);
	set_nonblocking(ends[0]);
	text_adds(to, "");
	*s = (struct stream_end){ ends[0], to, max };
	return ends[1];
}

static void close_stream(struct stream_end *s)
{
	if (s->end >= 0)
		close(s->end);
	s->end = -1;
}

/* Takes all that is there now. False if there is more than allowed. */
static bool pull(struct stream_end *s)
{
	char buf[16384];
	size_t room;
	ssize_t n = -1;

	while (s->end >= 0 && (n = read(s->end, buf, sizeof(buf))) > 0) {
		room = s->max - s->to->len;
		text_add(s->to, buf, (size_t)n < room ? (size_t)n : room);
		if ((size_t)n > room)
			return false;
	}
	if (n == 0)
		close_stream(s);
	return true;
}

/* A process that the child left behind may keep the pipes open, so the end of
 * the child ends the output. */
static int follow(struct launched *c, struct stream_end *out,
    struct stream_end *err, int cancel)
{
	struct pollfd fds[4] = { { 0 }, { .events = POLLIN },
		{ .events = POLLIN }, { .fd = cancel, .events = POLLIN } };
	bool fits = true, is_over = false;

	while (!is_over) {
		fds[1].fd = out->end;
		fds[2].fd = err->end;
		is_over = launch_poll(c, fds, 4);
		pull(err);
		fits = pull(out);
		if (!is_over && (!fits || fds[3].revents)) {
			launch_kill(c);
			return fits ? -ECANCELED : -EFBIG;
		}
	}
	return fits ? launch_status(c) : -EFBIG;
}

int child_read(struct launch *l, const struct child_output *o)
{
	struct stream_end out = { .end = -1 }, err = { .end = -1 };
	struct launched c;
	int status;

	fflush(stdout);
	l->out = o->out ? open_stream(&out, o->out, o->out_max) : LAUNCH_NULL;
	if (o->err)
		l->err = open_stream(&err, o->err, o->err_max);
	status = launch_start(&c, l);
	if (o->out)
		close(l->out);
	if (o->err)
		close(l->err);
	if (!status)
		status = follow(&c, &out, &err, o->cancel);
	close_stream(&out);
	close_stream(&err);
	return status;
}

/* Root may act as the owner of a repository for a while, and has the way back
 * as the saved user. The child has no way back, and not root's terminal. */
static bool acts_as_another(void)
{
	uid_t real, effective, saved;

	return getresuid(&real, &effective, &saved) == 0 && saved != effective;
}

static int capture(const char *const argv[], struct text *out, int err,
    int seconds, size_t max)
{
	struct launch l = { .argv = argv,
		.in = LAUNCH_NULL,
		.err = err,
		.seconds = seconds };
	struct text said = { 0 };
	struct child_output o = { .out = out,
		.err = acts_as_another() ? &said : NULL,
		.out_max = max,
		.err_max = 2048,
		.cancel = -1 };
	int status = child_read(&l, &o);

	if (said.len)
		say_error("%s: %s", argv[0], said.data);
	text_done(&said);
	if (status == -ETIME || status == -EFBIG)
		return too_much(argv[0]);
	if (status < 0)
		die("cannot run %s: %s", argv[0], strerror(-status));
	return status;
}

int child_capture_within(const char *const argv[], struct text *out,
    int seconds, size_t max)
{
	return capture(argv, out, STDERR_FILENO, seconds, max);
}

int child_capture(const char *const argv[], struct text *out)
{
	return capture(argv, out, STDERR_FILENO, CHILD_SECONDS, CHILD_BYTES);
}

int child_capture_quiet(const char *const argv[], struct text *out)
{
	return capture(argv, out, LAUNCH_NULL, CHILD_SECONDS, CHILD_BYTES);
}

/* ---- hooks ---- */

/* Reports a signal that killed the hook, in git's words. */
static int wait_and_tell(struct launched *c, const char *name)
{
	int status = launch_wait(c), signal = status - 128;

	if (signal > 0 && signal != SIGINT && signal != SIGQUIT &&
	    signal != SIGPIPE && signal < NSIG)
		say_error("%s died of signal %d", name, signal);
	return status;
}

int child_hook(const char *const argv[], const char *dir, char *const env[],
    const struct text *in)
{
	struct launch l = { .argv = argv,
		.kind = LAUNCH_TERMINAL,
		.in = launch_file(in->data, in->len),
		.out = STDERR_FILENO,
		.err = STDERR_FILENO,
		.dir = dir,
		.env = env };
	struct launched c;
	int err = l.in;

	fflush(stdout);
	if (l.in >= 0) {
		err = launch_start(&c, &l);
		close(l.in);
	}
	if (err < 0) {
		say_error("cannot run %s: %s", argv[0], strerror(-err));
		return err;
	}
	return wait_and_tell(&c, argv[0]);
}

bool partner_start(struct partner *d, const char *path)
{
	const char *argv[] = { path, NULL };
	int to[2], from[2], errs[2], err;

	make_pipe(to);
	make_pipe(from);
	make_pipe(errs);
	err = launch_start(&d->child,
	    &(struct launch){ .argv = argv,
		.kind = LAUNCH_TERMINAL,
		.has_group = true,
		.in = to[0],
		.out = from[1],
		.err = errs[1] });
	close(to[0]);
	close(from[1]);
	close(errs[1]);
	d->to = to[1];
	d->from = from[0];
	d->err = errs[0];
	set_nonblocking(d->to);
	set_nonblocking(d->from);
	set_nonblocking(d->err);
	if (!err)
		return true;
	close(d->to);
	close(d->from);
	close(d->err);
	say_error("cannot run %s: %s", path, strerror(-err));
	return false;
}

/* ---- questions ---- */

void coprocess_start(struct coprocess *co, const char *const argv[])
{
	int to[2], from[2];

	make_pipe(to);
	make_pipe(from);
	start(&co->child,
	    &(struct launch){ .argv = argv,
		.in = to[0],
		.out = from[1],
		.err = STDERR_FILENO,
		.seconds = INT_MAX });
	close(to[0]);
	close(from[1]);
	co->to = fdopen(to[1], "w");
	co->from = fdopen(from[0], "r");
	if (!co->to || !co->from)
		die("out of memory");
}

/* The child prints a line for each question, so nothing is in the buffer of
 * co->from before an answer. */
bool coprocess_ask(struct coprocess *co, const char *question,
    struct text *answer)
{
	struct pollfd in = { .fd = fileno(co->from), .events = POLLIN };
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	print_bytes(co->to, question, strlen(question));
	print_bytes(co->to, "\n", 1);
	if (fflush(co->to) || poll(&in, 1, CHILD_SECONDS * 1000) <= 0)
		return false;
	len = getline(&line, &size, co->from);
	if (len > 0 && line[len - 1] == '\n')
		text_add(answer, line, (size_t)len - 1);
	free(line);
	return len > 0;
}

void coprocess_stop(struct coprocess *co)
{
	if (!co->to)
		return;
	fclose(co->to);
	fclose(co->from);
	launch_wait(&co->child);
	memset(co, 0, sizeof(*co));
}
