/*
 * Repositories that await recovery, while the daemon runs.
 *
 * The happy path: there is none.
 *
 * What fails: memory. Then one might be written before it was recovered, so
 * the store is of no more use.
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
	int err; /* of the last try that failed */
	UT_hash_handle hh;
};

static void free_one(struct awaiting *a)
{
	free(a->path);
	free(a);
}

/* false: out of memory. Under MUTEX. *IS_NEW: it did not owe anything. */
static bool add(struct store *s, const struct journal_repo *repo, uint64_t nr,
    bool *is_new)
{
	struct awaiting *a;

	HASH_FIND(hh, s->awaiting, &repo->id, sizeof(repo->id), a);
	*is_new = a == NULL || a->nr == 0;
	if (a != NULL) {
		a->nr += nr;
		return true;
	}
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return false;
	a->repo = repo->id;
	a->nr = nr;
	memcpy(a->uuid, repo->uuid, sizeof(a->uuid));
	a->path = strdup(repo->path);
	if (a->path != NULL)
		HASH_ADD(hh, s->awaiting, repo, sizeof(a->repo), a);
	if (a->path != NULL && a->hh.tbl != NULL)
		return true;
	free_one(a);
	return false;
}

static bool note(struct store *s, const struct journal_repo *repo, uint64_t nr)
{
	bool added, is_new;

	pthread_mutex_lock(&s->mutex);
	added = add(s, repo, nr, &is_new);
	pthread_mutex_unlock(&s->mutex);
	if (!added)
		store_set_fatal(s, "out of memory in recovery");
	return added && is_new;
}

void awaiting_note(void *store, const struct journal_repo *repo, uint64_t nr)
{
	note(store, repo, nr);
}

void awaiting_park(struct store *s, const struct journal_repo *repo,
    uint64_t nr, const char *why)
{
	const struct store_found found = { .finding = STORE_PARKED,
		.repo = repo->path,
		.ref = "",
		.text = why };

	if (note(s, repo, nr) && s->cfg.found != NULL)
		s->cfg.found(s->cfg.found_arg, &found);
}

void awaiting_owe(void *store, const struct repo *repo)
{
	struct journal_repo known = { .id = repo->id, .path = repo->path };

	memcpy(known.uuid, repo->uuid, sizeof(known.uuid));
	awaiting_park(store, &known, 1,
	    "a log line that is owed could not be written; tried again");
}

bool awaiting_has(struct store *s, uint64_t repo)
{
	struct awaiting *a;

	pthread_mutex_lock(&s->mutex);
	HASH_FIND(hh, s->awaiting, &repo, sizeof(repo), a);
	pthread_mutex_unlock(&s->mutex);
	return a != NULL;
}

bool awaiting_failed(struct store *s, uint64_t repo, int err)
{
	struct awaiting *a;
	bool is_new;

	pthread_mutex_lock(&s->mutex);
	HASH_FIND(hh, s->awaiting, &repo, sizeof(repo), a);
	is_new = a != NULL && a->err != err;
	if (a != NULL)
		a->err = err;
	pthread_mutex_unlock(&s->mutex);
	return is_new;
}

void awaiting_ended(struct store *s, uint64_t repo)
{
	struct awaiting *a;

	pthread_mutex_lock(&s->mutex);
	HASH_FIND(hh, s->awaiting, &repo, sizeof(repo), a);
	if (a != NULL)
		HASH_DEL(s->awaiting, a);
	pthread_mutex_unlock(&s->mutex);
	if (a != NULL)
		free_one(a);
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
		repos[found] = (struct journal_repo){ .id = a->repo,
			.path = strdup(a->path) };
		memcpy(repos[found].uuid, a->uuid, sizeof(a->uuid));
		found += repos[found].path != NULL;
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
