#include "client/update/exec_git.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/request/unserved.h"
#include "proto/lib/launch.h"

/* Counts how often git and refd ran each other. If "git update-ref" is refd
 * itself, the recursion has no end. The limit is above one, because a hook of
 * git may call refd. */
#define DEPTH_ENV "REFD_GIT_DEPTH"
#define DEPTH_MAX 4

const char *exec_git_reason(const struct update_options *opt,
    const struct gitdir *gd, const struct gitconfig *config)
{
	const char *why = unserved_reason(gd, config);

	/* Only commands on standard input can create symbolic refs. */
	if (!why && opt->form == FORM_STDIN &&
	    gitconfig_bool(config, "core.prefersymlinkrefs", false))
		why = "refd makes no symbolic links";
	return why;
}

/* ---- git's arguments ---- */

static const char **arguments(const struct update_options *opt)
{
	const char **argv = xcalloc((size_t)opt->nr_args + 16, sizeof(*argv));
	int n = 0, i;

	argv[n++] = "git";
	if (opt->git_dir)
		argv[n++] = xasprintf("--git-dir=%s", opt->git_dir);
	argv[n++] = "update-ref";
	if (opt->message) {
		argv[n++] = "-m";
		argv[n++] = opt->message;
	}
	if (opt->no_deref)
		argv[n++] = "--no-deref";
	if (opt->create_reflog)
		argv[n++] = "--create-reflog";
	if (opt->form == FORM_STDIN)
		argv[n++] = "--stdin";
	if (opt->end_null)
		argv[n++] = "-z";
	if (opt->batch)
		argv[n++] = "--batch-updates";
	if (opt->form == FORM_DELETE)
		argv[n++] = "-d";
	if (opt->nr_args)
		argv[n++] = "--";
	for (i = 0; i < opt->nr_args; i++)
		argv[n++] = opt->args[i];
	argv[n] = NULL;
	return argv;
}

static void count_depth(void)
{
	const char *env = getenv(DEPTH_ENV);
	uint64_t depth = 0;
	char *next;

	if (env && !cli_number(env, DEPTH_MAX, &depth))
		depth = DEPTH_MAX;
	if (depth >= DEPTH_MAX)
		die("git would do it, but \"git update-ref\" is refd here: "
		    "REFD_SHIM_REAL can name the real git");
	next = xasprintf("%u", (unsigned)depth + 1);
	if (setenv(DEPTH_ENV, next, 1) < 0)
		die("out of memory");
	free(next);
}

static void __attribute__((noreturn)) run_git(const struct update_options *opt)
{
	const char *real = getenv("REFD_SHIM_REAL");
	const char **argv = arguments(opt);
	int err;

	count_depth();
	err = launch_replace(real && *real ? real : "git", argv);
	die("cannot run git: %s", strerror(-err));
}

/* ---- standard input, again ---- */

static bool write_all(int fd, const char *data, size_t len)
{
	ssize_t n;

	while (len) {
		n = write(fd, data, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

struct feeding {
	const struct text *read;
	char end;
};

/* To standard output, of a child. The writer may wait for an answer before the
 * next command, so each command is passed on immediately. */
static int feed(void *arg)
{
	static const char broken_off[] = "\nbroken off\n";
	const struct feeding *f = arg;
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	if (!write_all(1, f->read->data, f->read->len))
		return 0;
	while ((len = getdelim(&line, &size, f->end, stdin)) > 0)
		if (!write_all(1, line, (size_t)len))
			break;
	/* git must not take a read error for the end of input, so git gets a
	 * line that is no command. */
	if (!feof(stdin))
		write_all(1, broken_off, strlen(broken_off));
	return 0;
}

/* git replaces this process, and keeps its process id; the exit status is
 * git's. A child feeds git, from the terminal if need be. The child does not
 * have the output, so a reader sees the end of the output when git ends. */
static void run_git_fed(const struct update_options *opt,
    const struct text *read)
{
	struct feeding f = { read, opt->end_null ? '\0' : '\n' };
	struct launch l = { .run = feed,
		.arg = &f,
		.kind = LAUNCH_TERMINAL,
		.in = STDIN_FILENO,
		.err = LAUNCH_NULL };
	struct launched c;
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC) < 0)
		die("cannot make a pipe: %s", strerror(errno));
	fflush(stdout);
	l.out = ends[1];
	err = launch_start(&c, &l);
	if (err)
		die("cannot feed git: %s", strerror(-err));
	close(ends[1]);
	if (dup2(ends[0], 0) < 0)
		die("cannot feed git: %s", strerror(errno));
	close(ends[0]);
	run_git(opt);
}

void exec_git_check(const struct update_options *opt, const char *why,
    int status)
{
	if (opt->never_git)
		cli_die(status, "%s", why);
	if (opt->output != OUTPUT_GIT || opt->txid)
		cli_die(status, "%s; git has no --porcelain, --json or --txid",
		    why);
}

void exec_git(const struct update_options *opt, const char *why,
    const struct text *read)
{
	if (opt->verbose)
		say("%s; git does it", why);
	if (read)
		run_git_fed(opt, read);
	run_git(opt);
}
