#include "client/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct launch {
	const char *const *argv;
	int in, out, err; /* -1: /dev/null for IN, inherited for the others */
	const char *dir;  /* NULL: the current directory */
	char *const *env; /* NULL: the environment of this process */
	bool has_group;   /* a process group of its own */
	bool has_session; /* a session of its own, without a terminal */
	bool is_hook;     /* may be a script without "#!" */
};

/* posix_spawn(3) takes arguments that are not const. FIRST, unless NULL, comes
 * in front. */
static char **copy_arguments(const char *const argv[], const char *first)
{
	size_t n = 0, at = 0;
	char **args;

	while (argv[n])
		n++;
	args = xcalloc(n + 2, sizeof(*args));
	if (first)
		args[at++] = (char *)first;
	memcpy(args + at, argv, n * sizeof(*args));
	return args;
}

/* This process ignores SIGPIPE. The child gets the default action again. */
static void init_attributes(posix_spawnattr_t *attr, const struct launch *l)
{
	short flags = POSIX_SPAWN_SETSIGDEF;
	sigset_t set;

	if (l->has_group)
		flags |= POSIX_SPAWN_SETPGROUP;
	if (l->has_session)
		flags |= POSIX_SPAWN_SETSID;
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	if (posix_spawnattr_init(attr) ||
	    posix_spawnattr_setsigdefault(attr, &set) ||
	    posix_spawnattr_setflags(attr, flags))
		die("out of memory");
}

/* Root may act as the owner of a repository for a while, and has the way back
 * as the saved user. The child has no way back. */
static bool acts_as_another(void)
{
	uid_t real, effective, saved;

	return getresuid(&real, &effective, &saved) == 0 && saved != effective;
}

/* git does not start in a directory that is closed to its user. Root, acting as
 * the owner, may stand in such a directory. Every other child stays in the
 * directory of this process: a hook depends on the directory. */
static const char *open_directory(void)
{
	char *here;
	bool may;

	if (!acts_as_another())
		return NULL;
	here = getcwd(NULL, 0);
	may = here && faccessat(AT_FDCWD, here, X_OK, AT_EACCESS) == 0;
	free(here);
	return may ? NULL : "/";
}

static int init_actions(posix_spawn_file_actions_t *fa, const struct launch *l)
{
	const char *dir = l->dir ? l->dir : open_directory();
	int err;

	if (l->in < 0)
		err = posix_spawn_file_actions_addopen(fa, 0, "/dev/null",
		    O_RDONLY, 0);
	else
		err = posix_spawn_file_actions_adddup2(fa, l->in, 0);
	if (!err && l->out >= 0)
		err = posix_spawn_file_actions_adddup2(fa, l->out, 1);
	if (!err && l->err >= 0)
		err = posix_spawn_file_actions_adddup2(fa, l->err, 2);
	if (!err && dir)
		err = posix_spawn_file_actions_addchdir_np(fa, dir);
	return err;
}

/* 0 or an errno. */
static int launch(pid_t *pid, const struct launch *l)
{
	char *const *env = l->env ? l->env : environ;
	char **args = copy_arguments(l->argv, NULL);
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	int err;

	init_attributes(&attr, l);
	if (posix_spawn_file_actions_init(&fa))
		die("out of memory");
	err = init_actions(&fa, l);
	if (!err)
		err = posix_spawnp(pid, args[0], &fa, &attr, args, env);
	if (err == ENOEXEC && l->is_hook) {
		free(args);
		args = copy_arguments(l->argv, "/bin/sh");
		err = posix_spawn(pid, args[0], &fa, &attr, args, env);
	}
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&attr);
	free(args);
	return err;
}

static pid_t start_as(const struct launch *l)
{
	pid_t pid;
	int err = launch(&pid, l);

	if (err)
		die("cannot run %s: %s", l->argv[0], strerror(err));
	return pid;
}

/* As struct launch has IN, OUT and ERR_FD. */
static pid_t start(const char *const argv[], int in, int out, int err_fd)
{
	struct launch l = { .argv = argv, .in = in, .out = out, .err = err_fd };

	return start_as(&l);
}

int child_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("cannot wait for a child: %s", strerror(errno));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

/* Reports a signal that killed the child, in git's words. */
static int wait_and_tell(pid_t pid, const char *name)
{
	int status = child_wait(pid), signal = status - 128;

	if (signal > 0 && signal != SIGINT && signal != SIGQUIT &&
	    signal != SIGPIPE && signal < NSIG)
		say_error("%s died of signal %d", name, signal);
	return status;
}

static void make_pipe(int ends[2])
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		die("cannot make a pipe: %s", strerror(errno));
}

int child_run(const char *const argv[])
{
	fflush(stdout);
	return child_wait(start(argv, -1, -1, -1));
}

int child_feed(const char *const argv[], pid_t *pid, int *to)
{
	struct launch l = { .argv = argv, .out = -1, .err = -1 };
	int ends[2], err;

	fflush(stdout);
	make_pipe(ends);
	l.in = ends[0];
	err = launch(pid, &l);
	close(ends[0]);
	if (err)
		close(ends[1]);
	else
		*to = ends[1];
	return err;
}

static void set_nonblocking(int fd)
{
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		die("cannot set up a pipe: %s", strerror(errno));
}

static int open_null(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null < 0)
		die("cannot open /dev/null: %s", strerror(errno));
	return null;
}

int child_status(const char *const argv[])
{
	int null = open_null(), status;

	status = child_wait(start(argv, -1, null, null));
	close(null);
	return status;
}

bool child_succeeds(const char *const argv[])
{
	return child_status(argv) == 0;
}

