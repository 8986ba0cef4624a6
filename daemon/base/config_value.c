#include "daemon/base/config_value.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <strings.h>

int config_value_int(const char *value, int *out)
{
	static const char *const units[] = { "", "k", "m", "g" };
	intmax_t n, factor = 1;
	size_t i;
	char *end;

	errno = 0;
	n = strtoimax(value, &end, 0);
	if (errno != 0 || end == value)
		return -1;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcasecmp(end, units[i]) == 0)
			break;
		factor *= 1024;
	}
	if (i == sizeof(units) / sizeof(units[0]) || n > INT_MAX / factor ||
	    n < -(INT_MAX / factor))
		return -1;
	*out = (int)(n * factor);
	return 0;
}

int config_value_bool(const char *value, bool *yes)
{
	static const struct {
		const char *word;
		bool yes;
	} words[] = {
		{ "true", true },
		{ "yes", true },
		{ "on", true },
		{ "false", false },
		{ "no", false },
		{ "off", false },
		{ "", false },
	};
	size_t i;
	int n;

	for (i = 0; value != NULL && i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(value, words[i].word) == 0) {
			*yes = words[i].yes;
			return 0;
		}
	if (value != NULL && config_value_int(value, &n) < 0)
		return -1;
	*yes = value == NULL || n != 0;
	return 0;
}
