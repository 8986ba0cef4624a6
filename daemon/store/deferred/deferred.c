/*
 * The repositories in which redo is deferred.
 *
 * Happy path: no redo is deferred.
 *
 * Failures:
 *	the search for locks does not end (-EUSERS)	such a search takes
 *		seconds. The error is remembered, and admissions are refused
 *		without a search, because searches would keep all threads busy
 *	memory	a repository might be written before its redo, so the store
 *		cannot be used any more
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/hash.h"
#include "daemon/store/deferred/deferred_internal.h"
#include "daemon/store/repos/repo_id.h"
#include "proto/lib/array.h"

struct deferred_repo {
	uint64_t repo;
	enum deferred_state state;
	uint64_t nr; /* deferred members; only in DEFERRED_REDO */
	uint8_t uuid[16];
	char *path;
	int err;          /* of the last retry; 0: no failure */
	int64_t tried_ns; /* end of the last retry; monotonic */
	int64_t pause_ns; /* from then on no retry; 0: none */
	bool is_lacking;
	/* Batches of this run that have ended and left locks in the
	 * repository. */
	uint64_t *left;
	size_t nr_left;
	UT_hash_handle hh;
};

/* The least time before a search that did not end is repeated. The retries of
 * the checkpoint search first. An admission waits longer, because it searches
 * only if those retries could not, as after a move of the repository. */
#define RETRY_SEARCHES_NS     (60 * INT64_C(1000000000))
#define ADMISSION_SEARCHES_NS (10 * RETRY_SEARCHES_NS)
/* A pause takes this multiple of the retry before. */
#define PAUSE_PARTS 10

static void free_one(struct deferred_repo *a)
{
	free(a->left);
	free(a->path);
	free(a);
}

/* A note never lowers the state. Under MUTEX. */
static void raise_state(struct deferred_repo *a, enum deferred_state state)
{
	if (a->state < state)
		a->state = state;
}

/* Returns the entry of REPO, and makes it if needed, or NULL if out of memory.
 * Under MUTEX. */
static struct deferred_repo *get(struct deferred *d,
    const struct journal_repo *repo)
{
	struct deferred_repo *a;

	HASH_FIND(hh, d->repos, &repo->id, sizeof(repo->id), a);
	if (a != NULL)
		return a;
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return NULL;
	a->repo = repo->id;
	memcpy(a->uuid, repo->uuid, sizeof(a->uuid));
	a->path = strdup(repo->path);
	if (a->path != NULL)
		HASH_ADD(hh, d->repos, repo, sizeof(a->repo), a);
	if (a->path != NULL && a->hh.tbl != NULL)
		return a;
	free_one(a);
	return NULL;
}

/* Adds NR deferred members to the entry of REPO. Under MUTEX. NULL: out of
 * memory. *IS_NEW: no member was deferred there before. */
static struct deferred_repo *add(struct deferred *d,
    const struct journal_repo *repo, uint64_t nr, bool *is_new)
{
	struct deferred_repo *a = get(d, repo);

	if (a == NULL)
		return NULL;
	*is_new = a->nr == 0;
	a->nr += nr;
	raise_state(a, a->nr > 0 ? DEFERRED_REDO : DEFERRED_SEARCH);
	return a;
}

/* Under MUTEX, and false if out of memory. */
static bool add_left(struct deferred *d, const struct journal_repo *repo,
    uint64_t token)
{
	struct deferred_repo *a = get(d, repo);
	uint64_t *grown;

	if (a == NULL)
		return false;
	grown = realloc(a->left, (a->nr_left + 1) * sizeof(*grown));
	if (grown == NULL)
		return false;
	a->left = grown;
	a->left[a->nr_left++] = token;
	raise_state(a, DEFERRED_LOCKS);
	return true;
}

/* Under MUTEX. */
static struct deferred_repo *find(const struct deferred *d, uint64_t repo)
{
	struct deferred_repo *a;

	HASH_FIND(hh, d->repos, &repo, sizeof(repo), a);
	return a;
}