static int capture(const char *const argv[], struct text *out, int err_fd)
{
	int ends[2], err;
	pid_t pid;

	make_pipe(ends);
	pid = start(argv, -1, ends[1], err_fd);
	close(ends[1]);
	err = text_read(out, ends[0], SIZE_MAX);
	close(ends[0]);
	if (err < 0)
		die("cannot read from %s: %s", argv[0], strerror(-err));
	return child_wait(pid);
}

int child_capture(const char *const argv[], struct text *out)
{
	return capture(argv, out, -1);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

/* ---- a child of another user ---- */

/* The owner of a repository can trace a child that root starts as the owner. So
 * such a child must not have root's terminal, which would take the owner's
 * input for root's. */

/* The end of a traced child is not visible until the tracer has seen the end.
 */
#define END_MS 5000

/* Does not reap the child. */
static bool ends_within(pid_t pid, int ms)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int64_t end = now_ms() + ms;
	siginfo_t info = { 0 };

	while (
	    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    !info.si_pid && now_ms() < end)
		nanosleep(&pause, NULL);
	return info.si_pid == pid;
}

/* The messages in the pipe FD, which the child may still have open. */
static void relay(const char *name, int fd)
{
	char said[2048];
	ssize_t n;

	set_nonblocking(fd);
	n = read(fd, said, sizeof(said) - 1);
	if (n > 0)
		say_error("%s: %.*s", name, (int)n - (said[n - 1] == '\n'),
		    said);
	close(fd);
}

/* Up to the end of the output. */
static bool read_within(int fd, struct text *out, int seconds, size_t max)
{
	int64_t end = now_ms() + seconds * INT64_C(1000), left;
	struct pollfd in = { .fd = fd, .events = POLLIN };
	char buf[16384];
	ssize_t n;

	while ((left = end - now_ms()) > 0) {
		if (poll(&in, 1, (int)left) <= 0)
			continue;
		n = read(fd, buf, sizeof(buf));
		if (n <= 0)
			return n == 0;
		if (out->len + (size_t)n > max)
			return false;
		text_add(out, buf, (size_t)n);
	}
	return false;
}

static int capture_within(const struct launch *l, int out_end, struct text *out,
    int seconds, size_t max)
{
	pid_t pid = start_as(l);
	bool is_done;

	close(l->out);
	is_done = read_within(out_end, out, seconds, max) &&
	    (!l->has_session || ends_within(pid, END_MS));
	if (is_done)
		return child_wait(pid);
	kill(pid, SIGKILL);
	if (!l->has_session || ends_within(pid, END_MS))
		child_wait(pid);
	return 128 + SIGKILL;
}

int child_capture_within(const char *const argv[], struct text *out,
    int seconds, size_t max)
{
	struct launch l = { .argv = argv, .in = -1, .err = -1 };
	int ends[2], errs[2], status;

	l.has_session = acts_as_another();
	make_pipe(ends);
	l.out = ends[1];
	if (l.has_session) {
		make_pipe(errs);
		l.err = errs[1];
	}
	status = capture_within(&l, ends[0], out, seconds, max);
	close(ends[0]);
	if (l.has_session) {
		close(errs[1]);
		relay(argv[0], errs[0]);
	}
	if (status == 128 + SIGKILL)
		say_error("%s took too long, or printed too much", argv[0]);
	return status;
}

int child_capture_quiet(const char *const argv[], struct text *out)
{
	int null = open_null(), status = capture(argv, out, null);

	close(null);
	return status;
}

int child_hook(const char *const argv[], const char *dir, char *const env[],
    const struct text *in)
{
	struct launch l = { .argv = argv,
		.out = 2,
		.err = -1,
		.dir = dir,
		.env = env,
		.is_hook = true };
	int ends[2], err;
	size_t at = 0;
	ssize_t n;
	pid_t pid;

	fflush(stdout);
	make_pipe(ends);
	l.in = ends[0];
	err = launch(&pid, &l);
	close(ends[0]);
	if (err) {
		close(ends[1]);
		say_error("cannot run %s: %s", argv[0], strerror(err));
		return -err;
	}
	while (at < in->len) {
		n = write(ends[1], in->data + at, in->len - at);
		if (n > 0)
			at += (size_t)n;
		else if (errno != EINTR)
			break;
	}
	close(ends[1]);
	return wait_and_tell(pid, argv[0]);
}

bool partner_start(struct partner *d, const char *path)
{
	const char *argv[] = { path, NULL };
	struct launch l = { .argv = argv, .has_group = true, .is_hook = true };
	int to[2], from[2], errs[2], err;

	make_pipe(to);
	make_pipe(from);
	make_pipe(errs);
	l.in = to[0];
	l.out = from[1];
	l.err = errs[1];
	err = launch(&d->pid, &l);
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
	say_error("cannot run %s: %s", path, strerror(err));
	return false;
}

void coprocess_start(struct coprocess *co, const char *const argv[])
{
	int to[2], from[2];

	make_pipe(to);
	make_pipe(from);
	co->pid = start(argv, to[0], from[1], -1);
	close(to[0]);
	close(from[1]);
	co->to = fdopen(to[1], "w");
	co->from = fdopen(from[0], "r");
	if (!co->to || !co->from)
		die("out of memory");
}

bool coprocess_ask(struct coprocess *co, const char *question,
    struct text *answer)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	fprintf(co->to, "%s\n", question);
	if (fflush(co->to))
		return false;
	len = getline(&line, &size, co->from);
	if (len > 0 && line[len - 1] == '\n')
		text_add(answer, line, (size_t)len - 1);
	free(line);
	return len > 0;
}

void coprocess_stop(struct coprocess *co)
{
	if (!co->pid)
		return;
	fclose(co->to);
	fclose(co->from);
	child_wait(co->pid);
	memset(co, 0, sizeof(*co));
}
