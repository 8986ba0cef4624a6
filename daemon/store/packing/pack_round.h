/*
 * One round of packing: some loose refs of a repository move into packed-refs.
 *
 *	find	loose refs, without a lock (pack_names.c)
 *	write	under packed-refs.lock: look at the values again, rewrite
 *		packed-refs, sync the file, rename it
 *	sync	the directory
 *	prune	for every ref, under its own lock: if loose and packed value are
 *		equal, remove the loose file
 *
 * The rules:
 *	- No loose file goes before the packed-refs which has its value is
 *	  durable. A power loss may take every step after that back: then the
 *	  loose file has the same value.
 *	- A ref that anybody has locked stays loose. A value under a lock may be
 *	  taken back: an atomic transaction links its new refs before it is sure
 *	  to succeed.
 *	- Packed-refs is looked at again under the lock of the ref. Nobody
 *	  removes a ref from packed-refs without this lock, so a ref that was
 *	  deleted and made again with the same value stays.
 *	- Nobody is waited for while a lock is held.
 *
 * One thread per repository; blocks; nothing logs. The caller has a reference
 * to the repository, which has refs in files, is settled, and has no deferred
 * records.
 */
#ifndef STORE_PACK_ROUND_H
#define STORE_PACK_ROUND_H

#include "daemon/store/repos/repo.h"

struct pack_round {
	/* Set by the caller; borrowed. */
	const struct sys *sys;
	struct repo *repo;
	uint64_t token_id; /* of a batch of its own */
	/* As in struct pack_names. */
	int (*peel)(void *arg, const struct refd_oid *oid,
	    struct refd_oid *peeled);
	void *arg;

	/* Results, also after a failure. */
	size_t nr_packed; /* refs that were loose, and are not any more */
	size_t nr_left;   /* refs that others have changed or locked */
	bool is_full;     /* there may be more */
	bool
	    leaves_locks; /* the token and perhaps locks could not be removed */
	/* A sync failed of what others may have written, so the file system is
	 * not to be trusted. */
	int sync_err;
};

/* 0, or negative errno, which is -EEXIST if packed-refs is locked, or an error
 * of packed_rewrite_begin() or of the disk. */
int pack_round(struct pack_round *round);

#endif