/* Under MUTEX. */
static void set_lacking(struct deferred *d, struct deferred_repo *a,
    bool is_lacking)
{
	if (a->is_lacking == is_lacking)
		return;
	a->is_lacking = is_lacking;
	if (is_lacking && d->nr_lacking++ == 0)
		d->lacking_since_ns = SYS(d->cfg->sys, now_mono);
	if (!is_lacking)
		d->nr_lacking--;
}

/* Under MUTEX. */
static void set_err(const struct deferred *d, struct deferred_repo *a, int err)
{
	a->err = err;
	a->tried_ns = SYS(d->cfg->sys, now_mono);
}

static bool note(struct deferred *d, const struct journal_repo *repo,
    uint64_t nr, int err)
{
	struct deferred_repo *a;
	bool is_new = false;

	mutex_lock(&d->mutex);
	a = add(d, repo, nr, &is_new);
	if (a != NULL && err == -EUSERS)
		set_err(d, a, err);
	mutex_unlock(&d->mutex);
	if (a == NULL)
		d->cfg->fatal(d->cfg->store, "out of memory in recovery");
	return a != NULL && is_new;
}

void deferred_note(struct deferred *d, const struct journal_repo *repo,
    uint64_t nr, int err)
{
	note(d, repo, nr, err);
}

void deferred_note_lacking(struct deferred *d, uint64_t repo)
{
	struct deferred_repo *a;

	mutex_lock(&d->mutex);
	a = find(d, repo);
	if (a != NULL)
		set_lacking(d, a, true);
	mutex_unlock(&d->mutex);
}

void deferred_add(struct deferred *d, const struct journal_repo *repo,
    uint64_t nr, const char *why)
{
	const struct store_config *cfg = d->cfg->config;
	const struct store_found found = { .finding = STORE_DEFERRED,
		.repo = repo->path,
		.ref = "",
		.text = why };

	if (note(d, repo, nr, 0) && cfg->found != NULL)
		cfg->found(cfg->found_arg, &found);
}

void deferred_add_line(struct deferred *d, const struct repo *repo)
{
	struct journal_repo known = { .id = repo->id, .path = repo->path };

	memcpy(known.uuid, repo->uuid, sizeof(known.uuid));
	deferred_add(d, &known, 1,
	    "a log line could not be written; refd tries again");
}

void deferred_add_locks(struct deferred *d, const struct repo *repo,
    uint64_t token)
{
	struct journal_repo known = { .id = repo->id, .path = repo->path };
	bool added;

	memcpy(known.uuid, repo->uuid, sizeof(known.uuid));
	mutex_lock(&d->mutex);
	added = add_left(d, &known, token);
	mutex_unlock(&d->mutex);
	if (!added)
		d->cfg->fatal(d->cfg->store,
		    "out of memory for locks that are left");
}

int deferred_begin_retry(struct deferred *d, uint64_t repo, uint64_t *members,
    uint64_t **tokens, size_t *nr)
{
	struct deferred_repo *a;

	mutex_lock(&d->mutex);
	HASH_FIND(hh, d->repos, &repo, sizeof(repo), a);
	*members = a != NULL ? a->nr : 0;
	*nr = a != NULL ? a->nr_left : 0;
	*tokens = calloc(*nr + 1, sizeof(**tokens));
	if (*tokens != NULL && *nr > 0)
		memcpy(*tokens, a->left, *nr * sizeof(**tokens));
	mutex_unlock(&d->mutex);
	if (*tokens == NULL)
		return -ENOMEM;
	array_sort_u64(*tokens, *nr);
	return 0;
}

void deferred_unlocked(struct deferred *d, uint64_t repo,
    const uint64_t *tokens, size_t nr)
{
	struct deferred_repo *a;
	size_t i, kept = 0;

	mutex_lock(&d->mutex);
	HASH_FIND(hh, d->repos, &repo, sizeof(repo), a);
	for (i = 0; a != NULL && i < a->nr_left; i++)
		if (!array_has_u64(tokens, nr, a->left[i]))
			a->left[kept++] = a->left[i];
	if (a != NULL)
		a->nr_left = kept;
	mutex_unlock(&d->mutex);
}

bool deferred_blocks_writes(struct deferred *d, uint64_t repo)
{
	struct deferred_repo *a;
	bool has;

	mutex_lock(&d->mutex);
	HASH_FIND(hh, d->repos, &repo, sizeof(repo), a);
	has = a != NULL && a->state >= DEFERRED_SEARCH;
	mutex_unlock(&d->mutex);
	return has;
}

