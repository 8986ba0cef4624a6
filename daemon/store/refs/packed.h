/*
 * packed-refs: looking names up, and rewriting the file.
 *
 * A snapshot is the whole file in memory, sorted, with its descriptor kept
 * open: that pins the inode, so that "same dev, ino, size, mtime and ctime"
 * really means the same file (git-compat A2 in one sentence: ext4 reuses
 * inode numbers at once). A file that was replaced by us is kept open for two
 * seconds more, so that plain git, which compares whole seconds, can't be
 * fooled either.
 *
 * A struct packed belongs to one repository and locks itself: any thread.
 * Every call may block. 0 or negative errno; nothing logs. -EBADMSG: a
 * malformed line: what git dies of, an unterminated last line among it, and
 * CRLF, of which git makes broken refs.
 */
#ifndef STORE_PACKED_H
#define STORE_PACKED_H

#include <stdbool.h>

#include "daemon/base/sys.h"
#include "proto/oid.h"

struct packed;          /* a repository's cache */
struct packed_snapshot; /* reference-counted; immutable once taken */

/* DIRFD (the common dir) is borrowed for the life of the struct. */
struct packed *packed_new(const struct sys *sys, int dirfd);
/* Snapshots that are still held live on; a rewrite is abandoned. */
void packed_free(struct packed *packed);
/* How many descriptors it holds; closes what is past its two seconds. */
int packed_trim(struct packed *packed);

/* The file as it is now; an absent file is an empty snapshot. One stat(2)
 * where it is the one that is cached. A link is followed, as git does. On
 * failure *SNAP is untouched. */
int packed_snapshot(struct packed *packed, struct packed_snapshot **snap);
void packed_snapshot_put(struct packed_snapshot *snap);

/* *OID is untouched where the name is not there; OID may be NULL. */
bool packed_lookup(const struct packed_snapshot *snap, const char *name,
    struct refd_oid *oid);
/* A ref below DIR (given with its trailing slash): its name, borrowed from
 * the snapshot, or NULL. */
const char *packed_find_below(const struct packed_snapshot *snap,
    const char *dir);
size_t packed_count(const struct packed_snapshot *snap);

/*
 * Is rewriting the file, as large as it is now, cheaper than NR loose files?
 * At least LEAST of them it has to be: see packed_rewrite.c for the prices.
 * One stat(2).
 */
#define PACKED_LEAST 100
bool packed_pays(struct packed *packed, size_t nr, size_t least);

/* What becomes of one name; all of it is borrowed. */
struct packed_edit {
	const char *name;
	const struct refd_oid *oid; /* its value from now on; NULL: it goes */
	/* What an annotated tag is of in the end; else NULL. git believes the
	 * file in this. */
	const struct refd_oid *peeled;
};

/*
 * Whose turn it is to take packed-refs.lock, among the windows of this daemon:
 * they wait for each other, and try for the file's lock only against others.
 * take blocks until one window has had the turn for WAIT_MS; false: it is that
 * one's still. Any thread may give it back. Where a thread has a turn already it must not wait
 * for another's (0): that one may be waiting for it.
 */
bool packed_turn_take(struct packed *packed, unsigned wait_ms);
void packed_turn_give(struct packed *packed);

/*
 * Rewriting, by whoever holds packed-refs.lock (the caller takes it):
 * begin -> finish (renames packed-refs.new into place)
 *      \-> abandon (removes packed-refs.new)
 * begin re-reads the file, writes packed-refs.new as the NR edits have it
 * (sorted by the bytes of their names), peeled lines of others kept, and with
 * SYNC fsyncs it; else the caller fsyncs its descriptor: before finish, in
 * every mode, since it holds refs that no journal knows, of whoever was
 * promised them. The header is the one git writes; that of a file that is not
 * fully peeled stays.
 * A packed-refs.new that is already there is stale by protocol and goes.
 * *CHANGED false: names that are not in the file are to go from it, and
 * nothing else; nothing was written and finish is not to be called. MODE is exact, whatever the umask: git makes
 * this file anew too, with 0666 & ~umask and core.sharedRepository, and does
 * not look at the old one's.
 *
 * -ELOOP: packed-refs is a link (git rewrites its target; refd does not).
 * begin that fails leaves nothing behind; finish that fails leaves the old
 * file in place and .new to be abandoned. abandon is allowed in any state.
 */
int packed_rewrite_begin(struct packed *packed, const struct packed_edit *edits,
    size_t nr, mode_t mode, bool sync, bool *changed);
/* Of packed-refs.new; borrowed, until finish or abandon. */
int packed_rewrite_fd(const struct packed *packed);
int packed_rewrite_finish(struct packed *packed);
void packed_rewrite_abandon(struct packed *packed);

#endif
