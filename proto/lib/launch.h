/*
 * Starts programs and workers. No other file of the client and of refd-admin
 * makes a process or changes ids (scripts/check-layers), so no caller can
 * forget a part of the isolation.
 *
 * A child has a session of its own without a terminal, only the named
 * descriptors, the variables of an allow-list, default signals, and a limit of
 * time. If the child runs as another account, all its ids and groups are those
 * of the account before the first instruction. The child ends with this
 * process.
 *
 * The owner of a repository could stop or kill a process that has the owner's
 * ids, and read its memory, so a process of root never changes its own ids.
 *
 * One thread, except where a function says otherwise.
 */
#ifndef PROTO_LIB_LAUNCH_H
#define PROTO_LIB_LAUNCH_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/lib/account.h"

/* /dev/null, as standard input, output or error. */
#define LAUNCH_NULL (-1)
/* Descriptors of a child are below. */
#define LAUNCH_FD_MAX 16
#define LAUNCH_FDS    8

enum launch_kind {
	LAUNCH_ALONE,
	/*
	 * A program of the calling user that belongs to the user's terminal,
	 * as git has it: the pager, the hooks of a repository, and programs of
	 * refd. It keeps the terminal, the session, the environment and the
	 * ignored signals, and has no limit of time. Never another account.
	 */
	LAUNCH_TERMINAL
};

/* A further descriptor, which is FROM here, and TO in the child. */
struct launch_fd {
	int from, to;
};

struct launch {
	/* Either a program ARGV, which is searched in PATH, and run by the
	 * shell if it is a file without "#!". Or a function RUN, which a fork
	 * of this process calls. */
	const char *const *argv;
	int (*run)(void *arg);
	void *arg;

	enum launch_kind kind;
	const struct account *as; /* NULL: of this process */
	int in, out, err;
	struct launch_fd
	    fds[LAUNCH_FDS]; /* the first with TO 0 ends the list */
	/* NULL: the present directory, or / if the account cannot come there */
	const char *dir;
	/* LAUNCH_ALONE: variables beside the allow-list; or NULL.
	 * LAUNCH_TERMINAL: the environment; NULL: of this process. */
	char *const *env;
	bool no_git;    /* LAUNCH_ALONE: without GIT_... of this process */
	int seconds;    /* LAUNCH_ALONE: the limit */
	bool has_group; /* LAUNCH_TERMINAL: gets a process group */
	/* LAUNCH_TERMINAL: goes on after the end of this process, so the child
	 * gets a process group, and only the named descriptors. Otherwise the
	 * child would hold a lock or a pipe of the caller. */
	bool is_left;
};

/* A running child. */
struct launched {
	pid_t pid;
	int process;     /* readable when the child has ended; or -1 */
	uint64_t end_ms; /* of clock_now_ms() */
	bool is_alone, has_group;
	bool was_late; /* the child was killed at its limit */
	int status;    /* as of waitpid(2) */
};

/*
 * 0, or a negative errno, and then nothing runs. -ETIME: a child of
 * LAUNCH_ALONE has not begun in ten seconds, or within its limit. A program may
 * be started by any thread. A function must be started before threads exist. It
 * runs in a process that no other user can trace or read, and may use this
 * process's memory as it was. Its result is the exit status.
 */
int launch_start(struct launched *c, const struct launch *l);
/* True: the child has ended, or was killed because its time was over. A child
 * of LAUNCH_ALONE leaves no process of its group behind. C is released, and
 * c->status and c->was_late are set. Any thread; does not block, except for a
 * killed child. */
bool launch_has_ended(struct launched *c);
/* As launch_has_ended(), after a wait of a second at most: for the end, or for
 * one of the descriptors in FDS. This call sets the first of FDS. */
bool launch_poll(struct launched *c, struct pollfd *fds, size_t nr);
/* Blocks until the end. Returns launch_status(). */
int launch_wait(struct launched *c);
/* Kills the child and its group, and releases C. */
void launch_kill(struct launched *c);
/* After the end: the exit status, 128 + n after signal n; or -ETIME: late. */
int launch_status(const struct launched *c);

/* Returns a file in memory with DATA, at its start, as input of a child, or a
 * negative errno. A pipe could block this process if the child does not read,
 * and a file cannot. Each opening of /dev/stdin begins at the start of the
 * file, and nobody can change the file. */
int launch_file(const void *data, size_t len);

/* This process becomes PROGRAM, with the arguments ARGV. PROGRAM keeps
 * everything but an ignored SIGPIPE. Returns only on failure, with a negative
 * errno. */
int launch_replace(const char *program, const char *const argv[]);

#endif
