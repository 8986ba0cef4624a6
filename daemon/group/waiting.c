/*
 * Repositories whose rows wait. The rows of such a repository are in the
 * journal, so this node has them, and the repository never holds up the others.
 * Rows that have arrived together are put off with one flush.
 *
 *	put	a row that can't be applied, and each later row of its
 *		repository. The row takes its turn in the order of the group
 *	try	the first row of a repository, in its order, until it is
 *		applied; then the next one
 *
 * group_set_waiting() knows the first of all rows that wait, so nobody takes
 * this node for a whole copy. The node does not lead, and no update counts as
 * applied here.
 *
 * What fails: the journal takes no row, as on a full disk: then all rows wait.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/group/follower_internal.h"

#define PAUSE_NS     (20 * 1000000LL)
#define PAUSE_MAX_NS (1000 * 1000000LL)
/* Failed attempts for one repository take at most this part of the time,
 * because one thread serves all repositories. */
#define PAUSE_PART 10
/* All repositories that wait together. */
#define ALL_PART 3
#define NEVER_NS (3600 * 1000000000LL)

struct waiting_repo {
	uint8_t uuid[16];
	uint64_t lsn; /* of the first row, or of one before that was applied */
	int64_t next_ns, pause_ns;
	struct attempt attempt; /* of the first row */
	LIST_ENTRY(waiting_repo) link;
};

static struct waiting_repo *find(const struct follower *f,
    const uint8_t uuid[16])
{
	struct waiting_repo *w;

	LIST_FOREACH(w, &f->waiting, link)
		if (memcmp(w->uuid, uuid, sizeof(w->uuid)) == 0)
			return w;
	return NULL;
}

bool waiting_has(const struct follower *f, const uint8_t uuid[16])
{
	return find(f, uuid) != NULL;
}

/* The attempts of W's first row begin. */
static void begin(struct follower *f, struct waiting_repo *w)
{
	attempt_init(f, &w->attempt, NULL);
	w->next_ns = w->attempt.since_ns;
	w->pause_ns = PAUSE_NS;
}

static struct waiting_repo *add(struct follower *f, const uint8_t uuid[16],
    uint64_t lsn)
{
	struct waiting_repo *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	memcpy(w->uuid, uuid, sizeof(w->uuid));
	w->lsn = lsn;
	begin(f, w);
	LIST_INSERT_HEAD(&f->waiting, w, link);
	return w;
}

static void drop(struct waiting_repo *w)
{
	LIST_REMOVE(w, link);
	free(w);
}

void waiting_free(struct follower *f)
{
	while (!LIST_EMPTY(&f->waiting))
		drop(LIST_FIRST(&f->waiting));
}

/* Tells the group which row is the first one. */
static void tell(struct follower *f)
{
	struct group_waiting all = { .lsn = 0 };
	const struct waiting_repo *w;

	LIST_FOREACH(w, &f->waiting, link) {
		all.nr_repos++;
		if (all.lsn == 0 || w->lsn < all.lsn)
			all.lsn = w->lsn;
		if (all.since_ns == 0 || w->attempt.since_ns < all.since_ns)
			all.since_ns = w->attempt.since_ns;
	}
	group_set_waiting(f->group, &all);
}

static int add_stored(void *follower, const struct journal_waiting *row)
{
	return add(follower, row->repo, row->lsn) != NULL ? 0 : -ENOMEM;
}

int waiting_load(struct follower *f)
{
	int r = journal_each_waiting(f->host->repos->journal, add_stored, f);

	tell(f);
	return r;
}

/* ---- putting a row off ---- */

/* The attempt to write has ended with R. A failure is followed by a pause.
 * True: write again. */
static bool must_write_again(struct follower *f, struct attempt *a, int r)
{
	if (r >= 0 || !group_is_linked(f->group))
		return false;
	attempt_say(a, "the row can't be put off: %s", strerror(-r));
	attempt_report(f, a);
	SYS(f->host->sys, sleep_ns, PAUSE_MAX_NS);
	return true;
}

bool waiting_leave(struct follower *f, struct attempt *a)
{
	int r = 0;

	if (LIST_EMPTY(&f->waiting))
		return true;
	do
		r = journal_take_place(f->host->repos->journal, a->row->repo,
		    a->row->path.data, a->row->path.len);
	while (must_write_again(f, a, r));
	if (r > 0)
		group_fail(f->group, "the journal can't be written");
	return r == 0;
}

