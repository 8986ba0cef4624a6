/*
 * Runs programs: git, and the other programs of refd. They are searched in PATH
 * and inherit standard error. By default they get no standard input, and a
 * program that cannot be started ends this program. Blocking; one thread.
 */
#ifndef CLIENT_BASE_CHILD_H
#define CLIENT_BASE_CHILD_H

#include <stdio.h>
#include <sys/types.h>

#include "client/base/cli.h"

/* Returns the exit status, or 128 + n after signal n. */
int child_run(const char *const argv[]);
/* The same; the output of the child is discarded. */
int child_status(const char *const argv[]);
/* Does the child end with 0? The output is discarded. */
bool child_succeeds(const char *const argv[]);
/* As child_run(); appends the standard output to OUT. */
int child_capture(const char *const argv[], struct text *out);
/* The same. A child that runs longer than SECONDS, or prints more than MAX
 * bytes, is killed, and a message is printed. If root acts as another user, the
 * child has no terminal: the other user can take control of the child. */
int child_capture_within(const char *const argv[], struct text *out,
    int seconds, size_t max);
/* As child_capture(), without the messages of the child. */
int child_capture_quiet(const char *const argv[], struct text *out);

/* Starts a child that reads from the pipe *TO. 0 or an errno. */
int child_feed(const char *const argv[], pid_t *pid, int *to);
/* The result is as of child_run(). */
int child_wait(pid_t pid);

/*
 * Runs a hook in the directory DIR, with the environment ENV and the standard
 * input IN. The hook need not read all input. The hook's output goes to
 * standard error. As in git, the shell runs a file which the kernel cannot run.
 * Negative: not started, and a message was printed.
 */
int child_hook(const char *const argv[], const char *dir, char *const env[],
    const struct text *in);

/* A child with a separate process group. The pipes do not block here. */
struct partner {
	pid_t pid;
	int to, from, err;
};

/* False: not started, and a message was printed. The shell runs a file that the
 * kernel cannot run. */
bool partner_start(struct partner *d, const char *path);

/* A child that answers questions line by line. Zero-initialised: not running.
 */
struct coprocess {
	pid_t pid;
	FILE *to, *from;
};

void coprocess_start(struct coprocess *co, const char *const argv[]);
/* Sends QUESTION and a newline, and appends a line without newline to ANSWER.
 * False: the child has ended. */
bool coprocess_ask(struct coprocess *co, const char *question,
    struct text *answer);
void coprocess_stop(struct coprocess *co);

#endif
