#include "client/enable/enable_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool says_nothing;

void enable_report_quietly(bool is_quiet)
{
	says_nothing = is_quiet;
}

void enable_report(const char *path, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		die("out of memory");
	va_end(ap);
	if (!says_nothing)
		print_line(stdout, "%s%s%s", path ? path : "", path ? ": " : "",
		    text);
	free(text);
}

void enable_report_setting(const char *path, bool is_added, const char *key,
    const char *value)
{
	enable_report(path, "%s %s %s", key, is_added ? "+=" : "-=", value);
}
