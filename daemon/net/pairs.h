/*
 * An answer of pairs in the making: it grows as needed, and what there was no
 * memory for makes it a refusal. Loop thread; nothing blocks.
 *
 * Rows of one kind are told as pairs whose keys begin with the same word and a
 * period; the row's first key begins the next row ("lock.path", "lock.age_ms",
 * "lock.path", ...).
 */
#ifndef NET_PAIRS_H
#define NET_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/net/conn.h"

/* Zero-initialised is empty. */
struct pairs {
	struct refd_pair *list; /* keys and values are owned */
	size_t nr, room;
	bool failed;
};

/* The key is copied, and so is all of the value but what a packet can't
 * hold. */
void pairs_add(struct pairs *p, const char *key, const char *value);
void pairs_addf(struct pairs *p, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void pairs_add_number(struct pairs *p, const char *key, uint64_t value);
/* Answers the request, and is empty again. */
void pairs_answer(struct pairs *p, struct conn *conn, uint32_t request_id);
void pairs_done(struct pairs *p);

#endif
