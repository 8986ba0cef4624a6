/*
 * A scripted transaction, recorded and published on a world. It may have any
 * members, including members that no request produces. The steps are those of
 * publish/edit.h, in the order of prepare.c, commit.c and publish.c, one member
 * after the other. So a crash or a power loss can come at each change of the
 * disk, as in these files.
 */
#ifndef TESTS_LIB_SCRIPTED_TXN_H
#define TESTS_LIB_SCRIPTED_TXN_H

#include "daemon/store/journal/record.h"
#include "tests/lib/world.h"

#define SCRIPTED_ALL 1000

struct scripted_txn {
	struct world *w;
	const char *repo; /* the path; NULL: WORLD_REPO */
	bool atomic;      /* creations are published first, by link(2) */
	size_t publish;   /* number of members to publish, up to the end of an
			     update; the rest keeps its locks, as after a
			     crash */
	/* Output. */
	struct refd_txid txid;
	uint64_t lsn;
};

/* A member of update 0: the value of NAME goes from OLD to NEW ('0': none),
 * with a log line unless ACTION is a deletion. _symref: a symbolic ref that
 * answers. _in: the same member in WORKTREE. */
struct record_member scripted_member(enum record_action action,
    const char *name, char old, char new_c);
struct record_member scripted_symref(const char *name, const char *target);
struct record_member scripted_in(const char *worktree, struct record_member m);

/* Returns 0 if "ok" was answered, or the negative errno of the failed call. */
int scripted_apply(struct scripted_txn *h, const struct record_member *members,
    size_t nr);
/* The same for an array of members. */
#define SCRIPTED_APPLY(h, members)                                             \
	scripted_apply(h, members, sizeof(members) / sizeof(*(members)))

/* Number of lines from OLD to NEW in the log at PATH; -1: the log is
 * malformed. */
int scripted_log_lines(struct world *w, const char *path, char old, char new_c);

/* The status of H's update INDEX in the journal; PENDING if there is none. */
enum refd_status scripted_status(const struct scripted_txn *h, uint32_t index);

/* Writes PATH as plain git does, a second later: lock, rename, no sync. */
void scripted_git_writes(struct world *w, const char *path, const char *text);
/* Makes the whole disk of the repositories durable. */
void scripted_sync(struct world *w);

/* world_crash() after a crash, or after a power loss that keeps KEEP changes of
 * names and DATA; then world_start(). */
int scripted_crash(struct world *w);
int scripted_power_loss(struct world *w, enum memfs_data data, long keep);

#endif
