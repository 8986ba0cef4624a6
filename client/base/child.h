/*
 * Runs programs of this process's user: git, and the other programs of refd.
 * They are searched in PATH, and are alone (proto/lib/launch.h), with limits of
 * time and output. By default they get no standard input, have this process's
 * standard error, and a program that cannot be started ends this program.
 * Blocking; one thread, except where a function says otherwise.
 */
#ifndef CLIENT_BASE_CHILD_H
#define CLIENT_BASE_CHILD_H

#include <stdio.h>
#include <sys/types.h>

#include "proto/lib/cli.h"
#include "proto/lib/launch.h"

/* Seconds and bytes for a child without other limits. */
#define CHILD_SECONDS 900
#define CHILD_BYTES   ((size_t)1 << 30)

/* Returns the exit status, or 128 + n after signal n. */
int child_run(const char *const argv[]);
/* The same; the output of the child is discarded. */
int child_status(const char *const argv[]);
/* Does the child, whose output is discarded, end with 0? */
bool child_succeeds(const char *const argv[]);
/* As child_run(); appends the standard output to OUT. */
int child_capture(const char *const argv[], struct text *out);
/* The same. A child that runs longer than SECONDS, or prints more than MAX
 * bytes, is killed, and a message is printed. */
int child_capture_within(const char *const argv[], struct text *out,
    int seconds, size_t max);
/* As child_capture(), without the messages of the child. */
int child_capture_quiet(const char *const argv[], struct text *out);

/* The output that child_read() takes. */
struct child_output {
	struct text *out, *err; /* NULL: /dev/null; as the launch says */
	size_t out_max, err_max;
	int cancel; /* readable: the child is killed; -1: never */
};

/* Any thread. Returns launch_status(); or -EFBIG, if OUT exceeds OUT_MAX,
 * -ECANCELED, or the errno of launch_start(). Drops what exceeds ERR_MAX. */
int child_read(struct launch *l, const struct child_output *o);

/*
 * Runs a hook in the directory DIR, with the environment ENV and the standard
 * input IN. The hook need not read all input. The hook's output goes to
 * standard error. Negative: not started, and a message was printed.
 */
int child_hook(const char *const argv[], const char *dir, char *const env[],
    const struct text *in);

/* A hook with a separate process group, and pipes that do not block here. */
struct partner {
	struct launched child;
	int to, from, err;
};

/* False: not started, and a message was printed. */
bool partner_start(struct partner *d, const char *path);

/* A child that answers questions line by line. Zero-initialised: not running.
 */
struct coprocess {
	struct launched child;
	FILE *to, *from;
};

void coprocess_start(struct coprocess *co, const char *const argv[]);
/* Sends QUESTION and a newline, and appends a line without newline to ANSWER.
 * False: the child has ended, or does not answer. */
bool coprocess_ask(struct coprocess *co, const char *question,
    struct text *answer);
void coprocess_stop(struct coprocess *co);

#endif
