/*
 * packed-refs: look-ups by name, and rewriting the file.
 *
 * A snapshot is the file as it was opened. A sorted file is searched with
 * pread(2), a few kilobytes per look-up, however large the file is. A small or
 * unsorted file is read whole and sorted in memory. Nothing is mapped, because
 * a user with write access may shorten the file at any moment, and a read of
 * the lost pages would end the daemon.
 *
 * The snapshot keeps its descriptor open, because the descriptor pins the
 * inode. So "same dev, ino, size, mtime and ctime" really means the same file
 * (ext4 reuses inode numbers at once). A file that refd replaced stays open for
 * two more seconds, because plain git compares whole seconds.
 *
 * A struct packed belongs to one repository and locks itself: any thread. Every
 * call may block, and nothing logs. 0 or negative errno. -EBADMSG: a malformed
 * line. This includes every line that git dies of, such as an unterminated last
 * line; CRLF, which gives broken refs in git; and a record of more than 4096
 * bytes. Only the parts that are read are checked, but packed_check() reads the
 * whole file. -EFBIG: the file exceeds a bound below, and git must do the
 * update.
 */
#ifndef STORE_PACKED_H
#define STORE_PACKED_H

#include <stdbool.h>

#include "daemon/base/sys.h"
#include "proto/limits.h"
#include "proto/oid.h"

struct packed;          /* a repository's cache */
struct packed_snapshot; /* reference-counted; immutable once taken */

/* Bytes. A sorted file up to this size is read whole as well. */
#define PACKED_WHOLE_MAX ((size_t)64 << 10)
/* Bytes. The largest unsorted file. After every change refd reads and sorts
 * such a file as a whole, so the bound is low. Git writes sorted files since
 * 2.15. */
#define PACKED_UNSORTED_MAX ((size_t)4 << 20)
/* Bytes. The largest file that is read from end to end, to be rewritten or
 * checked. Look-ups read only parts, so they have no bound. */
#define PACKED_STREAM_MAX ((size_t)1 << 30)
/* Bytes. Rewriting a larger file takes so long that nothing else may wait for
 * the end (files_packed.c). */
#define PACKED_LARGE ((size_t)8 << 20)

/* DIRFD (the common dir) and FORMAT are borrowed for the life of the struct.
 * *FORMAT is read at the first use. */
struct packed *packed_new(const struct sys *sys, int dirfd,
    const enum refd_object_format *format);
/* Snapshots in use live on; a rewrite is abandoned. */
void packed_free(struct packed *packed);
/* The number of open descriptors, after closing files replaced more than two
 * seconds ago. While another thread reads the file, returns 0 and closes
 * nothing, because the disk may hang. */
int packed_trim(struct packed *packed);

/* Has a snapshot met a file of another program since the last call? The writer
 * of the first file is unknown, so this file counts if it is younger than an
 * hour. Never blocks. */
bool packed_take_foreign(struct packed *packed);

/* Does the header line of SIZE bytes, with or without its line feed, claim
 * TRAIT? As git sees it. */
bool packed_header_has(const char *header, size_t size, const char *trait);

/* The present file; an absent file is an empty snapshot. Costs one stat(2) if
 * the file is cached. A link is followed to a file below DIRFD, else
 * -ELOOP. On failure *SNAP is untouched. -EFBIG: PACKED_UNSORTED_MAX. */
int packed_snapshot(struct packed *packed, struct packed_snapshot **snap);
void packed_snapshot_put(struct packed_snapshot *snap);
/* sys_stat_written_ns() of the file of SNAP; INT64_MAX: there is no file, or
 * SNAP is NULL. */
int64_t packed_written_ns(const struct packed_snapshot *snap);
/* Makes the file of SNAP durable. If the file is the present packed-refs, its
 * name becomes durable, too. */
int packed_snapshot_sync(const struct packed *packed,
    const struct packed_snapshot *snap);

/* 1: found; 0: absent, and *OID is untouched. OID may be NULL. Reads some 8 KB
 * for each halving of the file beyond the eighth. */
int packed_lookup(const struct packed_snapshot *snap, const char *name,
    struct refd_oid *oid);
/* Finds a ref below DIR (with its trailing slash): 1 and its name in FOUND, or
 * 0. As packed_lookup(). */
int packed_find_below(const struct packed_snapshot *snap, const char *dir,
    char found[REFD_PATH_MAX]);
