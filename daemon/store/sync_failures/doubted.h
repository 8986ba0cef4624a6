/*
 * Object stores on file systems that failed to sync. The objects there may be
 * in memory only. refd reads each store from the disk once, before refd
 * acknowledges an update that names objects in the store.
 *
 * D is the struct sync_failures of the store, never NULL. Any thread, unless a
 * comment names one. Nothing logs.
 */
#ifndef STORE_DOUBTED_H
#define STORE_DOUBTED_H

#include <stdbool.h>

#include "daemon/store/objects/objects.h"
#include "daemon/store/sync_failures/sync_failures.h"

struct doubted;

/* Told of each object file that is not on the disk. */
struct doubted_report {
	void (*lost)(void *arg, const char *path, const char *why);
	void *arg;
};

/* Is the directory FD, with the attributes ST, such an object store? */
bool doubted_is(struct sync_failures *d, int fd, const struct sys_stat *st);
/* Is one of STORES such an object store? Also if STORES is empty: then
 * nothing is known. */
bool doubted_any_of(struct sync_failures *d,
    const struct object_stores *stores);

/* A barrier thread. *ONE is the object store FOUND, to be read after the next
 * sync; NULL: FOUND is not in doubt. Negative errno. */
int doubted_keep(struct sync_failures *d, const struct objects_new *found,
    struct doubted **one);
/* A round of the barrier begins: the result of a reading counts for the whole
 * round. */
void doubted_next_round(struct sync_failures *d);
/* Reads ONE, unless the last reading still counts. 0: all objects are on the
 * disk. Otherwise negative errno, and *WHY is the reason, to be freed, or NULL:
 * out of memory. One thread at a time; the others wait. */
int doubted_prove(struct sync_failures *d, const struct doubted *one,
    const struct doubted_report *report, char **why);
void doubted_free(struct sync_failures *d, struct doubted *one);

/* Since when the files of the directory FD, on the file system LIFE, are in
 * doubt; SYNC_FAILURES_NONE: they are not; 0: that is not known. *NTH goes to
 * doubted_dir_lasts(), after the files were written again and synced. */
int64_t doubted_dir_since(struct sync_failures *d, int fd, uint64_t life,
    unsigned *nth);
void doubted_dir_lasts(struct sync_failures *d, int fd, uint64_t life,
    unsigned nth);
/* After the threads have ended, before sync_failures_free(). */
void doubted_done(struct sync_failures *d);

#endif
