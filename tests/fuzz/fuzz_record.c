/*
 * Any bytes as the body of a journal row. The decoder accepts or refuses the
 * bytes and reads nothing beyond them. An accepted body is encoded as the same
 * bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Makes the sanitizer detect a string without terminator. */
static size_t touch(const struct record *rec)
{
	size_t i, sum;

	sum = strlen(rec->committer) + strlen(rec->message);
	for (i = 0; i < rec->nr_members; i++) {
		sum += strlen(rec->members[i].name);
		if (rec->members[i].text != NULL)
			sum += strlen(rec->members[i].text);
		if (rec->members[i].worktree != NULL)
			sum += strlen(rec->members[i].worktree);
		if (rec->members[i].target != NULL)
			sum += strlen(rec->members[i].target);
	}
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record rec;
	uint8_t *again;
	size_t len;

	if (record_decode(data, size, &rec) != 0)
		return 0;
	again = record_encode(&rec, &len);
	if (again != NULL &&
	    (len != size || touch(&rec) > size ||
		memcmp(again, data, size) != 0))
		abort();
	free(again);
	record_done(&rec);
	return 0;
}
