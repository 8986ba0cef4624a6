#include "daemon/store/recovery/tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tally_repo *repo_of(struct finding_tally *tally, const char *path)
{
	struct tally_repo *repo;

	HASH_FIND_STR(tally->repos, path, repo);
	if (repo != NULL)
		return repo;
	repo = calloc(1, sizeof(*repo));
	if (repo == NULL)
		return NULL;
	repo->path = strdup(path);
	if (repo->path != NULL)
		HASH_ADD_KEYPTR(hh, tally->repos, repo->path, strlen(path),
		    repo);
	if (repo->path != NULL && repo->hh.tbl != NULL)
		return repo;
	free(repo->path);
	free(repo);
	return NULL;
}

static void free_finding(struct tally_finding *f)
{
	free(f->ref);
	free(f->text);
	free(f->evidence);
}

static bool copy_finding(struct tally_finding *to,
    const struct store_found *from)
{
	to->finding = from->finding;
	to->ref = strdup(from->ref);
	to->text = strdup(from->text);
	to->evidence = from->evidence != NULL ? strdup(from->evidence) : NULL;
	if (to->ref != NULL && to->text != NULL &&
	    (to->evidence != NULL || from->evidence == NULL))
		return true;
	free_finding(to);
	return false;
}

static bool keep_finding(struct finding_tally *tally, struct tally_repo *repo,
    const struct store_found *found)
{
	struct tally_finding *grown;

	if (repo->nr == TALLY_OF_REPO || tally->nr == TALLY_OF_ALL)
		return false;
	grown = realloc(repo->items, (repo->nr + 1) * sizeof(*grown));
	if (grown == NULL)
		return false;
	repo->items = grown;
	if (!copy_finding(&repo->items[repo->nr], found))
		return false;
	repo->nr++;
	tally->nr++;
	return true;
}

void tally_add(struct finding_tally *tally, const struct store_found *found)
{
	struct tally_repo *repo = repo_of(tally, found->repo);

	tally->counts[found->finding]++;
	if (repo == NULL)
		return;
	repo->counts[found->finding]++;
	if (!keep_finding(tally, repo, found))
		repo->more++;
}

void tally_done(struct finding_tally *tally)
{
	struct tally_repo *repo, *next;
	size_t i;

	HASH_ITER(hh, tally->repos, repo, next) {
		HASH_DEL(tally->repos, repo);
		for (i = 0; i < repo->nr; i++)
			free_finding(&repo->items[i]);
		free(repo->items);
		free(repo->path);
		free(repo);
	}
}

uint64_t tally_repaired(const uint64_t *counts)
{
	return counts[STORE_REDONE] + counts[STORE_ROLLED_FORWARD];
}

uint64_t tally_left(const uint64_t *counts)
{
	return counts[STORE_LEFT];
}

uint64_t tally_dropped(const uint64_t *counts)
{
	return counts[STORE_DROPPED] + counts[STORE_OBJECT_MISSING];
}

void tally_words(const uint64_t *counts, char words[TALLY_WORDS_MAX])
{
	size_t len = 0;
	int i;

	snprintf(words, TALLY_WORDS_MAX, "nothing to do");
	for (i = 0; i < STORE_FINDINGS; i++)
		if (counts[i] > 0)
			len += (size_t)snprintf(words + len,
			    TALLY_WORDS_MAX - len, "%s%" PRIu64 " %s",
			    len > 0 ? ", " : "", counts[i],
			    store_finding_name((enum store_finding)i));
}