bool deferred_is_lacking(struct deferred *d, uint64_t repo)
{
	const struct deferred_repo *a;
	bool is_lacking;

	mutex_lock(&d->mutex);
	a = find(d, repo);
	is_lacking = a != NULL && a->is_lacking;
	mutex_unlock(&d->mutex);
	return is_lacking;
}

size_t deferred_lacking(struct deferred *d, int64_t *since_ns)
{
	size_t nr;

	mutex_lock(&d->mutex);
	nr = d->nr_lacking;
	if (since_ns != NULL)
		*since_ns = d->lacking_since_ns;
	mutex_unlock(&d->mutex);
	return nr;
}

/* Under MUTEX. */
static bool was_endless(const struct deferred *d, const struct deferred_repo *a,
    int64_t for_ns)
{
	return a->err == -EUSERS &&
	    SYS(d->cfg->sys, now_mono) - a->tried_ns < for_ns;
}

bool deferred_is_endless(struct deferred *d, uint64_t repo)
{
	struct deferred_repo *a;
	bool is_endless;

	mutex_lock(&d->mutex);
	HASH_FIND(hh, d->repos, &repo, sizeof(repo), a);
	is_endless = a != NULL && was_endless(d, a, ADMISSION_SEARCHES_NS);
	mutex_unlock(&d->mutex);
	return is_endless;
}

/* Under MUTEX. */
static bool is_paused(const struct deferred *d, const struct deferred_repo *a)
{
	return a->err != 0 && a->pause_ns > 0 &&
	    SYS(d->cfg->sys, now_mono) - a->tried_ns < a->pause_ns;
}

int deferred_paused(struct deferred *d, uint64_t repo)
{
	const struct deferred_repo *a;
	int err;

	mutex_lock(&d->mutex);
	a = find(d, repo);
	err = a != NULL && is_paused(d, a) ? a->err : 0;
	mutex_unlock(&d->mutex);
	return err;
}

void deferred_set_pause(struct deferred *d, uint64_t repo, int64_t took_ns)
{
	struct deferred_repo *a;

	mutex_lock(&d->mutex);
	a = find(d, repo);
	if (a != NULL)
		a->pause_ns = PAUSE_PARTS * took_ns;
	mutex_unlock(&d->mutex);
}

bool deferred_fail_retry(struct deferred *d, uint64_t repo, int err)
{
	struct deferred_repo *a;
	bool is_new;

	mutex_lock(&d->mutex);
	HASH_FIND(hh, d->repos, &repo, sizeof(repo), a);
	is_new = a != NULL && a->err != err;
	if (a != NULL)
		set_err(d, a, err);
	mutex_unlock(&d->mutex);
	return is_new;
}

/* The state that follows from the counts of A after a retry. */
static enum deferred_state state_after_retry(const struct deferred_repo *a)
{
	if (a->nr > 0)
		return DEFERRED_REDO;
	return a->nr_left > 0 ? DEFERRED_LOCKS : DEFERRED_NOTHING;
}

bool deferred_end_retry(struct deferred *d, uint64_t repo, uint64_t members,
    uint64_t left)
{
	struct deferred_repo *a;
	bool is_over;

	mutex_lock(&d->mutex);
	HASH_FIND(hh, d->repos, &repo, sizeof(repo), a);
	if (a != NULL) {
		a->nr = a->nr - members + left;
		a->state = state_after_retry(a);
		set_err(d, a, 0);
		set_lacking(d, a, false);
	}
	is_over = a == NULL || a->state != DEFERRED_REDO;
	if (a != NULL && a->state == DEFERRED_NOTHING)
		HASH_DEL(d->repos, a);
	else
		a = NULL;
	mutex_unlock(&d->mutex);
	if (a != NULL)
		free_one(a);
	return is_over;
}

static bool give(const struct deferred *d, const struct deferred_repo *a,
    struct journal_repo *repo)
{
	if (was_endless(d, a, RETRY_SEARCHES_NS) || is_paused(d, a))
		return false;
	*repo = (struct journal_repo){ .id = a->repo, .path = strdup(a->path) };
	memcpy(repo->uuid, a->uuid, sizeof(a->uuid));
	return repo->path != NULL;
}

