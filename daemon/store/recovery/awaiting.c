/*
 * Repositories that await recovery, while the daemon runs.
 *
 * The happy path: there is none.
 *
 * What fails:
 *	the search for locks does not end (-EUSERS)	it takes seconds, so it is
 *		remembered, and admissions are refused without a search: they
 *		would keep all threads busy
 *	memory	one might be written before it was recovered, so the store is
 *		of no more use
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/store/repos/repo_id.h"
#include "daemon/store/store_internal.h"

struct awaiting {
	uint64_t repo;
	uint64_t nr; /* members; 0: but locks of ours may stand there */
	uint8_t uuid[16];
	char *path;
	int err; /* of the last try; 0: it did not fail, or there was none */
	int64_t tried_ns; /* when that ended; monotonic */
	/* Windows of this run that are over and left locks there. */
	uint64_t *left;
	size_t nr_left;
	bool has_only_left; /* nothing is to be redone before a write */
	UT_hash_handle hh;
};

/* A search that did not end is repeated so long after it at the earliest. An
 * admission is far behind the retries of checkpoints: it searches only where
 * they could not, because the repository was moved. */
#define RETRY_SEARCHES_NS     (60 * INT64_C(1000000000))
#define ADMISSION_SEARCHES_NS (10 * RETRY_SEARCHES_NS)

static void free_one(struct awaiting *a)
{
	free(a->left);
	free(a->path);
	free(a);
}

/* The one of REPO, which is made if need be; NULL: out of memory. Under
 * MUTEX. */
static struct awaiting *get(struct store *s, const struct journal_repo *repo)
{
	struct awaiting *a;

	HASH_FIND(hh, s->awaiting, &repo->id, sizeof(repo->id), a);
	if (a != NULL)
		return a;
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return NULL;
	a->repo = repo->id;
	a->has_only_left = true;
	memcpy(a->uuid, repo->uuid, sizeof(a->uuid));
	a->path = strdup(repo->path);
	if (a->path != NULL)
		HASH_ADD(hh, s->awaiting, repo, sizeof(a->repo), a);
	if (a->path != NULL && a->hh.tbl != NULL)
		return a;
	free_one(a);
	return NULL;
}

/* NULL: out of memory. Under MUTEX. *IS_NEW: it did not owe anything. */
static struct awaiting *add(struct store *s, const struct journal_repo *repo,
    uint64_t nr, bool *is_new)
{
	struct awaiting *a = get(s, repo);

	if (a == NULL)
		return NULL;
	*is_new = a->nr == 0;
	a->nr += nr;
	a->has_only_left = false;
	return a;
}

/* false: out of memory. Under MUTEX. */
static bool add_left(struct store *s, const struct journal_repo *repo,
    uint64_t token)
{
	struct awaiting *a = get(s, repo);
	uint64_t *grown;

	if (a == NULL)
		return false;
	grown = realloc(a->left, (a->nr_left + 1) * sizeof(*grown));
	if (grown == NULL)
		return false;
	a->left = grown;
	a->left[a->nr_left++] = token;
	return true;
}

/* Under MUTEX. */
static void set_err(const struct store *s, struct awaiting *a, int err)
{
	a->err = err;
	a->tried_ns = SYS(s->sys, now_mono);
}

static bool note(struct store *s, const struct journal_repo *repo, uint64_t nr,
    int err)
{
	struct awaiting *a;
	bool is_new = false;

	pthread_mutex_lock(&s->mutex);
	a = add(s, repo, nr, &is_new);
	if (a != NULL && err == -EUSERS)
		set_err(s, a, err);
	pthread_mutex_unlock(&s->mutex);
	if (a == NULL)
		store_set_fatal(s, "out of memory in recovery");
	return a != NULL && is_new;
}

void awaiting_note(void *store, const struct journal_repo *repo, uint64_t nr,
    int err)
{
	note(store, repo, nr, err);
}

void awaiting_park(struct store *s, const struct journal_repo *repo,
    uint64_t nr, const char *why)
{
	const struct store_found found = { .finding = STORE_PARKED,
		.repo = repo->path,
		.ref = "",
		.text = why };

	if (note(s, repo, nr, 0) && s->cfg.found != NULL)
		s->cfg.found(s->cfg.found_arg, &found);
}