/* *W: the repository; NULL: it does not wait yet. */
static int put(struct follower *f, const struct group_input *in,
    const struct attempt *a, struct waiting_repo **w)
{
	const bool is_new = *w == NULL;
	int r;

	if (is_new)
		*w = add(f, a->row->repo, a->lsn);
	if (*w == NULL)
		return -ENOMEM;
	r = group_postpone(f->group, in);
	if (r < 0 && is_new) {
		drop(*w);
		*w = NULL;
	}
	return r;
}

bool waiting_put(struct follower *f, const struct group_input *in,
    struct attempt *a)
{
	struct waiting_repo *w = find(f, a->row->repo);
	const bool is_new = w == NULL;
	int r;

	do
		r = put(f, in, a, &w);
	while (must_write_again(f, a, r));
	if (r != 0)
		return false;
	if (is_new) {
		/* The caller frees IN, so the attempts go on with the row from
		 * the journal. */
		w->attempt = *a;
		w->attempt.row = NULL;
		f->put_ns = w->next_ns;
	}
	/* The flush comes later, and no batch counts the row before. */
	tell(f);
	return true;
}

/* ---- trying again ---- */

/* Sets the pauses after an attempt that began at BEGAN_NS. An attempt that
 * takes long must not take the time of other repositories, so the pause is a
 * multiple of the time of the attempt. After an attempt that has mended refs,
 * the next attempt goes on where it ended, so only the pause of all
 * repositories follows. But another program may write the refs again and again,
 * so the least pause grows each time. */
static void pause_after(struct follower *f, struct waiting_repo *w,
    int64_t began_ns, enum result result)
{
	const int64_t now_ns = SYS(f->host->sys, now_mono);

	f->try_ns = now_ns + ALL_PART * (now_ns - began_ns);
	w->next_ns = now_ns + w->pause_ns;
	if (result != RESULT_AGAIN)
		w->next_ns += PAUSE_PART * (now_ns - began_ns);
	if (w->pause_ns < PAUSE_MAX_NS)
		w->pause_ns *= 2;
}

static enum result cannot_read(struct follower *f, struct waiting_repo *w,
    const char *why)
{
	attempt_say(&w->attempt, "the journal can't read the row: %s", why);
	attempt_report(f, &w->attempt);
	return RESULT_WAITS;
}

static enum result try_row(struct follower *f, struct waiting_repo *w,
    const struct journal_waiting *row)
{
	struct refd_arena *arena = refd_arena_new();
	const char *why = "out of memory";
	struct group_frame frame;
	enum result result;

	if (arena != NULL)
		why = group_frame_decode(row->bytes, row->len, arena, &frame);
	if (why == NULL) {
		w->attempt.row = &frame.row.row;
		w->attempt.lsn = row->lsn;
		w->attempt.has_left = !row->has_place;
		result = attempt_try(f, &w->attempt);
		w->attempt.row = NULL;
	} else {
		result = cannot_read(f, w, why);
	}
	refd_arena_free(arena);
	return result;
}

static void try_first(struct follower *f, struct waiting_repo *w)
{
	const int64_t began_ns = SYS(f->host->sys, now_mono);
	struct journal_waiting row;
	enum result result;
	int r = journal_read_waiting(f->host->repos->journal, w->uuid, &row);

	if (r == -ENOENT) {
		drop(w);
		tell(f);
		return;
	}
	if (r == 0 && row.lsn != w->lsn) {
		w->lsn = row.lsn;
		tell(f);
	}
	result = r == 0 ? try_row(f, w, &row) :
			  cannot_read(f, w, strerror(r < 0 ? -r : EIO));
	free(row.bytes);
	if (result == RESULT_DONE)
		begin(f, w);
	else
		pause_after(f, w, began_ns, result);
}

int64_t waiting_try(struct follower *f)
{
	const int64_t now_ns = SYS(f->host->sys, now_mono);
	struct waiting_repo *w, *first = NULL;
	int64_t next_ns = now_ns + NEVER_NS;

	LIST_FOREACH(w, &f->waiting, link)
		if (first == NULL || w->next_ns < first->next_ns)
			first = w;
	if (first != NULL && first->next_ns <= now_ns && f->try_ns <= now_ns)
		try_first(f, first);
	LIST_FOREACH(w, &f->waiting, link)
		if (w->next_ns < next_ns)
			next_ns = w->next_ns;
	if (next_ns < f->try_ns)
		next_ns = f->try_ns;
	return next_ns > now_ns ? next_ns - now_ns : 0;
}
