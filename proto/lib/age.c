#include "proto/lib/age.h"

#include <inttypes.h>
#include <stdio.h>

const char *age_text(int64_t seconds, char text[AGE_MAX])
{
	int64_t minutes = seconds / 60;

	if (minutes < 120)
		snprintf(text, AGE_MAX, "%" PRId64 " minutes", minutes);
	else if (minutes < 2880)
		snprintf(text, AGE_MAX, "%" PRId64 " hours", minutes / 60);
	else
		snprintf(text, AGE_MAX, "%" PRId64 " days", minutes / 1440);
	return text;
}
