/*
 * Programs that the client runs: git, and refd's own others. They are looked
 * up in PATH, inherit standard error, and get no standard input unless said.
 * Blocking; one thread. A child that can't be started ends this program,
 * unless said.
 */
#ifndef CLIENT_BASE_CHILD_H
#define CLIENT_BASE_CHILD_H

#include <stdio.h>
#include <sys/types.h>

#include "client/base/cli.h"

/* Exit status, 128 + n for one that signal n ended. */
int child_run(const char *const argv[]);
/* The same, and what it says is not heard. */
int child_status(const char *const argv[]);
/* Whether it ends with 0; what it says is not heard. */
bool child_succeeds(const char *const argv[]);
/* The same as child_run(), with its standard output appended to OUT. */
int child_capture(const char *const argv[], struct text *out);
/* The same, without the messages of the child. */
int child_capture_quiet(const char *const argv[], struct text *out);

/*
 * A hook: in directory DIR, with environment ENV, IN as its standard input
 * (all of which it need not read), and its standard output going where errors
 * go. What is not a program for the kernel is one for the shell, as git has
 * it. Negative: it can't be run, which was said.
 */
int child_hook(const char *const argv[], const char *dir, char *const env[],
    const struct text *in);

/* One that is spoken with through pipes, none of which blocks here; a group of
 * its own. */
struct partner {
	pid_t pid;
	int to, from, err;
};

/* False: it can't be run, which was said. What is not a program for the kernel
 * is one for the shell. */
bool partner_start(struct partner *d, const char *path);

/* One that is asked and answers line by line. Zero-initialised is stopped. */
struct coprocess {
	pid_t pid;
	FILE *to, *from;
};

void coprocess_start(struct coprocess *co, const char *const argv[]);
/* Sends QUESTION and a newline, reads a line without its newline. False when
 * the child is gone. */
bool coprocess_ask(struct coprocess *co, const char *question,
    struct text *answer);
void coprocess_stop(struct coprocess *co);

#endif
