/*
 * A change of a stack: one new table, which the list names last.
 *
 * The live path, recovery and merges write a stack only by these steps:
 *
 *	turn		no other batch of this daemon works in the stack
 *	begin		a snapshot is the base
 *	(the caller reads and checks, by a stack_reader on u->base)
 *	table		the records become a table: refd/stage/<token>-<n>,
 *			then, by link(2), its final random name in reftable/
 *	lock		tables.list.lock is a hard link of the token
 *	check		is the base still right? (stack_base_check())
 *	sync_base	a foreign list and its tables become durable
 *	list		the next list: refd/stage/<token>-<n+1>
 *	sync, synced	the new table, the new list, the directory; beside the
 *			flush of the log
 *	place		a rename of the list publishes the table
 *	unlock		the lock goes, and the names in stage/
 *	end		in any state: removes everything that was not
 *			published, and gives the turn to the next batch
 *
 * Git waits only 100 ms for the lock. So a batch and a merge call sync_base
 * before the lock, too, and the call under the lock usually costs nothing.
 * Under the lock, merges and recovery call sync_base after list
 * (stack_sync_all()).
 *
 * For the same reason a table of more than STACK_SYNC_EARLY bytes is synced
 * before the lock (stack_sync_table()). If the base has changed, call begin()
 * again, under the lock or not. After any failure, end() cleans up.
 *
 * Readers see the old list or the new list, and both are whole, because a table
 * gets its name before the list has the name, and no name is used twice. A
 * crash leaves the lock and the names in stage/, with the inode of the table in
 * reftable/ (stack_sweep()).
 *
 * One update belongs to one thread at a time, which has the stack's turn. Only
 * a merge takes the turn later, when its table is made, so that no batch waits
 * for a large table. An update must not move between sync() and synced(). Every
 * call may block. Errors as in stack.h, with u->fault; -ENOSPC, -EDQUOT, -EIO
 * of the file system.
 */
#ifndef STORE_STACK_UPDATE_H
#define STORE_STACK_UPDATE_H

#include "daemon/store/publish/edit.h"
#include "daemon/store/refs/flush.h"
#include "daemon/store/tables/format/reftable_writer.h"
#include "daemon/store/tables/stack/stack.h"

/* Git waits only 100 ms for the lock, so a table with records of more bytes is
 * not made again under the lock at once, and takes no other tables
 * (stack_fold.c). */
#define STACK_LARGE ((uint64_t)256 * 1024)
/* A larger file is synced before the lock, because its write-out could take a
 * good part of the 100 ms that git waits for the lock. */
#define STACK_SYNC_EARLY ((uint64_t)1024 * 1024)

struct stack_update {
	struct stack *stack; /* a reference */
	bool has_turn;       /* of STACK */
	/* Of the git-dir; borrowed. -1 if it does not matter whether reftable/
	 * is still there, as for a merge. */
	int git_fd;
	struct stack_snapshot *base; /* a reference; NULL: not begun */
	/* tables.list in stack->dirfd. For the standing lock of a crash the
	 * caller sets progress and is_earlier. */
	struct edit list;
	unsigned value_nr; /* the table in stage/; the list is VALUE_NR + 1 */
	bool has_staged;   /* the table is in stage/ */
	bool has_table;    /* TABLE is in reftable/ */
	bool is_large;     /* beyond STACK_LARGE */
	char table[REFTABLE_WRITER_NAME];
	struct sys_stat table_stat;
	/* The mode of new files. init() sets 0600, and the caller adds the bits
	 * of each writer, as git computes the bits for a ref in a file. New
	 * files get the group of refd/stage/, because a shared repository gives
	 * its group to new directories. */
	mode_t mode;
	int table_fd, list_fd; /* owned; -1 */
	char *new_list;        /* owned; NULL: not staged */
	uint64_t index;        /* of all new records of the table */
	/* For the logs of deleted refs; borrowed. If NULL, they have a budget
	 * of their own. */
	struct reftable_budget *budget;
	/* Set by the caller after begin(), if small tables may be folded into
	 * the new table (stack_fold.c). */
	bool may_fold;
	bool is_merge; /* the table has no new record: stack_merge.h */
	/* The tables of BASE from FIRST_FOLDED to END_FOLDED - 1 are in TABLE.
	 * The last NR_LOCKED of them are locked. */
	size_t first_folded, end_folded, nr_locked;
	struct flush_one flushes[3];
	size_t nr_flushes;
	bool has_dir_flush;   /* the last of them is of the directory */
	bool is_flushed;      /* no flush of the table is left to do */
	bool is_list_flushed; /* the new list is durable, in stage/ */
	bool is_base_synced;  /* the base is durable */
	bool is_base_unnamed; /* except for the name of its list */
	int err;              /* of the flushes; final: no rename may follow */
	/* A flush of the directory or of the base failed. Bytes and names there
	 * are not of this update alone, and a second flush might succeed
	 * without them, so the caller reports that the file system failed.
	 * Other errors do not matter to the file system. Never reset. */
	bool is_fs_lost;
	struct reftable_fault fault;
};

/* Takes a reference to STACK, and borrows TOKEN and GIT_FD. If TOKEN is NULL
 * the lock is git's, only for stack_mend(). Two numbers of the token's values,
 * from VALUE_NR on, belong to the update. */
void stack_update_init(struct stack_update *u, struct stack *stack, int git_fd,
    struct token *token, unsigned value_nr);
/* Calls stack_turn_take(). The turn goes with the update. */
bool stack_update_turn(struct stack_update *u, unsigned wait_ms);
/* In any state: removes lock, table and staged files that were not published,
 * so that the next update begins on a clean stack, and closes all. Then the
 * turn and the references go. If the list's edit is DEFERRED, the list may name
 * the table, so all files stay for recovery. 0, or the first failure to
 * remove. */
