/*
 * What git makes durable by itself where it writes beside refd. Pure; one
 * thread.
 */
#ifndef CLIENT_ENABLE_FSYNC_H
#define CLIENT_ENABLE_FSYNC_H

#include <stdbool.h>

/* Whether git flushes refs, and each loose object before it has its name, with
 * this value of core.fsync; NULL is none, and git's default has neither. An
 * older core.fsyncObjectFiles has it flush loose objects, too. */
bool fsync_covers_refs(const char *value);
bool fsync_covers_objects(const char *value);

#endif
