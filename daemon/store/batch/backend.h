/*
 * The ref backend: the steps of a pass that depend on the format of the refs. A
 * second format needs no second store (docs/decisions/017-reftable.md), so
 * prepare*.c, commit.c, publish.c and durability*.c know no format.
 *
 * Only the thread of the pass calls the operations, and every operation may
 * block. P is the pass, G a repo slice, C a change of G. An operation without a
 * result decides the changes that fail (change_fail(), change_again()), because
 * the errors of a lock depend on the format.
 */
#ifndef STORE_BACKEND_H
#define STORE_BACKEND_H

#include "daemon/store/batch/pass.h"

struct ref_backend {
	/* True for tables, where a pass makes one file for all changes of a
	 * repository. So hold() takes no lock, make() and seal() may ask for a
	 * new round, and after a failure every transaction is tried alone. In
	 * the modes batch and fsync publish() makes names durable. Files have
	 * no rounds, so files have no make(). */
	bool has_rounds;
	/* The work before any lock, such as making the token if a change is
	 * live. Files: also writes the new values into stage/. */
	void (*stage)(struct pass *p, struct repo_slice *g);
	/*
	 * From now on the value of C cannot change unnoticed. Files: takes
	 * <ref>.lock. Tables: takes no lock, and reads the snapshot, which
	 * seal() compares with the locked list. Sets *VALUE, to be freed by
	 * loose_value_done(); the ref may still be elsewhere, see held().
	 * false: C failed, or was given back.
	 */
	bool (
	    *hold)(struct pass *p, struct change *c, struct loose_value *value);
	/* All changes of G are held, so their values are completed. Files:
	 * reads packed-refs. Tables: nothing, because the snapshot has all
	 * values. */
	void (*held)(struct pass *p, struct repo_slice *g);
	/*
	 * Reads a value without holding the ref. AT names the place of the
	 * ref: the members repo_slice and worktree, and of EDIT the directory
	 * and the name. 0 or negative errno.
	 */
	int (*look)(struct pass *p, const struct change *at,
	    struct loose_value *value);
	/* For a gate: gives the changes of G the values that the refs have now
	 * (change_glanced()), without a lock. If git would pack a former value,
	 * the line in packed-refs would bring this value back, so the
	 * transaction is refused. */
	void (*glance)(struct pass *p, struct repo_slice *g);
	/* Has the ref at AT a log? 1, 0, or negative errno. */
	int (*has_log)(struct pass *p, const struct change *at);
	/* Fails C, which does not exist, if stored refs above or below its name
	 * exclude C. Calls change_check_siblings(). */
	void (*conflict)(struct pass *p, struct change *c);
	/* C gets a log line, or is a deletion: sets c->log. CREATE: a missing
	 * log is to be created. */
	void (*log)(struct pass *p, struct change *c, bool create);
	/* Only with HAS_ROUNDS: makes and flushes everything large that seal()
	 * needs. All repositories come before the first lock, because no lock
	 * may stand during a flush. true: another writer came in between, so
	 * prepare.c begins a new round of all undecided changes at hold(). */
	bool (*make)(struct pass *p, struct repo_slice *g);
	/*
	 * Takes the locks that hold() did not take. Files: only packed-refs,
	 * for deletions and for many new refs; nothing for a ref that stays
	 * loose. Tables: the lists. After seal() publishing needs no further
	 * resource. Sets g->is_bound, and in_rewrite of the changes that share
	 * the prepared file. Sets p->has_staged if values were staged for
	 * durability_values(). true: a new round, as for make().
	 */
	bool (*seal)(struct pass *p, struct repo_slice *g);
	/* A prepared session waits for its client, perhaps for long, so this
	 * step gives back everything that the commit does not need. */
	void (*wait)(struct pass *p, struct repo_slice *g);
	/* The client of a prepared session commits. true: the session needs a
	 * new round. */
	bool (*resume)(struct pass *p, struct repo_slice *g);
	/* Begins to sync the prepared file before the log's flush, so that both
	 * run at once; waits for the end. */
	void (*sync)(struct pass *p, struct repo_slice *g);
	void (*synced)(struct pass *p, struct repo_slice *g);
	/* The first failed flush of G, or 0: the prepared file may not be
	 * published. */
	int (*sync_error)(const struct repo_slice *g);
	/* Publishes the committed changes. Changes that can't be published are
	 * marked by change_take_back() or change_keep(). */
	void (*publish)(struct pass *p, struct repo_slice *g);
	/* Removes all locks and staged files, in any state, except those of
	 * deferred changes. Sets p->unlocked_ns. */
	void (*release)(struct pass *p, struct repo_slice *g);
};

extern const struct ref_backend files_backend, tables_backend;

#endif
