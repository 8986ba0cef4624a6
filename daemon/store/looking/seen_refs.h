/*
 * The refs of a repository in memory, by name, each with two values: as known,
 * and as on disk. And the file with the refs as a look has last known them:
 * <state>/seen/<number of the repository>.
 *
 *	refd-seen 1 <32 hex digits of the journal> <lsn>
 *	<hex> <name>
 *	ref: <target> <name>
 *	end <number of refs>
 *
 * The refs of the file, and all records of the repository after the LSN, give
 * the refs as history knows them. So an old file is as good as a new file,
 * unless history has lost records after the old LSN. The file is replaced by a
 * rename, after a sync, so a crash or a full disk leaves the old file. A file
 * which is malformed, or of a different journal, does not count, because its
 * refs would give false changes.
 *
 * Any thread, one at a time; the calls with SYS block. 0 or negative errno;
 * nothing logs.
 */
#ifndef STORE_SEEN_REFS_H
#define STORE_SEEN_REFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/repos/repo.h"
#include "proto/message.h"

/* The memory of a look has a bound, so a repository with more refs is not
 * looked at. A look of a repository with more than SEEN_REFS_SMALL refs is
 * large, so that small looks need not wait for it. */
#define SEEN_REFS_MAX   1000000
#define SEEN_REFS_SMALL 50000

struct seen_refs;

enum seen_side { SEEN_KNOWN, SEEN_DISK };
#define SEEN_SIDES (SEEN_DISK + 1)

struct seen_ref {
	const char *name;
	const char *target;  /* of a symbolic ref; or NULL */
	struct refd_oid oid; /* null: no such ref, or a symbolic ref */
	/* On disk: the value could not be read, or is no value of a ref, so
	 * nobody can tell whether the ref has changed. */
	bool is_unknown;
};

/* Makes a table with room for MAX refs on each side, and for 256 bytes of text
 * per ref on average. NULL: out of memory. */
struct seen_refs *seen_refs_new(size_t max);
void seen_refs_free(struct seen_refs *refs);
/* Copies REF, which must not borrow from REFS, because the text may move.
 * Without a value, REF is removed. -ENOMEM; -EFBIG: no room. */
int seen_refs_set(struct seen_refs *refs, enum seen_side side,
    const struct seen_ref *ref);
/* Makes the values on disk the known values, except unknown ones. */
void seen_refs_know(struct seen_refs *refs);
size_t seen_refs_max(const struct seen_refs *refs);
/* Number I of seen_refs_nr() names, or a name. False: no value on this side.
 * REF borrows from REFS until the next seen_refs_set(). */
size_t seen_refs_nr(const struct seen_refs *refs);
bool seen_refs_get(const struct seen_refs *refs, enum seen_side side, size_t i,
    struct seen_ref *ref);
bool seen_refs_find(const struct seen_refs *refs, enum seen_side side,
    const char *name, struct seen_ref *ref);
bool seen_ref_exists(const struct seen_ref *ref);
/* Have both refs the same value? NULL: no ref. */
bool seen_ref_is_same(const struct seen_ref *a, const struct seen_ref *b);

/* Is NAME among the refs of a look? These are HEAD, and the refs below refs/
 * that all worktrees share. */
bool seen_refs_has_place(const char *name);
/* seen_disk.c: reads all values on disk, without locks. A link may lead out of
 * the repository, so no link to a directory is followed. -EFBIG: too many refs,
 * directories or levels; errors of the disk, of packed-refs and of
 * reftables. */
int seen_refs_read(const struct sys *sys, struct repo *repo,
    struct seen_refs *refs);
/* The owner of the file with the value of NAME. If there is no file, as after a
 * deletion without packed-refs, the owner of refs/. */
uint32_t seen_refs_owner(const struct sys *sys, const struct repo *repo,
    const char *name);

/* seen_file.c: reads and writes the known values. -ENOENT: no file is there, or
 * the file does not count. -EFBIG: too many refs. */
int seen_file_read(const struct sys *sys, int state_fd, uint64_t repo,
    const uint8_t journal[REFD_JOURNAL_ID_BYTES],
    enum refd_object_format format, struct seen_refs *refs, uint64_t *lsn);
int seen_file_write(const struct sys *sys, int state_fd, uint64_t repo,
    const uint8_t journal[REFD_JOURNAL_ID_BYTES],
    enum refd_object_format format, const struct seen_refs *refs, uint64_t lsn);

#endif
