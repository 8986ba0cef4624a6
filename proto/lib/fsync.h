/*
 * git's setting core.fsync: the kinds of files that git flushes. Pure; one
 * thread.
 */
#ifndef PROTO_LIB_FSYNC_H
#define PROTO_LIB_FSYNC_H

#include <stdbool.h>

/* Whether git flushes refs, and each loose object before the object gets a
 * name, with this value of core.fsync. NULL is git's default, which has
 * neither. The older core.fsyncObjectFiles makes git flush loose objects,
 * too. */
bool fsync_covers_refs(const char *value);
bool fsync_covers_objects(const char *value);

#endif
