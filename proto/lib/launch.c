/*
 * Normal path of a child, between fork and exec:
 *
 *	signals		default actions, nothing blocked
 *	session		new, so there is no terminal to read or to type into
 *	ids		groups, gid, uid: real, effective and saved
 *	bond		the kernel kills the child if its parent ends
 *	directory	reached with the rights of the account
 *	descriptors	the named ones in their places, all others closed
 *
 * Failures: the child tells the errno through a pipe that exec closes, and
 * ends. The parent then reports that nothing runs.
 *
 * Another thread may hold a lock at the fork, so only functions that are safe
 * after such a fork stand between fork and exec. Memory, and the look-up of the
 * account, come before the fork.
 */
#include "proto/lib/launch.h"
#include "proto/lib/clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* After this time a killed child is left to itself, because a tracer or a disk
 * that hangs can delay the end for ever. */
#define END_MS 5000
/* A child of another account can be stopped by this account before it has
 * begun, or wait for the disk of its program, so the beginning has a limit. */
#define BEGIN_MS 10000
/* Between two looks at a child without a descriptor of its process. */
#define LOOK_MS 5
/* Exit status of a child that could not begin. */
#define NOT_BEGUN 127

/* ---- the environment of a child ---- */

/*
 * The environment of a child. Variables pass by name only, because any other
 * may be a secret of the user, or tell the child where to find code.
 */

struct launch_environment {
	char **list; /* owned; most strings are borrowed; NULL: unchanged */
	char *home, *user, *logname;
};

/* For every child. A name with '=' is whole, and others are beginnings. */
static const char *const for_all[] = { "PATH=", "LANG=", "LANGUAGE=", "LC_",
	"TZ=", "GIT_CONFIG_SYSTEM=", "GIT_CONFIG_NOSYSTEM=", "GIT_EXEC_PATH=",
	"REFD_SOCKET=", "REFD_STATE=", NULL };

/* For a child of this process's own account. Git needs its variables, and the
 * programs with which git reaches other machines need theirs. */
static const char *const for_own[] = { "HOME=", "USER=", "LOGNAME=", "SHELL=",
	"TMPDIR=", "XDG_", "GIT_", "REFD_", "EMAIL=", "SSH_",
	"LD_LIBRARY_PATH=", "http_proxy=", "https_proxy=", "HTTPS_PROXY=",
	"no_proxy=", "NO_PROXY=", "ALL_PROXY=", "all_proxy=", NULL };

static bool is_in(const char *const *list, const char *variable)
{
	for (; *list != NULL; list++)
		if (strncmp(variable, *list, strlen(*list)) == 0)
			return true;
	return false;
}

/* Does MORE have another value of VARIABLE? */
static bool is_replaced(char *const *more, const char *variable)
{
	size_t len = strcspn(variable, "=") + 1;

	for (; more != NULL && *more != NULL; more++)
		if (strncmp(*more, variable, len) == 0)
			return true;
	return false;
}

static bool is_allowed(const struct launch *l, bool is_other,
    const char *variable)
{
	if (is_replaced(l->env, variable) ||
	    (l->no_git && strncmp(variable, "GIT_", 4) == 0))
		return false;
	return is_in(for_all, variable) ||
	    (!is_other && is_in(for_own, variable));
}

static size_t count(char *const *list)
{
	size_t nr = 0;

	while (list != NULL && list[nr] != NULL)
		nr++;
	return nr;
}

/* An account without a name has no home. */
static bool name_account(struct launch_environment *env,
    const struct account *as, size_t *nr)
{
	if (as->name == NULL)
		return true;
	if (asprintf(&env->home, "HOME=%s", as->home) < 0 ||
	    asprintf(&env->user, "USER=%s", as->name) < 0 ||
	    asprintf(&env->logname, "LOGNAME=%s", as->name) < 0)
		return false;
	env->list[(*nr)++] = env->home;
	env->list[(*nr)++] = env->user;
	env->list[(*nr)++] = env->logname;
	return true;
}

static void launch_environment_done(struct launch_environment *env)
{
	free(env->list);
	free(env->home);
	free(env->user);
	free(env->logname);
}

/* Even after false, which means no memory, call launch_environment_done(). */
static bool launch_environment_make(struct launch_environment *env,
    const struct launch *l)
{
	const bool is_other = l->as != NULL && account_is_other(l->as);
	char *const *more = l->env;
	size_t nr = 0;
	char **at;

	memset(env, 0, sizeof(*env));
	if (l->kind == LAUNCH_TERMINAL)
		return true;
	env->list =
	    calloc(count(environ) + count(more) + 4, sizeof(*env->list));
	if (env->list == NULL || (is_other && !name_account(env, l->as, &nr)))
		return false;
	for (; more != NULL && *more != NULL; more++)
		env->list[nr++] = *more;
	for (at = environ; at != NULL && *at != NULL; at++)
		if (is_allowed(l, is_other, *at))
			env->list[nr++] = *at;
	return true;
}