int stack_update_end(struct stack_update *u);

/* Takes a new base, and drops the table of an earlier round. */
int stack_update_begin(struct stack_update *u);
/* ---- the table (stack_table.c) ---- */

/* Sets *RECORD to record I of a table: a ref, or a log entry. *RECORD has INDEX
 * already, and only a log entry may get an older index. The records are sorted
 * first, so FN is called several times per record. Names must live until the
 * end of stack_table_make(), other texts until the next call. */
typedef void stack_record_of_fn(void *arg, size_t i,
    struct reftable_record *record);

/*
 * Makes the table of NR records, in any order. A deleted ref has no log, so the
 * table also gets a tombstone for each of its log entries in the base. A
 * message is cut to half a block, and ends with a line feed, as in git. Sets
 * u->index by stack_next_index(), and spends the index.
 *
 * -EINVAL if a key comes twice, or a name is bad. -E2BIG if a record does not
 * fit into a block. -EOVERFLOW if no index is left. -EFBIG if too many entries
 * are deleted.
 */
int stack_table_make(struct stack_update *u, size_t nr, stack_record_of_fn *fn,
    void *arg);
/*
 * The two ends of a table whose bytes somebody else writes to u->table_fd. Its
 * records have the indices MIN to MAX, which are parts of its name. create()
 * makes the file in stage/, and name() links the whole file. With git's lock,
 * create() makes the file by its name at once, because refd may not own stage/.
 */
int stack_table_create(struct stack_update *u, uint64_t min, uint64_t max);
int stack_table_name(struct stack_update *u, uint64_t min, uint64_t max);
/* Removes the table, first its name in reftable/, but not after place(). If the
 * list's edit is DEFERRED, the list may name the table, so all stays. */
int stack_table_drop(struct stack_update *u);

/* ---- the lock ---- */

/* Locks the list. -EEXIST if another writer holds the lock. Several stacks are
 * locked in the order main, then worktrees by id. */
int stack_update_lock(struct stack_update *u);

/*
 * stack_base.c: is the list still the base, so that the checked table may be
 * published? Without the lock the result is only a hint. Locks the folded
 * tables, because git must not merge them meanwhile. The base of a merge may
 * have grown, and then u->base is the present list. 1 if yes. 0 if a new round
 * has to begin, under the lock if wanted. -ESTALE if reftable/ is a different
 * directory now.
 */
int stack_base_check(struct stack_update *u);

/* Stages the list of the base, without folded tables, and with the table. Under
 * the lock, after the check. -EFBIG if the list is full. */
int stack_update_list(struct stack_update *u);
/* Stages LIST, which this call takes over, also after a failure. */
int stack_update_stage(struct stack_update *u, char *list);

/* ---- durability (stack_sync.c) ---- */

/*
 * Makes the base durable, before the journal gets a row, because recovery
 * relies on the base of every row. Flushes the tables that are not known to be
 * durable, and the present list. Under the lock, or without a table, their
 * names are flushed, too. Costs no system call if refd wrote the stack last, or
 * if the stack is older than BEFORE_NS (stack_snapshot_is_durable()). With
 * COVERS_ALL, as in stack_sync_begin(), no flush of the directory is needed.
 * -ESTALE if the list has changed since, so the caller takes a new base.
 * Failures are in u->err too. A failed flush sets u->is_fs_lost, and must not
 * be repeated.
 */
int stack_sync_base(struct stack_update *u, int64_t before_ns, bool covers_all);

/* Flushes the table before the lock, so that the lock need not wait. The name
 * of the table becomes durable with stack_sync_begin(). A failure is in u->err
 * too. */
int stack_sync_table(struct stack_update *u);

/* Begins to flush table, list and directory, side by side. With COVERS_ALL
 * (fs->fsync_covers_all) the table is only written out, because it becomes
 * durable with its name not later than the rename of the list. Then no flush of
 * the directory is needed. If FLUSHER is NULL the call blocks. Without a table
 * only the directory is flushed, after stack_sync_base() for a confirmed
 * value. */
void stack_sync_begin(struct stack_update *u, struct flusher *flusher,
    bool covers_all);
/* Waits, and returns 0 or u->err, the first failure. Then no rename may follow,
 * and the files must not be synced again, because a second sync may succeed
 * without the lost data. */
int stack_sync_end(struct stack_update *u);
/* Flushes the base, then table, list and directory, without a journal
 * beside. */
int stack_sync_all(struct stack_update *u, struct flusher *flusher,
    int64_t before_ns, bool covers_all);

/* ---- publishing ---- */

/* Renames the list. After a failure the lock stands, and nothing is dropped. If
 * the rename may have happened, the list may name the table. So the edit of the
 * list is DEFERRED, and nothing is ever dropped. -ESTALE: the rename happened,
 * but reftable/ is a different directory now. */
int stack_update_place(struct stack_update *u);
/* Removes the lock, as edit_unlock(), and the table's name in stage/. */
int stack_update_unlock(struct stack_update *u);
/* The parts of stack_fold.c. choose() picks the tables to fold, if the new
 * table has NEW_SIZE bytes. lock() and unlock() concern the locks of these
 * tables. retire() comes after place(): stack_tidy_end() may remove the folded
 * tables. */
void stack_fold_choose(struct stack_update *u, uint64_t new_size);
/* Takes all locks or none. -EEXIST if git merges one of the tables. */
int stack_fold_lock(struct stack_update *u);
int stack_fold_unlock(struct stack_update *u);
void stack_fold_retire(struct stack_update *u);

#endif
