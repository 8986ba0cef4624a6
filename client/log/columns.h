/*
 * A table on a terminal: the cells of a column have the same width, and a long
 * cell is cut, so that a line fits the terminal. The width of a character is
 * one column. One thread; nothing is printed.
 */
#ifndef CLIENT_LOG_COLUMNS_H
#define CLIENT_LOG_COLUMNS_H

#include "client/base/colour.h"
#include "proto/lib/cli.h"

#define COLUMNS_MAX   8
#define COLUMNS_NEVER SIZE_MAX

struct column {
	const char *heading;
	enum colour colour;
	size_t least;    /* not cut below this width; COLUMNS_NEVER: not cut */
	bool cuts_begin; /* a long cell becomes "..." and its end */
	bool is_number;  /* aligned on the right */
};

struct columns {
	const struct column *list;
	size_t nr;
	size_t width; /* of the terminal */
	/* Internal: of the cells until now. */
	size_t widest[COLUMNS_MAX];
	bool has_heading;
};

/* Cells are visible UTF-8. Zero-initialised: all empty. */
struct columns_row {
	struct text cells[COLUMNS_MAX];
	enum colour colour; /* of the last cell */
	struct text below;  /* lines that follow the row */
};

/* The width of the terminal, as in git: $COLUMNS, or the size of the terminal
 * of standard output, or 80. Never below 80. */
size_t columns_of_terminal(void);

/* Appends the rows; before the first rows the heading. Columns get wider with
 * later rows, never narrower. */
void columns_add(struct columns *c, const struct columns_row *rows, size_t nr,
    struct text *out);

#endif