/* ---- in the child ---- */

static int or_errno(int r)
{
	return r < 0 ? -errno : 0;
}

/* Sets the default actions for signals. This process may ignore a signal for
 * its own purposes, such as SIGPIPE, which must not concern the child. The user
 * decided about all other signals before this process began, so a program of
 * the user's terminal keeps these decisions. */
static void reset_signals(enum launch_kind kind)
{
	struct sigaction act = { .sa_handler = SIG_DFL };
	sigset_t none;
	int sig;

	sigemptyset(&none);
	sigaction(SIGPIPE, &act, NULL);
	if (kind == LAUNCH_TERMINAL)
		return;
	for (sig = 1; sig < NSIG; sig++)
		sigaction(sig, &act, NULL);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The keys of root's session would belong to the other user, so the child joins
 * a new session of keys. */
static int become(const struct account *as)
{
	syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	if (setgroups(as->nr_groups, as->groups) < 0 ||
	    setresgid(as->gid, as->gid, as->gid) < 0 ||
	    setresuid(as->uid, as->uid, as->uid) < 0)
		return -errno;
	return 0;
}

/* Root may stand in a directory that is closed to the account of the child. git
 * does not start in such a directory, so the child then begins in the root
 * directory. Also, whoever stands in a directory can reach the files below it.
 * So another account keeps the directory only if its own rights lead there. */
static int change_directory(const struct launch *l, bool is_other)
{
	char here[PATH_MAX];
	bool stays = true;

	if (l->dir != NULL)
		return or_errno(chdir(l->dir));
	if (is_other)
		stays = getcwd(here, sizeof(here)) != NULL && chdir(here) == 0;
	else if (l->kind == LAUNCH_ALONE)
		stays = faccessat(AT_FDCWD, ".", X_OK, AT_EACCESS) == 0;
	return stays ? 0 : or_errno(chdir("/"));
}

/* Above the places of the child, so that no place is taken too early. */
static int move_up(int fd, int null_flags)
{
	int null = -1, moved;

	if (fd == LAUNCH_NULL)
		fd = null = open("/dev/null", null_flags | O_CLOEXEC);
	moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, LAUNCH_FD_MAX);
	if (null >= 0)
		close(null);
	return moved;
}

/* For sandboxes of containers that know no close_range(2). Another thread may
 * have locked the heap at the fork, so the directory is listed into a buffer on
 * the stack. */
static int close_listed(int first, int last)
{
	struct {
		uint64_t ino, off;
		uint16_t len;
		uint8_t type;
		char name[];
	} const *at;
	char list[4096] __attribute__((aligned(8)));
	int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;
	long n, i;

	if (dir < 0)
		return -errno;
	while ((n = syscall(SYS_getdents64, dir, list, sizeof(list))) > 0)
		for (i = 0; i < n; i += at->len) {
			at = (const void *)(list + i);
			fd = atoi(at->name);
			if (at->name[0] != '.' && fd != dir && fd >= first &&
			    fd <= last)
				close(fd);
		}
	n = n < 0 ? -errno : 0;
	close(dir);
	return (int)n;
}

static int close_between(int first, int last)
{
	if (first > last ||
	    syscall(SYS_close_range, first, (unsigned)last, 0) == 0)
		return 0;
	return close_listed(first, last);
}

/* All but the first three and those of L. */
static int close_others(const struct launch *l, int report)
{
	bool is_kept[LAUNCH_FD_MAX] = { true, true, true };
	int i, r;

	for (i = 0; i < LAUNCH_FDS && l->fds[i].to > 0; i++)
		is_kept[l->fds[i].to] = true;
	for (i = 0; i < LAUNCH_FD_MAX; i++)
		if (!is_kept[i])
			close(i);
	r = close_between(LAUNCH_FD_MAX, report - 1);
	return r < 0 ? r : close_between(report + 1, INT_MAX);
}

/* *REPORT is the pipe to the parent. A program that belongs to the user keeps
 * the descriptors that the user gave to this process. */
