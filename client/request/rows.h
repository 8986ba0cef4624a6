/*
 * Reads an answer of pairs. A row is a sequence of pairs "kind.key"; the first
 * key of a kind begins each row. Results are borrowed from the answer. One
 * thread.
 */
#ifndef CLIENT_REQUEST_ROWS_H
#define CLIENT_REQUEST_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

/* The value of a pair outside of rows, or "" and 0 without a pair. */
const char *rows_value(const struct refd_answer *ans, const char *key);
uint64_t rows_number(const struct refd_answer *ans, const char *key);

struct row {
	const struct refd_answer *ans;
	const char *kind;
	size_t begin, end; /* the range of its pairs */
};

/* The next row of KIND, or the first row if ROW is all zeroes. */
bool row_next(const struct refd_answer *ans, const char *kind, struct row *row);
const char *row_value(const struct row *row, const char *key);
uint64_t row_number(const struct row *row, const char *key);

#endif
