/*
 * Reads a file line by line, because logs and packed-refs may be larger than
 * memory. A writer that replaces the file meanwhile does not matter, because
 * the descriptor keeps the old file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/verify_internal.h"

/* Passes on the lines of BUF, and moves an incomplete line to its front. */
static int hand_out(char *buf, size_t *have, bool at_end, verify_line_fn *fn,
    void *arg)
{
	char *line = buf, *eol;
	int r = 0;

	while (r == 0 &&
	    (eol = memchr(line, '\n', *have - (size_t)(line - buf))) != NULL) {
		*eol = '\0';
		r = fn(arg, line, (size_t)(eol - line), true);
		line = eol + 1;
	}
	*have -= (size_t)(line - buf);
	if (r == 0 && *have > 0 && (at_end || *have == VERIFY_LINE_MAX)) {
		line[*have] = '\0';
		r = fn(arg, line, *have, false);
		*have = 0;
		return r != 0 ? r : 1;
	}
	memmove(buf, line, *have);
	return r;
}

int verify_each_line(const struct sys *sys, int fd, verify_line_fn *fn,
    void *arg)
{
	char *buf = malloc(VERIFY_LINE_MAX + 1);
	size_t have = 0;
	off_t at = 0;
	ssize_t n = 1;
	int r = buf == NULL ? -ENOMEM : 0;

	while (r == 0 && n > 0) {
		n = SYS(sys, pread, fd, buf + have, VERIFY_LINE_MAX - have, at);
		if (n < 0) {
			r = (int)n;
		} else {
			at += n;
			have += (size_t)n;
			r = hand_out(buf, &have, n == 0, fn, arg);
		}
	}
	free(buf);
	return r;
}
