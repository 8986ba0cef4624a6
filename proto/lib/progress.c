#include "proto/lib/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/lib/print.h"

#define COLUMNS 79

void progress_show(struct progress_line *p, const char *fmt, ...)
{
	long now = (long)time(NULL);
	char line[COLUMNS + 1];
	va_list ap;

	if (p->second == 0)
		p->second = now;
	if (now == p->second || !isatty(STDERR_FILENO))
		return;
	p->second = now;
	progress_clear(p);
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	print_visible(stderr, line);
	fflush(stderr);
	p->columns = (int)strlen(line);
}

void progress_clear(struct progress_line *p)
{
	if (p->columns > 0) {
		fprintf(stderr, "\r%*s\r", p->columns, "");
		fflush(stderr);
	}
	p->columns = 0;
}
