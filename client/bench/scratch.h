/*
 * The files of a bench: a directory, a repository with two commits, and a
 * daemon unless a running daemon is measured. Blocking; one thread. An error
 * ends the program.
 */
#ifndef CLIENT_BENCH_SCRATCH_H
#define CLIENT_BENCH_SCRATCH_H

#include <sys/types.h>

#include "proto/oid.h"

/* Owns its strings. Nothing to remove if zero-initialised. */
struct scratch {
	char *dir;   /* below the given directory */
	char *state; /* the daemon's state directory; the part that is ours */
	char *socket;
	char *repo;
	enum refd_object_format object_format; /* git's default */
	struct refd_oid oids[2];
	pid_t daemon; /* ours, or 0 */
};

/* Makes the repository in DIR, and the state in STATE, or in DIR if STATE is
 * NULL. */
void scratch_make(struct scratch *s, const char *dir, const char *state);
void scratch_make_repo(struct scratch *s);
/* Starts a daemon and keeps its messages. */
void scratch_start(struct scratch *s);
/* Prints these messages to standard error. */
void scratch_quote(const struct scratch *s);
/* Ends the daemon and removes all files. */
void scratch_remove(struct scratch *s);
/* The type of the file system of PATH, for example "ext4"; owned by the caller.
 */
char *scratch_file_system(const char *path);

#endif