static int place_descriptors(const struct launch *l, int *report)
{
	int from[3 + LAUNCH_FDS], to[3 + LAUNCH_FDS] = { 0, 1, 2 }, nr = 3, i;

	*report = move_up(*report, 0);
	from[0] = move_up(l->in, O_RDONLY);
	from[1] = move_up(l->out, O_WRONLY);
	from[2] = move_up(l->err, O_WRONLY);
	for (i = 0; i < LAUNCH_FDS && l->fds[i].to > 0; i++, nr++) {
		from[nr] = move_up(l->fds[i].from, O_RDWR);
		to[nr] = l->fds[i].to;
	}
	for (i = 0; i < nr; i++)
		if (from[i] < 0 || dup2(from[i], to[i]) < 0)
			return -errno;
	if (l->kind == LAUNCH_TERMINAL && l->argv != NULL && !l->is_left)
		return 0;
	return close_others(l, *report);
}

static int prepare(const struct launch *l, pid_t parent, int *report)
{
	const bool is_other = l->as != NULL && account_is_other(l->as);
	int r = 0;

	reset_signals(l->kind);
	if (l->kind == LAUNCH_ALONE)
		r = or_errno(setsid());
	else if (l->has_group || l->is_left)
		r = or_errno(setpgid(0, 0));
	if (r == 0 && is_other)
		r = become(l->as);
	/* A change of ids undoes two settings, so both are made after the
	 * change: the signal for the parent's end, and that the process is not
	 * dumpable. A function of LAUNCH_ALONE gets SIGTERM, because it may
	 * block this signal while a file is half replaced. */
	if (r == 0 && (l->kind == LAUNCH_ALONE || l->run != NULL)) {
		r = or_errno(prctl(PR_SET_PDEATHSIG,
		    l->kind == LAUNCH_ALONE && l->run != NULL ? SIGTERM :
								SIGKILL));
		if (r == 0 && getppid() != parent)
			r = -ESRCH;
	}
	if (r == 0 && l->run != NULL)
		r = or_errno(prctl(PR_SET_DUMPABLE, 0));
	if (r == 0)
		r = change_directory(l, is_other);
	return r == 0 ? place_descriptors(l, report) : r;
}

static void tell(int report, int err)
{
	while (write(report, &err, sizeof(err)) < 0 && errno == EINTR)
		continue;
}

/* As git's execv_or_sh(). ARGS has room for another word in front. */
static int execute(const char *program, char **args)
{
	execvp(program, args + 1);
	if (errno == ENOEXEC) {
		args[0] = (char *)"/bin/sh";
		args[1] = (char *)program;
		execv(args[0], args);
	}
	return -errno;
}

static void __attribute__((noreturn)) be_child(const struct launch *l,
    char **args, char **env, pid_t parent, int report)
{
	int r = prepare(l, parent, &report);

	if (r == 0 && env != NULL)
		environ = env;
	if (r == 0 && l->run != NULL) {
		close(report);
		r = l->run(l->arg);
		fflush(NULL);
		_exit(r);
	}
	if (r == 0)
		r = execute(args[1], args);
	tell(report, r);
	_exit(NOT_BEGUN);
}

/* ---- starting ---- */

static void release(struct launched *c)
{
	if (c->process >= 0)
		close(c->process);
	c->process = -1;
	c->pid = 0;
}

static bool begins_within(int report, uint64_t end)
{
	struct pollfd begun = { .fd = report, .events = POLLIN };
	int r;

	do
		r = poll(&begun, 1, clock_left_ms(end));
	while (r < 0 && errno == EINTR);
	return r != 0;
}

/* The end of the pipe tells that the program runs, so the child must hold the
 * only end for writing. */