/* Finds a ref whose name is a parent directory of NAME: 1 and the name of the
 * ref in FOUND, or 0. The caller may know that the parent directory with the
 * first CLEAR_LEN bytes of NAME, and all directories above, are no refs; 0:
 * nothing is known. */
int packed_find_above(const struct packed_snapshot *snap, const char *name,
    size_t clear_len, char found[REFD_PATH_MAX]);
/* Finds a ref that git forbids beside NAME, above or below. As above. */
int packed_find_conflict(const struct packed_snapshot *snap, const char *name,
    char found[REFD_PATH_MAX]);
/* Calls FN for every ref, in the order of the file. Another result than 0 ends
 * the search, and is returned. Otherwise as packed_check(). */
typedef int packed_each_fn(void *arg, const char *name,
    const struct refd_oid *oid);
int packed_each(const struct packed_snapshot *snap, packed_each_fn *fn,
    void *arg);
/* Is every line well formed? Reads the whole file. -EFBIG:
 * PACKED_STREAM_MAX. */
int packed_check(const struct packed_snapshot *snap);

/*
 * Is rewriting the file at its present size cheaper than NR loose files? NR
 * must be at least LEAST. packed_rewrite.c has the prices. One stat(2).
 */
#define PACKED_LEAST 100
bool packed_pays(struct packed *packed, size_t nr, size_t least);
/* Is the file beyond PACKED_LARGE now? One stat(2). */
bool packed_is_large(struct packed *packed);

/* The change of one name; all borrowed. */
struct packed_edit {
	const char *name;
	const struct refd_oid *oid; /* the new value; NULL: delete */
	/* The peeled object of an annotated tag; else NULL. git trusts the file
	 * here, so the object must be right. */
	const struct refd_oid *peeled;
};

/*
 * The turn for packed-refs.lock in this daemon. Batches and rounds of packing
 * wait for each other here, and compete for the lock file only with other
 * programs. take blocks until the present holder has had the turn for WAIT_MS.
 * false: the holder still has the turn. Any thread may give the turn back. A
 * thread that holds a turn must not wait for a second turn (WAIT_MS 0), because
 * the holder may be waiting for this thread.
 */
bool packed_turn_take(struct packed *packed, unsigned wait_ms);
void packed_turn_give(struct packed *packed);

/*
 * Rewriting. The caller holds packed-refs.lock.
 *  begin -> finish (renames packed-refs.new into place)
 *       \-> abandon (removes packed-refs.new)
 *
 * begin sorts EDITS by the bytes of the names. It reads the file in blocks, so
 * memory is needed for a few blocks only, and writes packed-refs.new with the
 * NR edits. Peeled lines of other refs stay. So the header is git's present
 * header only if the old file is fully peeled, and otherwise the old header
 * stays. A packed-refs.new of an earlier run is removed first.
 *
 * packed-refs.new must be durable before finish in every mode, because the file
 * holds refs that the journal does not know. With SYNC, begin fsyncs the file,
 * otherwise the caller fsyncs the descriptor.
 *
 * *CHANGED is false if all edits remove absent names. Then begin has written
 * nothing, and finish must not be called. MODE is exact, whatever the umask.
 * The mode of the old file does not count, because git also makes this file
 * anew, with 0666 & ~umask and core.sharedRepository.
 *
 * -ELOOP: packed-refs is a link (git rewrites the target; refd does not).
 * -EBADMSG: a malformed line. -EILSEQ: the file is not sorted, although its
 * header says so. -EFBIG: PACKED_STREAM_MAX. -ETIMEDOUT: now_mono has passed
 * UNTIL_NS. A failed begin leaves nothing behind. A failed finish leaves the
 * old file in place, and packed-refs.new to be abandoned. abandon is allowed in
 * any state.
 */
int packed_rewrite_begin(struct packed *packed, struct packed_edit *edits,
    size_t nr, mode_t mode, bool sync, int64_t until_ns, bool *changed);
/* Of packed-refs.new; borrowed, until finish or abandon. */
int packed_rewrite_fd(const struct packed *packed);
int packed_rewrite_finish(struct packed *packed);
void packed_rewrite_abandon(struct packed *packed);
/* begin with SYNC, then finish if there is a change. */
int packed_rewrite(struct packed *packed, struct packed_edit *edits, size_t nr,
    mode_t mode);

#endif
