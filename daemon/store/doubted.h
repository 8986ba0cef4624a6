/*
 * Object stores on file systems that failed to sync: what is in memory there
 * may never have got to the disk. Each is read from the disk once before
 * anything is acknowledged that names objects in it.
 */
#ifndef STORE_DOUBTED_H
#define STORE_DOUBTED_H

#include <stdbool.h>

#include "daemon/store/objects/objects.h"

struct store;
struct repo;
struct doubted;

/* Is the directory FD, which ST is of, one of them? Any thread. */
bool doubted_is(struct store *s, int fd, const struct sys_stat *st);
/* Has REPO any? Lane thread. */
bool doubted_has(struct store *s, struct repo *repo);

/* A barrier thread. One of them, to be read after the next sync; *D is NULL if
 * FOUND is none. Negative errno. */
int doubted_keep(struct store *s, const struct objects_new *found,
    struct doubted **d);
/* Reads it, unless it is known to be as bad as before. NULL: all is on the disk.
 * Else why not, to be freed. One thread at a time; the others wait. */
char *doubted_prove(struct store *s, const struct doubted *d);
void doubted_free(struct store *s, struct doubted *d);
/* May refd/id of REPO, by which refd knows it, be in memory alone? Any thread. */
bool doubted_has_id(struct store *s, struct repo *repo);
/* A barrier thread. Written anew, for the next sync to make it last; after that
 * NTH goes to doubted_id_lasts(). Negative errno. */
int doubted_write_id(struct store *s, struct repo *repo, unsigned *nth);
void doubted_id_lasts(struct store *s, struct repo *repo, unsigned nth);
/* When the threads have ended. */
void doubted_done(struct store *s);

#endif
