/*
 * An answer of pairs, with the rows in it: pairs whose keys begin with the
 * same word and a period; the first key of a kind begins each row. All that is
 * returned is borrowed from the answer. One thread.
 */
#ifndef CLIENT_ADMIN_ROWS_H
#define CLIENT_ADMIN_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

/* A pair outside of rows; "" and 0 where there is none. */
const char *rows_value(const struct refd_answer *ans, const char *key);
uint64_t rows_number(const struct refd_answer *ans, const char *key);

struct row {
	const struct refd_answer *ans;
	const char *kind;
	size_t begin, end; /* of its pairs */
};

/* The next row of KIND; the first one where ROW is zeroes. */
bool row_next(const struct refd_answer *ans, const char *kind, struct row *row);
const char *row_value(const struct row *row, const char *key);
uint64_t row_number(const struct row *row, const char *key);

#endif
