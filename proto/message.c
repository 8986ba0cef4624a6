/* Common parts of the messages: names, and freeing of memory. */
#include "proto/message.h"

#include <string.h>

#include "proto/arena.h"

static const char *const durabilities[] = {
	[REFD_DURABILITY_DEFAULT] = "default",
	[REFD_DURABILITY_NONE] = "none",
	[REFD_DURABILITY_PERIODIC] = "periodic",
	[REFD_DURABILITY_JOURNAL] = "journal",
	[REFD_DURABILITY_BATCH] = "batch",
	[REFD_DURABILITY_FSYNC] = "fsync",
};

#define NR_DURABILITIES (sizeof(durabilities) / sizeof(durabilities[0]))

const char *refd_durability_name(enum refd_durability d)
{
	if ((unsigned)d < NR_DURABILITIES)
		return durabilities[d];
	return durabilities[REFD_DURABILITY_DEFAULT];
}

int refd_durability_from_name(const char *name, enum refd_durability *d)
{
	size_t i;

	for (i = 0; i < NR_DURABILITIES; i++) {
		if (strcmp(durabilities[i], name) == 0) {
			*d = (enum refd_durability)i;
			return 0;
		}
	}
	return -1;
}

void refd_request_done(struct refd_request *req)
{
	refd_arena_free(req->arena);
	memset(req, 0, sizeof(*req));
}

void refd_answer_done(struct refd_answer *ans)
{
	refd_arena_free(ans->arena);
	memset(ans, 0, sizeof(*ans));
}
