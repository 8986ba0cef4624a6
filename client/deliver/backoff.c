#include "client/deliver/backoff.h"

uint64_t backoff_ms(uint64_t failures, uint32_t random)
{
	uint64_t most = BACKOFF_FIRST_MS;

	for (; failures > 1 && most < BACKOFF_MOST_MS; failures--)
		most *= 2;
	if (most > BACKOFF_MOST_MS)
		most = BACKOFF_MOST_MS;
	return most / 2 + random % (most / 2 + 1);
}