size_t deferred_next(struct deferred *d, struct journal_repo *repos, size_t nr)
{
	struct deferred_repo *a;
	size_t i, found = 0;

	mutex_lock(&d->mutex);
	for (i = HASH_COUNT(d->repos); i > 0 && found < nr; i--) {
		/* A moves to the end, so other repositories have the next
		 * turn. */
		a = d->repos;
		HASH_DEL(d->repos, a);
		found += give(d, a, &repos[found]);
		HASH_ADD(hh, d->repos, repo, sizeof(a->repo), a);
		if (a->hh.tbl == NULL) {
			free_one(a);
			mutex_unlock(&d->mutex);
			d->cfg->fatal(d->cfg->store,
			    "out of memory in recovery");
			return found;
		}
	}
	mutex_unlock(&d->mutex);
	return found;
}

void deferred_count(struct deferred *d, uint64_t *repos, uint64_t *members)
{
	struct deferred_repo *a, *next;

	*repos = *members = 0;
	mutex_lock(&d->mutex);
	HASH_ITER(hh, d->repos, a, next) {
		*repos += a->state == DEFERRED_REDO;
		*members += a->nr;
	}
	mutex_unlock(&d->mutex);
}

/* ---- turns ---- */

bool deferred_begin_turn(struct deferred *d)
{
	bool is_due;

	mutex_lock(&d->mutex);
	is_due = d->is_turn_due = d->repos != NULL;
	mutex_unlock(&d->mutex);
	return is_due;
}

bool deferred_take_turn(struct deferred *d)
{
	bool is_taken;

	mutex_lock(&d->mutex);
	is_taken = d->is_turn_due && !d->has_turn;
	if (is_taken) {
		d->is_turn_due = false;
		d->has_turn = true;
	}
	mutex_unlock(&d->mutex);
	return is_taken;
}

void deferred_end_turn(struct deferred *d)
{
	mutex_lock(&d->mutex);
	d->has_turn = false;
	mutex_unlock(&d->mutex);
}

/* ---- the list for programs that write without the daemon ---- */

#define LINE "awaits %s\n"

/* malloc'd; NULL: out of memory. */
static char *list_of(struct deferred *d)
{
	const size_t line = sizeof(LINE) + 32;
	struct deferred_repo *a, *next;
	char hex[33], *text, *to;

	mutex_lock(&d->mutex);
	to = text = calloc(HASH_COUNT(d->repos) + 1, line);
	HASH_ITER(hh, d->repos, a, next) {
		if (a->state != DEFERRED_REDO || text == NULL)
			continue;
		repo_id_hex(a->uuid, hex);
		to += snprintf(to, line, LINE, hex);
	}
	mutex_unlock(&d->mutex);
	return text;
}

void deferred_publish(struct deferred *d)
{
	const struct store_config *cfg = d->cfg->config;
	char *list;

	if (cfg->awaiting == NULL)
		return;
	/* Under TELLING, so that a newer list is told after an older list. */
	mutex_lock(&d->telling);
	list = list_of(d);
	if (list != NULL)
		cfg->awaiting(cfg->awaiting_arg, list);
	mutex_unlock(&d->telling);
	if (list == NULL)
		d->cfg->fatal(d->cfg->store, "out of memory in recovery");
	free(list);
}

/* ---- opening and closing ---- */

struct deferred *deferred_new(const struct store_parts *cfg)
{
	struct deferred *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->cfg = cfg;
	mutex_init(&d->rows, MUTEX_DEFERRED_ROWS);
	mutex_init(&d->telling, MUTEX_DEFERRED_TELLING);
	mutex_init(&d->mutex, MUTEX_INNER);
	return d;
}

void deferred_free(struct deferred *d)
{
	struct deferred_repo *a, *next;

	if (d == NULL)
		return;
	HASH_ITER(hh, d->repos, a, next) {
		HASH_DEL(d->repos, a);
		free_one(a);
	}
	deferred_free_updates(d);
	mutex_destroy(&d->mutex);
	mutex_destroy(&d->telling);
	mutex_destroy(&d->rows);
	free(d);
}
