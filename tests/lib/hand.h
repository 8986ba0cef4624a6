/*
 * A transaction that is recorded and published by hand, on a world: whatever
 * members a test likes, also such as no request leads to. It takes the steps of
 * publish/edit.h in the order of prepare.c, commit.c and publish.c, one member
 * after the other; so it can be killed or cut at each change of the disk like
 * them.
 */
#ifndef TESTS_LIB_HAND_H
#define TESTS_LIB_HAND_H

#include "daemon/store/journal/record.h"
#include "tests/lib/world.h"

#define HAND_ALL 1000

struct hand {
	struct world *w;
	const char *repo; /* the path; NULL: WORLD_REPO */
	bool atomic;      /* creations are published first, by link(2) */
	size_t publish; /* so many members, up to the end of an update; the rest
			     is left as it is, locks and all, for a kill */
	/* Filled in. */
	struct refd_txid txid;
	uint64_t lsn;
};

/* A member of update 0: NAME's value goes from OLD to NEW ('0': none); unless
 * it is deleted, with a line in its log. The second is a symbolic ref that
 * answers; the third says in which worktree. */
struct record_member hand_member(enum record_action action, const char *name,
    char old, char new_c);
struct record_member hand_symref(const char *name, const char *target);
struct record_member hand_in(const char *worktree, struct record_member m);

/* "ok" was answered: 0. Else what failed. */
int hand_apply(struct hand *h, const struct record_member *members, size_t nr);
/* The same with MEMBERS from an array. */
#define HAND_APPLY(h, members)                                                 \
	hand_apply(h, members, sizeof(members) / sizeof(*(members)))

/* How many lines of the log at PATH go OLD to NEW; -1: it is malformed. */
int hand_lines(struct world *w, const char *path, char old, char new_c);

/* What the journal answers for H's update INDEX; PENDING: nothing. */
enum refd_status hand_status(const struct hand *h, uint32_t index);

/* What plain git does, a second later: lock, rename, nothing synced. */
void hand_git_writes(struct world *w, const char *path, const char *text);
/* Somebody's sync: all of the repositories' disk lasts. */
void hand_sync(struct world *w);

/* World_crash() after a kill, or after a cut that keeps KEEP changes of names
 * and DATA; then world_start(). */
int hand_kill(struct world *w);
int hand_cut(struct world *w, enum memfs_data data, long keep);

#endif
