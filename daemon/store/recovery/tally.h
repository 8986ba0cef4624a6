/*
 * What a recovery found, by repository: all of it counted, so much of it kept
 * as a report can hold. One thread at a time.
 */
#ifndef STORE_TALLY_H
#define STORE_TALLY_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/store/store.h"

/* Findings that are kept, of one repository and of all. */
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
	struct tally_finding *items; /* the first ones */
	size_t nr;
	uint64_t more; /* that are only counted */
	UT_hash_handle hh;
};

/* Zero-initialised is empty. */
struct finding_tally {
	struct tally_repo *repos; /* as they came */
	uint64_t counts[STORE_FINDINGS];
	size_t nr; /* findings kept */
};

/* Where memory is short, it is only counted. */
void tally_add(struct finding_tally *tally, const struct store_found *found);
void tally_done(struct finding_tally *tally);

/* How many refs came to a good end; how many acknowledged updates another
 * writer's value stands for; how many had to be given up. */
uint64_t tally_repaired(const uint64_t *counts);
uint64_t tally_left(const uint64_t *counts);
uint64_t tally_dropped(const uint64_t *counts);

/* "3 redone, 1 left": all that is not 0; "nothing to do". */
#define TALLY_WORDS_MAX 512
void tally_words(const uint64_t *counts, char words[TALLY_WORDS_MAX]);

#endif
