/*
 * Look-ups of refs and reflogs in a snapshot.
 *
 * A reader belongs to one thread, and borrows the snapshot, which must live
 * longer. Zero-initialised is empty. Every call may block. Returns 1 if found,
 * 0 if not found, or a negative errno with reader->fault (stack.h has the
 * list).
 *
 * A reader keeps two blocks per table, so names in ascending order are cheap. A
 * budget bounds memory and work, and a call beyond the budget is -EFBIG. Every
 * look-up adds to the budget, because a request may have very many, and its
 * owner pays for them.
 */
#ifndef STORE_STACK_READER_H
#define STORE_STACK_READER_H

#include "daemon/store/tables/stack/stack.h"

/* The work that a reader may do. The first limit is for each reader, whatever
 * the stack contains: the largest blocks of the format have 16 MiB, so the
 * limit is enough for a few of them. The second limit is added for each
 * look-up, because a look-up in a stack of a million refs by git needs 60 to
 * 120 KiB. */
#define STACK_WORK_MAX  ((uint64_t)128 * 1024 * 1024)
#define STACK_WORK_EACH ((uint64_t)128 * 1024)

struct stack_reader {
	const struct stack_snapshot *snap; /* borrowed */
	struct stack_cursor *refs, *logs;  /* one per table; owned */
	struct reftable_budget *budget;    /* borrowed */
	/* No ref has the name of this directory, or of a directory above. */
	char clear_dir[REFD_PATH_MAX];
	/* The index of the tombstone, if the last stack_reader_find() found no
	 * ref. 0 if there is no record at all, perhaps because git merged the
	 * tombstone away. */
	uint64_t deleted_index;
	/* The largest index of the tables before the record, or before the
	 * tombstone, of the last stack_reader_find(); 0 without a record. */
	uint64_t earlier_index;
	struct reftable_fault fault; /* of the last failure */
};

/* -ENOMEM if memory is short. The reader must not move afterwards. */
int stack_reader_init(struct stack_reader *reader,
    const struct stack_snapshot *snap, struct reftable_budget *budget);
/* Allowed in any state, and more than once. */
void stack_reader_done(struct stack_reader *reader);

/* Finds the ref NAME. *REF (may be NULL) is valid until the next call, and its
 * texts are not terminated by NUL. ref->update_index is the index of the
 * record. For a deleted ref the result is 0, and *REF is untouched. */
int stack_reader_find(struct stack_reader *reader, const char *name,
    const struct reftable_record **ref);

/* Finds the newest record of SECTION with KEY (reftable_block.h), perhaps a
 * tombstone. *REC is as *REF of stack_reader_find(). */
int stack_reader_record(struct stack_reader *reader,
    enum reftable_section section, const uint8_t *key, size_t key_len,
    const struct reftable_record **rec);

/* Has NAME a reflog? An empty reflog counts, because git marks it by an entry
 * with two null ids. */
int stack_reader_has_log(struct stack_reader *reader, const char *name);
/* Calls FN for every log record of NAME, the newest first, also for the marker
 * of an empty log. FN returns 0 to go on; a different value ends the search and
 * is returned. */
typedef int stack_log_fn(void *arg, const struct reftable_record *log);
int stack_reader_logs(struct stack_reader *reader, const char *name,
    stack_log_fn *fn, void *arg);

/*
 * Searches for a ref that excludes NAME: first a ref above ("a" excludes
 * "a/b"), then a ref below. SKIP, which may be NULL, says that a ref does not
 * count, because the same transaction deletes the ref. The search then goes on
 * behind this ref. Returns 1 with the name of the first ref that counts in
 * FOUND.
 */
typedef bool stack_skip_fn(void *arg, const char *name);
int stack_reader_conflict(struct stack_reader *reader, const char *name,
    stack_skip_fn *skip, void *arg, char found[REFD_PATH_MAX]);

/* Calls FN, as above, for every ref, or for the newest log record of every
 * name, that begins with PREFIX, in order. */
typedef int stack_record_fn(void *arg, const struct reftable_record *record);
int stack_reader_each(struct stack_reader *reader,
    enum reftable_section section, const char *prefix, stack_record_fn *fn,
    void *arg);

#endif
