/*
 * The pause after a failed attempt: 1 s, 2 s, 4 s ... up to 5 min, each between
 * half of this and all of it. The random part keeps streams that failed
 * together from trying together. Pure; any thread.
 */
#ifndef CLIENT_DELIVER_BACKOFF_H
#define CLIENT_DELIVER_BACKOFF_H

#include <stdint.h>

#define BACKOFF_FIRST_MS 1000
#define BACKOFF_MOST_MS  (5 * 60 * 1000)

/* After FAILURES failures of a change, at least 1. RANDOM is any number. */
uint64_t backoff_ms(uint64_t failures, uint32_t random);

#endif
