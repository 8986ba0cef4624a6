#include "daemon/group/service/params.h"

#include <assert.h>
#include <inttypes.h>

static int add(struct params *p, const char *value)
{
	assert(p->nr < PARAMS_MAX);
	p->values[p->nr] = value;
	return p->nr++;
}

void params_text(struct params *p, const char *text)
{
	add(p, text);
}

void params_number(struct params *p, uint64_t number)
{
	int at = add(p, NULL);

	snprintf(p->numbers[at], sizeof(p->numbers[at]), "%" PRIu64, number);
	p->values[at] = p->numbers[at];
}

/* NULL would be SQL's NULL. */
void params_bytes(struct params *p, const void *data, size_t len)
{
	int at = add(p, data ? data : "");

	p->lengths[at] = (int)len;
	p->formats[at] = 1;
}

void params_array(struct params *p, const struct text *array)
{
	params_bytes(p, array->data, array->len);
}

static void add_number(struct text *array, uint64_t number, unsigned len)
{
	while (len-- > 0)
		text_addc(array, (char)(uint8_t)(number >> (8 * len)));
}

void params_array_begin(struct text *array, enum params_type type, size_t nr)
{
	add_number(array, 1, 4); /* dimensions */
	add_number(array, 0, 4); /* no NULL */
	add_number(array, type, 4);
	add_number(array, nr, 4);
	add_number(array, 1, 4); /* index of the first element */
}

void params_array_bytes(struct text *array, const void *data, size_t len)
{
	add_number(array, len, 4);
	if (len > 0)
		text_add(array, data, len);
}

void params_array_number(struct text *array, uint64_t number)
{
	add_number(array, 8, 4);
	add_number(array, number, 8);
}

uint64_t params_read_number(const char *bytes, int len)
{
	uint64_t number = 0;
	int i;

	for (i = 0; i < len; i++)
		number = number << 8 | (uint8_t)bytes[i];
	return number;
}
