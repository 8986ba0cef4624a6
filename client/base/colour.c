#include "client/base/colour.h"

void colour_add(struct text *t, enum colour colour, const char *s)
{
	text_adds(t, colour_begin(colour));
	text_add_visible(t, s);
	text_adds(t, colour_end(colour));
}
