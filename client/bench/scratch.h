/*
 * What a bench needs for itself: a directory, a repository in it with two
 * commits, and a daemon, unless another one is to be measured. Blocking; one
 * thread; what can't be had ends the program.
 */
#ifndef CLIENT_BENCH_SCRATCH_H
#define CLIENT_BENCH_SCRATCH_H

#include <sys/types.h>

#include "proto/oid.h"

/* Owns its strings. Zero-initialised, it has nothing to remove. */
struct scratch {
	char *dir;   /* below the one that was named */
	char *state; /* the daemon's; what of it is ours */
	char *socket;
	char *repo;
	struct refd_oid oids[2];
	pid_t daemon; /* ours, or 0 */
};

/* Made in DIR, and the state in STATE, or in DIR where it is NULL. */
void scratch_make(struct scratch *s, const char *dir, const char *state);
void scratch_make_repo(struct scratch *s);
/* Starts a daemon, whose messages are kept. */
void scratch_start(struct scratch *s);
/* Shows these on standard error. */
void scratch_quote(const struct scratch *s);
/* Ends the daemon, and removes everything that was made. */
void scratch_remove(struct scratch *s);
/* The kind of file system that PATH is on, "ext4" for instance; owned by the
 * caller. */
char *scratch_file_system(const char *path);

#endif
