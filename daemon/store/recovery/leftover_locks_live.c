/*
 * Tells live batches by the names of their files in stage/.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/journal.h"
#include "daemon/store/recovery/leftover_locks.h"

/* A name in stage/ begins with the number of its batch. A file with another
 * name belongs to no batch and counts as old. */
uint64_t leftover_locks_batch_of(const char *name)
{
	if (strspn(name, "0123456789abcdef") != 16)
		return 0;
	return strtoull(name, NULL, 16);
}

static int compare_tokens(const void *va, const void *vb)
{
	const uint64_t *a = va, *b = vb;

	return (*a > *b) - (*a < *b);
}

bool leftover_locks_has_token(const uint64_t *tokens, size_t nr, uint64_t token)
{
	return nr > 0 &&
	    bsearch(&token, tokens, nr, sizeof(token), compare_tokens) != NULL;
}

bool leftover_locks_is_live(const struct live_batches *live, const char *name)
{
	uint64_t batch = leftover_locks_batch_of(name);

	return batch >= live->from && !(batch & JOURNAL_TOKEN_RECOVERY) &&
	    !leftover_locks_has_token(live->over, live->nr_over, batch);
}
