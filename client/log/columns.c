#include "client/log/columns.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "proto/utf8.h"

#define LEAST_WIDTH 80
#define DOTS        "..."
#define DOTS_WIDTH  3

size_t columns_of_terminal(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint64_t width = 0;

	if ((!columns || !parse_number(columns, 10000, &width)) &&
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		width = size.ws_col;
	return width < LEAST_WIDTH ? LEAST_WIDTH : (size_t)width;
}

static void measure(struct columns *c, size_t i, const char *s)
{
	size_t width = utf8_width(s);

	if (c->widest[i] < width)
		c->widest[i] = width;
}

/* The widest column shrinks, until a line fits or every column has its least
 * width. */
static void fit(const struct columns *c, size_t width[COLUMNS_MAX])
{
	size_t i, total = c->nr - 1, at;

	for (i = 0; i < c->nr; i++) {
		width[i] = c->widest[i];
		total += width[i];
	}
	for (; total > c->width; total--) {
		at = c->nr;
		for (i = 0; i < c->nr; i++)
			if (width[i] > c->list[i].least &&
			    (at == c->nr || width[i] > width[at]))
				at = i;
		if (at == c->nr)
			break;
		width[at]--;
	}
}

static void add_blanks(struct text *t, size_t nr)
{
	for (; nr > 0; nr--)
		text_addc(t, ' ');
}

static void cut(struct text *t, const char *s, size_t width, bool cuts_begin)
{
	size_t nr = utf8_width(s);

	if (nr <= width) {
		text_adds(t, s);
	} else if (cuts_begin) {
		text_adds(t, DOTS);
		text_adds(t, s + utf8_skip(s, nr - (width - DOTS_WIDTH)));
	} else {
		text_add(t, s, utf8_skip(s, width - DOTS_WIDTH));
		text_adds(t, DOTS);
	}
}

/* No blanks follow the last cell. */
static void add_cell(struct text *out, const struct columns *c, size_t i,
    const char *s, size_t width, enum colour colour)
{
	struct text cell = { 0 };
	size_t len;

	cut(&cell, s, width, c->list[i].cuts_begin);
	len = cell.data ? utf8_width(cell.data) : 0;
	if (i > 0)
		text_addc(out, ' ');
	if (c->list[i].is_number)
		add_blanks(out, width - len);
	if (cell.data)
		colour_add(out, colour, cell.data);
	if (!c->list[i].is_number && i + 1 < c->nr)
		add_blanks(out, width - len);
	text_done(&cell);
}

static void add_heading(struct columns *c, const size_t width[],
    struct text *out)
{
	size_t i;

	for (i = 0; i < c->nr; i++)
		add_cell(out, c, i, c->list[i].heading, width[i],
		    COLOUR_HEADING);
	text_addc(out, '\n');
	c->has_heading = true;
}

static const char *cell_text(const struct columns_row *row, size_t i)
{
	return row->cells[i].data ? row->cells[i].data : "";
}

void columns_add(struct columns *c, const struct columns_row *rows, size_t nr,
    struct text *out)
{
	size_t width[COLUMNS_MAX], i, k;

	for (i = 0; i < c->nr; i++) {
		measure(c, i, c->list[i].heading);
		for (k = 0; k < nr; k++)
			measure(c, i, cell_text(&rows[k], i));
	}
	fit(c, width);
	if (nr > 0 && !c->has_heading)
		add_heading(c, width, out);
	for (k = 0; k < nr; k++) {
		for (i = 0; i < c->nr; i++)
			add_cell(out, c, i, cell_text(&rows[k], i), width[i],
			    i + 1 < c->nr ? c->list[i].colour : rows[k].colour);
		text_addc(out, '\n');
		if (rows[k].below.data)
			text_adds(out, rows[k].below.data);
	}
}