void awaiting_owe(void *store, const struct repo *repo)
{
	struct journal_repo known = { .id = repo->id, .path = repo->path };

	memcpy(known.uuid, repo->uuid, sizeof(known.uuid));
	awaiting_park(store, &known, 1,
	    "a log line that is owed could not be written; tried again");
}

void awaiting_left(void *store, const struct repo *repo, uint64_t token)
{
	struct journal_repo known = { .id = repo->id, .path = repo->path };
	struct store *s = store;
	bool added;

	memcpy(known.uuid, repo->uuid, sizeof(known.uuid));
	pthread_mutex_lock(&s->mutex);
	added = add_left(s, &known, token);
	pthread_mutex_unlock(&s->mutex);
	if (!added)
		store_set_fatal(s, "out of memory for locks that are left");
}

static int compare_tokens(const void *va, const void *vb)
{
	const uint64_t *a = va, *b = vb;

	return (*a > *b) - (*a < *b);
}

int awaiting_begin(struct store *s, uint64_t repo, uint64_t *members,
    uint64_t **tokens, size_t *nr)
{
	struct awaiting *a;

	pthread_mutex_lock(&s->mutex);
	HASH_FIND(hh, s->awaiting, &repo, sizeof(repo), a);
	*members = a != NULL ? a->nr : 0;
	*nr = a != NULL ? a->nr_left : 0;
	*tokens = calloc(*nr + 1, sizeof(**tokens));
	if (*tokens != NULL && *nr > 0)
		memcpy(*tokens, a->left, *nr * sizeof(**tokens));
	pthread_mutex_unlock(&s->mutex);
	if (*tokens == NULL)
		return -ENOMEM;
	qsort(*tokens, *nr, sizeof(**tokens), compare_tokens);
	return 0;
}

void awaiting_unlocked(struct store *s, uint64_t repo, const uint64_t *tokens,
    size_t nr)
{
	struct awaiting *a;
	size_t i, kept = 0;

	pthread_mutex_lock(&s->mutex);
	HASH_FIND(hh, s->awaiting, &repo, sizeof(repo), a);
	for (i = 0; a != NULL && i < a->nr_left; i++)
		if (bsearch(&a->left[i], tokens, nr, sizeof(*tokens),
			compare_tokens) == NULL)
			a->left[kept++] = a->left[i];
	if (a != NULL)
		a->nr_left = kept;
	pthread_mutex_unlock(&s->mutex);
}

bool awaiting_has(struct store *s, uint64_t repo)
{
	struct awaiting *a;
	bool has;

	pthread_mutex_lock(&s->mutex);
	HASH_FIND(hh, s->awaiting, &repo, sizeof(repo), a);
	has = a != NULL && !a->has_only_left;
	pthread_mutex_unlock(&s->mutex);
	return has;
}

/* Under MUTEX. */
static bool was_endless(const struct store *s, const struct awaiting *a,
    int64_t for_ns)
{
	return a->err == -EUSERS &&
	    SYS(s->sys, now_mono) - a->tried_ns < for_ns;
}

bool awaiting_is_endless(struct store *s, uint64_t repo)
{
	struct awaiting *a;
	bool is_endless;

	pthread_mutex_lock(&s->mutex);
	HASH_FIND(hh, s->awaiting, &repo, sizeof(repo), a);
	is_endless = a != NULL && was_endless(s, a, ADMISSION_SEARCHES_NS);
	pthread_mutex_unlock(&s->mutex);
	return is_endless;
}

bool awaiting_failed(struct store *s, uint64_t repo, int err)
{
	struct awaiting *a;
	bool is_new;

	pthread_mutex_lock(&s->mutex);
	HASH_FIND(hh, s->awaiting, &repo, sizeof(repo), a);
	is_new = a != NULL && a->err != err;
	if (a != NULL)
		set_err(s, a, err);
	pthread_mutex_unlock(&s->mutex);
	return is_new;
}

