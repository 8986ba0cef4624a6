/*
 * The files "<file>~pid.lock". Git names there the process that took
 * "<file>.lock", if core.lockfilePid is set (git 2.54 and later:
 * create_lock_pid_file() and read_lock_pid() of git's lockfile.c). Git makes
 * the file after the lock, and removes the file before the lock. If the process
 * is killed, both files stay. No ref has "~" in its name, so the file is never
 * the lock of a ref.
 *
 * The file is hostile input. Its owner can write any number, so a reader names
 * a process only if the process has the same owner as the file.
 *
 * Pure; any thread.
 */
#ifndef PROTO_LIB_LOCK_PID_H
#define PROTO_LIB_LOCK_PID_H

#include <stdbool.h>
#include <stddef.h>

#define LOCK_PID_SUFFIX "~pid.lock"
/* A longer file is malformed. */
#define LOCK_PID_BYTES 32

/* Is FILE such a file, and so no lock? */
bool lock_pid_is(const char *file);

/* The process in the content of the file; 0: malformed. */
long lock_pid_parse(const char *data, size_t len);

#endif
