/*
 * The parameters of a statement, for libpq. Arrays have PostgreSQL's binary
 * format, so no byte needs an escape. Texts are borrowed. One thread; nothing
 * blocks.
 */
#ifndef GROUP_SERVICE_PARAMS_H
#define GROUP_SERVICE_PARAMS_H

#include "proto/lib/cli.h"

#define PARAMS_MAX 13

struct params {
	int nr;
	const char *values[PARAMS_MAX];
	int lengths[PARAMS_MAX]; /* of binary values */
	int formats[PARAMS_MAX]; /* 1: binary */
	char numbers[PARAMS_MAX][24];
};

void params_text(struct params *p, const char *text);
/* At most INT64_MAX. */
void params_number(struct params *p, uint64_t number);
/* A binary value. */
void params_bytes(struct params *p, const void *data, size_t len);
void params_array(struct params *p, const struct text *array);

/* Types of elements: pg_type.dat of PostgreSQL. */
enum params_type {
	PARAMS_BOOL = 16,
	PARAMS_BYTEA = 17,
	PARAMS_INT8 = 20,
	PARAMS_UUID = 2950
};

/* Begins an array of NR elements in the empty ARRAY. Exactly NR elements must
 * follow. */
void params_array_begin(struct text *array, enum params_type type, size_t nr);
void params_array_bytes(struct text *array, const void *data, size_t len);
void params_array_number(struct text *array, uint64_t number);

/* A number of LEN bytes of a binary result. */
uint64_t params_read_number(const char *bytes, int len);

#endif
