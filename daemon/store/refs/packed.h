/*
 * packed-refs: looking names up, and rewriting the file.
 *
 * A snapshot is the file as it was opened. A sorted file is searched with
 * pread(2), a few kilobytes for each look-up, however large the file is. A
 * file that is small or not sorted is read whole and sorted in memory. Nothing
 * is mapped: whoever may write the file may shorten it at any moment.
 *
 * The snapshot keeps its descriptor open. That pins the inode, so that "same
 * dev, ino, size, mtime and ctime" really means the same file (git-compat A2 in
 * one sentence: ext4 reuses inode numbers at once). A file that refd replaced
 * is kept open for two seconds more, so that plain git, which compares whole
 * seconds, can't be fooled either.
 *
 * A struct packed belongs to one repository and locks itself: any thread.
 * Every call may block. 0 or negative errno; nothing logs. -EBADMSG: a
 * malformed line: what git dies of, an unterminated last line among it, and
 * CRLF, of which git makes broken refs; also a record of more than 4096 bytes.
 * Only what is read is looked at: packed_check() reads all of it. -EFBIG: the
 * file is beyond a bound below, and git has to do what is asked.
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
/* Bytes. The largest unsorted file: git has sorted what it writes since 2.15,
 * and every change of the file has all of it read and sorted again. */
#define PACKED_UNSORTED_MAX ((size_t)4 << 20)
/* Bytes. The largest file that is read from end to end, to be rewritten or
 * checked. Look-ups have no such bound. */
#define PACKED_STREAM_MAX ((size_t)1 << 30)
/* Bytes. Rewriting a larger file takes so long that nothing else may wait for
 * it (prepare_packed.c). */
#define PACKED_LARGE ((size_t)8 << 20)

/* DIRFD (the common dir) is borrowed for the life of the struct. */
struct packed *packed_new(const struct sys *sys, int dirfd);
/* Snapshots that are still held live on; a rewrite is abandoned. */
void packed_free(struct packed *packed);
/* How many descriptors it holds; closes what is past its two seconds. 0, and
 * nothing, while another thread reads the file: its disk may hang. */
int packed_trim(struct packed *packed);

/* The file as it is now; an absent file is an empty snapshot. One stat(2)
 * where it is the one that is cached. A link is followed to a file below DIRFD
 * (packed_file.h), else -ELOOP. On failure *SNAP is untouched. -EFBIG:
 * PACKED_UNSORTED_MAX. */
int packed_snapshot(struct packed *packed, struct packed_snapshot **snap);
void packed_snapshot_put(struct packed_snapshot *snap);

/* 1: it is there, 0: it is not, and *OID is untouched. OID may be NULL. Reads
 * some 8 KB for each halving of the file beyond the eighth. */
int packed_lookup(const struct packed_snapshot *snap, const char *name,
    struct refd_oid *oid);
/* A ref below DIR (given with its trailing slash): 1, and its name in FOUND;
 * or 0. As packed_lookup(). */
int packed_find_below(const struct packed_snapshot *snap, const char *dir,
    char found[REFD_PATH_MAX]);
/* Is every line well formed? Reads all of it. -EFBIG: PACKED_STREAM_MAX. */
int packed_check(const struct packed_snapshot *snap);

/*
 * Is rewriting the file, as large as it is now, cheaper than NR loose files?
 * At least LEAST of them it has to be: see packed_rewrite.c for the prices.
 * One stat(2).
 */
#define PACKED_LEAST 100
bool packed_pays(struct packed *packed, size_t nr, size_t least);
/* Is the file beyond PACKED_LARGE now? One stat(2). */
bool packed_is_large(struct packed *packed);

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
 * Rewriting. The caller holds packed-refs.lock.
 * begin -> finish (renames packed-refs.new into place)
 *      \-> abandon (removes packed-refs.new)
 *
 * begin sorts EDITS by the bytes of the names. It reads the file in blocks and
 * writes packed-refs.new with the NR edits. Peeled lines of other refs stay.
 * Memory is needed for a few blocks. The header is the one that git writes; if
 * the old file is not fully peeled, its header stays. A packed-refs.new of an
 * earlier run is removed first.
 *
 * packed-refs.new must be durable before finish in every mode, because it holds
 * refs that the journal does not know. With SYNC, begin fsyncs it. Otherwise the
 * caller fsyncs the descriptor.
 *
 * *CHANGED is false if all edits remove names that the file does not have. Then
 * begin has written nothing, and finish must not be called. MODE is exact,
 * whatever the umask. git makes this file anew, too, with 0666 & ~umask and
 * core.sharedRepository, and ignores the mode of the old file.
 *
 * -ELOOP: packed-refs is a link (git rewrites the target; refd does not).
 * -EBADMSG: a malformed line. -EILSEQ: the file is not sorted, although its
 * header says so. -EFBIG: PACKED_STREAM_MAX. -ETIMEDOUT: now_mono has passed
 * UNTIL_NS. A begin that fails leaves nothing behind. A finish that fails leaves
 * the old file in place, and packed-refs.new to be abandoned. abandon is allowed
 * in any state.
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