static int await_begin(struct launched *c, int ends[2])
{
	uint64_t end = clock_deadline_ms(BEGIN_MS);
	int err = 0;
	ssize_t n;

	close(ends[1]);
	if (c->is_alone &&
	    !begins_within(ends[0], end < c->end_ms ? end : c->end_ms)) {
		close(ends[0]);
		kill(c->pid, SIGKILL);
		launch_kill(c);
		return -ETIME;
	}
	do
		n = read(ends[0], &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	close(ends[0]);
	if (err < 0)
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	return err;
}

/* execve(2) takes arguments that are not const, so they are copied. The first
 * place is free. */
static char **copy_arguments(const char *const argv[])
{
	size_t nr = 0;
	char **args;

	while (argv[nr] != NULL)
		nr++;
	args = calloc(nr + 2, sizeof(*args));
	if (args != NULL && nr > 0)
		memcpy(args + 1, argv, nr * sizeof(*args));
	return args;
}

static int start(struct launched *c, const struct launch *l, char **args,
    char **env)
{
	const pid_t parent = getpid();
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	/* The child would write this process's output again, so the output is
	 * flushed before the fork. */
	if (l->run != NULL)
		fflush(NULL);
	c->pid = fork();
	if (c->pid == 0)
		be_child(l, args, env, parent, ends[1]);
	if (c->pid < 0) {
		r = -errno;
		close(ends[0]);
		close(ends[1]);
		return r;
	}
	r = await_begin(c, ends);
	if (r < 0)
		return r;
	/* musl has no function for this call, and a sandbox of containers may
	 * refuse it. */
	c->process = (int)syscall(SYS_pidfd_open, c->pid, 0);
	r = c->process < 0 && errno != ENOSYS && errno != EPERM ? -errno : 0;
	if (r < 0)
		launch_kill(c);
	return r;
}

int launch_start(struct launched *c, const struct launch *l)
{
	char **args = l->argv != NULL ? copy_arguments(l->argv) : NULL;
	struct launch_environment env;
	int r = -ENOMEM, i;

	assert((l->argv == NULL) != (l->run == NULL));
	for (i = 0; i < LAUNCH_FDS; i++)
		assert(l->fds[i].to >= 0 && l->fds[i].to < LAUNCH_FD_MAX);
	assert(l->kind == LAUNCH_ALONE || l->as == NULL ||
	    !account_is_other(l->as));
	*c = (struct launched){ .process = -1,
		.is_alone = l->kind == LAUNCH_ALONE,
		.has_group = l->kind == LAUNCH_ALONE || l->has_group,
		.end_ms = INT64_MAX };
	if (l->kind == LAUNCH_ALONE)
		c->end_ms = clock_now_ms() + l->seconds * INT64_C(1000);
	if (launch_environment_make(&env, l) &&
	    (args != NULL || l->run != NULL))
		r = start(c, l, args,
		    l->kind == LAUNCH_ALONE ? env.list : (char **)l->env);
	launch_environment_done(&env);
	free(args);
	if (r < 0)
		release(c);
	return r;
}

int launch_replace(const char *program, const char *const argv[])
{
	char **args = copy_arguments(argv);
	int r;

	if (args == NULL)
		return -ENOMEM;
	reset_signals(LAUNCH_TERMINAL);
	r = execute(program, args);
	free(args);
	return r;
}

/* ---- the end ---- */

/* A child that has ended stays as a zombie, which keeps the number of its
 * group. So the signal meets only processes that the child left behind. */
static bool reap(struct launched *c)
{
	siginfo_t info = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) <
		0 ||
	    info.si_pid != c->pid)
		return false;
	if (c->is_alone)
		kill(-c->pid, SIGKILL);
	while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
		continue;
	return true;
}

/* If a tracer has the child, the end shows only after the tracer has seen the
 * end. */
static bool reaps_within(struct launched *c, int ms)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t end = clock_deadline_ms(ms);
	bool is_over;

	while (!(is_over = reap(c)) && clock_now_ms() < end)
		nanosleep(&pause, NULL);
	return is_over;
}

void launch_kill(struct launched *c)
{
	kill(c->has_group ? -c->pid : c->pid, SIGKILL);
	if (!reaps_within(c, END_MS))
		c->status = SIGKILL;
	release(c);
}

bool launch_has_ended(struct launched *c)
{
	if (reap(c)) {
		release(c);
		return true;
	}
	if (clock_now_ms() < c->end_ms)
		return false;
	c->was_late = true;
	launch_kill(c);
	return true;
}

/* For poll(2), which takes an int. */
static int left_ms(const struct launched *c)
{
	const int most = c->process >= 0 ? 1000 : LOOK_MS;
	const int left = clock_left_ms(c->end_ms);

	return left < most ? left : most;
}

int launch_status(const struct launched *c)
{
	if (c->was_late)
		return -ETIME;
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) :
					WEXITSTATUS(c->status);
}

bool launch_poll(struct launched *c, struct pollfd *fds, size_t nr)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	const uint64_t now = clock_now_ms();

	fds[0] = (struct pollfd){ .fd = c->process, .events = POLLIN };
	if (poll(fds, nr, left_ms(c)) < 0)
		fds[0].revents = 0;
	if (launch_has_ended(c))
		return true;
	/* Another process traces the child. */
	if (fds[0].revents != 0 && c->end_ms > now + END_MS)
		c->end_ms = now + END_MS;
	if (fds[0].revents != 0)
		nanosleep(&pause, NULL);
	return false;
}

int launch_wait(struct launched *c)
{
	struct pollfd end;

	while (!launch_poll(c, &end, 1))
		continue;
	return launch_status(c);
}

/* ---- input ---- */

/* Other children cannot change it either. */
int launch_file(const void *data, size_t len)
{
	int fd = memfd_create("refd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const char *at = data;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while (len > 0) {
		n = write(fd, at, len);
		if (n < 0 && errno != EINTR)
			break;
		at += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	if (len == 0 && lseek(fd, 0, SEEK_SET) == 0 &&
	    fcntl(fd, F_ADD_SEALS,
		F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	n = -errno;
	close(fd);
	return (int)n;
}
