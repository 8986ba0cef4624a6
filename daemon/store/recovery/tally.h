/*
 * The findings of a recovery by repository: all are counted, and as many kept
 * as a report can hold. One thread at a time.
 */
#ifndef STORE_TALLY_H
#define STORE_TALLY_H

#include "daemon/base/hash.h"
#include "daemon/store/store.h"

/* Findings kept, per repository and in total. */
#define TALLY_OF_REPO 100
#define TALLY_OF_ALL  10000

struct tally_finding {
	enum store_finding finding;
	char *ref, *text;
	char *evidence; /* NULL: none */
};

struct tally_repo {
	char *path;
	uint64_t counts[STORE_FINDINGS];
	struct tally_finding *items; /* the first findings */
	size_t nr;
	uint64_t more; /* findings that are only counted */
	UT_hash_handle hh;
};

/* Empty if zero-initialised. */
struct finding_tally {
	struct tally_repo *repos; /* as they came */
	uint64_t counts[STORE_FINDINGS];
	size_t nr; /* findings kept */
};

/* With too little memory the finding is only counted. */
void tally_add(struct finding_tally *tally, const struct store_found *found);
void tally_done(struct finding_tally *tally);

/* Refs with a good end; acknowledged updates replaced by another writer's
 * value; updates given up. */
uint64_t tally_repaired(const uint64_t *counts);
uint64_t tally_left(const uint64_t *counts);
uint64_t tally_dropped(const uint64_t *counts);

/* "3 redone, 1 left": all counts above 0; or "nothing to do". */
#define TALLY_WORDS_MAX 512
void tally_words(const uint64_t *counts, char words[TALLY_WORDS_MAX]);

#endif
