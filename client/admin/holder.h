/*
 * Who on this machine may hold a file: looked for in /proc, as far as one may
 * look. Blocking; one thread.
 */
#ifndef CLIENT_ADMIN_HOLDER_H
#define CLIENT_ADMIN_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "client/base/cli.h"

/* A process that has the file of ST open; 0: none that could be seen. */
uint64_t holder_find(const struct stat *st);
/* A git whose working directory is DIR or below it, or 0: git closes a
 * lockfile once it is written, and goes on holding it. */
uint64_t holder_guess(const char *dir);
/* "4711 (git pack-refs --all)" */
void holder_name(struct text *t, uint64_t pid);

#endif
