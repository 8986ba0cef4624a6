#include "proto/lib/nearest.h"

#include <stdio.h>
#include <string.h>

#define NAME_BYTES 40
#define FAR        3 /* a distance that is not near */
#define FOUND_MAX  3

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* The number of letters to insert, delete, replace or swap with the next, so
 * that A becomes B. Row I has the distances of the first I letters of A. */
static unsigned distance(const char *a, size_t a_len, const char *b,
    size_t b_len)
{
	unsigned rows[NAME_BYTES + 1][NAME_BYTES + 1], d;
	size_t i, k;

	for (k = 0; k <= b_len; k++)
		rows[0][k] = (unsigned)k;
	for (i = 1; i <= a_len; i++) {
		rows[i][0] = (unsigned)i;
		for (k = 1; k <= b_len; k++) {
			d = rows[i - 1][k - 1] + (a[i - 1] != b[k - 1]);
			d = least(d, rows[i - 1][k] + 1);
			d = least(d, rows[i][k - 1] + 1);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] &&
			    a[i - 2] == b[k - 1])
				d = least(d, rows[i - 2][k - 2] + 1);
			rows[i][k] = d;
		}
	}
	return rows[a_len][b_len];
}

/* How far WORD is from NAME. A word that is the beginning of NAME counts as
 * NAME itself. In a short word, two wrong letters say nothing, so the word is
 * FAR. */
static unsigned rank(const char *word, size_t len, const char *name)
{
	size_t name_len = strlen(name);
	unsigned d;

	if (len == 0 || len > NAME_BYTES || name_len > NAME_BYTES)
		return FAR;
	if (strncmp(name, word, len) == 0)
		return 0;
	d = distance(word, len, name, name_len);
	return 2 * d <= len ? d : FAR;
}

void nearest_hint(const char *word, size_t len, const char *dashes,
    const char *const *names, size_t nr, char *buf, size_t size)
{
	const char *found[FOUND_MAX], *joint = "; did you mean ";
	unsigned best = FAR, r;
	size_t i, nr_found = 0, at = 0;

	buf[0] = '\0';
	for (i = 0; i < nr; i++) {
		r = rank(word, len, names[i]);
		if (r < best) {
			best = r;
			nr_found = 0;
		}
		if (r < FAR && r == best && nr_found++ < FOUND_MAX)
			found[nr_found - 1] = names[i];
	}
	if (nr_found > FOUND_MAX)
		return;
	for (i = 0; i < nr_found && at < size; i++) {
		at += (size_t)snprintf(buf + at, size - at, "%s%s%s%s", joint,
		    dashes, found[i], i + 1 == nr_found ? "?" : "");
		joint = i + 2 == nr_found ? " or " : ", ";
	}
}
