/*
 * Which windows may be at work, by the names of what they have in stage/.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/journal.h"
#include "daemon/store/recovery/stale.h"

/* Names in stage/ begin with their window's number; what does not is nobody's
 * and counts as old. */
uint64_t stale_window_of(const char *name)
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

bool stale_has_token(const uint64_t *tokens, size_t nr, uint64_t token)
{
	return nr > 0 &&
	    bsearch(&token, tokens, nr, sizeof(token), compare_tokens) != NULL;
}

bool stale_is_live(const struct stale_live *live, const char *name)
{
	uint64_t window = stale_window_of(name);

	return window >= live->from && !(window & JOURNAL_TOKEN_RECOVERY) &&
	    !stale_has_token(live->over, live->nr_over, window);
}
