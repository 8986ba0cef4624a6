/*
 * The foreign writer: changes refs like a stock git process, with the same
 * order of system calls, through any struct sys. So it can work in memfs beside
 * the code under test (memfs_other()) or on a real disk.
 *
 * As in git 2.39 to 2.55 with the files backend (lock_raw_ref,
 * files_transaction_finish, files_pack_refs, prune_ref), but without reflogs,
 * symbolic refs, object checks and waiting: a taken lock is -EEXIST at once.
 */
#ifndef TESTS_LIB_PLAINGIT_H
#define TESTS_LIB_PLAINGIT_H

#include <stdbool.h>

#include "daemon/base/sys.h"

#define PLAINGIT_HEX 64 /* of SHA-256; an id of SHA-1 has 40 digits */

struct plaingit {
	const struct sys *sys;
	int dirfd;  /* the common dir */
	bool syncs; /* "reference" in core.fsync; off by default */
	bool is_sha256;
};

/* All functions return 0 or a negative errno. A failed call leaves no lock
 * behind unless unlinking fails. HEX has the digits of an id. */
int plaingit_update(const struct plaingit *git, const char *ref,
    const char *hex);
/* -ENOENT: no such ref. */
int plaingit_delete(const struct plaingit *git, const char *ref);
/* pack-refs --all --prune */
int plaingit_pack_refs(const struct plaingit *git);
/* -ENOENT: no such ref. -EBADMSG: broken. */
int plaingit_read(const struct plaingit *git, const char *ref,
    char hex[PLAINGIT_HEX + 1]);

/* A process that stops while holding <ref>.lock. */
int plaingit_lock(const struct plaingit *git, const char *ref);
int plaingit_unlock(const struct plaingit *git, const char *ref);

#endif
