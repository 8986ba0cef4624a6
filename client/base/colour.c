#include "client/base/colour.h"

/* The sequences of refd itself reach the terminal. */
static void add_sequence(struct text *t, const char *sequence)
{
	bool is_shown = t->is_shown;

	t->is_shown = false;
	text_adds(t, sequence);
	t->is_shown = is_shown;
}

void colour_add(struct text *t, enum colour colour, const char *s)
{
	add_sequence(t, colour_begin(colour));
	text_add_visible(t, s);
	add_sequence(t, colour_end(colour));
}
