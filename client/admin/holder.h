/*
 * Finds processes that may hold a file, in the visible part of /proc. Blocking;
 * one thread.
 */
#ifndef CLIENT_ADMIN_HOLDER_H
#define CLIENT_ADMIN_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "proto/lib/cli.h"

/* A process that has the file of ST open; 0: none is visible. */
uint64_t holder_find(const struct stat *st);
/* A git process with its working directory in DIR, or 0. git closes a lockfile
 * after writing it, but still holds the lock. */
uint64_t holder_guess(const char *dir);
/* "4711 (git pack-refs --all)" */
void holder_name(struct text *t, uint64_t pid);

#endif
