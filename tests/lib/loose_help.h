/*
 * Loose objects of SHA-1 in a memfs, written as git writes them. Every failure
 * fails the test.
 */
#ifndef TESTS_LIB_LOOSE_HELP_H
#define TESTS_LIB_LOOSE_HELP_H

#include "proto/oid.h"
#include "tests/lib/memfs.h"

struct loose_help {
	struct refd_oid oid;
	char fanout[3], name[REFD_SHA1_HEX - 1];
	char path[256]; /* below the objects directory, with this directory */
	uint8_t *file;  /* owned */
	size_t len;
};

/* The object of TYPE with LEN bytes DATA, compressed at LEVEL, in the directory
 * OBJECTS. Nothing is written. */
struct loose_help loose_help_make(const char *objects, const char *type,
    const void *data, size_t len, int level);
/* A blob of a text. */
struct loose_help loose_help_text(const char *objects, const char *text);
void loose_help_done(struct loose_help *object);

/* Writes LEN bytes DATA as the file of OBJECT: a temporary file in the fan-out,
 * not synced, then a rename. */
void loose_help_put(struct memfs *fs, const struct loose_help *object,
    const void *data, size_t len);
/* The same with the right bytes. */
void loose_help_write(struct memfs *fs, const struct loose_help *object);
/* Does the file of OBJECT have the right bytes? */
bool loose_help_holds(struct memfs *fs, const struct loose_help *object);

#endif