bool awaiting_ended(struct store *s, uint64_t repo, uint64_t members,
    uint64_t parked)
{
	struct awaiting *a;
	bool is_over;

	pthread_mutex_lock(&s->mutex);
	HASH_FIND(hh, s->awaiting, &repo, sizeof(repo), a);
	if (a != NULL) {
		a->nr = a->nr - members + parked;
		set_err(s, a, 0);
	}
	is_over = a == NULL || a->nr == 0;
	if (a != NULL && is_over)
		a->has_only_left = true;
	if (a != NULL && is_over && a->nr_left == 0)
		HASH_DEL(s->awaiting, a);
	else
		a = NULL;
	pthread_mutex_unlock(&s->mutex);
	if (a != NULL)
		free_one(a);
	return is_over;
}

static bool give(const struct store *s, const struct awaiting *a,
    struct journal_repo *repo)
{
	if (was_endless(s, a, RETRY_SEARCHES_NS))
		return false;
	*repo = (struct journal_repo){ .id = a->repo, .path = strdup(a->path) };
	memcpy(repo->uuid, a->uuid, sizeof(a->uuid));
	return repo->path != NULL;
}

size_t awaiting_next(struct store *s, struct journal_repo *repos, size_t nr)
{
	struct awaiting *a;
	size_t i, found = 0;

	pthread_mutex_lock(&s->mutex);
	for (i = HASH_COUNT(s->awaiting); i > 0 && found < nr; i--) {
		/* To the end: the others have their turn next time. */
		a = s->awaiting;
		HASH_DEL(s->awaiting, a);
		found += give(s, a, &repos[found]);
		HASH_ADD(hh, s->awaiting, repo, sizeof(a->repo), a);
		if (a->hh.tbl == NULL) {
			free_one(a);
			pthread_mutex_unlock(&s->mutex);
			store_set_fatal(s, "out of memory in recovery");
			return found;
		}
	}
	pthread_mutex_unlock(&s->mutex);
	return found;
}

void awaiting_count(struct store *s, struct store_stats *stats)
{
	struct awaiting *a, *next;

	HASH_ITER(hh, s->awaiting, a, next) {
		stats->awaiting_repos += a->nr > 0;
		stats->awaiting_refs += a->nr;
	}
}

void awaiting_free(struct store *s)
{
	struct awaiting *a, *next;

	HASH_ITER(hh, s->awaiting, a, next) {
		HASH_DEL(s->awaiting, a);
		free_one(a);
	}
}

/* ---- for those who would write without the daemon ---- */

#define LINE "awaits %s\n"

/* malloc'd; NULL: out of memory. */
static char *list_of(struct store *s)
{
	const size_t line = sizeof(LINE) + 32;
	struct awaiting *a, *next;
	char hex[33], *text, *to;

	pthread_mutex_lock(&s->mutex);
	to = text = calloc(HASH_COUNT(s->awaiting) + 1, line);
	HASH_ITER(hh, s->awaiting, a, next) {
		if (a->nr == 0 || text == NULL)
			continue;
		repo_id_hex(a->uuid, hex);
		to += snprintf(to, line, LINE, hex);
	}
	pthread_mutex_unlock(&s->mutex);
	return text;
}

void awaiting_publish(struct store *s)
{
	char *list;

	if (s->cfg.awaiting == NULL)
		return;
	/* The list that was made last is told last. */
	pthread_mutex_lock(&s->telling);
	list = list_of(s);
	if (list != NULL)
		s->cfg.awaiting(s->cfg.awaiting_arg, list);
	else
		store_set_fatal(s, "out of memory in recovery");
	free(list);
	pthread_mutex_unlock(&s->telling);
}

/* ---- given up ---- */

struct wanted {
	const char *name;
	uint64_t id; /* 0: not found */
};

static int match(void *arg, const struct journal_repo *repo)
{
	struct wanted *wanted = arg;
	char hex[33];

	repo_id_hex(repo->uuid, hex);
	if (strcmp(wanted->name, hex) == 0 ||
	    strcmp(wanted->name, repo->path) == 0)
		wanted->id = repo->id;
	return 0;
}

int store_forget(struct store *s, const char *repo, uint64_t *nr)
{
	struct wanted wanted = { .name = repo };
	int r;

	r = journal_each_repo(s->journal, match, &wanted);
	if (r == 0 && wanted.id == 0)
		return -ENOENT;
	if (r == 0)
		r = journal_drop_parked(s->journal, wanted.id, nr);
	return r > 0 ? -EIO : r;
}
