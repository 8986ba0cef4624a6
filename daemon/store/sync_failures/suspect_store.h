/*
 * Object stores on file systems that failed to sync. The objects there may be
 * in memory only, so refd reads each store from the disk once, before refd
 * acknowledges an update that names objects in the store.
 *
 * D is the struct sync_failures of the store, never NULL. Any thread, unless a
 * comment names one. Nothing logs.
 */
#ifndef STORE_SUSPECT_STORE_H
#define STORE_SUSPECT_STORE_H

#include <stdbool.h>

#include "daemon/store/objects/objects.h"
#include "daemon/store/sync_failures/sync_failures.h"
#include "proto/oid.h"

struct suspect_store;

/* Called for every lost object file. */
struct suspect_store_report {
	void (*lost)(void *arg, const char *path, const char *why);
	void *arg;
};

/* Is the directory FD, with the attributes ST, a suspect object store? */
bool suspect_store_is(struct sync_failures *d, int fd,
    const struct sys_stat *st);
/* Is any of STORES suspect? True also if STORES is empty, because then the
 * stores are unknown. */
bool suspect_store_any_of(struct sync_failures *d,
    const struct object_stores *stores);

/* For a barrier worker. *ONE is a copy of FOUND, with ids of FORMAT, to be read
 * after the next sync, or NULL if FOUND is not suspect. Negative errno. */
int suspect_store_keep(struct sync_failures *d, const struct objects_new *found,
    enum refd_object_format format, struct suspect_store **one);
/* A round of the barrier begins: the result of a reading counts for the whole
 * round. */
void suspect_store_next_round(struct sync_failures *d);
/* Reads ONE, unless the last result still counts. 0: all objects are on the
 * disk. Otherwise negative errno, and *WHY is the reason, to be freed, or NULL:
 * out of memory. One thread reads at a time, and other threads wait. */
int suspect_store_read_back(struct sync_failures *d,
    const struct suspect_store *one, const struct suspect_store_report *report,
    char **why);
void suspect_store_free(struct sync_failures *d, struct suspect_store *one);

/* Since when may the files of directory FD, on file system LIFE, be in memory
 * alone? SYNC_FAILURES_NONE: no file is in memory alone; 0: the time is not
 * known. Pass *NTH to suspect_store_dir_lasts() after the files were written
 * again and synced. */
int64_t suspect_store_dir_since(struct sync_failures *d, int fd, uint64_t life,
    unsigned *nth);
void suspect_store_dir_lasts(struct sync_failures *d, int fd, uint64_t life,
    unsigned nth);
/* After the threads have ended, before sync_failures_free(). */
void suspect_store_done(struct sync_failures *d);

#endif
