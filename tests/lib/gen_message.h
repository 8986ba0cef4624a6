/*
 * Random messages for tests of proto/, and comparison field by field. The same
 * seed gives the same messages.
 */
#ifndef TESTS_LIB_GEN_MESSAGE_H
#define TESTS_LIB_GEN_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/message.h"

struct gen {
	uint64_t state; /* the seed; not 0 */
};

uint64_t gen_u64(struct gen *g);
/* 0 to N - 1. */
uint32_t gen_below(struct gen *g, uint32_t n);

/* Makes any message that the decoder accepts. Free with refd_request_done() and
 * refd_answer_done(). Refnames and texts are any bytes but NUL. */
void gen_request(struct gen *g, struct refd_request *req);
void gen_answer(struct gen *g, struct refd_answer *ans);

/* Compare all fields except the count of bytes. */
bool request_eq(const struct refd_request *a, const struct refd_request *b);
bool answer_eq(const struct refd_answer *a, const struct refd_answer *b);

#endif
