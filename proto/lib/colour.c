#include "proto/lib/colour.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/lib/print.h"

static enum { AUTO, ALWAYS, NEVER } when;

const char *colour_take(void *values, const char *arg)
{
	(void)values;
	if (!strcmp(arg, "auto"))
		when = AUTO;
	else if (!strcmp(arg, "always"))
		when = ALWAYS;
	else if (!strcmp(arg, "never"))
		when = NEVER;
	else
		return "always, never or auto";
	return NULL;
}

bool colour_is_on(void)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	if (when != AUTO)
		return when == ALWAYS;
	return term && strcmp(term, "dumb") != 0 && !(no && *no) &&
	    isatty(STDOUT_FILENO);
}

const char *colour_begin(enum colour colour)
{
	static const char *const sequences[] = {
#define X(meaning, sequence) sequence,
		COLOUR_TABLE(X)
#undef X
	};

	return colour_is_on() ? sequences[colour] : "";
}

const char *colour_end(enum colour colour)
{
	return colour != COLOUR_PLAIN && colour_is_on() ? "\033[m" : "";
}

void colour_print(FILE *to, enum colour colour, const char *s)
{
	const char *begin = colour_begin(colour), *end = colour_end(colour);

	print_bytes(to, begin, strlen(begin));
	print_part(to, "%s", s);
	print_bytes(to, end, strlen(end));
}
